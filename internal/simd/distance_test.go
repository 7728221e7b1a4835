package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A distanceCase is queries and keys in rows with gaps, and the results of the functions under
// test.
type distanceCase struct {
	rows, keys, h     int
	q, k, w, ds       []float32
	qRow, kRow, dsRow int
	panels            Panels
	backward          DistanceGrad
	c, dq, dk, dw     []float32
	dqRow, dkRow      int
}

// newDistanceCase returns random vectors around a vector with center in all features.
func newDistanceCase(r *rand.Rand, rows, keys, h int, center float64, factors bool) *distanceCase {
	t := &distanceCase{rows: rows, keys: keys, h: h, qRow: h + r.IntN(3), kRow: h + r.IntN(2), dsRow: keys + r.IntN(4)}
	t.dqRow, t.dkRow = h+3, h+1
	fill := func(n int, about float64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(about + r.NormFloat64())
		}
		return x
	}
	t.q, t.k, t.ds = fill(rows*t.qRow, center), fill(keys*t.kRow, center), fill(rows*t.dsRow, 0)
	if factors {
		t.w = fill(h, 0)
	}
	return t
}

func (t *distanceCase) String() string {
	return fmt.Sprintf("%dx%dx%d, factors %v", t.rows, t.keys, t.h, t.w != nil)
}

// run computes distances and gradients, rows by keys at a time.
func (t *distanceCase) run(rows, keys int, wantW bool) {
	t.c = filled(t.rows*t.dsRow, guard)
	t.dq, t.dk, t.dw = filled(t.rows*t.dqRow, guard), filled(t.keys*t.dkRow, guard), nil
	for i := range t.rows {
		clear(t.dq[i*t.dqRow:][:t.h])
	}
	for j := range t.keys {
		clear(t.dk[j*t.dkRow:][:t.h])
	}
	if wantW {
		t.dw = make([]float32, t.h)
	}
	t.panels.Copy(Mat{t.k, 1, t.kRow}, t.h, t.keys)
	t.backward.Set(t.k, t.kRow, t.keys, t.h, t.w, wantW)
	dq := make([]float32, rows*t.dqRow)
	for i := 0; i < t.rows; i += rows {
		n := min(rows, t.rows-i)
		t.backward.Queries(t.q[i*t.qRow:], t.qRow, n)
		if keys < t.keys {
			keys = keys / panelAlign() * panelAlign()
		}
		for j := 0; j < t.keys; j += keys {
			j1 := min(j+keys, t.keys)
			Distances(RowMajor(t.c[i*t.dsRow+j:], t.dsRow), RowMajor(t.q[i*t.qRow:], t.qRow), n, &t.panels, j, j1, t.w)
		}
		t.backward.Add(dq, t.dqRow, t.ds[i*t.dsRow:], t.dsRow, 0, t.keys)
		for r := range n {
			copy(t.dq[(i+r)*t.dqRow:][:t.h], dq[r*t.dqRow:])
		}
	}
	t.backward.Flush(t.dk, t.dkRow, t.dw)
}

// results returns the results of run in dense rows, and fails if run wrote elsewhere.
func (t *distanceCase) results(tb testing.TB) additiveResults {
	tb.Helper()
	a := additiveCase{rows: t.rows, keys: t.keys, h: t.h, c: t.c, dsRow: t.dsRow, dq: t.dq, dqRow: t.dqRow, dk: t.dk, dkRow: t.dkRow, dw: t.dw}
	return a.results(tb)
}

// distanceLoop computes the formulas of the doc comments in T, and the sums of the magnitudes of
// the terms of each sum.
func distanceLoop[T float32 | float64](t *distanceCase) (out, size [4][]T) {
	for i, n := range []int{t.rows * t.keys, t.rows * t.h, t.keys * t.h, t.h} {
		out[i], size[i] = make([]T, n), make([]T, n)
	}
	put := func(what, at int, x T) {
		out[what][at] += x
		size[what][at] += T(math.Abs(float64(x)))
	}
	for i := range t.rows {
		for j := range t.keys {
			ds := T(t.ds[i*t.dsRow+j])
			for f := range t.h {
				w := T(1)
				if t.w != nil {
					w = T(t.w[f])
				}
				d := T(t.q[i*t.qRow+f]) - T(t.k[j*t.kRow+f])
				put(0, i*t.keys+j, T(-(d * w * (d * w))))
				if ds != 0 {
					put(1, i*t.h+f, T(-(ds * d * w * w)))
					put(2, j*t.h+f, T(ds*d*w*w))
					put(3, f, T(-(ds * d * d * w)))
				}
			}
		}
	}
	return out, size
}

// check fails unless the errors are at most twice the errors of a plain loop plus a few roundings.
func (t *distanceCase) check(tb testing.TB, what string) {
	tb.Helper()
	got := t.results(tb)
	want, size := distanceLoop[float64](t)
	plain, _ := distanceLoop[float32](t)
	got.each(func(name string, n int) {
		worst, worstPlain := 0.0, 0.0
		for i, v := range got.result(n) {
			if size[n][i] == 0 {
				continue
			}
			if off := math.Abs(float64(v)-want[n][i]) / size[n][i]; !(off <= worst) {
				worst = off
			}
			worstPlain = max(worstPlain, math.Abs(float64(plain[n][i])-want[n][i])/size[n][i])
		}
		if !(worst <= 2*worstPlain+2e-7) {
			tb.Fatalf("%s, %v: the relative error of %s is %.3g, and %.3g in a plain loop", what, t, name, worst, worstPlain)
		}
	})
}

// drawDistanceCase returns a case of random sizes.
func drawDistanceCase(r *rand.Rand, center float64) *distanceCase {
	return newDistanceCase(r, 1+r.IntN(9), additiveKeyCounts[r.IntN(len(additiveKeyCounts))],
		additiveFeatures[r.IntN(len(additiveFeatures))], center, r.IntN(2) == 0)
}

// However far vectors are from the origin, their distances and gradients are as exact as the
// results of a loop, which computes differences first.
func TestDistancesAreAsAccurateAsALoop(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(61, 62))
		for _, center := range []float64{0, 100, 1e6, 1e14} { // the last one takes the slow path
			for range 20 {
				c := drawDistanceCase(r, center)
				c.run(c.rows, c.keys, true)
				c.check(t, fmt.Sprint("about ", center))
			}
		}
		for _, w := range []float32{1e-30, 1e-6, 1e6, 1e15} {
			c := newDistanceCase(r, 5, 40, 17, 0, true)
			for f := range c.w {
				c.w[f] *= w
			}
			c.run(5, 40, true)
			c.check(t, fmt.Sprint("times ", w))
		}
	})
}

// The result for a query and a key does not depend on the tile that contains them, on other queries
// and keys, or on which gradients are computed.
func TestDistanceBits(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(63, 64))
		for range 12 {
			c := drawDistanceCase(r, 3)
			for i := range c.rows { // some take the slow path
				if r.IntN(3) == 0 {
					c.q[i*c.qRow+r.IntN(c.h)] = 1e15
				}
			}
			c.k[r.IntN(c.keys)*c.kRow] = float32(math.Inf(1))
			c.run(c.rows, c.keys, true)
			whole := c.results(t)
			for _, tile := range [][2]int{{1, 16}, {4, 64}, {3, 80}} {
				c.run(tile[0], tile[1], true)
				parts := c.results(t)
				whole.each(func(name string, n int) {
					if !same(parts.result(n), whole.result(n)) {
						t.Fatalf("%v: %s in tiles of %v differ", c, name, tile)
					}
				})
			}
			c.run(c.rows, c.keys, false)
			if other := c.results(t); !same(other.dq, whole.dq) || !same(other.dk, whole.dk) {
				t.Fatalf("%v: gradients without the gradient of w differ", c)
			}
			for i := range c.rows {
				row := *c
				row.rows, row.q, row.ds = 1, c.q[i*c.qRow:], c.ds[i*c.dsRow:]
				row.run(1, row.keys, true)
				if alone := row.results(t); !same(alone.c, whole.c[i*c.keys:][:c.keys]) || !same(alone.dq, whole.dq[i*c.h:][:c.h]) {
					t.Fatalf("%v: row %d alone differs", c, i)
				}
			}
			for j := range c.keys {
				key := *c
				key.keys, key.k, key.ds = 1, c.k[j*c.kRow:], c.ds[j:]
				key.run(c.rows, 1, true)
				alone := key.results(t)
				for i, v := range alone.c {
					if !same([]float32{v}, whole.c[i*c.keys+j:][:1]) {
						t.Fatalf("%v: distance %d of key %d alone is %v, not %v", c, i, j, v, whole.c[i*c.keys+j])
					}
				}
				if !same(alone.dk, whole.dk[j*c.h:][:c.h]) {
					t.Fatalf("%v: the gradient of key %d alone differs", c, j)
				}
			}
		}
	})
}

// Keys whose gradients are all 0 change nothing, whatever they contain, after the other keys or
// between them.
func TestDistanceGradOfZero(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(65, 66))
		anything := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, 1e30}
		for _, keys := range additiveKeyCounts {
			c := newDistanceCase(r, 6, keys, 17, 0, true)
			hidden := make([]bool, keys)
			for j := range hidden {
				if hidden[j] = j > 0 && r.IntN(3) == 0; hidden[j] {
					for i := range c.rows {
						c.ds[i*c.dsRow+j] = float32(math.Copysign(0, r.Float64()-0.5))
					}
				}
			}
			c.run(c.rows, keys, true)
			want := c.results(t)
			for j, h := range hidden {
				if h {
					for f := range c.h {
						c.k[j*c.kRow+f] = anything[r.IntN(len(anything))]
					}
				}
			}
			c.run(c.rows, keys, true)
			got := c.results(t)
			if !same(got.dq, want.dq) || !same(got.dw, want.dw) || !same(got.dk, want.dk) {
				t.Fatalf("%v: hidden keys leak", c)
			}
			clear(c.ds[3*c.dsRow:][:keys])
			c.q[3*c.qRow] = float32(math.NaN())
			c.run(c.rows, keys, true)
			if dq := c.results(t).dq[3*c.h:][:c.h]; slices.ContainsFunc(dq, func(v float32) bool { return v != 0 }) {
				t.Fatalf("%v: a hidden query has gradients %v", c, dq)
			}
		}
	})
}

// NaN and overflows affect only their rows and columns.
func TestDistancesOfExtremes(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(67, 68))
		for _, keys := range additiveKeyCounts {
			c := newDistanceCase(r, 7, keys, 9, 0, r.IntN(2) == 0)
			i, j := r.IntN(7), r.IntN(keys)
			c.k[j*c.kRow+4], c.q[i*c.qRow+4] = 1e30, float32(math.NaN())
			c.run(c.rows, keys, true)
			for n, v := range c.results(t).c {
				switch {
				case n/keys == i && v == v:
					t.Fatalf("%v: query %d is NaN, element %d is %v", c, i, n, v)
				case n/keys != i && n%keys == j && v != float32(math.Inf(-1)):
					t.Fatalf("%v: key %d is far, element %d is %v", c, j, n, v)
				case n/keys != i && n%keys != j && !(v <= 0 && v > -1e6):
					t.Fatalf("%v: element %d is %v", c, n, v)
				}
			}
		}
	})
}

// Memory is reused for other sizes, without leftovers.
func TestDistanceScratch(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(69, 70))
		used := newDistanceCase(r, 9, 130, 128, 0, true)
		for i := range used.k {
			used.k[i] = float32(math.NaN())
		}
		used.run(9, 130, true)
		for range 10 {
			c := drawDistanceCase(r, 0)
			c.run(c.rows, c.keys, true)
			want := c.results(t)
			c.panels, c.backward = used.panels, used.backward
			c.run(c.rows, c.keys, true)
			got := c.results(t)
			got.each(func(name string, n int) {
				if !same(got.result(n), want.result(n)) {
					t.Fatalf("%v: %s with reused memory differ", c, name)
				}
			})
			allocs := testing.AllocsPerRun(1, func() {
				c.backward.Set(c.k, c.kRow, c.keys, c.h, c.w, true)
				c.backward.Queries(c.q, c.qRow, c.rows)
				c.panels.Copy(Mat{c.k, 1, c.kRow}, c.h, c.keys)
				Distances(RowMajor(c.c, c.dsRow), RowMajor(c.q, c.qRow), c.rows, &c.panels, 0, c.keys, c.w)
				c.backward.Add(c.dq, c.dqRow, c.ds, c.dsRow, 0, c.keys)
				c.backward.Flush(c.dk, c.dkRow, c.dw)
			})
			if allocs != 0 {
				t.Fatalf("%v: %v allocations", c, allocs)
			}
		}
		for _, size := range [][3]int{{0, 3, 5}, {3, 0, 5}, {3, 70, 0}, {0, 0, 0}} {
			c := newDistanceCase(r, size[0], size[1], size[2], 0, true)
			c.run(max(c.rows, 1), max(c.keys, 1), true)
			for _, v := range c.results(t).c {
				if v != 0 {
					t.Fatalf("%v: a distance of zero features is %v", c, v)
				}
			}
		}
	})
}

func TestDistancePanics(t *testing.T) {
	c := newDistanceCase(rand.New(rand.NewPCG(71, 72)), 4, 130, 8, 0, true)
	c.run(4, 130, true)
	for name, call := range map[string]func(){
		"unaligned keys":  func() { Distances(RowMajor(c.c, c.dsRow), RowMajor(c.q, c.qRow), 4, &c.panels, 2, 130, c.w) },
		"too many keys":   func() { Distances(RowMajor(c.c, c.dsRow), RowMajor(c.q, c.qRow), 1, &c.panels, 0, 131, c.w) },
		"too many rows":   func() { Distances(RowMajor(c.c, c.dsRow), RowMajor(c.q[:8], c.qRow), 5, &c.panels, 0, 1, c.w) },
		"short scores":    func() { Distances(RowMajor(c.c[:130], c.dsRow), RowMajor(c.q, c.qRow), 2, &c.panels, 0, 130, c.w) },
		"short w":         func() { Distances(RowMajor(c.c, c.dsRow), RowMajor(c.q, c.qRow), 2, &c.panels, 0, 130, c.w[:7]) },
		"short ds":        func() { c.backward.Add(c.dq, c.dqRow, c.ds[:7], c.dsRow, 0, 130) },
		"short dq":        func() { c.backward.Add(c.dq[:7], c.dqRow, c.ds, c.dsRow, 0, 130) },
		"keys that lack":  func() { c.backward.Add(c.dq, c.dqRow, c.ds, c.dsRow, 0, 131) },
		"short dk":        func() { c.backward.Flush(c.dk[:7], c.dkRow, nil) },
		"short dw":        func() { c.backward.Flush(nil, 0, c.dw[:7]) },
		"short queries":   func() { c.backward.Queries(c.q[:7], 8, 1) },
		"short keys":      func() { c.backward.Set(c.k[:7], 8, 1, 8, c.w, true) },
		"w of other size": func() { c.backward.Set(c.k, c.kRow, 1, 8, c.w[:7], true) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}
