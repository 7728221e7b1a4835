package models

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Compact is a pruned model without the weights of the removed heads, which makes it smaller and
// faster.
type Compact struct {
	Config []byte // the text of config.json
	Loads  string // which programs can load it, as text for users
	model  *Model
	others map[*tensor.Tensor]*tensor.Tensor
}

// Compact returns the model with only some heads of each layer, as in Keep. Its Config is the directory's config.json
// with the remaining number of heads: see HeadPruning.
//
// Errors: a model loaded without Options.Trainable; a family whose layers cannot have fewer heads.
func (m *Model) Compact(heads map[string][]int) (*Compact, error) {
	if err := m.WantTrainable("models: Compact"); err != nil {
		return nil, err
	}
	layers, err := m.keepLayers(heads)
	if err != nil {
		return nil, err
	}
	set, loads := m.fewer(m.remaining(heads))
	others := map[*tensor.Tensor]*tensor.Tensor{}
	for i, l := range headLayers(m.Network) {
		cut, ok := layers[i].(cuttable)
		if !ok {
			continue
		}
		less := maps.Collect(iter.Seq2[string, *tensor.Tensor](cut.Params()))
		for name, p := range l.(cuttable).Params() {
			if q := less[name]; q != p {
				others[p] = q
			}
		}
		if l, ok := l.(softmaxHeads); ok && cut.Heads().Heads == 0 {
			if score, scored := l.Config().Score.(nn.Module); scored {
				for _, p := range score.Params() {
					others[p] = nil
				}
			}
		}
	}
	return &Compact{m.config(set, m.trained()), loads, m, others}, nil
}

// Parameters returns the number of parameters.
func (c *Compact) Parameters() int {
	n := nn.Count(c.model)
	for was, less := range c.others {
		if n -= was.Len(); less != nil {
			n += less.Len()
		}
	}
	return n
}

// Write writes the tensors of the model's directory as one safetensors file, without the removed
// heads. All other values are the same as in WriteMasked.
//
// Errors: those of WriteMasked.
func (c *Compact) Write(w io.Writer) error { return c.model.rewrite(w, c.Config, c.others) }

// Config returns the text of the config.json for the file of WriteMasked. It is the directory's
// own, except for the data type if tensors other than output maps have changed.
func (m *Model) Config() []byte { return m.config(nil, m.trained()) }

// fewer returns the settings that describe the remaining heads, with nil for a setting to remove,
// and which programs can load a model with them.
func (m *Model) fewer(kept map[string][]int) (set map[string]any, loads string) {
	const everywhere = "any program that loads the original"
	gone, removed, empty := map[string][]int{}, false, false
	counts, equal := map[string]int{}, true
	for _, l := range headLayers(m.Network) {
		h := l.Heads()
		left := kept[h.Name]
		removed = removed || len(left) < h.Heads
		was := m.lost.layers[h.Name]
		numbers := stats.Pick(m.HeadNumbers(h.Name), left)
		for n := range was.heads {
			if !slices.Contains(numbers, n) {
				gone[was.key] = append(gone[was.key], n)
			}
		}
		if len(left) == 0 {
			empty = true
			continue
		}
		for key, n := range l.(cuttable).counts(len(left)) {
			if other, ok := counts[key]; ok && other != n {
				equal = false
			}
			counts[key] = n
		}
	}
	if !removed {
		return nil, everywhere
	}
	set = map[string]any{prunedHeads: nil}
	switch {
	case m.Family.Pruning == NamedHeads:
		set[prunedHeads], loads = gone, "attn, and its interop/torch"
	case m.Family.Pruning == PrunedHeads && empty:
		set[prunedHeads], loads = gone, "attn only: a layer has no heads"
	case m.Family.Pruning == PrunedHeads:
		set[prunedHeads], loads = gone, "attn, and transformers before version 5, by pruned_heads"
	case empty || !equal:
		set[prunedHeads], loads = gone, "attn only: layers have different numbers of heads"
	default:
		for key, n := range counts {
			set[key] = n
		}
		loads = everywhere
		if n, width := counts["num_attention_heads"], m.Sizes().Width; n > 0 && width%n != 0 {
			loads = fmt.Sprintf("programs that accept a number of heads (%d) that does not divide hidden_size (%d), such as transformers before version 5", n, width)
		}
	}
	return set, loads
}

// config returns the text of config.json with the given settings changed; a nil value removes a
// setting. In a model that also reads images, these are settings of the text model. If float32s is true, the data type is
// set to float32.
func (m *Model) config(set map[string]any, float32s bool) []byte {
	all, text := maps.Clone(m.Settings.values), m.Settings.parts[textConfig]
	to, changed := all, len(set) > 0
	if text != nil {
		to = maps.Clone(text.values)
	}
	for _, part := range []map[string]json.RawMessage{all, to} {
		for _, key := range []string{"dtype", "torch_dtype"} {
			if _, ok := part[key]; ok && float32s {
				part[key], changed = json.RawMessage(`"float32"`), true
			}
		}
	}
	if !changed {
		return m.Settings.data
	}
	for key, value := range set {
		if to[key] = compactJSON(value); value == nil {
			delete(to, key)
		}
	}
	if text != nil {
		all[textConfig] = plainJSON(to)
	}
	return m.Settings.pythonic(plainJSON(all))
}

// plainJSON returns data as indented JSON without HTML escapes. It panics if that is impossible.
func plainJSON(data any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(data); err != nil {
		panic("models: " + err.Error())
	}
	return b.Bytes()
}

// WithHeads returns the model as a network with only the given heads of each layer, as in Keep. It shares all other
// parameters with the model.
//
// Errors: those of Keep.
func (m *Model) WithHeads(kept map[string][]int) (Network, error) {
	layers, err := m.keepLayers(kept)
	if err != nil {
		return nil, err
	}
	next := func() (l headLayer) {
		l, layers = layers[0], layers[1:]
		return l
	}
	switch whole := m.Network.(type) {
	case *stack:
		return whole.with(next), nil
	case transformer:
		e := *whole.encoderDecoder
		e.source, e.target = e.source.with(next), e.target.with(next)
		return transformer{&e}, nil
	case *recurrent:
		m := *whole
		if m.cross != nil {
			m.cross = next().(softmaxHeads).MultiHead
		}
		return &m, nil
	}
	return nil, fmt.Errorf("models: WithHeads: a network of type %T, want one of this package", m.Network)
}

// with returns a copy of the stack with other attention layers.
func (s *stack) with(next func() headLayer) *stack {
	small := *s
	small.blocks = make([]*block, len(s.blocks))
	for i, b := range s.blocks {
		less := *b
		if b.self != nil {
			less.self = next().(softmaxHeads).MultiHead
		}
		if b.cross != nil {
			less.cross = next().(softmaxHeads).MultiHead
		}
		if _, ok := b.mixer.(headLayer); ok {
			less.mixer = next().(mixer)
		}
		small.blocks[i] = &less
	}
	return &small
}
