package linear

import (
	"math"
	"reflect"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// A Feature maps the queries and keys of linear attention to vectors whose products are their similarities. Every
// function of tensors that works row by row is one, such as tensor.ReLU.
type Feature = func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor

// Unit divides each vector by its length: x/√(Σx² + 1e-6), as layers of the delta rule do with queries and keys.
//
// Source: Yang et al., "Parallelizing Linear Transformers with the Delta Rule", 2024, https://arxiv.org/abs/2406.06484.
func Unit(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	e := x.Dim(x.Rank() - 1)
	gain := t.Make(e)
	for i := range gain.Data() {
		gain.Data()[i] = float32(1 / math.Sqrt(float64(e)))
	}
	return tensor.RMSNorm(t, x, gain, 1e-6/float32(e))
}

// ELU1 is ELU(x) + 1: x + 1 above 0 and e^x below, which is positive everywhere.
//
// Source: Katharopoulos et al., 2020, https://arxiv.org/abs/2006.16236, equation 7.
func ELU1(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.Shift(t, tensor.ELU(t, x), 1)
}

// Exp is the exponential feature map e^x. With Normalize, Attend computes it relative to the running maximum m of the keys,
// a number for each of their E elements, so that nothing overflows or vanishes for queries and keys of any size:
//
//	S ← e^(m_old−m_new)·S + e^(k−m_new) ⊗ v
//	q → e^(q+m−max(q+m))                      whose scale the normaliser cancels
//
// The state then has another column, the last one, with m, to which no gradient flows. There is no Decay. Without Normalize, Exp is tensor.Exp. For the
// positive random features of Performers, give x·Ω − ‖x‖²/2 as queries and keys.
//
// Source: Choromanski et al., "Rethinking Attention with Performers", 2020, https://arxiv.org/abs/2009.14794; the maximum is
// that of Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018, https://arxiv.org/abs/1805.02867.
func Exp(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Exp(t, x) }

// relative reports whether Exp is computed relative to a running maximum.
func relative(f Feature, normalize bool) bool {
	return normalize && f != nil && reflect.ValueOf(f).Pointer() == reflect.ValueOf(Exp).Pointer()
}

// running are the running maxima of the keys of a call.
type running struct {
	after []float32 // [B G L+1 E], before the tokens and after each
	last  []float32 // [B G E], after the last token
}

// maxima returns the maxima of head g of sequence b after token t, or before the first one for t = −1.
func (c *call) maxima(b, g, t int) []float32 {
	return c.running.after[((b*c.g+g)*(c.l+1)+t+1)*c.e:][:c.e]
}

// scaleExp replaces queries and keys by their features, and sets the decays by which maxima change. Each head of values gets
// keys, and each head of outputs queries.
func (c *call) scaleExp(t *tensor.Tape) {
	c.q, c.k, c.h, c.kh = shareHeads(t, c.q, c.n), shareHeads(t, c.k, c.g), c.n, c.g
	c.running = &running{t.Floats(c.b * c.g * (c.l + 1) * c.e), make([]float32, c.b*c.g*c.e)}
	given := c.o.State
	if given != nil {
		c.o.State = tensor.Slice(t, given, 3, 0, c.v)
	}
	decay := t.Make(c.b, c.g, c.l, c.e)
	clear(decay.Data())
	par.For(c.b*c.g, 1, func(lo, hi int) {
		for head := lo; head < hi; head++ {
			b, g := head/c.g, head%c.g
			for i, first := 0, c.maxima(b, g, -1); i < c.e; i++ {
				switch s := c.continued; {
				case given != nil:
					first[i] = given.Data()[(head*c.e+i+1)*(c.v+1)-1]
				case s != nil:
					first[i] = s.seqs[b].maxima[(c.g+g)*c.e+i]
				default:
					first[i] = float32(math.Inf(-1))
				}
			}
			c.setMaxima(b, g, decay.Data()[head*c.l*c.e:])
		}
	})
	c.o.Decay = decay
	c.k = c.expRows(t, c.k, func(b, g, t int, to, k []float32) {
		for i, m := range c.maxima(b, g, t) {
			if to[i] = k[i] - m; math.IsInf(float64(k[i]), -1) { // and m, perhaps
				to[i] = k[i]
			}
		}
	})
	c.q = c.expRows(t, c.q, func(b, n, t int, to, q []float32) {
		m, most := c.maxima(b, n/(c.n/c.g), t), math.Inf(-1)
		for i, x := range q {
			most = max(most, float64(x)+float64(m[i]))
		}
		for i, x := range q {
			if to[i] = float32(float64(x) + float64(m[i]) - most); math.IsInf(most, -1) {
				to[i] = float32(most)
			}
		}
	})
}

// setMaxima sets the maxima of a head, and the decays [L E] that follow.
func (c *call) setMaxima(b, g int, decay []float32) {
	none := noMaxima(c.e)[:c.e]
	for _, s := range c.segments {
		if s.b != b {
			continue
		}
		before := none
		if s.first {
			before = c.maxima(b, g, -1)
		}
		begin := before
		for t := s.from; t < s.to; t++ {
			m, k := c.maxima(b, g, t), c.k.Data()[((b*c.g+g)*c.l+t)*c.e:]
			for i := range m {
				m[i] = max(before[i], k[i])
			}
			before = m
		}
		copy(c.running.last[(b*c.g+g)*c.e:][:c.e], before)
		for t := s.from; t < s.to; t++ {
			m, old := c.maxima(b, g, t), begin
			if c.o.Bidirectional {
				copy(m, before)
			}
			if t > s.from {
				old = c.maxima(b, g, t-1)
			}
			for i := range m {
				if m[i] != old[i] { // both may be −Inf
					decay[t*c.e+i] = old[i] - m[i]
				}
			}
		}
	}
}

// expRows returns e to the power of what row sets for each vector of x [B H L E] that is not padding, and 0 for padding.
func (c *call) expRows(t *tensor.Tape, x *tensor.Tensor, row func(b, head, t int, to, x []float32)) *tensor.Tensor {
	heads := x.Dim(1)
	y := t.Make(x.Shape()...)
	clear(y.Data())
	par.For(len(c.segments)*heads, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			s, head := &c.segments[i/heads], i%heads
			at := (s.b*heads + head) * c.l
			for t := s.from; t < s.to; t++ {
				row(s.b, head, t, y.Data()[(at+t)*c.e:][:c.e], x.Data()[(at+t)*c.e:][:c.e])
			}
			simd.Exp(y.Data()[(at+s.from)*c.e:(at+s.to)*c.e], y.Data()[(at+s.from)*c.e:(at+s.to)*c.e])
		}
	})
	if t.Needs(x) {
		t.Record(y, func(dy []float32) { simd.MulAddSparse(t.GradOf(x), dy, y.Data()) })
	}
	return y
}

// shareHeads returns x [B H L E] with n heads, a multiple of H, of which consecutive ones are equal.
func shareHeads(t *tensor.Tape, x *tensor.Tensor, n int) *tensor.Tensor {
	b, h, l, e := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	if h == n {
		return x
	}
	return tensor.Reshape(t, tensor.BroadcastTo(t, tensor.Reshape(t, x, b, h, 1, l, e), b, h, n/h, l, e), b, n, l, e)
}
