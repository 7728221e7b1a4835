package models

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tokenizer"
)

// Description describes a model directory; its weights are not read.
type Description struct {
	Family         Family
	Sizes          Sizes
	Heads          []int    // number in each layer with heads, nil if all have Sizes.Heads
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
	Routes         []string            // of a Router: that of Pipeline, then the others
	Unpooled       error               // why no loader accepts these modules, nil if one does
	Late           bool                // the vectors are those of tokens: LoadLateEmbedder

	files []string
}

// Files returns the same paths as Model.Files of the loaded model.
func (d *Description) Files() []string { return slices.Clone(d.files) }

// Describe describes a model directory. It checks names, types and sizes as Load does, but reads
// no weights. It also describes a pipeline that begins with a table, which it reads, or with a Router: the model of
// Options.Route then, whose other files Load finds in its folder.
//
// Errors: those of Load.
func Describe(dir string, o Options) (*Description, error) {
	d, family, err := open(dir, o)
	if err != nil {
		if modules, _ := readModules(dir); tabular(modules) {
			return describePipeline(dir, modules, o)
		}
		return nil, err
	}
	defer d.r.Close()
	n, b, err := plan(d, family.New)
	if err != nil {
		return nil, err
	}
	all := &Description{Family: family, Sizes: n.Sizes()}
	for _, l := range headLayers(n) {
		all.Heads = append(all.Heads, l.Heads().Heads)
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
	all.count(d.r, b.read)
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

// count counts the tensors of a file; the model consists of those that it has read.
func (d *Description) count(r *safetensors.Reader, read map[string]bool) {
	types := map[safetensors.DType]bool{}
	for _, info := range r.Tensors() {
		d.Bytes += info.Len() * info.DType.Bits() / 8
		if read[info.Name] {
			d.Parameters += info.Len()
			types[info.DType] = true
		}
	}
	d.Types, d.Memory = slices.Sorted(maps.Keys(types)), 4*d.Parameters
}

// tabular reports whether a pipeline begins with a table or a Router.
func tabular(modules []module) bool {
	return len(modules) > 0 && modules[0].kind() != "" && !strings.HasSuffix(modules[0].kind(), "Transformer")
}

// describePipeline describes a pipeline that begins with a table or a Router.
func describePipeline(dir string, modules []module, o Options) (d *Description, err error) {
	modules, routes, err := followRoute(dir, modules, o.Route)
	if err != nil {
		return nil, err
	}
	if err := checkModules(modules); err != nil {
		return nil, &FormatError{filepath.Join(dir, PipelineFile), err}
	}
	at := filepath.Join(dir, modules[0].Path)
	if !tabular(modules) {
		o.Route = ""
		if d, err = Describe(at, o); err != nil {
			return nil, err
		}
	} else {
		e, err := LoadEmbedder(dir, o)
		if err != nil {
			return nil, err
		}
		r, err := openWeights(at)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		m := e.Model
		d = &Description{Family: m.Family, Sizes: m.Sizes(), Tokens: m.tokenizer.Size(), files: m.files}
		if e.MostTokens < math.MaxInt32 {
			d.Sizes.Positions = e.MostTokens
		}
		read := map[string]bool{}
		for _, info := range r.Tensors() {
			read[info.Name] = true
		}
		d.count(r, read)
	}
	for _, m := range modules {
		d.Pipeline = append(d.Pipeline, m.kind())
	}
	d.Routes, d.files = routes, appendPipeline(d.files, dir)
	return d, nil
}
