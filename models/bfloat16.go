package models

import (
	"slices"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// storedMatrix is a tensor of the file that is held in bfloat16: parts that stand one behind
// the other along their outputs.
type storedMatrix struct {
	name       string // in the file
	transposed bool   // the file has [in out]
	parts      []*tensor.BFloat16
}

// matrix returns a matrix [out in] in bfloat16, nil while nothing is read.
func (b *Builder) matrix(name string, transposed bool, in, out int) []*tensor.BFloat16 {
	rows, columns := out, in
	if transposed {
		rows, columns = in, out
	}
	if !b.want(name, rows, columns) || b.plan {
		return []*tensor.BFloat16{nil}
	}
	return b.stored(name, transposed, in, out)
}

// stored returns the parts of a matrix that fits.
func (b *Builder) stored(name string, transposed bool, in int, outs ...int) []*tensor.BFloat16 {
	m := storedMatrix{name: b.prefix + name, transposed: transposed}
	for _, out := range outs {
		m.parts = append(m.parts, tensor.NewBFloat16(out, in))
	}
	b.matrices = append(b.matrices, m)
	b.Unread(m.name) // by nn.LoadFrom
	return m.parts
}

// readMatrices reads what is held in bfloat16.
func (b *Builder) readMatrices() error {
	const most = 1 << 16 // numbers at a time, or one row
	var buffer []float32
	for _, m := range b.matrices {
		info, _ := b.r.Lookup(m.name)
		rows, columns := info.Shape[0], info.Shape[1]
		step := max(1, most/columns)
		for at := 0; at < rows; at += step {
			n := min(step, rows-at)
			if len(buffer) < n*columns {
				buffer = make([]float32, n*columns)
			}
			if err := b.r.ReadFloat32s(m.name, buffer[:n*columns], at*columns); err != nil {
				return err
			}
			m.set(at, buffer[:n*columns], columns)
		}
	}
	return nil
}

// set sets rows of the file from number i on.
func (m *storedMatrix) set(i int, rows []float32, columns int) {
	if m.transposed {
		for row := range slices.Chunk(rows, columns) {
			for _, p := range m.parts {
				out := p.Shape()[0]
				p.SetColumn(i, row[:out])
				row = row[out:]
			}
			i++
		}
		return
	}
	for _, p := range m.parts {
		out := p.Shape()[0]
		if i < out {
			n := min(len(rows), (out-i)*columns)
			p.SetRows(i, rows[:n])
			if rows, i = rows[n:], out; len(rows) == 0 {
				return
			}
		}
		i -= out
	}
}

// words are the embeddings of tokens.
type words interface {
	Forward(t *tensor.Tape, ids []int, b, l int) *tensor.Tensor
}

// storedWords are embeddings in bfloat16.
type storedWords struct{ *tensor.BFloat16 }

// Forward looks up a batch of token ids.
func (w storedWords) Forward(t *tensor.Tape, ids []int, b, l int) *tensor.Tensor {
	return tensor.Reshape(t, w.Rows(t, ids), b, l, w.Shape()[1])
}

// Words returns the embeddings of tokens, name.weight, and the map from states to tokens
// that is the same matrix.
func (b *Builder) Words(name string, n, width int) (words, *nn.Linear) {
	if b.bfloat16 {
		w := b.matrix(name+".weight", false, width, n)[0]
		return storedWords{w}, &nn.Linear{BFloat16: w}
	}
	e := b.Embedding(name, n, width)
	return e, &nn.Linear{Weight: e.Weight}
}
