package flash

import (
	"fmt"
	"math"
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
				for _, storage := range []simd.Format{simd.Float32, simd.Float16, simd.BFloat16, simd.Int8} {
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
					for i, w := range want.out {
						if d := math.Abs(float64(out[i] - w)); !(d < 2e-5) {
							t.Fatalf("%s: out %d is %v, want %v", what, i, out[i], w)
						}
					}
				}
			}
		}
	})
}
