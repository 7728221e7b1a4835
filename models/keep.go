package models

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Keep returns a copy of a model with only the given heads of each layer. Heads are in ascending
// order and numbered from 0 as in m.Attention; a layer that is not in the map keeps all heads. The
// parameters of the other heads are removed, so the copy is smaller and faster. Its output is that of
// m with gates of 0 for these heads, within rounding. A layer may lose all its heads. Probe.Without
// and Probe.Compact do the same for files.
//
// Errors: a model loaded without Options.Trainable, or of a family whose layers cannot have fewer
// heads; a layer that does not exist; numbers that are out of range or not ascending.
func (m *Model) Keep(kept map[string][]int) (*Model, error) {
	if err := m.wantTrainable("Keep"); err != nil {
		return nil, err
	}
	p := &Probe{model: m, kept: map[string][]int{}}
	known := 0
	if m.Family.Pruning == NoPruning {
		return nil, fmt.Errorf("models: Keep: layers of %s cannot have fewer heads", m.Family.Name)
	}
	for _, l := range m.Attention() {
		c := l.Config()
		left, some := kept[c.Name]
		if !some {
			left = stats.Numbers(c.Heads)
		} else if _, err := l.Keep(left); err != nil {
			return nil, fmt.Errorf("models: Keep: %w", err)
		} else {
			known++
		}
		p.kept[c.Name] = slices.Clone(left)
	}
	if known < len(kept) {
		return nil, fmt.Errorf("models: Keep: layers %s, want only layers of the model",
			quote.Texts(slices.Sorted(maps.Keys(kept))))
	}
	if err := p.renew(); err != nil {
		return nil, fmt.Errorf("models: Keep: %w", err)
	}
	set, _ := p.fewer()
	text, err := m.config(set, m.trained())
	if err != nil {
		return nil, fmt.Errorf("models: Keep: %w", err)
	}
	small, err := m.like(text)
	if err != nil {
		return nil, fmt.Errorf("models: Keep: %w", err)
	}
	copyParams(small.params.Params(), m.params.Params())
	for i, l := range small.Attention() {
		copyParams(l.Params(), p.layers[i].Params())
	}
	return small, nil
}

// like returns a model with other settings and parameters of 0, but with the same tokenizer and optional tensors.
func (m *Model) like(config []byte) (*Model, error) {
	s := &Settings{path: m.Settings.path, wrong: new([]error)}
	if err := s.parse(config); err != nil {
		return nil, err
	}
	b := newBuilder(&directory{settings: s}, false)
	b.model = m
	n := m.Family.New(b)
	b.checkLost(s)
	if err := b.finish(); len(*s.wrong) > 0 || err != nil {
		return nil, errors.Join(append(*s.wrong, err)...)
	}
	small := newModel(n, b, m.Family, m.options)
	small.tokenizer, small.untokened, small.limit = m.tokenizer, m.untokened, m.limit
	small.beside = m.beside
	return small, nil
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

// Change gives p its own copy of the model and calls change with it, which may change the parameters.
// Other probes of the model do not change.
//
// Errors: those of Load, because the directory of a model is read again; the error of change.
func (p *Probe) Change(change func(m *Model) error) error {
	m, err := p.model.copied()
	if err != nil {
		return err
	}
	if p.aim, err = p.aim.onModel(m); err != nil {
		return err
	}
	before := p.model
	p.model, m.changed = m, map[string]bool{}
	maps.Copy(m.changed, before.changed)
	if err := p.renew(); err != nil {
		return err
	}
	err = cmp.Or(change(m), p.renew())
	for i, e := range m.dict {
		for j, x := range e.Parts {
			if !slices.Equal(x.Data(), before.dict[i].Parts[j].Data()) {
				m.changed[e.Name] = true
			}
		}
	}
	return err
}

// trained reports whether tensors other than the output maps of layers differ from those in the directory.
func (m *Model) trained() bool {
	others := maps.Clone(m.changed)
	for _, l := range m.Attention() {
		for _, x := range l.Out.Params() {
			if e, _, err := m.entry(l.Config().Name, x); err == nil {
				delete(others, e.Name)
			}
		}
	}
	return len(others) > 0
}

// copied returns a copy of a model.
func (m *Model) copied() (*Model, error) {
	if m.Dir == "" {
		return m.Keep(nil)
	}
	same, err := Load(m.Dir, m.options)
	if err != nil {
		return nil, err
	}
	for i, x := range same.params {
		copy(x.Tensor.Data(), m.params[i].Tensor.Data())
	}
	return same, nil
}
