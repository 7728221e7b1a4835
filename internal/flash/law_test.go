package flash

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/par/partest"
)

// TestMain sets one thread; tests of threads set more.
func TestMain(m *testing.M) {
	partest.OneThread()
	m.Run()
}

// sameBits fails the test unless two results have the same bits; all NaN are equal.
func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if g := got[i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
			t.Errorf("%s: element %d of %d is %v, want %v", what, i, len(want), g, w)
			return
		}
	}
}

func sameResults(t *testing.T, what string, got, want results) {
	t.Helper()
	sameBits(t, what+": out", got.out, want.out)
	sameBits(t, what+": weights", got.weights, want.weights)
	sameBits(t, what+": log-sum-exp", got.lse, want.lse)
	sameBits(t, what+": dsinks", got.dsinks, want.dsinks)
	sameBits(t, what+": dq", got.dq, want.dq)
	sameBits(t, what+": dk", got.dk, want.dk)
	sameBits(t, what+": dv", got.dv, want.dv)
	sameBits(t, what+": dbias", got.dbias, want.dbias)
	sameBits(t, what+": dw", got.dw, want.dw)
}

type way struct{ b, h, g, lq, lk, e, ev int }

// ways are sizes for different code paths: few heads with many queries, many heads, few queries
// with many keys, heads that share keys.
var ways = []way{
	{1, 1, 1, 150, 700, 24, 40}, {4, 4, 4, 40, 90, 16, 16}, {2, 4, 2, 1, 1300, 16, 32}, {3, 2, 1, 70, 530, 8, 8},
	{1, 4, 2, 30, 1100, 8, 8},
}

// waysToRun returns all ways, or one of them with -short.
func waysToRun() []way {
	if testing.Short() {
		return ways[2:3]
	}
	return ways
}

// Random combinations in the root package, ten thousand of them in CI, try 2 and 4 threads, too.
func TestThreadsChangeNothing(t *testing.T) {
	for i, s := range waysToRun() {
		for j, k := range kinds {
			if (i+j)%2 > 0 {
				continue
			}
			p := newProblem(8, s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev)
			k.set(p)
			before := runtime.GOMAXPROCS(1)
			want := run(p)
			runtime.GOMAXPROCS(3)
			sameResults(t, fmt.Sprintf("%s, %v, 3 threads", k.name, s), run(p), want)
			runtime.GOMAXPROCS(before)
		}
	}
}

// The first sequence of a batch has the same result as alone.
func TestCompanyChangesNothing(t *testing.T) {
	for _, s := range waysToRun() {
		if s.b == 1 {
			continue
		}
		for _, k := range kinds {
			if strings.HasSuffix(k.name, "bias of heads") || strings.HasSuffix(k.name, "bias of queries") || strings.HasSuffix(k.name, "all") {
				continue // its bias sums over all sequences
			}
			p := newProblem(8, s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev)
			k.set(p)
			all := run(p)
			one := *p
			one.B = 1
			if len(one.Mask) > 0 {
				m := one.Mask[0].(funcMask)
				one.Mask = []MaskRule{funcMask{&one, m.intervals}}
			}
			first := func(x []float32) []float32 { return x[:len(x)/s.b] }
			one.Q.Data, one.K.Data, one.V.Data = first(p.Q.Data), first(p.K.Data), first(p.V.Data)
			one.dout = first(p.dout)
			if p.dlse != nil {
				one.dlse = first(p.dlse)
			}
			if p.dweights != nil {
				one.dweights = first(p.dweights)
			}
			if p.Bias != nil {
				x := *p.Bias
				x.Data = first(x.Data)
				one.Bias = &x
			}
			cut := results{out: first(all.out), weights: first(all.weights), dq: first(all.dq), dk: first(all.dk), dv: first(all.dv), lse: first(all.lse)}
			if p.Bias != nil {
				cut.dbias = first(all.dbias)
			}
			got := run(&one)
			got.dw, got.dsinks = nil, nil // sums over all sequences
			sameResults(t, fmt.Sprintf("%s, %v", k.name, s), got, cut)
		}
	}
}

// spread copies vectors [B H L E] to the layout [B L H E] with gaps.
func spread(x []float32, b, h, l, e int) Heads {
	row := h*e + 5
	y := Heads{Data: rubbish(b * l * row), Batch: l * row, Head: e, Row: row}
	for s := range b {
		for head := range h {
			for i := range l {
				copy(y.at(s, head, i), x[((s*h+head)*l+i)*e:][:e])
			}
		}
	}
	return y
}

// gather is the inverse of spread.
func gather(y Heads, b, h, l, e int) []float32 {
	x := make([]float32, b*h*l*e)
	for s := range b {
		for head := range h {
			for i := range l {
				copy(x[((s*h+head)*l+i)*e:], y.at(s, head, i)[:e])
			}
		}
	}
	return x
}

func TestLayoutsAreAlike(t *testing.T) {
	for _, s := range waysToRun() {
		for _, k := range kinds {
			p := newProblem(8, s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev)
			k.set(p)
			want := run(p)

			a := p.Attention // with the changes that run has set
			a.Q, a.K, a.V = spread(p.Q.Data, s.b, s.h, s.lq, s.e), spread(p.K.Data, s.b, s.g, s.lk, s.e), spread(p.V.Data, s.b, s.g, s.lk, s.ev)
			got := results{weights: rubbish(len(want.weights)), dbias: make([]float32, len(want.dbias))}
			a.Results = a.rubbishResults(spread(make([]float32, s.b*s.h*s.lq*s.ev), s.b, s.h, s.lq, s.ev))
			a.Weights = got.weights
			Forward(&a)
			got.lse = a.LogSumExp
			got.out = gather(a.Out, s.b, s.h, s.lq, s.ev)
			to := Grads{
				Q: spread(make([]float32, len(want.dq)), s.b, s.h, s.lq, s.e),
				K: spread(make([]float32, len(want.dk)), s.b, s.g, s.lk, s.e),
				V: spread(make([]float32, len(want.dv)), s.b, s.g, s.lk, s.ev),
			}
			to.Changes = p.changeGrads(got.dbias)
			if p.Sinks != nil {
				got.dsinks = make([]float32, p.H)
				to.Sinks = got.dsinks
			}
			got.dw = p.wGrad(&to)
			to.DOut, to.DLogSumExp, to.DWeights = spread(p.dout, s.b, s.h, s.lq, s.ev), p.dlse, p.dweights
			Backward(&a, &to)
			got.dq, got.dk, got.dv = gather(to.Q, s.b, s.h, s.lq, s.e), gather(to.K, s.b, s.g, s.lk, s.e), gather(to.V, s.b, s.g, s.lk, s.ev)
			if p.Bias == nil {
				got.dbias = nil
			}
			sameResults(t, fmt.Sprintf("%s, %v", k.name, s), got, want)
		}
	}
}

// A gradient that is not requested does not affect the others. Requested gradients are added to
// existing ones.
func TestGradientsAreAdded(t *testing.T) {
	p := newProblem(8, 2, 4, 2, 30, 270, 16, 24)
	want := run(p)
	forwardOf(p)
	r := rand.New(rand.NewPCG(1, 1))
	for asked := range 8 {
		all := Grads{DOut: headFirst(p.dout, p.H, p.Lq, p.EV), Q: p.Q, K: p.K, V: p.V}
		var checks []func()
		for i, c := range []struct {
			name string
			to   *Heads
			want []float32
		}{{"dq", &all.Q, want.dq}, {"dk", &all.K, want.dk}, {"dv", &all.V, want.dv}} {
			c.to.Data = nil
			if asked>>i&1 == 0 {
				continue
			}
			before := normal(r, len(c.want), 1)
			c.to.Data = append([]float32(nil), before...)
			checks = append(checks, func() {
				for j, v := range c.to.Data {
					if d := float64(v) - float64(before[j]) - float64(c.want[j]); math.Abs(d) > 1e-5 {
						t.Fatalf("asked for %03b: %s: element %d grew by %v, want %v", asked, c.name, j, v-before[j], c.want[j])
					}
				}
			})
		}
		Backward(&p.Attention, &all)
		for _, f := range checks {
			f()
		}
	}
}

// Hidden elements have no effect, whatever they are.
func TestMaskedInputsHaveNoEffect(t *testing.T) {
	for _, s := range waysToRun() {
		for _, x := range []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32} {
			p := newProblem(8, s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev)
			// Every fifth key and the keys of the second half are hidden from all queries, odd
			// queries attend to no key, and query 0 has no upstream gradient.
			shown := func(j int) bool { return j < p.Lk/2 && j%5 != 2 }
			p.seen = func(b, h, i, j int) bool { return shown(j) && i%2 == 0 }
			p.Mask = []MaskRule{funcMask{p, false}}
			for b := range p.B {
				for h := range p.H {
					clear(p.dout[((b*p.H+h)*p.Lq)*p.EV:][:p.EV])
				}
			}
			want := run(p)
			for b := range p.B {
				for h := range p.H {
					for i := 1; i < p.Lq; i += 2 {
						fillWith(p.Q.at(b, h, i)[:p.E], x)
						fillWith(p.dout[((b*p.H+h)*p.Lq+i)*p.EV:][:p.EV], x)
					}
				}
				for g := range p.G {
					for j := range p.Lk {
						if !shown(j) {
							fillWith(p.K.at(b, g, j)[:p.E], x)
							fillWith(p.V.at(b, g, j)[:p.EV], x)
						}
					}
				}
			}
			sameResults(t, fmt.Sprintf("%v, %v", s, x), run(p), want)
		}
	}
}

// A query that contains NaN affects only its result, and no gradient if its upstream gradient is
// zero.
func TestSpoiltQuery(t *testing.T) {
	for _, s := range waysToRun() {
		p := newProblem(8, s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev)
		p.seen = func(b, h, i, j int) bool { return j%3 != 1 && j < p.Lk-2 }
		p.Mask = []MaskRule{funcMask{p, false}}
		last := p.Lq - 1
		clear(p.dout[last*p.EV:][:p.EV]) // of head 0 of sequence 0
		want := run(p)
		p.Q.at(0, 0, last)[0] = float32(math.NaN())
		got := run(p)
		for _, v := range got.out[last*p.EV:][:p.EV] {
			if v == v {
				t.Errorf("%v: out of a spoilt query is %v", s, v)
				break
			}
		}
		for j, w := range got.weights[last*p.Lk:][:p.Lk] {
			if seen := p.seen(0, 0, last, j); seen == (w == w) || !seen && w != 0 {
				t.Errorf("%v: weight of key %d of a spoilt query is %v", s, j, w)
				break
			}
		}
		if got.lse[last] == got.lse[last] {
			t.Errorf("%v: log-sum-exp of a spoilt query is %v", s, got.lse[last])
		}
		got.lse[last] = want.lse[last]
		copy(got.out[last*p.EV:][:p.EV], want.out[last*p.EV:])
		copy(got.weights[last*p.Lk:][:p.Lk], want.weights[last*p.Lk:])
		sameResults(t, fmt.Sprint(s), got, want)
	}
}

// Without an upstream gradient, all gradients are zero, even of a value that is not finite.
func TestSilence(t *testing.T) {
	for _, s := range waysToRun() {
		p := newProblem(8, s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev)
		clear(p.dout)
		p.V.Data[3] = float32(math.NaN())
		got := run(p)
		for _, x := range [][]float32{got.dq, got.dk, got.dv} {
			sameBits(t, fmt.Sprint(s), x, make([]float32, len(x)))
		}
	}
}

// The weights and the log-sum-exp do not depend on the values, so the gradients of a loss on them do not, either, even
// if a value is not finite.
func TestGradientsWithoutTheValues(t *testing.T) {
	for _, s := range waysToRun() {
		for _, x := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
			for _, loss := range []string{"log-sum-exp", "weights", "both"} {
				p := newProblem(8, s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev)
				clear(p.dout)
				r := rand.New(rand.NewPCG(9, 9))
				if loss != "weights" {
					p.dlse = normal(r, s.b*s.h*s.lq, 1)
				}
				if loss != "log-sum-exp" {
					p.dweights = normal(r, s.b*s.h*s.lq*s.lk, 1)
				}
				want := run(p)
				for j := 1; j < s.lk; j += 100 {
					p.V.at(s.b-1, s.g-1, j)[0] = x
				}
				got := run(p)
				what := fmt.Sprintf("%v, values %v, a loss on %s", s, x, loss)
				sameBits(t, what+": dq", got.dq, want.dq)
				sameBits(t, what+": dk", got.dk, want.dk)
				sameBits(t, what+": dv", got.dv, want.dv)
			}
		}
	}
}

// A value that is not finite contributes nothing with a weight that underflows to 0, also if it is the largest weight
// of its block of keys.
func TestVanishingWeights(t *testing.T) {
	for _, s := range waysToRun() {
		if s.lk <= blockKeys {
			continue
		}
		for _, first := range []bool{false, true} {
			p := newProblem(8, s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev)
			p.Bias = &bias{Data: make([]float32, s.lk), Col: 1}
			vanishes := func(j int) bool { return j < blockKeys == first }
			for j := range p.Bias.Data {
				if vanishes(j) {
					p.Bias.Data[j] = -1000
				}
			}
			want := run(p)
			for _, x := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
				for b := range s.b {
					for g := range s.g {
						for j := range s.lk {
							if vanishes(j) && j%3 == 0 {
								fillWith(p.V.at(b, g, j)[:s.ev], x)
							}
						}
					}
				}
				sameResults(t, fmt.Sprintf("%v, values %v, in the first block %v", s, x, first), run(p), want)
			}
		}
	}
}

func fillWith(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}
