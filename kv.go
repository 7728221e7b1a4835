package attn

import (
	"fmt"

	"github.com/attn-go/attn/tensor"
)

// KV holds keys and values that MultiHead.Project has mapped, so that they can be asked
// more than once: a KV cache. The zero value holds none.
type KV struct{ keys, values heads }

// Len returns the number of keys, in each sequence.
func (kv KV) Len() int { return kv.keys.length() }

// sizes returns the number of heads and the sizes of a key and a value.
func (kv KV) sizes() [3]int { return [3]int{kv.keys.count, kv.keys.size, kv.values.size} }

// Append returns the keys and values of kv followed by those of next: a cache
// grows by a step. It panics with a *tensor.ShapeError if they differ in heads, sizes or
// layout.
func (kv KV) Append(t *tensor.Tape, next KV) KV {
	switch {
	case kv.keys.x == nil:
		return next
	case next.keys.x == nil:
		return kv
	}
	const op = "attn: Append"
	if got, want := next.sizes(), kv.sizes(); got != want {
		panic(&tensor.ShapeError{
			Op: op, Arg: "next", What: "heads and sizes", Got: got[:],
			Want: fmt.Sprintf("[G=%d E=%d V=%d]", want[0], want[1], want[2]),
		})
	}
	if next.keys.layout != kv.keys.layout || next.keys.batches() != kv.keys.batches() {
		panic(&tensor.ShapeError{
			Op: op, Arg: "next", Got: next.keys.x.Shape(),
			Want: fmt.Sprintf("as many sequences, in the same layout, as %v has", kv.keys.x.Shape()),
		})
	}
	axis := 1
	if kv.keys.layout == SequenceFirst {
		axis = 0
	}
	along := func(a, b heads) heads {
		return headLast(tensor.Concat(t, axis, a.own(t), b.own(t)), a.layout, 0, a.size, a.count)
	}
	return KV{along(kv.keys, next.keys), along(kv.values, next.values)}
}

// Select returns the keys and values of the given sequences of the batch, in
// the given order.
func (kv KV) Select(t *tensor.Tape, sequences []int) KV {
	if kv.keys.x == nil {
		return kv
	}
	chosen := func(h heads) heads {
		x := h.own(t)
		if h.layout == SequenceFirst {
			x = tensor.Transpose(t, tensor.Gather(t, tensor.Transpose(t, x, 1, 0, 2), sequences), 1, 0, 2)
		} else {
			x = tensor.Gather(t, x, sequences)
		}
		return headLast(x, h.layout, 0, h.size, h.count)
	}
	return KV{chosen(kv.keys), chosen(kv.values)}
}
