package flash

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Each of the three calls of Forward and the call of Backward in run is one loop, and has the same bits, however the
// work is cut.
func TestOneLoop(t *testing.T) {
	ways := append(waysToRun(), way{2, 2, 2, 300, 300, 32, 16}, way{1, 6, 3, 13, 20, 8, 8}, way{1, 12, 4, 1, 300, 64, 64})
	for n, s := range ways {
		for m, k := range kinds {
			if testing.Short() && (n+m)%3 > 0 {
				continue
			}
			p := newProblem(8, s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev)
			k.set(p)
			want := run(p)
			threads := []int{2, 3, 16, 64}[(n+m)%4]
			var got results
			plan := par.Trace(threads, 1, func() { got = run(p) })
			name := fmt.Sprintf("%s, %v, %d threads", k.name, s, threads)
			sameResults(t, name, got, want)
			if len(plan.Loops) != 4 {
				t.Errorf("%s: %d loops, want 4: %v", name, len(plan.Loops), callers(plan))
			}
		}
	}
}

func callers(plan par.Schedule) (names []string) {
	for _, l := range plan.Loops {
		names = append(names, l.Caller[strings.LastIndex(l.Caller, ".")+1:])
	}
	return names
}

// With pages, and for one head, too, a call is one loop.
func TestOneLoopOfPages(t *testing.T) {
	for _, s := range []way{
		{1, 9, 3, 1, 200, 16, 16}, {2, 4, 2, 1, 1500, 16, 16}, {1, 4, 4, 200, 700, 16, 16}, {3, 8, 8, 100, 90, 16, 16},
	} {
		for _, threads := range []int{1, 2, 3, 16, 64} {
			for _, storage := range []simd.Format{simd.Float32, simd.BFloat16} {
				p := newProblem(8, s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev)
				want := forwardOf(p)
				p.Pages = pagesOf(p, storage)
				var got, only []float32
				head := s.b*s.h - 1
				plan := par.Trace(threads, 1, func() {
					got = forwardOf(p)
					p.Only = &head
					only = forwardOf(p)
				})
				name := fmt.Sprintf("%v, format %d, %d threads", s, storage, threads)
				if storage == simd.Float32 {
					sameBits(t, name, got, want)
				}
				sameBits(t, name+": the last head", only[head*s.lq*s.ev:], got[head*s.lq*s.ev:])
				if len(plan.Loops) != 2 {
					t.Errorf("%s: %d loops of 2 calls: %v", name, len(plan.Loops), callers(plan))
				}
			}
		}
	}
}

// If the keys of a head cannot be packed, no task waits forever.
func TestBadKeys(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for range 20 {
		p := newProblem(8, 1, 2, 2, 600, 400, 32, 32)
		p.K.Data = p.K.Data[:len(p.K.Data)/4*3]
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			forwardOf(p)
		}()
		select {
		case r := <-ended:
			if text := fmt.Sprint(r); !strings.Contains(text, " floats, has ") && !strings.Contains(text, "out of range") {
				t.Fatalf("panicked with %v, want an error of the keys", r)
			}
		case <-time.After(time.Minute):
			t.Fatal("a task waits forever")
		}
	}
}

// Every piece is computed once, and before any task continues.
func TestTogether(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	const tasks, pieces = 8, 50
	for range 20 {
		var group team
		var counts [pieces]int
		ends := 0
		par.For(tasks, 1, func(lo, hi int) {
			for range hi - lo {
				if !group.divide(pieces, func(n int) { counts[n]++ }) {
					t.Error("failed")
				}
				for n, c := range counts {
					if c != 1 {
						t.Errorf("piece %d: computed %d times", n, c)
					}
				}
				if group.last(tasks) {
					ends++
				}
			}
		})
		if ends != 1 {
			t.Errorf("%d tasks were the last", ends)
		}
	}
}

// The gradients of the queries have the same bits in whatever order the chunks of keys end.
func TestOrderOfChunks(t *testing.T) {
	for _, k := range kinds {
		p := newProblem(8, 2, 2, 1, 70, 1100, 8, 8)
		k.set(p)
		if p.Bias != nil { // whose gradient is computed in turn
			continue
		}
		forwardOf(p)
		grads := func() *Grads {
			g := &Grads{DOut: headFirst(p.dout, p.H, p.Lq, p.EV), Q: p.Q, K: p.K, V: p.V, DLogSumExp: p.dlse}
			g.Changes = p.changeGrads(nil)
			for _, x := range []*Heads{&g.Q, &g.K, &g.V} {
				x.Data = make([]float32, len(x.Data))
			}
			p.wGrad(g)
			return g
		}
		want := grads()
		Backward(&p.Attention, want)
		for _, order := range [][]int{{4, 3, 2, 1, 0}, {1, 0, 3, 4, 2}, {0, 2, 1, 4, 3}} {
			got := grads()
			b := newBackward(&p.Attention, got)
			b.orders, b.delays = orderPool.borrow(p.B*p.G), delayPool.borrow(p.B*p.G*b.nChunks)
			w := b.worker()
			for _, c := range order {
				for z := range p.B * p.G {
					b.chunk(w, z, c)
				}
			}
			name := fmt.Sprint(k.name, ", ", order)
			sameBits(t, name+": dq", got.Q.Data, want.Q.Data)
			sameBits(t, name+": dk", got.K.Data, want.K.Data)
			sameBits(t, name+": dv", got.V.Data, want.V.Data)
		}
	}
}
