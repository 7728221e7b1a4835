package models

import (
	"cmp"
	"sync"

	"github.com/attn-go/attn/internal/pages"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// packed reports whether matrices are packed.
func (b *Builder) packed() bool { return b.numbers != 0 }

// packedMatrix is a tensor of the file that is stored packed, in consecutive parts along its
// outputs.
type packedMatrix struct {
	name       string // in the file
	transposed bool   // the file has [in out]
	parts      []*tensor.Packed
}

// matrix returns a packed matrix [out in], nil in the first call of a Family.New.
func (b *Builder) matrix(name string, transposed bool, in, out int) []*tensor.Packed {
	rows, columns := out, in
	if transposed {
		rows, columns = in, out
	}
	if !b.want(name, rows, columns) || b.plan {
		return []*tensor.Packed{nil}
	}
	return b.pack(name, transposed, in, out)
}

// pack returns the packed parts of a matrix whose shape has been checked.
func (b *Builder) pack(name string, transposed bool, in int, outs ...int) []*tensor.Packed {
	m := packedMatrix{name: b.prefix + name, transposed: transposed}
	for _, out := range outs {
		m.parts = append(m.parts, tensor.NewPacked(out, in, b.numbers))
	}
	b.matrices = append(b.matrices, m)
	b.Unread(m.name) // nn.LoadFrom must not read it
	return m.parts
}

// someRows are rows of a part of a packed matrix, with their place in the file.
type someRows struct {
	name   string
	to     *tensor.Packed
	lo, hi int // rows of the part
	at     int // the first element in the file
}

// taskBytes is roughly the size of the weights that a task reads. It is large, so that two
// processors rarely touch the same new huge page at once, which only one of them can clear.
const taskBytes = 4 << 20

// readMatrices reads the packed matrices, on all processors.
func (b *Builder) readMatrices() error {
	var tasks []someRows
	for _, m := range b.matrices {
		if m.transposed {
			continue
		}
		at := 0
		for _, p := range m.parts {
			out, in, together := p.Shape()[0], p.Shape()[1], p.Together()
			each := max(1, taskBytes*out/max(1, p.Bytes())/together) * together
			for lo := 0; lo < out; lo += each {
				tasks = append(tasks, someRows{m.name, p, lo, min(lo+each, out), at + lo*in})
			}
			at += out * in
		}
	}
	errs := make([]error, len(tasks))
	par.For(len(tasks), 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			errs[i] = tasks[i].read(b.r)
		}
	})
	if err := cmp.Or(errs...); err != nil {
		return err
	}
	var memory []float32
	var err error
	for _, m := range b.matrices {
		if !m.transposed {
			continue
		}
		if memory, err = m.readTransposed(b.r, memory); err != nil {
			return err
		}
	}
	return nil
}

// read reads the rows, contiguous rows at once. bfloat16 is packed without conversion to float32,
// float16 is converted to bfloat16 block by block, and float32 is rounded while it is packed.
func (s *someRows) read(r *safetensors.Reader) error {
	info, _ := r.Lookup(s.name)
	if info.DType == safetensors.BF16 || info.DType == safetensors.F16 && s.to.Numbers() == tensor.BFloat16 {
		return readRows(s, r.ReadBFloat16s, s.to.SetRowsBFloat16)
	}
	return readRows(s, r.ReadFloat32s, s.to.SetRows)
}

func readRows[T any](s *someRows, read func(name string, dst []T, at int) error, set func(i int, x []T)) error {
	in, together := s.to.Shape()[1], s.to.Together()
	buffer := takeBuffer[T](in * together)
	defer buffers.Put(buffer)
	for i := s.lo; i < s.hi; i += together {
		rows := (*buffer)[:in*min(together, s.hi-i)]
		if err := read(s.name, rows, s.at+(i-s.lo)*in); err != nil {
			return err
		}
		set(i, rows)
	}
	return nil
}

// buffers are reusable memory for rows that are read while a model is loaded.
var buffers sync.Pool

func takeBuffer[T any](n int) *[]T {
	b, ok := buffers.Get().(*[]T)
	if !ok {
		b = new([]T)
	}
	if len(*b) < n {
		*b = make([]T, n)
	}
	return b
}

// readTransposed reads a matrix [in out] and returns the memory for the next one. Each row has an
// element of every output, so the matrix is read as a whole.
func (m *packedMatrix) readTransposed(r *safetensors.Reader, memory []float32) ([]float32, error) {
	in, columns := m.parts[0].Shape()[1], 0
	for _, p := range m.parts {
		columns += p.Shape()[0]
	}
	if len(memory) < in*columns {
		memory = pages.Make[float32](in * columns)
	}
	all := memory[:in*columns]
	const most = 1 << 17 // elements per task
	errs := make([]error, (len(all)+most-1)/most)
	par.For(len(errs), 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			errs[i] = r.ReadFloat32s(m.name, all[i*most:min((i+1)*most, len(all))], i*most)
		}
	})
	if err := cmp.Or(errs...); err != nil {
		return memory, err
	}
	at := 0
	for _, p := range m.parts {
		p.SetTransposed(all[at:], columns)
		at += p.Shape()[0]
	}
	return memory, nil
}

// words are the embeddings of tokens.
type words interface {
	Forward(t *tensor.Tape, ids []int, b, l int) *tensor.Tensor
}

// packedWords are packed embeddings.
type packedWords struct{ *tensor.Packed }

// Forward looks up a batch of token ids.
func (w packedWords) Forward(t *tensor.Tape, ids []int, b, l int) *tensor.Tensor {
	return tensor.Reshape(t, w.Rows(t, ids), b, l, w.Shape()[1])
}

// Words returns the token embeddings, name.weight, and a map from states to logits with the same
// matrix.
func (b *Builder) Words(name string, n, width int) (words, *nn.Linear) {
	if b.packed() {
		w := b.matrix(name+".weight", false, width, n)[0]
		return packedWords{w}, &nn.Linear{Packed: w}
	}
	e := b.Embedding(name, n, width)
	return e, &nn.Linear{Weight: e.Weight}
}
