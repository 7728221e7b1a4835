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
	// such as parameters, is what it was; by several goroutines, too, and a Cache may grow
	// meanwhile. It panics with a *tensor.ValueError if there is no such head.
	Weights func(b, h int) []float32
	// RetainedBytes is about how many bytes of queries and keys Weights keeps.
	RetainedBytes int
}

// parts returns the parts of a call that has been described. w is the last map [Out H·V], or nil.
func (c *call) parts(w *tensor.Tensor) Parts {
	kv := c.kv.dense(nil)
	own := func(h heads) *tensor.Tensor { // the keys of the caller
		x := h.split(nil)
		if kv.extra > 0 {
			x = tensor.Slice(nil, x, 2, kv.extra, x.Dim(2))
		}
		return x
	}
	p := Parts{Sizes: c.Sizes, ValueNorms: valueNorms(own(kv.values), w, c.H)}
	if c.form.isDot() {
		p.Queries, p.Keys, p.Scale = c.q.split(nil), own(kv.keys), c.form.scale(c.q.size)
	}
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

// valueNorms returns ‖W_h·v‖ [B H Lk] of values [B G Lk V], for h query heads.
func valueNorms(v, w *tensor.Tensor, heads int) *tensor.Tensor {
	batch, g, lk, size := v.Dim(0), v.Dim(1), v.Dim(2), v.Dim(3)
	out := make([]float32, 0, batch*heads*lk)
	for b := range batch {
		for h := range heads {
			values := tensor.New(v.Data()[(b*g+h/(heads/g))*lk*size:][:lk*size], lk, size)
			if w != nil {
				values = tensor.MatMulT(nil, values, tensor.Slice(nil, w, 1, h*size, (h+1)*size)) // W_h
			}
			n := values.Dim(1)
			for j := range lk {
				sum := 0.
				for _, x := range values.Data()[j*n : (j+1)*n] {
					sum += float64(float64(x) * float64(x))
				}
				out = append(out, float32(math.Sqrt(sum)))
			}
		}
	}
	return tensor.New(out, batch, heads, lk)
}

// oneHead returns a function that computes the weights of one head of a call that has not been
// described, and how many bytes that retains.
func (c *call) oneHead() (weights func(b, h int) []float32, retained int) {
	q, kv := c.q, c.kv
	retained = 4 * q.x.Len()
	switch {
	case kv.cache != nil: // it may grow, and its fork does not
		c.kv.cache = kv.cache.Fork()
		retained += 4 * c.B * c.G * c.Lq * (kv.cache.shape.E + c.EV) // of the positions that have come with the queries
	default:
		if kv.keys.x != q.x { // else a layer has mapped both as one
			retained += 4 * kv.keys.x.Len()
		}
		// No value enters a weight: with keys in their place, values need not be kept.
		c.kv.values, c.EV = kv.keys, kv.keys.size
	}
	return func(b, h int) []float32 {
		if b < 0 || b >= c.B || h < 0 || h >= c.H {
			want := fmt.Sprintf("less than %d, of a sequence less than %d", c.H, c.B)
			badValue(c.op, "head", fmt.Sprintf("%d of sequence %d", h, b), want)
		}
		one, only, o, again := &headWeights{batch: b, head: h}, b*c.H+h, *c.o, *c
		o.Weights, o.LogSumExp, o.Observe, o.Inspect, o.Gates, o.Dropout = false, false, nil, nil, nil, 0
		o.Observers = []Observer{one}
		again.o, again.Only = &o, &only
		again.attend(nil, nil)
		return one.weights
	}, retained
}

// headWeights keeps the weights of one head. The sizes stay those of the call, so that biases, masks
// and changes see no difference.
type headWeights struct {
	batch, head int
	keys        int
	weights     []float32 // [Lq Lk]
}

func (x *headWeights) Begin(s Sizes) { x.keys, x.weights = s.Lk, make([]float32, s.Lq*s.Lk) }

func (x *headWeights) Row(at Row, weights []float32) {
	if at.Batch == x.batch && at.Head == x.head {
		copy(x.weights[at.Query*x.keys:], weights)
	}
}
