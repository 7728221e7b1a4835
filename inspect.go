package attn

import (
	"fmt"
	"math"

	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Observer is called with the weights of each query while attention is computed. A statistic or a
// selection of the weights therefore needs no memory for all weights. Package observe has
// observers for the total weight per key, the top keys, the entropy, selected weights, and all of
// them. If an observer has a method End(), it is called after the rows.
type Observer interface {
	// Begin is called once per call of Attend, before the rows. s.Layer is the name of the layer.
	Begin(s Sizes)
	// Row is called with the weights [Lk] of the query of row at, before dropout. It is
	// called concurrently, once for each query, in any order. It must not keep the slice weights.
	Row(at Row, weights []float32)
}

// Inspector is called each time a layer attends. It receives the queries, keys and norms of
// values from which the layer computed its weights and output.
type Inspector func(layer string, p Parts)

// Parts are the inputs of a call of attention, except masks and biases.
//
// Aliasing: the tensors may be the ones that the call computes with. Do not modify them. They are
// valid as long as the tape's memory.
type Parts struct {
	// Queries [B H Lq E] and Keys [B G Lk E] are the vectors that the score multiplies: mapped,
	// normalised and moved to their positions, so that
	//
	//	Scale·Queries[b,h,i]·Keys[b,g,j]
	//
	// is the score of query i and key j before soft-cap, score changes and bias. Both are nil if
	// the score is no dot product.
	Queries, Keys *tensor.Tensor
	Scale         float32
	// ValueNorms computes ‖W_h·v_j‖ [B H Lk], where W_h are the columns of the output projection for
	// head h: the norm of what the head would add to the layer's output if it attended only to
	// key j, before its gates. Attend has no output projection; there it is ‖v_j‖.
	//
	// Source: Kobayashi et al., "Attention is Not Only a Weight", 2020,
	// https://arxiv.org/abs/2004.10102, section 3.
	ValueNorms func() *tensor.Tensor
	// Outputs returns the outputs of the heads [B H Lq V], before Options.Gates and after OutputGate:
	// what a layer's output projection reads.
	Outputs func() *tensor.Tensor

	// Sizes are the sizes of the call.
	Sizes Sizes
	// Weights recomputes the weights [Lq Lk] of head h of sequence b. The result has the same
	// bits that an Observer receives, and needs no memory for the other heads. It can be called
	// later, as long as the tape's memory is valid and the options, the score and their
	// parameters are unchanged. Several goroutines may call it, and a Cache may grow meanwhile.
	// It panics with a *tensor.ValueError if there is no such head.
	Weights func(b, h int) []float32
	// RetainedBytes is the approximate memory of the queries and keys that Weights retains, in
	// bytes.
	RetainedBytes int
}

// parts returns the parts of a call after describe. w is the output projection [Out H·V], or nil; out are the
// outputs after OutputGate.
func (c *call) parts(w *tensor.Tensor, out heads) Parts {
	kv := c.kv.dense(nil)
	own := func(h heads) *tensor.Tensor { // without the extra keys of the layer
		x := h.split(nil)
		if kv.extra > 0 {
			x = tensor.Slice(nil, x, 2, kv.extra, x.Dim(2))
		}
		return x
	}
	p := Parts{
		Sizes:      c.Sizes,
		ValueNorms: func() *tensor.Tensor { return valueNorms(own(kv.values), w, c.H) },
		Outputs:    func() *tensor.Tensor { return out.split(nil) },
	}
	if c.form.isDot() {
		p.Queries, p.Keys, p.Scale = c.q.split(nil), own(kv.keys), c.form.scale(c.q.size)
	}
	return p
}

// float32Weights returns the weights of a map, unpacked if they are stored packed.
func float32Weights(l *nn.Linear) *tensor.Tensor {
	if l.Weight != nil || l.Packed == nil {
		return l.Weight
	}
	return l.Packed.Rows(nil, stats.Numbers(l.Packed.Shape()[0]))
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

// A replay computes the weights of a head of a call again, from its operands before describe.
type replay struct {
	op        string
	q         heads
	kv        KV
	o         Options // without callbacks, which must not be retained
	threeAxes bool
}

func (c *call) replay() *replay {
	r := &replay{c.op, c.q, c.kv, c.o, c.ThreeAxes}
	r.o.Weights, r.o.LogSumExp, r.o.Inspect, r.o.Gates, r.o.Dropout, r.o.Observers = false, false, nil, nil, 0, nil
	if cache := c.kv.cache; cache != nil {
		r.kv.cache = cache.Fork() // the cache may grow
		if cache.config.Score != nil {
			r.o.Score = nil // the cache adds its own
		}
	}
	r.kv.values = r.kv.keys // weights do not depend on values, which are not retained
	return r
}

// weights returns the weights [Lq Lk] of a head.
func (r *replay) weights(b, h int) []float32 {
	one := &headWeights{batch: b, head: h}
	o := r.o
	o.Observers = []Observer{one}
	c := newCall(r.op, r.q, r.kv, &o)
	if b < 0 || b >= c.B || h < 0 || h >= c.H {
		badValue(r.op, "head", fmt.Sprintf("%d of sequence %d", h, b), fmt.Sprintf("less than %d, of a sequence less than %d", c.H, c.B))
	}
	only := b*c.H + h
	c.ThreeAxes, c.Only = r.threeAxes, &only
	c.attend(nil, nil)
	return one.weights
}

// bytes returns the memory of the queries and keys that r retains.
func (r *replay) bytes() int {
	n := r.q.x.Len()
	switch cache := r.kv.cache; {
	case cache != nil: // the positions appended with the queries
		n += r.q.batches() * r.q.length() * cache.shape.G * (cache.shape.E + cache.shape.EV)
	case r.kv.keys.x != r.q.x: // otherwise one map has computed both
		n += r.kv.keys.x.Len()
	}
	return 4 * n
}

// headWeights stores the weights of one head. Its sizes are those of the whole call, so that
// biases, masks and changes work as usual.
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
