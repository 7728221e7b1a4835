package onnx

import (
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// Attention says how queries attend to keys, as attn.Options does for a call. The zero
// value hides nothing and adds nothing.
type Attention struct {
	// Mask is true where a query may attend to a key, of type Bool. It broadcasts to [B H Lq Lk] and has at least two
	// axes. Empty means no mask.
	Mask Value
	// Bias is added to the scores. It broadcasts as Mask does.
	Bias Value
	// SoftCap bounds the scores before the bias: cap·tanh(score/cap). 0 means none.
	SoftCap float32
}

// And adds a condition to the mask: a query attends to a key only if both are true.
//
// Shapes: mask as Attention.Mask.
func (a Attention) And(g *Graph, mask Value) Attention {
	a.Mask = g.and(a.Mask, mask)
	return a
}

// Causal returns the mask of mask.Causal for lq queries, which are the last of lk keys.
//
// Shapes: lq and lk [] of type Int64, out [Lq Lk].
func (g *Graph) Causal(lq, lk Value) Value {
	queries := g.unsqueeze(g.Count(g.sub(lk, lq), lk), 1)
	return g.Node("LessOrEqual", []Value{g.Count(g.Int(0), lk), queries})
}

// Window returns the mask of mask.Window with as many keys before a query as behind it, for n queries and n keys.
//
// Shapes: n [] of type Int64, out [n n].
func (g *Graph) Window(n Value, side int) Value {
	all := g.Count(g.Int(0), n)
	return g.Node("LessOrEqual", []Value{g.abs(g.sub(all, g.unsqueeze(all, 1))), g.Int(side)})
}

// ValidLens returns the mask of mask.Lengths for lk keys.
//
// Shapes: lens [B] and lk [] of type Int64, out [B 1 1 Lk].
func (g *Graph) ValidLens(lens, lk Value) Value {
	return g.Node("Less", []Value{g.Count(g.Int(0), lk), g.unsqueeze(lens, 1, 2, 3)})
}

// Attend is attn.Attend with one head and no parameters except those of the score. Queries and values have the same
// size, and keys are the result of Keys.
//
// Shapes: q [B Lq size], v [B Lk size], keys [B Lk ScoreSize], out [B Lq size].
//
// Errors: a custom score that uses functions, or a score whose parameters do not have size elements per vector.
func (g *Graph) Attend(score attn.Score, q, keys, v Value, size int, a Attention) Value {
	f := g.form(score, size)
	queries := f.queries.apply(g, heads{v: q, count: 1, size: size})
	k := heads{v: keys, count: 1, size: f.size}
	return g.join(g.attend(f, queries, k, heads{v: v, count: 1, size: size}, nil, a))
}

// Keys returns the part of a score that depends on the keys alone.
//
// Shapes: k [B Lk size], out [B Lk ScoreSize].
//
// Errors: as for Attend.
func (g *Graph) Keys(score attn.Score, k Value, size int) Value {
	return g.join(g.form(score, size).keys.apply(g, heads{v: k, count: 1, size: size}))
}

// ScoreSize returns the size of the vectors that a score compares, for keys with e elements.
func ScoreSize(scored attn.Score, e int) int {
	if s, ok := scored.(*score.Additive); ok {
		s.Form() // panics if the parameters do not match
		return s.WV.Len()
	}
	return e
}

// KeySize returns the size of the vectors in KV.Keys.
func KeySize(m *attn.MultiHead) int {
	c := m.Config()
	return ScoreSize(c.Score, c.HeadSize)
}

// heads contains vectors of one size: [B L count·size], or [B count L size] if split.
type heads struct {
	v           Value
	count, size int
	split       bool
}

// splitHeads returns heads as [B count L size].
func (g *Graph) splitHeads(h heads) heads {
	if !h.split {
		h.v = g.transpose(g.reshape(h.v, 0, 0, h.count, h.size), 0, 2, 1, 3)
		h.split = true
	}
	return h
}

// join returns heads side by side, [B L count·size].
func (g *Graph) join(h heads) Value {
	if !h.split {
		return h.v
	}
	return g.reshape(g.transpose(h.v, 0, 2, 1, 3), 0, 0, h.count*h.size)
}

// attend is attention between heads whose vectors the score has already mapped.
func (g *Graph) attend(f form, q, k, v heads, sinks *tensor.Tensor, a Attention) heads {
	// The operator applies the soft-cap after the mask and does not support sinks.
	if g.Opset() >= 23 && f.pairs == nil && f.scale > 0 && a.SoftCap == 0 && sinks == nil {
		return g.attentionOperator(f.scale, q, k, v, a)
	}
	return g.attentionWrittenOut(f, g.splitHeads(q), g.splitHeads(k), g.splitHeads(v), sinks, a)
}

// attentionOperator is attention as one node, Attention of opset 23:
//
//	out = softmax(scale·q·kᵀ + bias)·v
//
// Hidden scores are −∞.
func (g *Graph) attentionOperator(scale float32, q, k, v heads, a Attention) heads {
	mask := a.Mask
	switch {
	case a.Bias != "" && a.Mask != "":
		mask = g.where(a.Mask, a.Bias, g.Scalar(negativeInfinity))
	case a.Bias != "":
		mask = a.Bias
	}
	out := heads{count: q.count, size: v.size}
	attributes := []Attribute{Float("scale", scale)}
	if mask == "" && !q.split && !k.split && !v.split {
		attributes = append(attributes, Int("q_num_heads", q.count), Int("kv_num_heads", k.count))
	} else {
		q, k, v, out.split = g.splitHeads(q), g.splitHeads(k), g.splitHeads(v), true
	}
	if mask != "" { // the operator does not broadcast queries or keys
		mask = g.Node("Expand", []Value{mask, g.concat(0, g.dims(q.v, 2, 3), g.dims(k.v, 2, 3))})
	}
	out.v = g.Node("Attention", []Value{q.v, k.v, v.v, mask}, attributes...)
	if a.Mask != "" { // ONNX does not define the result of a query that attends to nothing
		some := g.Node("Greater", []Value{g.sum(g.cast(a.Mask, Float32)), g.Scalar(0)})
		out.v = g.where(some, out.v, g.Scalar(0))
	}
	return out
}

// attentionWrittenOut is attention as a graph of simple operators. Heads that share keys and values are stacked into
// one head with more queries.
func (g *Graph) attentionWrittenOut(f form, q, k, v heads, sinks *tensor.Tensor, a Attention) heads {
	grouped, apart := func(x Value) Value { return x }, func(x Value, _ int) Value { return x }
	if q.count != k.count {
		grouped = func(x Value) Value { return g.reshape(x, 0, k.count, -1, f.size) }
		apart = func(x Value, last int) Value { return g.reshape(x, 0, q.count, -1, last) }
	}
	var s Value
	if f.pairs != nil {
		s = f.pairs(g, grouped(q.v), k.v)
	} else {
		s = g.matmul(grouped(g.mul(q.v, g.Scalar(f.scale))), g.transpose(k.v, 0, 1, 3, 2))
	}
	s = apart(s, 0) // [B H Lq Lk]
	if a.SoftCap != 0 {
		s = g.mul(g.tanh(g.div(s, g.Scalar(a.SoftCap))), g.Scalar(a.SoftCap))
	}
	if a.Bias != "" {
		s = g.Add(s, a.Bias)
	}
	if a.Mask != "" {
		s = g.where(a.Mask, s, g.Scalar(negativeInfinity))
	}
	if sinks != nil {
		column := g.reshape(g.Weight("sinks", sinks), 1, q.count, 1, 1)
		column = g.Node("Expand", []Value{column, g.concat(0, g.dims(s, 0, 3), g.Ints(1))})
		s = g.concat(3, s, column)
	}
	w := g.Node("Softmax", []Value{s}, Int("axis", -1))
	if sinks != nil {
		w = g.slice(w, 3, 0, -1, 1)
	}
	if a.Mask != "" { // if all keys are hidden, the softmax is NaN
		w = g.where(a.Mask, w, g.Scalar(0))
	}
	if q.count != k.count {
		w = g.reshape(w, 0, k.count, -1, 0)
	}
	out := g.matmul(w, v.v)
	return heads{v: apart(out, v.size), count: q.count, size: v.size, split: true}
}

// form describes how a score compares the vectors that it computes from queries and keys.
type form struct {
	queries, keys vectorMap
	size          int     // of the vectors
	scale         float32 // of their dot product
	pairs         pairScore
}

// pairScore returns scores [B H Lq Lk] that are not a dot product.
type pairScore func(g *Graph, q, k Value) Value

// vectorMap maps vectors one by one to vectors [B H L size]. Nil is the identity.
type vectorMap func(g *Graph, x Value) heads

// apply applies the map to heads.
func (f vectorMap) apply(g *Graph, h heads) heads {
	if f == nil {
		return h
	}
	h = g.splitHeads(h)
	mapped := f(g, h.v)
	h.v, h.size = mapped.v, mapped.size
	return h
}

// form returns a score as a graph, for vectors of e elements. Maps that a Form contains as functions are recognized
// by the score's type in package score.
func (g *Graph) form(scored attn.Score, e int) form {
	if scored == nil {
		scored = score.ScaledDot()
	}
	f := form{size: ScoreSize(scored, e)}
	g = g.In("score")
	c := scored.Form()
	w := c.Gaussian // factors of the differences
	want := func(what string, got, want int) {
		if got != want {
			g.Fail("the %s has %d elements, want %d", what, got, want)
		}
	}
	linear := func(name string, w *tensor.Tensor) vectorMap {
		return func(g *Graph, x Value) heads {
			return heads{v: g.matmul(x, g.In("score").WeightT(name, w)), size: w.Dim(0)}
		}
	}
	switch s := scored.(type) {
	case *score.Bilinear: // qᵀWk
		want("query of w", s.W.Dim(0), e)
		want("key of w", s.W.Dim(1), e)
		w := g.Weight("w", s.W)
		f.queries = func(g *Graph, x Value) heads { return heads{v: g.matmul(x, w), size: e} }
	case *score.Cosine:
		f.keys = func(g *Graph, x Value) heads { return heads{v: g.Normalize(0, x), size: e} }
		f.queries = f.keys
		if s.Scale != nil {
			want("scale", s.Scale.Len(), 1)
			scale := g.Weight("scale", s.Scale)
			f.queries = func(g *Graph, x Value) heads { return heads{v: g.mul(g.Normalize(0, x), scale), size: e} }
		}
	case *score.Additive:
		want("query of wq", s.WQ.Dim(1), e)
		want("key of wk", s.WK.Dim(1), e)
		f.queries, f.keys = linear("wq", s.WQ), linear("wk", s.WK)
	case *score.Gaussian:
		w = s.W // nil for 1
	case *score.L1:
		w = s.W
	default:
		switch {
		case c.Given != nil:
			g.Fail("a score of type %T, want one of package score", s)
			return f
		case c.Queries != nil || c.Keys != nil || c.MappedKeys != nil:
			g.Fail("a score of type %T, which maps queries or keys by a custom function", s)
			return f
		}
	}
	if w != nil && w.Len() != 1 {
		want("w", w.Len(), e)
	}
	switch {
	case c.Given != nil: // −‖(q − k)∘w‖₁
		f.pairs = g.differences(w, -1, (*Graph).abs)
	case c.Gaussian != nil: // −½‖(q − k)∘w‖²
		f.pairs = g.differences(w, -0.5, func(g *Graph, d Value) Value { return g.mul(d, d) })
	case c.Additive != nil: // Σ w·tanh(q + k)
		v := g.Weight("wv", c.Additive)
		f.pairs = func(g *Graph, q, k Value) Value {
			return g.matmul(g.tanh(g.Add(g.unsqueeze(q, 3), g.unsqueeze(k, 2))), v)
		}
	default:
		if f.scale = c.Scale; c.PerRoot {
			f.scale *= float32(1 / math.Sqrt(float64(max(e, 1))))
		}
	}
	return f
}

// differences is the score factor·Σ each((q − k)∘w). A nil w is 1.
func (g *Graph) differences(w *tensor.Tensor, factor float32, each func(g *Graph, d Value) Value) pairScore {
	return func(g *Graph, q, k Value) Value {
		d := g.sub(g.unsqueeze(q, 3), g.unsqueeze(k, 2))
		if w != nil {
			d = g.mul(d, g.Weight("w", w))
		}
		sums := g.Node("ReduceSum", []Value{each(g, d), g.Ints(-1)}, Int("keepdims", 0))
		return g.mul(sums, g.Scalar(factor))
	}
}
