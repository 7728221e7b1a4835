package models

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/attn-go/attn"
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
	if m.Family.Pruning == NoPruning {
		return nil, fmt.Errorf("layers of %s cannot have fewer heads: config.json has no setting for it", m.Family.Name)
	}
	set, loads := m.fewer(m.remaining(heads))
	layers, err := m.KeepLayers(heads)
	if err != nil {
		return nil, err
	}
	others := map[*tensor.Tensor]*tensor.Tensor{}
	for i, l := range m.Attention() {
		less := maps.Collect(iter.Seq2[string, *tensor.Tensor](layers[i].Params()))
		score, scored := l.Config().Score.(nn.Module)
		for name, p := range l.Params() {
			if q := less[name]; q != p {
				others[p] = q
			}
		}
		if scored && layers[i].Config().Heads == 0 {
			for _, p := range score.Params() {
				others[p] = nil
			}
		}
	}
	return &Compact{m.config(set, m.trained()), loads, m, others}, nil
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
	gone, counts := map[string][]int{}, map[int]bool{} // removed heads by layer; the different head counts
	group, removed := 1, false
	for i, l := range m.Attention() {
		c := l.Config()
		counts[len(kept[c.Name])] = true
		removed = removed || len(kept[c.Name]) < c.Heads
		if c.Heads > 0 {
			group = c.Heads / c.KVHeads
		}
		key := strconv.Itoa(i)
		if m.Family.Pruning == NamedHeads {
			key = c.Name
		}
		left := stats.Pick(m.HeadNumbers(c.Name), kept[c.Name])
		for h := range m.Sizes().Heads {
			if !slices.Contains(left, h) {
				gone[key] = append(gone[key], h)
			}
		}
	}
	if !removed {
		return nil, everywhere
	}
	set = map[string]any{prunedHeads: nil}
	equal := slices.Collect(maps.Keys(counts))
	switch {
	case m.Family.Pruning == NamedHeads:
		set[prunedHeads], loads = gone, "attn, and its interop/torch"
	case m.Family.Pruning == PrunedHeads && counts[0]:
		set[prunedHeads], loads = gone, "attn only: a layer has no heads"
	case m.Family.Pruning == PrunedHeads:
		set[prunedHeads], loads = gone, "attn, and transformers before version 5, by pruned_heads"
	case len(equal) > 1 || equal[0] == 0:
		set[prunedHeads], loads = gone, "attn only: layers have different numbers of heads"
	default:
		z := m.Sizes()
		set["num_attention_heads"], set["num_key_value_heads"], set["head_dim"], loads = equal[0], equal[0]/group, z.HeadSize, everywhere
		if z.Width%equal[0] != 0 {
			loads = fmt.Sprintf("programs that accept a number of heads (%d) that does not divide hidden_size (%d), such as transformers before version 5", equal[0], z.Width)
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
	return plainJSON(all)
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

// WithLayers returns the model as a network with other attention layers, such as those of KeepLayers. It shares
// all other parameters with the model. ok is false if layers of the model's family cannot have
// fewer heads.
func (m *Model) WithLayers(layers []*attn.MultiHead) (n Network, ok bool) {
	if m.Family.Pruning == NoPruning {
		return nil, false
	}
	next := func() (l *attn.MultiHead) {
		l, layers = layers[0], layers[1:]
		return l
	}
	switch whole := m.Network.(type) {
	case *stack:
		return whole.with(next), true
	case transformer:
		e := *whole.encoderDecoder
		e.source, e.target = e.source.with(next), e.target.with(next)
		return transformer{&e}, true
	case *recurrent:
		m := *whole
		if m.cross != nil {
			m.cross = next()
		}
		return &m, true
	}
	return nil, false
}

// with returns a copy of the stack with other attention layers.
func (s *stack) with(next func() *attn.MultiHead) *stack {
	small := *s
	small.blocks = make([]*block, len(s.blocks))
	for i, b := range s.blocks {
		less := *b
		if b.self != nil {
			less.self = next()
		}
		if b.cross != nil {
			less.cross = next()
		}
		small.blocks[i] = &less
	}
	return &small
}
