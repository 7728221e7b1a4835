package attn

import (
	"fmt"

	"github.com/attn-go/attn/tensor"
)

// again returns what computes the weights of one head of a call again, and how many bytes
// that keeps. q and kv have not been mapped yet.
func again(op string, q heads, kv KV, d dims, o Options) (weights func(b, h int) []float32, held int) {
	held = 4 * q.x.Len()
	switch {
	case kv.cache != nil: // it goes on, and its fork does not
		kv.cache = kv.cache.Fork()
		held += 4 * d.B * d.G * d.Lq * (kv.cache.shape.E + d.V) // of the positions that have come with the queries
	default:
		if kv.keys.x != q.x { // else a layer has mapped both as one
			held += 4 * kv.keys.x.Len()
		}
		// No value enters a weight: with keys in their place, values need not be kept.
		kv.values, d.V = kv.keys, kv.keys.size
	}
	o.Weights, o.LogSumExp, o.Observe, o.Inspect, o.Gates, o.Dropout = false, false, nil, nil, nil, 0
	return func(b, h int) []float32 {
		if b < 0 || b >= d.B || h < 0 || h >= d.H {
			panic(&tensor.ValueError{Op: op, Arg: "head", Got: fmt.Sprintf("%d of sequence %d", h, b), Want: fmt.Sprintf("less than %d, of a sequence less than %d", d.H, d.B)})
		}
		o, one := o, &onlyHead{batch: b, head: h}
		o.Observers = []Observer{one}
		attend(nil, op, q, kv, d, &o, nil)
		return one.weights
	}, held
}

// onlyHead keeps the weights of one head. Where no other observer is told of rows, the fused
// path computes no others; the sizes stay those of the call, so that biases, masks and
// modifications know no difference.
type onlyHead struct {
	batch, head int
	keys        int
	weights     []float32 // [Lq Lk]
}

func (x *onlyHead) Begin(s Sizes) { x.keys, x.weights = s.Lk, make([]float32, s.Lq*s.Lk) }

func (x *onlyHead) Row(at Row, weights []float32) {
	if at.Batch == x.batch && at.Head == x.head {
		copy(x.weights[at.Query*x.keys:], weights)
	}
}

// only returns the head that alone is asked for, if there is one.
func (o *Options) only() (*onlyHead, bool) {
	if len(o.Observers) != 1 {
		return nil, false
	}
	x, ok := o.Observers[0].(*onlyHead)
	return x, ok
}
