package heads

import (
	"math"
	"math/cmplx"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// Circuits are the matrices of the heads of a layer, read from its weights alone: a query x_i and a key x_j have the
// score x_i·W_QK·x_j, and a head that attends to key j adds W_OV·x_j. Heads of grouped keys are read as they are.
// Biases, positions and the norms of queries and keys of a MultiHead are left out.
//
// Source: Elhage et al., "A Mathematical Framework for Transformer Circuits", 2021,
// https://transformer-circuits.pub/2021/framework, "Splitting Attention Head terms into Circuits".
type Circuits struct {
	heads int
	value *tensor.Tensor // [G·V D], as the norm before the layer changes it
	out   *tensor.Tensor // [H·V D]
	// reads has a factor [H·E D] of W_QK for queries and for keys, and of W_OV, and writes [D H·V] one of W_OV: products
	// of factors have the Frobenius norms of products of the matrices, without a matrix [D D].
	reads  [3]*tensor.Tensor
	writes *tensor.Tensor
}

// NewCircuits returns the circuits of a layer whose queries, keys and values have one width. scale [D] is the weight of
// the norm before it, nil for none, and centred reports whether the norm subtracts the mean, as LayerNorm does and
// RMSNorm does not: then every reader subtracts the mean of what a head writes, too.
//
// NewCircuits panics with a *tensor.ShapeError if the width of scale differs. The layer must not be packed for inference:
// load its model with models.Options.Trainable.
func NewCircuits(l *attn.MultiHead, scale *tensor.Tensor, centred bool) *Circuits {
	c := l.Config()
	h, group := c.Heads, c.Heads/c.KVHeads
	q, k, v := normed(l.Q.Weight, scale, centred), normed(l.K.Weight, scale, centred), normed(l.V.Weight, scale, centred)
	e, size, d := q.Dim(0)/h, v.Dim(0)/c.KVHeads, l.Out.Weight.Dim(0)
	out := normed(tensor.Transpose(nil, l.Out.Weight, 1, 0), nil, centred) // [H·V D]
	x := &Circuits{heads: h, value: v, out: out, writes: tensor.Zeros(d, h*size)}
	for i, n := range []int{e, e, size} {
		x.reads[i] = tensor.Zeros(h*n, q.Dim(1))
	}
	for head := range h {
		g := head / group
		wq, wk, wv := rows(q, head, e), rows(k, g, e), rows(v, g, size)
		wo := rows(out, head, size)
		place := func(to *tensor.Tensor, n int, part *tensor.Tensor) { copy(to.Data()[head*n*part.Dim(1):], part.Data()) }
		place(x.reads[0], e, tensor.MatMul(nil, factor(wk), wq))
		place(x.reads[1], e, tensor.MatMul(nil, factor(wq), wk))
		place(x.reads[2], size, tensor.MatMul(nil, factor(wo), wv))
		for i, w := range tensor.Transpose(nil, tensor.MatMul(nil, factor(wv), wo), 1, 0).Data() {
			x.writes.Data()[i/size*h*size+head*size+i%size] = w
		}
	}
	return x
}

// normed returns a weight [N D] after the norm whose weight is scale.
func normed(w, scale *tensor.Tensor, centred bool) *tensor.Tensor {
	if scale != nil {
		w = tensor.Mul(nil, w, scale)
	}
	if centred {
		d := w.Dim(1)
		mean := tensor.MatMul(nil, w, tensor.Full(1/float32(d), d, 1)) // [N 1]
		w = tensor.Sub(nil, w, mean)
	}
	return w
}

// rows returns the rows [n D] of a head.
func rows(w *tensor.Tensor, head, n int) *tensor.Tensor {
	return tensor.Slice(nil, w, 0, head*n, (head+1)*n)
}

// factor returns Lᵀ [n n] with L·Lᵀ = w·wᵀ, so that Lᵀ·x has the norm of wᵀ·x. Shape of w: [n D].
func factor(w *tensor.Tensor) *tensor.Tensor {
	n, d := w.Dim(0), w.Dim(1)
	l := make([]float64, n*n) // transposed
	for i := range n {
		for j := range i + 1 {
			sum := dot(w.Data()[i*d:(i+1)*d], w.Data()[j*d:(j+1)*d])
			if own := sum; i == j {
				for k := range j {
					sum -= float64(l[k*n+i] * l[k*n+j])
				}
				if sum > 1e-12*own { // otherwise the row depends on those before it
					l[i*n+i] = math.Sqrt(sum)
				}
				continue
			}
			for k := range j {
				sum -= float64(l[k*n+i] * l[k*n+j])
			}
			if l[j*n+j] > 0 {
				l[j*n+i] = sum / l[j*n+j]
			}
		}
	}
	f := tensor.Zeros(n, n)
	for i, x := range l {
		f.Data()[i] = float32(x)
	}
	return f
}

func dot(a, b []float32) (sum float64) {
	for i, x := range a {
		sum += float64(float64(x) * float64(b[i]))
	}
	return sum
}

// Composition returns how much the heads of this layer read of what the heads of an earlier layer write, as queries, keys
// and values: for each head [H] and each head of the earlier layer,
//
//	Q: ‖W_QKᵀ·W_OV‖ / (‖W_QK‖·‖W_OV‖)    K: ‖W_QK·W_OV‖ / …    V: ‖W_OV·W_OV'‖ / …
//
// in Frobenius norms. Random matrices have about 1/√D.
//
// Source: Elhage et al. 2021, "Two Layer Attention Only Transformers".
func (c *Circuits) Composition(earlier *Circuits) (q, k, v [][]float64) {
	var all [3][][]float64
	norm := func(x *tensor.Tensor, i, j, m, n int) float64 { // of block i, j of blocks [m n]
		sum, width := 0., x.Dim(1)
		for r := i * m; r < (i+1)*m; r++ {
			block := x.Data()[r*width+j*n:][:n]
			sum += dot(block, block)
		}
		return math.Sqrt(sum)
	}
	d, size := c.value.Dim(1), earlier.writes.Dim(1)/earlier.heads
	for part, reads := range c.reads {
		n := reads.Dim(0) / c.heads
		product := tensor.MatMul(nil, reads, earlier.writes)
		all[part] = make([][]float64, c.heads)
		for i := range all[part] {
			for j := range earlier.heads {
				unit := norm(reads, i, 0, n, d) * norm(earlier.writes, 0, j, d, size)
				all[part][i] = append(all[part][i], norm(product, i, j, n, size)/unit)
			}
		}
	}
	return all[0], all[1], all[2]
}

// Copying returns the copying score of each head: of the eigenvalues λ of W_U·W_OV·W_Eᵀ, which maps a token to logits of
// tokens,
//
//	Σ λ / Σ abs(λ)
//
// 1 means that a head that attends to a token makes the same token more likely, −1 less likely. gram [D D] is W_Eᵀ·W_U for
// embeddings W_E and output embeddings W_U [tokens D]; nil takes the eigenvalues of W_OV.
//
// Source: Elhage et al. 2021, "Summarizing OV/QK Matrices".
func (c *Circuits) Copying(gram *tensor.Tensor) []float64 {
	value, d, scores := c.value, c.value.Dim(1), make([]float64, c.heads)
	if gram != nil {
		value = tensor.MatMul(nil, value, gram)
	}
	n := c.out.Dim(0) / c.heads
	group := c.heads * n / value.Dim(0)
	one := func(head int) {
		small := make([]float64, n*n) // with the eigenvalues of the large matrix that are not 0
		for i := range small {
			row, column := head/group*n+i/n, head*n+i%n
			small[i] = dot(value.Data()[row*d:(row+1)*d], c.out.Data()[column*d:(column+1)*d])
		}
		sum, all := 0., 0.
		for _, x := range eigenvalues(small, n) {
			sum, all = sum+real(x), all+cmplx.Abs(x)
		}
		scores[head] = sum / all
	}
	par.For(c.heads, 1, func(lo, hi int) {
		for head := lo; head < hi; head++ {
			one(head)
		}
	})
	return scores
}

// times is x·y without fused sums, so that all processors compute the same bits.
func times(x, y complex128) complex128 {
	return complex(float64(real(x)*real(y))-float64(imag(x)*imag(y)), float64(real(x)*imag(y))+float64(imag(x)*real(y)))
}

// eigenvalues returns the eigenvalues of a matrix [n n] by steps of QR with Wilkinson's shifts.
//
// Source: Golub and Van Loan, "Matrix Computations", 4th edition, 7.4 and 7.5.
func eigenvalues(matrix []float64, n int) []complex128 {
	h, values := make([]complex128, n*n), make([]complex128, n)
	for i, x := range matrix {
		h[i] = complex(x, 0)
	}
	// rotate makes element (j, column) 0 by a unitary rotation of rows i and j from a column on, and returns it.
	rotate := func(i, j, column, end int) (c, s complex128) {
		a, b := h[i*n+column], h[j*n+column]
		r := complex(math.Hypot(cmplx.Abs(a), cmplx.Abs(b)), 0)
		if r == 0 {
			return 1, 0
		}
		c, s = a/r, b/r
		for at := column; at < end; at++ {
			x, y := h[i*n+at], h[j*n+at]
			h[i*n+at], h[j*n+at] = times(cmplx.Conj(c), x)+times(cmplx.Conj(s), y), times(c, y)-times(s, x)
		}
		return c, s
	}
	back := func(i, j, from, end int, c, s complex128) { // the inverse from the right, so that the eigenvalues remain
		for at := from; at < end; at++ {
			x, y := h[at*n+i], h[at*n+j]
			h[at*n+i], h[at*n+j] = times(x, c)+times(y, s), times(y, cmplx.Conj(c))-times(x, cmplx.Conj(s))
		}
	}
	for column := range max(0, n-2) { // to Hessenberg form
		for j := n - 1; j > column+1; j-- {
			c, s := rotate(j-1, j, column, n)
			back(j-1, j, 0, n, c, s)
		}
	}
	rotations := make([][2]complex128, n)
	for last, steps := n-1, 0; last >= 0; steps++ {
		first := last
		for first > 0 && cmplx.Abs(h[first*n+first-1]) > 1e-15*(cmplx.Abs(h[first*n+first])+cmplx.Abs(h[first*n-n+first-1])) {
			first--
		}
		if first == last || steps > 300 {
			values[last], steps = h[last*n+last], 0
			last--
			continue
		}
		a, b, c, d := h[last*n-n+last-1], h[last*n-n+last], h[last*n+last-1], h[last*n+last]
		half := (a - d) / 2
		root := cmplx.Sqrt(times(half, half) + times(b, c))
		shift := (a+d)/2 + root
		if other := (a+d)/2 - root; cmplx.Abs(other-d) < cmplx.Abs(shift-d) {
			shift = other
		}
		if steps%10 == 9 { // an unusual shift ends a cycle
			shift = d + complex(cmplx.Abs(c), 0)
		}
		for i := first; i <= last; i++ {
			h[i*n+i] -= shift
		}
		for i := first; i < last; i++ {
			c, s := rotate(i, i+1, i, last+1)
			rotations[i] = [2]complex128{c, s}
		}
		for i := first; i < last; i++ {
			back(i, i+1, first, min(i+2, last+1), rotations[i][0], rotations[i][1])
		}
		for i := first; i <= last; i++ {
			h[i*n+i] += shift
		}
	}
	return values
}
