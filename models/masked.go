package models

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
)

// WriteMasked writes the tensors of the model's directory as one safetensors file, in which the
// heads that are not kept have no effect: their columns in the attention's output map are
// zero. The heads of each layer that are kept are given as in Keep. All other values and types are unchanged, except that
// tensors that training or compensation has changed are in float32, and that values of type F64 in layers that lose heads
// are those of float32, in which models compute. With Config as its config.json, any program that can load the original
// can load the file.
//
// Errors: a model loaded without Options.Trainable; different heads of layers that share parameters, as in ALBERT; those of
// safetensors.Open, because the directory is read again; those
// of w.
func (m *Model) WriteMasked(w io.Writer, heads map[string][]int) error {
	if err := m.WantTrainable("models: WriteMasked"); err != nil {
		return err
	}
	others, kept := map[*tensor.Tensor]*tensor.Tensor{}, m.remaining(heads)
	layers := m.HeadLayers()
	for _, l := range layers {
		if len(kept[l.Name]) == l.Heads {
			continue
		}
		masked := l.Out.Weight.Clone() // [D H·V]
		for i := range masked.Data() {
			if head := i % masked.Dim(1) * l.Heads / masked.Dim(1); !slices.Contains(kept[l.Name], head) {
				masked.Data()[i] = 0
			}
		}
		for _, other := range layers {
			if o := other.Name; other.Out == l.Out && !slices.Equal(kept[o], kept[l.Name]) {
				return &FormatError{m.Dir, fmt.Errorf("layers %q and %q share their output map, want the same heads of both", l.Name, o)}
			}
		}
		others[l.Out.Weight] = masked
	}
	return m.rewrite(w, m.Config(), others)
}

// rewrite writes the tensors of the model's directory as one safetensors file for the given config.json. Tensors that have
// changed, or all if the model is new, have their values in memory, as float32. others are values for parameters of
// attention layers, in the types of the file, and nil for parameters to leave out.
func (m *Model) rewrite(w io.Writer, config []byte, others map[*tensor.Tensor]*tensor.Tensor) error {
	s, read := new(safetensors.Stream), func(string) (*safetensors.Tensor, error) { return nil, nil }
	if m.Dir != "" {
		r, err := openWeights(m.Dir)
		if err != nil {
			return err
		}
		defer r.Close()
		s.Metadata, s.Tensors, read = maps.Clone(r.Metadata()), r.Tensors(), r.Tensor
	}
	if len(s.Metadata) == 0 {
		s.Metadata = map[string]string{"format": "pt"} // which some loaders require
	}
	if _, ok := s.Metadata[configKey]; ok {
		s.Metadata[configKey] = compacted(string(config))
	}
	place, types := map[string]int{}, map[string]safetensors.DType{}
	for i, x := range s.Tensors {
		if !m.changed[x.Name] {
			place[x.Name], types[x.Name] = i-len(s.Tensors), x.DType // those that have changed come last
		}
	}
	replaced, inMemory := 0, map[string]*safetensors.Stream{} // of one tensor each, nil for one that is left out
	for _, e := range m.dict {
		parts := slices.Clone(e.Parts)
		for i, p := range e.Parts {
			if other, ok := others[p]; ok {
				parts[i], replaced = other, replaced+1
			}
		}
		if m.Dir != "" && !m.changed[e.Name] && slices.Equal(parts, e.Parts) {
			continue
		}
		inMemory[e.Name] = nil
		if parts[0] == nil {
			continue
		}
		if e.Interleaved > 0 { // blocks of heads, some of which may be left out
			e.Interleaved = e.Interleaved * parts[0].Dim(0) / e.Parts[0].Dim(0)
		}
		e.Parts = parts
		one, err := statedict.Stream(m, statedict.SaveOptions{
			Names: func(nn.Module) (nn.StateDict, error) { return nn.StateDict{e}, nil }, DType: types[e.Name],
		})
		if err != nil {
			return err
		}
		inMemory[e.Name] = one
	}
	if replaced < len(others) {
		return fmt.Errorf("models: %s has attention layers with parameters without a tensor in the file", m.Family.Name)
	}
	// A duplicate of a tied tensor was not trained, and loaders do not need it. Tensors that
	// were not read are kept, for example those of an image model.
	trained := m.trained()
	s.Tensors = slices.DeleteFunc(s.Tensors, func(x safetensors.Info) bool {
		_, other := inMemory[x.Name]
		return other || trained && slices.Contains(m.tied, x.Name)
	})
	for _, one := range inMemory {
		if one != nil {
			s.Tensors = append(s.Tensors, one.Tensors...)
		}
	}
	slices.SortFunc(s.Tensors, func(a, b safetensors.Info) int { // those with more bits first: this keeps the alignment
		return cmp.Or(b.DType.Bits()-a.DType.Bits(), place[a.Name]-place[b.Name], cmp.Compare(a.Name, b.Name))
	})
	s.Data = func(w io.Writer, i int) error {
		if one := inMemory[s.Tensors[i].Name]; one != nil {
			return one.Data(w, 0)
		}
		x, err := read(s.Tensors[i].Name)
		if err == nil {
			_, err = w.Write(x.Data)
		}
		return err
	}
	return s.Write(w)
}
