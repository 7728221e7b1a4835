package attn

import (
	"fmt"
	"math"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Observer is called with the weights of each query while attention is computed, so that a
// statistic of the weights, or a part of them, needs no memory for all: package observe has the
// total that each key receives, top keys, entropy and chosen weights.
type Observer interface {
	// Begin is called once before the rows of a call of Attend.
	Begin(s Sizes)
	// Row is called with the weights [Lk] of the query at, before dropout: concurrently,
	// once for each query, in any order. It must not keep weights.
	Row(at Row, weights []float32)
}

// Inspector receives what the weights of a layer are made of, and what they are the
// weights of, each time it attends.
type Inspector func(layer string, p Parts)

// Parts are what goes into a call of attention besides masks and biases.
//
// Aliasing: the tensors may be those that the call computes with. They are not to be
// changed, and live as long as the tape's memory.
type Parts struct {
	// Queries [B H Lq E] and Keys [B G Lk E] are as the score multiplies them: mapped,
	// normalised and moved to their positions, so that
	//
	//	Scale·Queries[b,h,i]·Keys[b,g,j]
	//
	// is the score of query i and key j before soft-cap, modifications and bias. Nil where
	// the score is no dot product.
	Queries, Keys *tensor.Tensor
	Scale         float32
	// ValueNorms [B H Lk] is ‖W_h·v_j‖, where W_h are the columns of the layer's last map
	// that belong to head h: what the head would add to the layer's result if it attended
	// to key j alone. In Attend, which has no such map, it is ‖v_j‖.
	//
	// Source: Kobayashi et al., "Attention is Not Only a Weight", 2020,
	// https://arxiv.org/abs/2004.10102, section 3.
	ValueNorms *tensor.Tensor

	// Sizes are those of the call.
	Sizes Sizes
	// Weights computes the weights [Lq Lk] of head h of sequence b once more: the bits that
	// an Observer receives, without memory for those of the other heads. It can be called
	// later, as long as the tape's memory lives and what the options and the score hold,
	// such as parameters, is what it was; by several goroutines, too, and a Cache may go on
	// meanwhile. It panics with a *tensor.ValueError if there is no such head.
	Weights func(b, h int) []float32
	// Held is about how many bytes of queries and keys Weights keeps.
	Held int
}

// parts returns the parts of a call whose queries and keys have been mapped to the form f.
// w is the last map [Out H·V], or nil.
func parts(f Form, q heads, kv KV, d dims, w *tensor.Tensor) Parts {
	kv = kv.dense(nil)
	own := func(h heads) *tensor.Tensor { // the keys of the caller
		x := h.split(nil)
		if kv.extra > 0 {
			x = tensor.Slice(nil, x, 2, kv.extra, x.Dim(2))
		}
		return x
	}
	var p Parts
	if f.isDot() {
		p.Queries, p.Keys, p.Scale = q.split(nil), own(kv.keys), f.scale(q.size)
	}
	p.ValueNorms = valueNorms(own(kv.values), w, d)
	return p
}

// float32Weights returns the weights of a map that may hold them packed.
func float32Weights(l *nn.Linear) *tensor.Tensor {
	if l.Weight != nil || l.Packed == nil {
		return l.Weight
	}
	rows := make([]int, l.Packed.Shape()[0])
	for i := range rows {
		rows[i] = i
	}
	return l.Packed.Rows(nil, rows)
}

// valueNorms returns ‖W_h·v‖ [B H Lk] of values [B G Lk V].
func valueNorms(v, w *tensor.Tensor, d dims) *tensor.Tensor {
	out := make([]float32, 0, d.B*d.H*d.Lk)
	columns := make([]*tensor.Tensor, d.H) // W_h
	for h := range columns {
		if w != nil {
			columns[h] = tensor.Slice(nil, w, 1, h*d.V, (h+1)*d.V)
		}
	}
	for b := range d.B {
		for h := range d.H {
			g := h / (d.H / d.G)
			values := tensor.New(v.Data()[(b*d.G+g)*d.Lk*d.V:][:d.Lk*d.V], d.Lk, d.V)
			if w != nil {
				values = tensor.MatMulT(nil, values, columns[h])
			}
			n := values.Dim(1)
			for j := range d.Lk {
				sum := 0.
				for _, x := range values.Data()[j*n : (j+1)*n] {
					sum += float64(float64(x) * float64(x))
				}
				out = append(out, float32(math.Sqrt(sum)))
			}
		}
	}
	return tensor.New(out, d.B, d.H, d.Lk)
}

// again returns what computes the weights of one head of a call again, and how many bytes
// that keeps. q and kv have not been mapped yet.
func again(op string, q heads, kv KV, d dims, o Options) (weights func(b, h int) []float32, held int) {
	held = 4 * q.x.Len()
	switch {
	case kv.cache != nil: // it may grow, and its fork does not
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

// onlyHead keeps the weights of one head. Without other observers, no other rows are
// computed; the sizes stay those of the call, so that biases, masks and
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
