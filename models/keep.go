package models

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Keep returns a copy of a model with only the given heads of each layer. Heads are in ascending
// order and numbered from 0 as in m.HeadLayers; a layer that is not in the map keeps all heads. The
// parameters of the other heads are removed, so the copy is smaller and faster. Its output is that of
// m with gates of 0 for these heads, within rounding. A layer with a softmax may lose all its heads.
// WriteMasked and Compact do the same for files.
//
// Errors: a model loaded without Options.Trainable, or of a family whose layers cannot have fewer
// heads; a layer that does not exist; numbers that are out of range or not ascending; only some of the heads that are kept
// or removed together; no heads of a layer with a state, or fewer under a norm of all heads together.
func (m *Model) Keep(kept map[string][]int) (*Model, error) {
	if err := m.WantTrainable("models: Keep"); err != nil {
		return nil, err
	}
	layers, err := m.keepLayers(kept)
	if err != nil {
		return nil, fmt.Errorf("models: Keep: %w", err)
	}
	set, _ := m.fewer(m.remaining(kept))
	small, err := m.like(m.config(set, m.trained()))
	if err != nil {
		return nil, fmt.Errorf("models: Keep: %w", err)
	}
	small.Dir, small.files, small.tied, small.changed = "", nil, nil, nil
	for i, l := range headLayers(small.Network) {
		if less, ok := layers[i].(cuttable); ok {
			copyParams(l.(cuttable).Params(), less.Params())
		}
	}
	return small, nil
}

// headLayer is a layer whose heads have weights: softmaxHeads, or a mixer.
type headLayer interface{ Heads() attn.LayerHeads }

// cuttable is a headLayer that can have fewer heads.
type cuttable interface {
	headLayer
	nn.Module
	// keep returns the layer with only the given heads.
	keep(heads []int) (cuttable, error)
	// counts returns the settings of layers of this kind that have the given number of heads.
	counts(heads int) map[string]int
}

// headLayers returns the layers of a network that have heads.
func headLayers(n Network) (all []headLayer) {
	s, ok := n.(*stack)
	if !ok {
		for _, l := range n.Attention() {
			all = append(all, softmaxHeads{l})
		}
		return all
	}
	for _, b := range s.blocks {
		if b.self != nil {
			all = append(all, softmaxHeads{b.self})
		}
		if l, ok := b.mixer.(headLayer); ok {
			all = append(all, l)
		}
	}
	return all
}

// softmaxHeads is an attention layer as a cuttable.
type softmaxHeads struct{ *attn.MultiHead }

func (l softmaxHeads) keep(heads []int) (cuttable, error) {
	less, err := l.Keep(heads)
	return softmaxHeads{less}, err
}

func (l softmaxHeads) counts(heads int) map[string]int {
	c := l.Config()
	return map[string]int{"num_attention_heads": heads, "num_key_value_heads": heads * c.KVHeads / c.Heads, "head_dim": c.HeadSize}
}

// keepLayers returns the layers of a model that have heads, with only the given heads of each, as in Keep.
func (m *Model) keepLayers(kept map[string][]int) ([]headLayer, error) {
	if m.Family.Pruning == NoPruning {
		return nil, fmt.Errorf("layers of %s cannot have fewer heads: config.json has no setting for it", m.Family.Name)
	}
	layers := headLayers(m.Network)
	known := 0
	for i, l := range layers {
		h := l.Heads()
		left, some := kept[h.Name]
		if some {
			known++
		}
		if !some || slices.Equal(left, stats.Numbers(h.Heads)) {
			continue
		}
		c, ok := l.(cuttable)
		if !ok {
			return nil, fmt.Errorf("layer %s cannot have fewer heads", quote.Text(h.Name))
		}
		var err error
		if layers[i], err = c.keep(left); err != nil {
			return nil, err
		}
	}
	if known < len(kept) {
		return nil, fmt.Errorf("layers %s, want only layers of the model", quote.Texts(slices.Sorted(maps.Keys(kept))))
	}
	return layers, nil
}

// remaining returns the heads of each layer that are left: those of kept, or all of a layer that is not in it.
func (m *Model) remaining(kept map[string][]int) map[string][]int {
	all := map[string][]int{}
	for _, l := range m.HeadLayers() {
		left, some := kept[l.Name]
		if !some && l.Heads > 0 {
			left = stats.Numbers(l.Heads)
		}
		all[l.Name] = slices.Clone(left)
	}
	return all
}

// like returns a copy of a model with other settings. Parameters of another shape are 0.
func (m *Model) like(config []byte) (*Model, error) {
	s := &Settings{path: m.Settings.path, wrong: new([]error)}
	if err := s.parse(config); err != nil {
		return nil, err
	}
	b := newBuilder(&directory{settings: s, tokens: m.options.Tokens}, false)
	b.model = m
	n := m.Family.New(b)
	b.checkLost(s)
	if err := b.finish(); len(*s.wrong) > 0 || err != nil {
		return nil, errors.Join(append(*s.wrong, err)...)
	}
	other := *m
	other.Network, other.Settings, other.params, other.dict, other.lost = n, s, b.params, b.dict, b.lost
	parts := map[string][]*tensor.Tensor{}
	for _, e := range m.dict {
		parts[e.Name] = e.Parts
	}
	for _, e := range other.dict {
		for i, x := range parts[e.Name] {
			if slices.Equal(e.Parts[i].Shape(), x.Shape()) {
				copy(e.Parts[i].Data(), x.Data())
			}
		}
	}
	return &other, nil
}

// copyParams copies the parameters that have the same name and shape in both.
func copyParams(to, from nn.Params) {
	have := maps.Collect(iter.Seq2[string, *tensor.Tensor](from))
	for name, p := range to {
		if f := have[name]; f != nil && slices.Equal(f.Shape(), p.Shape()) {
			copy(p.Data(), f.Data())
		}
	}
}

// ErrDiverged means that the loss or the gradient of a training step is not finite. The step has not
// changed the parameters.
var ErrDiverged = errors.New("the loss has diverged; a smaller learning rate may help")

// Change calls change with a copy of a model, whose parameters it may change. The files of the copy have these
// parameters in float32.
//
// Errors: a model loaded without Options.Trainable; the error of change.
func (m *Model) Change(change func(own *Model) error) error {
	if err := m.WantTrainable("models: Change"); err != nil {
		return err
	}
	own, err := m.like(m.Settings.data)
	if err != nil {
		return err
	}
	own.changed = map[string]bool{}
	maps.Copy(own.changed, m.changed)
	err = change(own)
	for i, e := range own.dict {
		for j, x := range e.Parts {
			if !slices.Equal(x.Data(), m.dict[i].Parts[j].Data()) {
				own.changed[e.Name] = true
			}
		}
	}
	return err
}

// trained reports whether tensors other than the output maps of layers differ from those in the directory.
func (m *Model) trained() bool {
	var outputs []*tensor.Tensor
	for _, l := range m.HeadLayers() {
		outputs = append(outputs, l.Out.Weight, l.Out.Bias)
	}
	return slices.ContainsFunc(m.dict, func(e nn.Entry) bool {
		return m.changed[e.Name] && !slices.Contains(outputs, e.Parts[0])
	})
}
