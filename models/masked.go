package models

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// WriteMasked writes the tensors of the model's directory as one safetensors file, in which the
// heads that are not kept have no effect: their columns in the attention's output map are
// zero. The heads of each layer that are kept are given as in Keep. All other values and types are unchanged, except that tensors that training or
// compensation has changed are in float32. With Config as its config.json, any program that can load
// the original can load the file.
//
// Errors: those of safetensors.Open, because the directory is read again; those of w.
func (m *Model) WriteMasked(w io.Writer, heads map[string][]int) error {
	cuts, kept := map[string]cut{}, m.remaining(heads)
	for _, l := range m.Attention() {
		if c := l.Config(); c.Heads > 0 {
			if err := m.cut(cuts, c.Name, l.Out.Weight, kept[c.Name], c.ValueSize, false); err != nil {
				return err
			}
		}
	}
	config, err := m.Config()
	if err != nil {
		return err
	}
	return m.rewrite(w, config, nil, func(*safetensors.Info) {}, func(w io.Writer, x *safetensors.Tensor) error {
		err := cuts[x.Name].pieces(x, func(data []byte, kept bool) error {
			if !kept {
				clear(data) // zero bytes are 0 in every float type
			}
			return nil
		})
		if err == nil {
			_, err = w.Write(x.Data)
		}
		return err
	})
}

// rewrite writes the tensors of the model's directory, or their values in memory if the model is new
// or they have changed, except for some that are gone, as one safetensors file for the given config.json. change may
// set other shapes, and write writes the data of each tensor.
func (m *Model) rewrite(
	w io.Writer, config []byte, gone map[string]bool, change func(*safetensors.Info), write func(w io.Writer, x *safetensors.Tensor) error,
) error {
	s, read := new(safetensors.Stream), func(string) (*safetensors.Tensor, error) { return nil, nil }
	if m.Dir != "" {
		r, err := openWeights(m.Dir)
		if err != nil {
			return err
		}
		defer r.Close()
		s.Metadata, s.Tensors, read = maps.Clone(r.Metadata()), slices.Clone(r.Tensors()), r.Tensor
	}
	if m.Dir == "" || len(m.changed) > 0 {
		inMemory, err := nn.Stream(m, nn.SaveOptions{Names: StateDict})
		if err != nil {
			return err
		}
		at := map[string]int{}
		var list []safetensors.Info
		for i, x := range inMemory.Tensors {
			if m.Dir == "" || m.changed[x.Name] {
				list, at[x.Name] = append(list, x), i
			}
		}
		// A duplicate of a tied tensor was not trained, and loaders do not need it. Tensors that
		// were not read are kept, for example those of an image model.
		trained := m.trained()
		s.Tensors = slices.DeleteFunc(s.Tensors, func(x safetensors.Info) bool {
			_, mine := at[x.Name]
			return mine || trained && slices.Contains(m.tied, x.Name)
		})
		s.Tensors = append(s.Tensors, list...)
		others := read
		read = func(name string) (*safetensors.Tensor, error) {
			n, ok := at[name]
			if !ok {
				return others(name)
			}
			var data bytes.Buffer
			err := inMemory.Data(&data, n)
			x := inMemory.Tensors[n]
			return &safetensors.Tensor{Name: name, DType: x.DType, Shape: x.Shape, Data: data.Bytes()}, err
		}
	}
	if len(s.Metadata) == 0 {
		s.Metadata = map[string]string{"format": "pt"} // which some loaders require
	}
	if _, ok := s.Metadata[configKey]; ok {
		s.Metadata[configKey] = compacted(string(config))
	}
	s.Tensors = slices.DeleteFunc(s.Tensors, func(x safetensors.Info) bool { return gone[x.Name] })
	slices.SortStableFunc(s.Tensors, func(a, b safetensors.Info) int { return b.DType.Bits() - a.DType.Bits() }) // this keeps the alignment
	for i := range s.Tensors {
		change(&s.Tensors[i])
	}
	s.Data = func(w io.Writer, i int) error {
		x, err := read(s.Tensors[i].Name)
		if err != nil {
			return err
		}
		return write(w, x)
	}
	return s.Write(w)
}

// entry returns the file entry that contains a parameter of a layer, and the row at which the
// parameter begins.
func (m *Model) entry(layer string, x *tensor.Tensor) (e nn.Entry, from int, err error) {
	for _, e := range m.dict {
		from := 0
		for _, part := range e.Parts {
			if part == x {
				return e, from, nil
			}
			from += part.Dim(0)
		}
	}
	return e, 0, fmt.Errorf("models: layer %s has a projection without a tensor in the file", quote.Text(layer))
}
