package models

import (
	"fmt"
	"io"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
)

// WriteMasked writes the tensors of the model's directory as one safetensors file, in which
// the heads that Without took away contribute nothing: their columns of the last map of
// the attention are zero. All else is as it was to the bit, in the types that it had, so
// the file goes with the same config.json and loads wherever the original does.
//
// Errors: those of safetensors.Open, for the directory is read again; those of w.
func (p *Probe) WriteMasked(w io.Writer) error {
	r, err := safetensors.Open(p.model.Dir)
	if err != nil {
		return err
	}
	defer r.Close()
	gone := map[string][]span{} // by tensor, what becomes zero
	for _, l := range p.model.Attention() {
		e, err := p.model.entry(l)
		if err != nil {
			return err
		}
		gone[e.Name] = columns(l.Config(), p.Kept()[l.Config().Name], e.Transposed)
	}
	s := &safetensors.Stream{Metadata: r.Metadata(), Tensors: r.Tensors()}
	if len(s.Metadata) == 0 {
		s.Metadata = map[string]string{"format": "pt"} // which some loaders insist on
	}
	slices.SortStableFunc(s.Tensors, func(a, b safetensors.Info) int { return b.DType.Bits() - a.DType.Bits() }) // as aligned as they were
	s.Data = func(w io.Writer, i int) error {
		x, err := r.Tensor(s.Tensors[i].Name)
		if err != nil {
			return err
		}
		size := x.DType.Bits() / 8
		for _, cut := range gone[x.Name] {
			clear(x.Data[cut.from*size : cut.to*size]) // 0 of every type of floats
		}
		_, err = w.Write(x.Data)
		return err
	}
	return s.Write(w)
}

// entry returns the entry of the file with the last map of a layer.
func (m *Model) entry(l *attn.MultiHead) (nn.Entry, error) {
	i := slices.IndexFunc(m.dict, func(e nn.Entry) bool { return len(e.Parts) == 1 && e.Parts[0] == l.Out.Weight })
	if i < 0 {
		return nn.Entry{}, fmt.Errorf("models: WriteMasked: layer %q has no tensor of its own for its last map", l.Config().Name)
	}
	return m.dict[i], nil
}

// span is elements of a tensor.
type span struct{ from, to int }

// columns returns where the weights of heads that are not kept stand in the last map, [D
// H·E], or [H·E D] if it is transposed.
func columns(c attn.MultiHeadConfig, kept []int, transposed bool) []span {
	var list []span
	for h := range c.Heads {
		if slices.Contains(kept, h) {
			continue
		}
		if first := h * c.ValueSize; transposed {
			list = append(list, span{first * c.OutWidth, (first + c.ValueSize) * c.OutWidth})
		} else {
			for row := range c.OutWidth {
				at := row*c.Heads*c.ValueSize + first
				list = append(list, span{at, at + c.ValueSize})
			}
		}
	}
	return list
}
