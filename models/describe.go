package models

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tokenizer"
)

// Description describes a model directory; its weights are not read.
type Description struct {
	Family         Family
	Sizes          Sizes
	Heads          []int    // number in each attention layer, nil if all have Sizes.Heads
	Kinds          []string // of the layers of a hybrid, such as "linear_attention"; nil if all are attention
	Task           Task     // of the logits; empty if there is no head
	Labels         []string
	Parameters     int                 // numbers in the tensors of the model
	Bytes          int                 // of the tensors in the file
	Types          []safetensors.DType // of the tensors
	Memory         int                 // bytes of the parameters in memory, as float32
	Tokens         int                 // size of the tokenizer's vocabulary
	TokenizerError error               // why there is no tokenizer, nil if there is one
	Pipeline       []string            // class names of the sentence-transformers modules, nil if none
	Unpooled       error               // why no loader accepts these modules, nil if one does
	Late           bool                // the vectors are those of tokens: LoadLateEmbedder

	files []string
}

// Files returns the same paths as Model.Files of the loaded model.
func (d *Description) Files() []string { return slices.Clone(d.files) }

// Describe describes a model directory. It checks names, types and sizes as Load does, but reads
// no weights.
//
// Errors: those of Load.
func Describe(dir string, o Options) (*Description, error) {
	d, family, err := open(dir, o)
	if err != nil {
		return nil, err
	}
	defer d.r.Close()
	n, b, err := plan(d, family.New)
	if err != nil {
		return nil, err
	}
	all := &Description{Family: family, Sizes: n.Sizes()}
	for _, l := range n.Attention() {
		all.Heads = append(all.Heads, l.Config().Heads)
	}
	if len(b.lost.kept) == 0 {
		all.Heads = nil
	}
	if s, ok := n.(*stack); ok {
		all.Kinds = s.kinds()
	}
	if h := n.Head(); h != nil {
		all.Task, all.Labels = h.Task, h.Labels
	}
	types := map[safetensors.DType]bool{}
	for _, info := range d.r.Tensors() {
		all.Bytes += info.Len() * info.DType.Bits() / 8
		if b.read[info.Name] {
			all.Parameters += info.Len()
			types[info.DType] = true
		}
	}
	all.Types = slices.Sorted(maps.Keys(types))
	all.Memory = 4 * all.Parameters
	all.Late = IsLate(dir)
	modules, err := readModules(dir)
	switch {
	case err == nil:
		for _, m := range modules {
			all.Pipeline = append(all.Pipeline, cmp.Or(m.kind(), m.Type))
		}
		switch all.Late = all.Late && !hasM3(dir); {
		case all.Late:
			all.Unpooled = new(lateSettings).readPipeline(dir, modules)
		case all.Task != NextWord || !isScore(modules): // of a Classifier
			all.Unpooled = checkModules(modules)
		}
	case errors.As(err, new(*FormatError)):
		return nil, err
	}
	if err := (&Model{Dir: dir, options: o}).readBeside(); err != nil {
		return nil, err
	}
	t, untokened := tokenizer.Load(dir)
	if all.TokenizerError = untokened; t != nil {
		all.Tokens = t.Size()
	}
	all.files = d.files(t, untokened)
	return all, nil
}
