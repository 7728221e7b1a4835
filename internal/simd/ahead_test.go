package simd

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// All of the memory is prefetched, in order and during the given products.
func TestAheadIsAllTaken(t *testing.T) {
	memory := make([]float32, 1000)
	for _, lengths := range [][]int{{1}, {997}, {16, 0, 31}, {500, 7, 83, 409}} {
		for _, depth := range []int{1, 5, 64, 509} {
			const tiles = 50
			var x Ahead
			var pieces [][]float32
			for _, n := range lengths {
				pieces = append(pieces, memory[:n])
			}
			x.Set(tiles*depth*6*panelWidth(), pieces...)
			asked, left := 0, tiles
			for _, p := range pieces {
				for at := 0; at < len(p); {
					if x.empty() {
						t.Fatalf("%v, depth %d: %d floats of a piece are not prefetched", lengths, depth, len(p)-at)
					}
					part, n := x.take(min(3, max(left, 1)), depth)
					if &part[0] != &p[at] {
						t.Fatalf("%v, depth %d: got float %d of a piece, want %d", lengths, depth,
							(uintptr(unsafe.Pointer(&part[0]))-uintptr(unsafe.Pointer(&p[0])))/4, at)
					}
					at, left, asked = at+max(1, depth*x.step/4)*n, left-n, asked+n
				}
			}
			if !x.empty() {
				t.Errorf("%v, depth %d: some memory is not prefetched", lengths, depth)
			}
			if x.step < 64 && asked > tiles+len(lengths) {
				t.Errorf("%v, depth %d: %d tiles of %d", lengths, depth, asked, tiles)
			}
		}
	}
}

// Prefetching does not change a product, and is complete at its end.
func TestProductsThatAskAhead(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 5))
		for _, s := range []struct{ m, n, k int }{{1, 64, 5}, {37, 64, 31}, {64, 130, 64}, {13, 64, 0}} {
			a, b := RowMajor(newGuarded(r, s.m*s.k).x, s.k), RowMajor(newGuarded(r, s.k*s.n).x, s.n)
			want, got := newGuarded(r, s.m*s.n), newGuarded(r, s.m*s.n)
			var p Panels
			p.Copy(b, s.k, s.n)
			MultiplyPanels(RowMajor(want.x, s.n), a, s.m, &p, 0, s.k, 0, s.n, false)
			ahead := new(Ahead)
			ahead.Set(s.m*s.n*s.k, make([]float32, 11), make([]float32, 301))
			p.Ahead = ahead
			for range 2 { // the second time, nothing is left
				MultiplyPanels(RowMajor(got.x, s.n), a, s.m, &p, 0, s.k, 0, s.n, false)
				if !same(got.x, want.x) {
					t.Errorf("%v: the product differs", s)
				}
			}
		}
	})
}
