package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// An additiveCase is queries and keys in rows with gaps, and the results of the functions under
// test.
type additiveCase struct {
	rows, keys, h     int
	q, k, w, ds       []float32
	qRow, kRow, dsRow int

	queries       AdditiveQueries
	forward       AdditiveKeys
	backward      AdditiveKeysGrad
	c, dq, dk, dw []float32
	dqRow, dkRow  int
}

// newAdditiveCase returns random numbers. The magnitudes in q and k are at most most.
func newAdditiveCase(r *rand.Rand, rows, keys, h int, most float64) *additiveCase {
	t := &additiveCase{rows: rows, keys: keys, h: h, qRow: h + r.IntN(3), kRow: h + r.IntN(2), dsRow: keys + r.IntN(4)}
	t.dqRow, t.dkRow = h+3, h+1
	fill := func(n int, most float64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(most * (2*r.Float64() - 1))
		}
		return x
	}
	t.q, t.k = fill(rows*t.qRow, most), fill(keys*t.kRow, most)
	t.w, t.ds = fill(h, 1), fill(rows*t.dsRow, 1)
	return t
}

// run computes scores and gradients, rows by keys at a time.
func (t *additiveCase) run(rows, keys int) {
	t.c = filled(t.rows*t.dsRow, guard)
	t.dq, t.dk, t.dw = filled(t.rows*t.dqRow, guard), filled(t.keys*t.dkRow, guard), make([]float32, t.h)
	for i := range t.rows {
		clear(t.dq[i*t.dqRow:][:t.h])
	}
	for j := range t.keys {
		clear(t.dk[j*t.dkRow:][:t.h])
	}
	t.queries.Set(t.q, t.qRow, t.rows, t.h)
	t.forward.Set(t.k, t.kRow, t.keys, t.h, t.w)
	t.backward.Set(t.k, t.kRow, t.keys, t.h, t.w)
	for j := 0; j < t.keys; j += keys {
		j1 := min(j+keys, t.keys)
		for i := 0; i < t.rows; i += rows {
			i1 := min(i+rows, t.rows)
			AdditiveTile(t.c[j:], t.dsRow, &t.queries, i, i1, &t.forward, j, j1)
			AdditiveTileGrad(t.dq, t.dqRow, t.ds[j:], t.dsRow, &t.queries, i, i1, &t.backward, j, j1)
		}
	}
	t.backward.Flush(t.dk, t.dkRow, t.dw)
}

func filled(n int, v float32) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = v
	}
	return x
}

// additiveResults are scores and gradients in dense rows.
type additiveResults struct{ c, dq, dk, dw []float32 }

func (x additiveResults) each(f func(name string, i int)) {
	for i, name := range []string{"scores", "dq", "dk", "dw"} {
		f(name, i)
	}
}

func (x additiveResults) result(i int) []float32 { return [][]float32{x.c, x.dq, x.dk, x.dw}[i] }

// results returns the results of run, and fails if run wrote elsewhere.
func (t *additiveCase) results(tb testing.TB) additiveResults {
	tb.Helper()
	dense := func(x []float32, row, rows, cols int) []float32 {
		var out []float32
		for i := range rows {
			out = append(out, x[i*row:][:cols]...)
			for _, v := range x[i*row+cols : (i+1)*row] {
				if v != guard {
					tb.Fatalf("%v: wrote outside of row %d", t, i)
				}
			}
		}
		return out
	}
	return additiveResults{
		c:  dense(t.c, t.dsRow, t.rows, t.keys),
		dq: dense(t.dq, t.dqRow, t.rows, t.h),
		dk: dense(t.dk, t.dkRow, t.keys, t.h),
		dw: t.dw,
	}
}

func (t *additiveCase) String() string { return fmt.Sprintf("%dx%dx%d", t.rows, t.keys, t.h) }

// part returns a case with some of the queries and keys.
func (t *additiveCase) part(i0, i1, j0, j1 int) *additiveCase {
	p := *t
	p.rows, p.keys = i1-i0, j1-j0
	p.q, p.k, p.ds = t.q[i0*t.qRow:], t.k[j0*t.kRow:], t.ds[i0*t.dsRow+j0:]
	p.queries, p.forward, p.backward = AdditiveQueries{}, AdditiveKeys{}, AdditiveKeysGrad{}
	return &p
}

// additiveLoop computes the formulas of the doc comments in T.
func additiveLoop[T float32 | float64](t *additiveCase) [4][]T {
	out := [4][]T{make([]T, t.rows*t.keys), make([]T, t.rows*t.h), make([]T, t.keys*t.h), make([]T, t.h)}
	for i := range t.rows {
		for j := range t.keys {
			d := T(t.ds[i*t.dsRow+j])
			for f, w := range t.w {
				th := T(math.Tanh(float64(T(t.q[i*t.qRow+f]) + T(t.k[j*t.kRow+f]))))
				out[0][i*t.keys+j] += T(w) * th
				if d == 0 {
					continue
				}
				g := d * (T(w) * (1 - th*th))
				out[1][i*t.h+f] += g
				out[2][j*t.h+f] += g
				out[3][f] += d * th
			}
		}
	}
	return out
}

// sizes returns the sums of the magnitudes of the terms of each sum, with tanh and its derivative
// set to 1.
func (t *additiveCase) sizes() [4][]float64 {
	out := [4][]float64{make([]float64, t.rows*t.keys), make([]float64, t.rows*t.h), make([]float64, t.keys*t.h), make([]float64, t.h)}
	for i := range t.rows {
		for j := range t.keys {
			d := math.Abs(float64(t.ds[i*t.dsRow+j]))
			for f, v := range t.w {
				w := math.Abs(float64(v))
				out[0][i*t.keys+j] += w
				out[1][i*t.h+f] += d * w
				out[2][j*t.h+f] += d * w
				out[3][f] += d
			}
		}
	}
	return out
}

// check fails unless the errors are at most twice the errors of a plain loop plus a few roundings
// near 1. Where 1-tanh² is small, its last bits are lost, however tanh is computed.
func (t *additiveCase) check(tb testing.TB, what string) {
	tb.Helper()
	got, want, plain, size := t.results(tb), additiveLoop[float64](t), additiveLoop[float32](t), t.sizes()
	got.each(func(name string, n int) {
		worst, worstPlain, squares, squaresPlain := 0.0, 0.0, 0.0, 0.0
		for i, v := range got.result(n) {
			if size[n][i] == 0 {
				continue
			}
			off := math.Abs(float64(v)-want[n][i]) / size[n][i]
			offPlain := math.Abs(float64(plain[n][i])-want[n][i]) / size[n][i]
			squares, squaresPlain = squares+off*off, squaresPlain+offPlain*offPlain
			if !(off <= worst) {
				worst = off
			}
			worstPlain = max(worstPlain, offPlain)
		}
		if !(worst <= 2*worstPlain+6e-7) {
			tb.Fatalf("%s, %v: the relative error of %s is %.3g, and %.3g in a plain loop", what, t, name, worst, worstPlain)
		}
		elements := float64(len(size[n]))
		rms, rmsPlain := math.Sqrt(squares/elements), math.Sqrt(squaresPlain/elements)
		if elements > 100 && rms > 2*rmsPlain+1.5e-7 {
			tb.Fatalf("%s, %v: the relative RMS error of %s is %.3g, and %.3g in a plain loop", what, t, name, rms, rmsPlain)
		}
	})
}
