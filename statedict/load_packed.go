package statedict

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
			hi, first := min(lo+each, out), at+lo*in
			tasks = append(tasks, func() error { return readPacked(r, name, p, lo, hi, first) })
		}
		at += out * in
	}
	return tasks
}

// readPacked reads rows lo to hi of a packed matrix from the elements of a tensor that begin at first, contiguous rows
// at once. bfloat16 is packed without conversion to float32, float16 is converted to bfloat16 block by block, and
// float32 is rounded while it is packed.
func readPacked(r *safetensors.Reader, name string, p *tensor.Packed, lo, hi, first int) error {
	info, _ := r.Lookup(name)
	half := p.Format() == tensor.BFloat16 || p.Format() == tensor.BFloat16Weights
	if info.DType == safetensors.BF16 || info.DType == safetensors.F16 && half {
		return readRows(name, p, lo, hi, first, r.ReadBFloat16s, p.SetRowsBFloat16)
	}
	return readRows(name, p, lo, hi, first, r.ReadFloat32s, p.SetRows)
}

func readRows[T any](name string, p *tensor.Packed, lo, hi, first int, read func(name string, dst []T, at int) error, set func(i int, x []T)) error {
	in, together := p.Shape()[1], p.Together()
	buffer := takeBuffer[T](in * together)
	defer buffers.Put(buffer)
	for i := lo; i < hi; i += together {
		rows := (*buffer)[:in*min(together, hi-i)]
		if err := read(name, rows, first+(i-lo)*in); err != nil {
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
