package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var (
	additiveKeyCounts = []int{1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 95, 97, 127, 128, 129, 130}
	additiveFeatures  = []int{1, 7, 8, 9, 15, 16, 17, 64, 100, 128}
)

func TestAdditiveTileIsAsAccurateAsALoop(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(41, 42))
		for _, most := range []float64{1, 10, 15.9, 16.1, 31.9, 32.1, 45, 1e4} {
			for rows := range 9 {
				for range 3 {
					keys, h := additiveKeyCounts[r.IntN(len(additiveKeyCounts))], additiveFeatures[r.IntN(len(additiveFeatures))]
					c := newAdditiveCase(r, rows+1, keys, h, most)
					c.run(c.rows, c.keys)
					c.check(t, fmt.Sprint("up to ", most))
				}
			}
		}
	})
}

// Every feature is at its limit, so that products of four exponentials are as large or as small as
// possible.
func TestAdditiveTileAtTheLimits(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(43, 44))
		ends := []float32{0, 1, additiveQueryLimit, 20, additiveKeyLimit, 30, 1e30, float32(math.Inf(1))}
		for _, w := range []float32{1, 1e-30, 1e4, 1e30} {
			for _, q := range ends[:3] {
				for _, k := range ends {
					c := newAdditiveCase(r, 3, 40, 10, 1)
					for i := range c.q {
						c.q[i] = q * (float32(r.IntN(2))*2 - 1)
					}
					for i := range c.k {
						c.k[i] = k * (float32(r.IntN(2))*2 - 1)
					}
					for f := range c.w {
						c.w[f] *= w
					}
					c.run(c.rows, c.keys)
					c.check(t, fmt.Sprintf("q = ±%g, k = ±%g, w = %g", q, k, w))
				}
			}
		}
	})
}

// The result for a query and a key does not depend on the tile that contains them.
func TestAdditiveTileBits(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(45, 46))
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		for rows := 1; rows < 10; rows++ {
			keys, h := additiveKeyCounts[r.IntN(len(additiveKeyCounts))], additiveFeatures[r.IntN(len(additiveFeatures))]
			c := newAdditiveCase(r, rows, keys, h, 3)
			for i := range rows { // some rows take the slow path
				if v := []float32{3, nan, inf, -inf, 3, 17, -31}[r.IntN(7)]; v != 3 {
					c.q[i*c.qRow+r.IntN(h)] = v
				}
			}
			c.k[r.IntN(keys)*c.kRow] = inf
			c.run(rows, keys)
			whole := c.results(t)

			for _, tile := range [][2]int{{1, 64}, {4, 64}, {3, 128}} {
				c.run(tile[0], tile[1])
				parts := c.results(t)
				if !same(parts.c, whole.c) || !same(parts.dk, whole.dk) {
					t.Fatalf("%v: scores or gradients of the keys in tiles of %v differ", c, tile)
				}
				if tile[1] >= keys && (!same(parts.dq, whole.dq) || !same(parts.dw, whole.dw)) {
					t.Fatalf("%v: gradients in tiles of %v differ", c, tile)
				}
			}
			for i := range rows {
				row := c.part(i, i+1, 0, keys)
				row.run(1, keys)
				if alone := row.results(t); !same(alone.c, whole.c[i*keys:][:keys]) || !same(alone.dq, whole.dq[i*h:][:h]) {
					t.Fatalf("%v: row %d alone differs", c, i)
				}
			}
			for j := range keys {
				key := c.part(0, rows, j, j+1)
				key.run(rows, 1)
				alone := key.results(t)
				for i, v := range alone.c {
					if !same([]float32{v}, whole.c[i*keys+j:][:1]) {
						t.Fatalf("%v: score %d of key %d alone is %v, not %v", c, i, j, v, whole.c[i*keys+j])
					}
				}
				if !same(alone.dk, whole.dk[j*h:][:h]) {
					t.Fatalf("%v: the gradient of key %d alone differs", c, j)
				}
			}
		}
	})
}

// Keys whose gradients are all 0 change nothing, whatever they contain, after the other keys or
// between them.
func TestAdditiveTileGradOfZero(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(47, 48))
		for _, keys := range additiveKeyCounts {
			c := newAdditiveCase(r, 6, keys, 17, 3)
			c.q[2*c.qRow+5] = 100
			c.q[4*c.qRow] = float32(math.Inf(-1))
			masked := 1 + r.IntN(keys)
			for j := masked; j < keys; j++ {
				for f := range c.h {
					c.k[j*c.kRow+f] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e38}[r.IntN(4)]
				}
				for i := range c.rows {
					c.ds[i*c.dsRow+j] = float32(math.Copysign(0, r.Float64()-0.5))
				}
			}
			c.run(c.rows, c.keys)
			all := c.results(t)
			few := c.part(0, c.rows, 0, masked)
			few.run(few.rows, few.keys)
			want := few.results(t)
			if !same(all.dq, want.dq) || !same(all.dw, want.dw) || !same(all.dk[:masked*c.h], want.dk) {
				t.Fatalf("%v: %d masked keys leak", c, keys-masked)
			}
			for _, v := range all.dk[masked*c.h:] {
				if v != 0 {
					t.Fatalf("%v: a masked key has a gradient of %v", c, v)
				}
			}
			// A query without gradients gets none.
			clear(c.ds[3*c.dsRow:][:keys])
			c.run(c.rows, c.keys)
			if dq := c.results(t).dq[3*c.h:][:c.h]; slices.ContainsFunc(dq, func(v float32) bool { return v != 0 }) {
				t.Fatalf("%v: a masked query has gradients %v", c, dq)
			}
		}
	})
}

// NaN affects only its row and column.
func TestAdditiveTileNaN(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(49, 50))
		nan := float32(math.NaN())
		isNaN := func(v float32) bool { return v != v }
		for _, keys := range additiveKeyCounts {
			c := newAdditiveCase(r, 7, keys, 9, 3)
			i, j, f := r.IntN(c.rows), r.IntN(keys), r.IntN(c.h)
			c.k[j*c.kRow+f] = nan
			c.run(c.rows, c.keys)
			for n, v := range c.results(t).c {
				if isNaN(v) != (n%keys == j) {
					t.Fatalf("%v: key %d is NaN, score %d of %d is %v", c, j, n/keys, n%keys, v)
				}
			}
			c.k[j*c.kRow+f] = 0
			c.q[i*c.qRow+f] = nan
			c.run(c.rows, c.keys)
			for n, v := range c.results(t).c {
				if isNaN(v) != (n/keys == i) {
					t.Fatalf("%v: query %d is NaN, score %d of %d is %v", c, i, n/keys, n%keys, v)
				}
			}
			c.q[i*c.qRow+f] = []float32{0, 99}[r.IntN(2)]
			c.ds[i*c.dsRow+j] = nan
			c.run(c.rows, c.keys)
			got := c.results(t)
			for n, v := range got.dq {
				if isNaN(v) != (n/c.h == i) {
					t.Fatalf("%v: NaN for query %d and key %d, dq %d is %v", c, i, j, n/c.h, v)
				}
			}
			for n, v := range got.dk {
				if isNaN(v) != (n/c.h == j) {
					t.Fatalf("%v: NaN for query %d and key %d, dk %d is %v", c, i, j, n/c.h, v)
				}
			}
		}
	})
}

// Scratch memory is reused for other sizes, without leftovers.
func TestAdditiveTileScratch(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(51, 52))
		used := newAdditiveCase(r, 9, 130, 128, 40)
		for i := range used.k {
			used.k[i] = float32(math.NaN())
		}
		used.run(9, 130)
		for range 20 {
			c := newAdditiveCase(r, 1+r.IntN(9), 1+r.IntN(130), 1+r.IntN(128), 3)
			c.q[0] = 20
			c.run(c.rows, c.keys)
			want := c.results(t)
			c.queries, c.forward, c.backward = used.queries, used.forward, used.backward
			c.run(c.rows, c.keys)
			got := c.results(t)
			got.each(func(name string, n int) {
				if !same(got.result(n), want.result(n)) {
					t.Fatalf("%v: %s with reused scratch differ", c, name)
				}
			})
			allocs := testing.AllocsPerRun(1, func() {
				c.queries.Set(c.q, c.qRow, c.rows, c.h)
				c.forward.Set(c.k, c.kRow, c.keys, c.h, c.w)
				c.backward.Set(c.k, c.kRow, c.keys, c.h, c.w)
				AdditiveTile(c.c, c.dsRow, &c.queries, 0, c.rows, &c.forward, 0, c.keys)
				AdditiveTileGrad(c.dq, c.dqRow, c.ds, c.dsRow, &c.queries, 0, c.rows, &c.backward, 0, c.keys)
				c.backward.Flush(c.dk, c.dkRow, c.dw)
			})
			if allocs != 0 {
				t.Fatalf("%v: %v allocations", c, allocs)
			}
		}
	})
}

func TestAdditiveTileOfNothing(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(53, 54))
		for _, size := range [][3]int{{0, 3, 5}, {3, 0, 5}, {3, 70, 0}, {0, 0, 0}} {
			c := newAdditiveCase(r, size[0], size[1], size[2], 3)
			c.run(max(c.rows, 1), max(c.keys, 1))
			for _, v := range c.results(t).c {
				if v != 0 {
					t.Fatalf("%v: a score of zero features is %v", c, v)
				}
			}
		}
	})
}

func TestAdditiveTilePanics(t *testing.T) {
	c := newAdditiveCase(rand.New(rand.NewPCG(55, 56)), 4, 130, 8, 3)
	c.run(4, 130)
	for name, call := range map[string]func(){
		"unaligned keys": func() { AdditiveTile(c.c, c.dsRow, &c.queries, 0, 4, &c.forward, 8, 130) },
		"too many keys":  func() { AdditiveTile(c.c, c.dsRow, &c.queries, 0, 1, &c.forward, 0, 131) },
		"too many rows":  func() { AdditiveTile(c.c, c.dsRow, &c.queries, 0, 5, &c.forward, 0, 1) },
		"short scores":   func() { AdditiveTile(c.c[:130], c.dsRow, &c.queries, 0, 2, &c.forward, 0, 130) },
		"short ds":       func() { AdditiveTileGrad(c.dq, c.dqRow, c.ds[:7], 7, &c.queries, 0, 2, &c.backward, 0, 1) },
		"short dq":       func() { AdditiveTileGrad(c.dq[:7], c.dqRow, c.ds, c.dsRow, &c.queries, 0, 1, &c.backward, 0, 1) },
		"short dk":       func() { c.backward.Flush(c.dk[:7], c.dkRow, nil) },
		"short dw":       func() { c.backward.Flush(nil, 0, c.dw[:7]) },
		"short queries":  func() { c.queries.Set(c.q[:7], 8, 1, 8) },
		"short w":        func() { c.forward.Set(c.k, c.kRow, 1, 8, c.w[:7]) },
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
