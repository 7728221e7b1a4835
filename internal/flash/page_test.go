package flash

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn/internal/simd"
)

// pagesOf stores the keys and values of a problem in pages. The last page has the smallest
// possible capacity.
func pagesOf(p *problem, f simd.Format) *Pages {
	x := &Pages{PageShape: &PageShape{G: p.G, E: p.E, EV: p.EV, Format: f}, Of: make([][]*Page, p.B)}
	for b := range p.B {
		for k0 := 0; k0 < p.Lk; k0 += BlockKeys {
			n := min(BlockKeys, p.Lk-k0)
			page := NewPage(x.PageShape, min(BlockKeys, 1+n))
			page.Claim(0, n)
			for i := range n {
				page.Put(i, p.K.at(b, 0, k0+i), p.K.Head, p.V.at(b, 0, k0+i), p.V.Head)
			}
			x.Of[b] = append(x.Of[b], page)
		}
	}
	return x
}

// Pages give the same bits as tensors with the same numbers, on every implementation and every
// code path.
func TestPages(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: every storage on every implementation")
	}
	simd.Each(func(name string) {
		for n, s := range mixtures {
			for _, k := range mixtureOptions {
				for _, storage := range []simd.Format{simd.Float32, simd.BFloat16, simd.Int8} {
					m := newMixed(uint64(n), s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev, 0, 0)
					k.set(&m.problem)
					m.changes()
					a := m.Attention
					a.Pages = pagesOf(&m.problem, storage)
					a.K, a.V = Heads{}, Heads{}
					rows := s.b * s.h * s.lq
					out, weights := rubbish(rows*s.ev), rubbish(rows*s.lk)
					a.Results = a.rubbishResults(headFirst(out, s.h, s.lq, s.ev))
					a.Weights = weights
					Forward(&a)

					// Tensors with the vectors after rounding to the storage format.
					for b := range s.b {
						for g := range s.g {
							for j := range s.lk {
								a.Pages.Of[b][j/BlockKeys].Get(g, j%BlockKeys, m.K.at(b, g, j)[:s.e], m.V.at(b, g, j)[:s.ev])
							}
						}
					}
					want := results{weights: rubbish(len(weights)), out: rubbish(len(out))}
					plain := m.Attention
					plain.Results = plain.rubbishResults(headFirst(want.out, s.h, s.lq, s.ev))
					plain.Weights, want.lse = want.weights, plain.LogSumExp
					Forward(&plain)
					what := fmt.Sprintf("%s, format %d, %s, %v", name, storage, k.name, s)
					if !storage.Scaled() {
						sameBits(t, what+": out", out, want.out)
						sameBits(t, what+": weights", weights, want.weights)
						sameBits(t, what+": log-sum-exp", a.LogSumExp, want.lse)
						continue
					}
					if k.name == "large scores" { // large scores magnify differences of rounding
						continue
					}
					most := 2e-5
					if m.Rounded { // before or after the scale
						most = 0.02
					}
					for i, w := range want.out {
						if d := math.Abs(float64(out[i] - w)); !(d < most) {
							t.Fatalf("%s: out %d is %v, want %v", what, i, out[i], w)
						}
					}
				}
			}
		}
	})
}

// Values that are the first elements of the keys are not stored: results are those of pages that have both, bit for bit.
func TestSharedPages(t *testing.T) {
	simd.Each(func(name string) {
		for n, s := range mixtures {
			if s.ev > s.e {
				s.e, s.ev = s.ev, s.e
			}
			for _, storage := range []simd.Format{simd.Float32, simd.BFloat16, simd.Int8} {
				m := newMixed(uint64(n), s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev, 0, 0)
				var got [2]results
				for i, shared := range []bool{false, true} {
					a := m.Attention
					a.Pages = &Pages{PageShape: &PageShape{G: s.g, E: s.e, EV: s.ev, Format: storage, Shared: shared}, Of: make([][]*Page, s.b)}
					for b := range s.b {
						for k0 := 0; k0 < s.lk; k0 += BlockKeys {
							page := NewPage(a.Pages.PageShape, 16)
							for i := range min(BlockKeys, s.lk-k0) {
								if !page.Claim(i, 1) {
									page = page.Copy(i, min(2*i, BlockKeys))
									page.Claim(i, 1)
								}
								page.Put(i, m.K.at(b, 0, k0+i), m.K.Head, m.K.at(b, 0, k0+i), m.K.Head)
							}
							a.Pages.Of[b] = append(a.Pages.Of[b], page)
						}
					}
					a.K, a.V = Heads{}, Heads{}
					got[i] = results{out: rubbish(s.b * s.h * s.lq * s.ev)}
					a.Results = a.rubbishResults(headFirst(got[i].out, s.h, s.lq, s.ev))
					Forward(&a)
					if page := a.Pages.Of[0][0]; shared != (page.Bytes() == page.keys.bytes()) {
						t.Errorf("%s: %d bytes, keys take %d, shared is %v", name, page.Bytes(), page.keys.bytes(), shared)
					}
				}
				what := fmt.Sprintf("%s, format %d, %v", name, storage, s)
				if !storage.Scaled() {
					sameBits(t, what, got[1].out, got[0].out)
					continue
				}
				for i, w := range got[0].out {
					if d := math.Abs(float64(got[1].out[i] - w)); !(d < 0.05*(1+math.Abs(float64(w)))) {
						t.Fatalf("%s: out %d is %v, want %v", what, i, got[1].out[i], w)
					}
				}
			}
		}
	})
}

// A copy has the positions that were copied, in pages of every capacity, and later changes of either page do not reach
// the other.
func TestCopiedPages(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	simd.Each(func(name string) {
		for _, format := range []simd.Format{simd.Float32, simd.BFloat16, simd.Int8} {
			shape := &PageShape{G: 2, E: 20, EV: 7, Format: format}
			vectors := func() (k, v []float32) { return normal(r, 2*20, 1), normal(r, 2*7, 1) }
			for _, room := range []int{16, 32, 64, BlockKeys} {
				p := NewPage(shape, room)
				p.Claim(0, room)
				for i := range room {
					k, v := vectors()
					p.Put(i, k, 20, v, 7)
				}
				get := func(p *Page, n int) (all []float32) {
					for i := range n {
						for g := range 2 {
							k, v := make([]float32, 20), make([]float32, 7)
							p.Get(g, i, k, v)
							all = append(append(all, k...), v...)
						}
					}
					return all
				}
				for _, at := range []int{1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200, BlockKeys} {
					for _, n := range []int{16, 32, 64, 128, BlockKeys} {
						if at > room || n < at {
							continue
						}
						what := fmt.Sprintf("%s, format %d: %d of %d positions copied to %d", name, format, at, room, n)
						want, c := get(p, at), p.Copy(at, n)
						sameBits(t, what, get(c, at), want)
						whole := get(p, room)
						if c.Claim(at, 1) {
							k, v := vectors()
							c.Put(at, k, 20, v, 7)
						}
						sameBits(t, what+", after a change of the copy", get(p, room), whole)
						sameBits(t, what+", before the new position", get(c, at), want)
					}
				}
			}
		}
	})
}

// A page can be claimed up to its capacity: again after positions were dropped, but of sequences that share it only by
// the first.
func TestClaimedPages(t *testing.T) {
	p := NewPage(&PageShape{G: 1, E: 4, EV: 4}, 16)
	claim := func(at, n int, want bool) {
		t.Helper()
		if got := p.Claim(at, n); got != want {
			t.Errorf("positions %d to %d: claimed %v, want %v", at, at+n, got, want)
		}
	}
	claim(0, 17, false)
	claim(0, 10, true)
	claim(10, 6, true)
	claim(16, 1, false)
	claim(5, 3, true) // positions 5 to 16 were dropped
	p.Share()
	claim(8, 2, true)
	claim(8, 2, false)
	claim(5, 1, false)
	claim(10, 7, false)
	claim(10, 6, true)
	claim(16, 1, false)
}
