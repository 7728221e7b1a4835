package prune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// Compensation changes the output map of a layer that has lost heads, without training, so that its output stays near
// that of all heads. Mean and Ridge are compensations.
type Compensation func(m OutputMap) error

// Compensations returns the compensations by name: "mean" and "ridge".
func Compensations() map[string]Compensation {
	return map[string]Compensation{"mean": Mean(), "ridge": Ridge()}
}

// OutputMap is the output map of a layer: output = Weight·x + Bias, where x are the outputs of all heads.
type OutputMap struct {
	Weight *tensor.Tensor // [D n]
	Bias   *tensor.Tensor // [D], or nil for none
	Kept   []bool         // by column of Weight: of a remaining head
	// Fit and Check are the moments of x on two halves of the data, without the heads that earlier layers have lost: what
	// is tried is solved on Fit and judged on Check, and what is kept is solved on both. One may be of no vectors.
	Fit, Check *Moments
	// Context, if not nil, ends the computation with its error when it ends.
	Context context.Context
}

// Moments are the mean and the second moments of vectors, in float64: memory for n² numbers, however many vectors there are.
type Moments struct {
	size   int
	count  float64
	sum    []float64 // [n]
	square []float64 // [n n], the lower triangle
}

// NewMoments returns the moments of no vectors of the given size.
func NewMoments(size int) *Moments {
	return &Moments{size: size, sum: make([]float64, size), square: make([]float64, size*size)}
}

// Add adds vectors [N n], on all processors. The bits do not depend on their number.
func (m *Moments) Add(vectors []float32) {
	const each = 4 // vectors, so that sums are loaded and stored less often
	n := m.size
	if n == 0 {
		return
	}
	rows := len(vectors) / n
	m.count += float64(rows)
	x := make([]float64, (rows+each-1)/each*each*n) // padded with zeros, which add nothing
	for i, v := range vectors {
		x[i] = float64(v)
	}
	par.For(n, 8, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to := m.square[i*n:][:i+1]
			for at := 0; at < len(x); at += each * n {
				a, b, c, d := x[at:][:i+1], x[at+n:][:i+1], x[at+2*n:][:i+1], x[at+3*n:][:i+1]
				va, vb, vc, vd := a[i], b[i], c[i], d[i]
				m.sum[i] += va + vb + vc + vd
				for j := range to {
					to[j] += float64(va*a[j]) + float64(vb*b[j]) + float64(vc*c[j]) + float64(vd*d[j])
				}
			}
		}
	})
}

// and returns the moments of the vectors of both.
func (m *Moments) and(other *Moments) *Moments {
	both := NewMoments(m.size)
	for _, x := range []*Moments{m, other} {
		both.count += x.count
		for i, v := range x.sum {
			both.sum[i] += v
		}
		for i, v := range x.square {
			both.square[i] += v
		}
	}
	return both
}

// about returns E (x−c)(x−c)ᵀ [n n].
func (m *Moments) about(c []float64) []float64 {
	n := m.size
	out := make([]float64, n*n)
	for i := range n {
		for j := range i + 1 {
			v := m.square[i*n+j]/m.count - (float64(c[i]*m.sum[j])+float64(c[j]*m.sum[i]))/m.count + float64(c[i]*c[j])
			out[i*n+j], out[j*n+i] = v, v
		}
	}
	return out
}

// mean returns E x.
func (m *Moments) mean() []float64 {
	mean := make([]float64, m.size)
	for i, v := range m.sum {
		mean[i] = v / m.count
	}
	return mean
}

// Mean adds to the bias what the removed heads contribute on average. A layer without a bias stays as it is.
//
// Source: An et al., "Fluctuation-based Adaptive Structured Pruning for Large Language Models", 2023,
// https://arxiv.org/abs/2312.11983.
func Mean() Compensation {
	return func(m OutputMap) error {
		all, err := m.both()
		switch {
		case err != nil:
			return err
		case m.Bias == nil:
			return m.clear()
		}
		mean := all.mean()
		for d, row := range m.rows() {
			sum := 0.
			for j, w := range row {
				if !m.Kept[j] {
					sum += float64(float64(w) * mean[j])
				}
			}
			m.Bias.Data()[d] += float32(sum)
		}
		return m.clear()
	}
}

// Ridge solves the columns of the remaining heads, and the bias if there is one, so that the output is as near as possible
// to that of all heads in the mean square. strengths are penalties on the change of the columns, relative to the mean
// square of an input; the one whose solution on OutputMap.Fit has the smallest error on OutputMap.Check is used, or the
// largest if either is empty. None means 1e-4, 1e-3, 1e-2, 0.1, 1.
//
// Source: Kwon et al., "A Fast Post-Training Pruning Framework for Transformers", 2022,
// https://arxiv.org/abs/2204.09656, section 4.3: their masks of heads are one number each, here a column is one.
func Ridge(strengths ...float64) Compensation {
	if len(strengths) == 0 {
		strengths = []float64{1e-4, 1e-3, 1e-2, 0.1, 1}
	}
	return func(m OutputMap) (err error) {
		ended := par.Stopped(func() { err = m.ridge(strengths) })
		return cmp.Or(ended, err)
	}
}

// ridge is the compensation of Ridge.
func (m OutputMap) ridge(strengths []float64) error {
	all, err := m.both()
	if err != nil {
		return err
	}
	kept := []int{}
	for j, k := range m.Kept {
		if k {
			kept = append(kept, j)
		}
	}
	center := make([]float64, len(m.Kept))
	if m.Bias != nil {
		center = all.mean()
	}
	strength := slices.Max(strengths)
	if min(m.Fit.count, m.Check.count) > 0 && len(strengths) > 1 {
		fit, check, best := m.Fit.about(center), m.Check.about(center), math.Inf(1)
		for _, s := range strengths {
			rows, err := m.solve(fit, kept, s)
			if err != nil {
				return err
			}
			if e := m.error(check, kept, rows); e < best {
				best, strength = e, s
			}
		}
	}
	solved, err := m.solve(all.about(center), kept, strength)
	if err != nil {
		return err
	}
	for d, row := range m.rows() {
		constant := 0.
		for j, w := range row {
			constant += float64(float64(w) * center[j])
		}
		clear(row)
		for i, j := range kept {
			row[j] = float32(solved[d][i])
			constant -= float64(solved[d][i] * center[j])
		}
		if m.Bias != nil {
			m.Bias.Data()[d] += float32(constant)
		}
	}
	return nil
}

// both returns the moments of both halves, or an error if they are not finite.
func (m OutputMap) both() (*Moments, error) {
	all := m.Fit.and(m.Check)
	total := 0.
	for i := range all.size {
		total += all.sum[i] - all.sum[i] // 0, or NaN
		for _, v := range all.square[i*all.size:][:i+1] {
			total += v - v
		}
	}
	if total != 0 {
		return nil, errNotFinite
	}
	return all, nil
}

// rows returns the rows of the weight.
func (m OutputMap) rows() [][]float32 {
	return slices.Collect(slices.Chunk(m.Weight.Data(), max(1, len(m.Kept))))
}

// clear sets the columns of removed heads to 0.
func (m OutputMap) clear() error {
	for _, row := range m.rows() {
		for j, k := range m.Kept {
			if !k {
				row[j] = 0
			}
		}
	}
	return nil
}

// solve returns the rows [D kept] that minimise E(w'·x_kept − w·x)² + λ·|w' − w_kept|², from the second moments [n n].
func (m OutputMap) solve(square []float64, kept []int, strength float64) ([][]float64, error) {
	n, k := len(m.Kept), len(kept)
	a, trace := make([]float64, k*k), 0.
	for i, x := range kept {
		for j, y := range kept {
			a[i*k+j] = square[x*n+y]
		}
		trace += a[i*k+i]
	}
	penalty := cmp.Or(strength*trace/float64(max(1, k)), 1) // if all inputs are 0, the columns stay
	for i := range k {
		a[i*k+i] += penalty
	}
	if err := cholesky(m.Context, a, k); err != nil {
		return nil, err
	}
	rows := m.rows()
	out := make([][]float64, len(rows))
	par.For(len(rows), 1, func(lo, hi int) {
		for d := lo; d < hi; d++ {
			par.Check(m.Context)
			b := make([]float64, k)
			for i, x := range kept {
				for y, w := range rows[d] {
					b[i] += float64(square[x*n+y] * float64(w))
				}
				b[i] += float64(penalty * float64(rows[d][x]))
			}
			substitute(a, b)
			out[d] = b
		}
	})
	return out, nil
}

// error returns the sum over the outputs of E(w'·x_kept − w·x)², from the second moments [n n].
func (m OutputMap) error(square []float64, kept []int, solved [][]float64) float64 {
	n, rows := len(m.Kept), m.rows()
	errs := make([]float64, len(rows))
	par.For(len(rows), 1, func(lo, hi int) {
		for d := lo; d < hi; d++ {
			par.Check(m.Context)
			diff := make([]float64, n)
			for j, w := range rows[d] {
				diff[j] = -float64(w)
			}
			for i, j := range kept {
				diff[j] += solved[d][i]
			}
			for i, x := range diff {
				sum := 0.
				for j, y := range diff {
					sum += float64(square[i*n+j] * y)
				}
				errs[d] += float64(x * sum)
			}
		}
	})
	sum := 0.
	for _, e := range errs {
		sum += e
	}
	return sum
}

var errNotFinite = errors.New("the outputs of its heads are not finite, or so large that their squares are not")

// cholesky replaces a symmetric matrix [n n] by its factor L, with L·Lᵀ the matrix.
func cholesky(ctx context.Context, a []float64, n int) error {
	for j := range n {
		par.Check(ctx)
		row := a[j*n:][:j+1]
		sum := row[j]
		for _, v := range row[:j] {
			sum -= float64(v * v)
		}
		if !(sum > 0) || math.IsInf(sum, 1) {
			return fmt.Errorf("no solution: %w", errNotFinite)
		}
		pivot := math.Sqrt(sum)
		row[j] = pivot
		par.For(n-j-1, 64, func(lo, hi int) {
			for i := j + 1 + lo; i < j+1+hi; i++ {
				other := a[i*n:][:j+1]
				sum := other[j]
				for k, v := range row[:j] {
					sum -= float64(v * other[k])
				}
				other[j] = sum / pivot
			}
		})
	}
	return nil
}

// substitute replaces b by the solution of L·Lᵀ·x = b.
func substitute(l, b []float64) {
	n := len(b)
	for i := range n {
		for j, v := range l[i*n:][:i] {
			b[i] -= float64(v * b[j])
		}
		b[i] /= l[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		for j := i + 1; j < n; j++ {
			b[i] -= float64(l[j*n+i] * b[j])
		}
		b[i] /= l[i*n+i]
	}
}
