package flash

import (
	"math"
	"slices"

	"github.com/attn-go/attn/internal/simd"
)

// Gaussian is the form −½‖(q−k)∘w‖². Scores are computed as −‖(q−k)∘w‖² with a scale of ½, or, if
// all factors are equal, as −‖q−k‖² with a scale of ½w².
type Gaussian struct {
	w       []float32 // [E]
	factors []float32 // w, or nil if the scale contains the factor
	scale   float32
}

// NewGaussian returns the form with the factors w [E]. The caller must not change w afterwards.
func NewGaussian(w []float32) *Gaussian {
	g := &Gaussian{w: w, factors: w, scale: 0.5}
	if len(w) == 0 {
		return g
	}
	// Without factors, squares overflow and underflow at other distances than with factors. For
	// factors in this range, no weight changes: the scores concerned are above −2^-47, which is as
	// good as 0, or below −2^85, where only keys at equal distance can both have a weight above 0.
	const most = 1 << 20
	if x := w[0]; x < -most || x > most || -1.0/most < x && x < 1.0/most {
		return g
	}
	for _, x := range w {
		if x != w[0] { // or NaN
			return g
		}
	}
	g.factors, g.scale = nil, float32(0.5*w[0]*w[0])
	return g
}

// distances implements score for the Gaussian form.
func (w *worker) distances(a *Attention, of *segment, spans []Span, s []float32, j0, j1 int) {
	q, n := of.q, len(spans)
	simd.Distances(simd.RowMajor(s, w.stride), q, n, w.keys, j0-w.from, j1-w.from, a.Gaussian.factors)
	for i := range n {
		// A difference or its square may exceed the range of float32 although a small factor
		// brings the score back into range.
		row := s[i*w.stride:][:j1-j0]
		if simd.Finite(row) {
			continue
		}
		x, key := a.span(spans, i), make([]float32, a.E)
		for j := max(j0, x.Lo); j < min(j1, x.Hi); j++ {
			if v := row[j-j0]; v-v != 0 && x.attends(j) {
				a.vectors(of.first+i, j, key, nil)
				row[j-j0] = float32(-a.Gaussian.square(q.Data[i*q.Row:][:a.E], key) * float64(0.5/a.Gaussian.scale))
			}
		}
	}
}

// square returns ‖(q−k)∘w‖² in float64, so that no square overflows or underflows.
func (g *Gaussian) square(q, k []float32) float64 {
	var sum float64
	for f, v := range k {
		d := (float64(q[f]) - float64(v)) * float64(g.w[f])
		sum += float64(d * d)
	}
	return sum
}

// vectors copies the key and the value of key j of a row. Either may be nil.
func (a *Attention) vectors(row, j int, key, value []float32) {
	b, h, _ := a.split(row)
	g := h / (a.H / a.G)
	if a.Pages != nil {
		if p := a.Pages.page(b, j/blockKeys); p != nil {
			p.Get(g, j%blockKeys, key, value)
		}
		return
	}
	copy(key, a.K.at(a.source(b), g, j))
	copy(value, a.V.at(a.source(b), g, j))
}

// flushDistances ends a chunk of keys: it adds the gradients of the keys and of w.
func (w *backWorker) flushDistances(b *backward, dk simd.Mat, dw []float32) {
	g := b.a.Gaussian
	w.distanceGrad.Flush(dk.Data, dk.Row, dw)
	if g.factors == nil { // the gradients of the scores contain w²
		for f := range dw {
			dw[f] /= g.w[f]
		}
	}
}

// exactWeights computes the weights of a row whose scores are all below the range of float32, so that
// its query seems to attend to no key. It computes the scores in float64 and subtracts the largest,
// which does not change the softmax. It returns the weights before division by their sum, the sum,
// and the log-sum-exp of the scores. ok is false if the query really attends to no key, or only to
// keys that are not finite.
func (a *Attention) exactWeights(row int) (p []float32, sum, logSumExp float64, ok bool) {
	spans := []Span{{Hi: a.keys()}}
	if a.masked() {
		a.spans(row, 0, a.keys(), spans, make([]bool, a.keys()))
	}
	x := spans[0]
	if x.Lo >= x.Hi {
		return nil, 0, 0, false
	}
	bias := make([]float32, a.keys())
	for m := range a.Changes {
		a.change(&a.Changes[m], a.rowAt(row, 0), 0, bias)
	}
	b, h, i := a.split(row)
	q, key := a.Q.at(b, h, i)[:a.E], make([]float32, a.E)
	scores, nearest, best := make([]float64, a.keys()), math.Inf(-1), math.Inf(-1)
	for j := range scores {
		scores[j] = math.Inf(-1)
		if x.attends(j) && bias[j] != negInf {
			a.vectors(row, j, key, nil)
			scores[j] = -0.5 * a.Gaussian.square(q, key)
			nearest = max(nearest, scores[j])
		}
	}
	if nearest-nearest != 0 {
		return nil, 0, 0, false
	}
	for j, s := range scores {
		if !math.IsInf(s, -1) { // a hidden key has a score of −Inf, and its bias may be anything
			scores[j] = s - nearest + float64(bias[j]) // the large terms cancel before the bias is added
			best = max(best, scores[j])
		}
	}
	p = make([]float32, a.keys())
	for j, s := range scores {
		p[j] = float32(math.Exp(s - best))
		sum += float64(p[j])
	}
	return p, sum, nearest + best + math.Log(sum), true
}

// onlyAdds reports whether all changes add terms that do not depend on the scores. Only then can
// exactWeights compute the weights of a query whose distances exceed the range of float32.
func (a *Attention) onlyAdds() bool {
	return !slices.ContainsFunc(a.Changes, func(c Change) bool { return !c.Rule.Adds() })
}

// underflowedRows returns the rows, among n rows from row first on, whose scores may have underflowed:
// rows that seem to attend to no key. With sinks it returns none, because the sink then has all the
// weight.
func (f *forward) underflowedRows(first, n int) (rows []int) {
	if f.Gaussian == nil || f.Sinks != nil || !f.onlyAdds() {
		return nil
	}
	for row := first; row < first+n; row++ {
		if f.Inverse[row] == 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// attendUnderflowed computes the results of a row if its scores underflow.
func (f *forward) attendUnderflowed(w *worker, row int) {
	a := f.Attention
	p, sum, logSumExp, ok := a.exactWeights(row)
	if !ok {
		return
	}
	inverse := float32(1 / sum)
	f.Shift[row], f.Inverse[row] = negInf, inverse
	if f.LogSumExp != nil {
		f.LogSumExp[row] = float32(logSumExp)
	}
	simd.Scale(p, inverse, p)
	if w.weights.data != nil {
		copy(f.final(w).row(row), p)
	}
	if a.Dropout > 0 {
		a.drop(p, p, row, 0)
	}
	b, h, i := a.split(row)
	out, value := f.Out.at(b, h, i)[:a.EV], make([]float32, a.EV)
	clear(out)
	for j, x := range p {
		if x != 0 {
			a.vectors(row, j, nil, value)
			simd.Axpy(x, value, out)
		}
	}
}
