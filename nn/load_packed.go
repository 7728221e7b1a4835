package nn

import (
	"sync"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// taskBytes is roughly the size of the weights that a task reads, large for the same reason as pieceLength.
const taskBytes = 4 << 20

// packedTasks returns tasks that read consecutive parts of a tensor into packed matrices.
func packedTasks(r *safetensors.Reader, name string, parts []*tensor.Packed) (tasks []func() error) {
	at := 0
	for _, p := range parts {
		out, in, together := p.Shape()[0], p.Shape()[1], p.Together()
		each := max(1, taskBytes*out/max(1, p.Bytes())/together) * together
		for lo := 0; lo < out; lo += each {
			rows := &someRows{name, p, lo, min(lo+each, out), at + lo*in}
			tasks = append(tasks, func() error { return rows.read(r) })
		}
		at += out * in
	}
	return tasks
}

// someRows are rows of a packed matrix, with their place in the file.
type someRows struct {
	name   string
	to     *tensor.Packed
	lo, hi int // rows of the matrix
	at     int // the first element in the file
}

// read reads the rows, contiguous rows at once. bfloat16 is packed without conversion to float32,
// float16 is converted to bfloat16 block by block, and float32 is rounded while it is packed.
func (s *someRows) read(r *safetensors.Reader) error {
	info, _ := r.Lookup(s.name)
	half := s.to.Format() == tensor.BFloat16 || s.to.Format() == tensor.BFloat16Weights
	if info.DType == safetensors.BF16 || info.DType == safetensors.F16 && half {
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
