package flash

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/simd"
)

// results are the results of all three passes.
type results struct{ out, weights, lse, dq, dk, dv, dbias, dw, dsinks []float32 }

// run runs all three passes in the layout [B H L E]. Gradients start at 0.
func run(p *problem) results {
	var r results
	r.out = forwardOf(p)
	r.weights = rubbish(p.B * p.H * p.Lq * p.Lk)
	r.lse = p.LogSumExp
	again, rows := rubbish(len(r.out)), rubbish(len(r.weights))
	a := p.Attention
	a.Results = p.rubbishResults(headFirst(again, p.H, p.Lq, p.EV))
	a.LogSumExp, a.Weights = nil, r.weights
	Forward(&a)
	a.Weights, a.Row = nil, func(at Row, w []float32) {
		copy(rows[((at.Batch*p.H+at.Head)*p.Lq+at.Query)*p.Lk:], w)
	}
	Forward(&a)
	for i, v := range rows { // the rows that Row receives
		if w := r.weights[i]; math.Float32bits(v) != math.Float32bits(w) && (v == v || w == w) {
			panic(fmt.Sprint("row ", i/p.Lk, " has weight ", v, " instead of ", w))
		}
	}
	for i, v := range again { // requesting weights changes nothing
		if math.Float32bits(v) != math.Float32bits(r.out[i]) && (v == v || r.out[i] == r.out[i]) {
			panic(fmt.Sprint("with weights, element ", i, " of the result is ", v, " instead of ", r.out[i]))
		}
	}
	r.dq, r.dk, r.dv = make([]float32, len(p.Q.Data)), make([]float32, len(p.K.Data)), make([]float32, len(p.V.Data))
	to := Grads{Q: p.Q, K: p.K, V: p.V}
	to.Q.Data, to.K.Data, to.V.Data = r.dq, r.dk, r.dv
	if p.Bias != nil {
		r.dbias = make([]float32, len(p.Bias.Data))
	}
	to.Changes = p.changeGrads(r.dbias)
	if p.Sinks != nil {
		r.dsinks = make([]float32, p.H)
		to.Sinks = r.dsinks
	}
	r.dw = p.wGrad(&to)
	to.DOut, to.DWeights, to.DLogSumExp = headFirst(p.dout, p.H, p.Lq, p.EV), p.dweights, p.dlse
	p.Weights = r.weights
	Backward(&p.Attention, &to)
	return r
}

// finiteOnly returns x with 0 instead of infinities.
func finiteOnly[F float](x []F) []F {
	y := make([]F, len(x))
	for i, v := range x {
		if v-v == 0 {
			y[i] = v
		}
	}
	return y
}

// check compares all three passes with the plain formulas.
func check(t *testing.T, p *problem) {
	t.Helper()
	p.compare(t, solve[float64](p), singles(p))
}

// compare compares all three passes with the results of the plain formulas in float64 and in float32.
func (p *problem) compare(t *testing.T, want plain[float64], single [2]plain[float32]) {
	t.Helper()
	got := run(p)
	p.within(t, "out", got.out, want.out, single[0].out, single[1].out)
	p.within(t, "weights", got.weights, want.weights, single[0].weights, single[1].weights)
	p.within(t, "log-sum-exp", finiteOnly(got.lse), finiteOnly(want.lse), finiteOnly(single[0].lse), finiteOnly(single[1].lse))
	for i, w := range want.lse {
		if g := float64(got.lse[i]); math.IsInf(w, -1) != math.IsInf(g, -1) {
			t.Errorf("log-sum-exp of row %d is %v, want %v", i, g, w)
		}
	}
	if p.Sinks != nil {
		p.within(t, "dsinks", got.dsinks, want.dsinks, single[0].dsinks, single[1].dsinks)
	}
	p.within(t, "dq", got.dq, want.dq, single[0].dq, single[1].dq)
	p.within(t, "dk", got.dk, want.dk, single[0].dk, single[1].dk)
	p.within(t, "dv", got.dv, want.dv, single[0].dv, single[1].dv)
	if p.Bias != nil {
		// Some of these are 0 in exact arithmetic, so the rounding error of a sum depends on its
		// terms.
		got, want := append(got.dbias, got.dv...), append(want.dbias, want.dv...)
		p.within(t, "dbias", got, want, append(single[0].dbias, single[0].dv...), append(single[1].dbias, single[1].dv...))
	}
	if p.features() != nil {
		p.within(t, "dw", got.dw, want.dw, single[0].dw, single[1].dw)
	}
}

// kind is a feature of a problem.
type kind struct {
	name string
	set  func(p *problem)
}

// kinds are the features, one at a time and all together, with each form of the score.
var kinds = func() []kind {
	all := slices.Clone(features)
	for _, form := range forms {
		for n, f := range features {
			if form.name == "gaussian of one width" && n%4 != 0 {
				continue // differs from the previous case only in its scale
			}
			all = append(all, kind{form.name + ", " + f.name, func(p *problem) {
				form.set(p)
				f.set(p)
			}})
		}
	}
	return all
}()

var features = []kind{
	{"plain", func(p *problem) {}},
	{"causal", func(p *problem) {
		p.seen = func(b, h, i, j int) bool { return j <= i+p.Lk-p.Lq }
		p.Mask = []MaskRule{funcMask{p, true}}
	}},
	{"intervals", func(p *problem) {
		p.seen = func(b, h, i, j int) bool { return j >= (i*3+h*5)%p.Lk && j < (i*7+b)%(p.Lk+1) }
		p.Mask = []MaskRule{funcMask{p, true}}
	}},
	{"holes", func(p *problem) {
		p.seen = func(b, h, i, j int) bool { return (i*31+j*17+h*5+b)%7 < 4 && j%128 < 70 && i%5 != 3 }
		p.Mask = []MaskRule{funcMask{p, false}}
	}},
	{"nothing", func(p *problem) {
		p.seen = func(b, h, i, j int) bool { return false }
		p.Mask = []MaskRule{funcMask{p, true}}
	}},
	{"softcap", func(p *problem) { p.SoftCap = 1.5 }},
	{"bias", func(p *problem) {
		p.Bias = &bias{normal(rand.New(rand.NewPCG(3, 3)), p.B*p.H*p.Lq*p.Lk, 1), p.H * p.Lq * p.Lk, p.Lq * p.Lk, p.Lk, 1}
	}},
	{"bias of heads", func(p *problem) {
		p.Bias = &bias{normal(rand.New(rand.NewPCG(3, 3)), p.H*p.Lq*p.Lk, 1), 0, p.Lq * p.Lk, p.Lk, 1}
	}},
	{"bias of keys", func(p *problem) {
		p.Bias = &bias{normal(rand.New(rand.NewPCG(3, 3)), p.B*p.Lk, 1), p.Lk, 0, 0, 1}
	}},
	{"bias of queries", func(p *problem) {
		p.Bias = &bias{normal(rand.New(rand.NewPCG(3, 3)), p.Lq, 1), 0, 0, 1, 0}
	}},
	{"negative scale", func(p *problem) { p.Scale = -0.7 }},
	{"zero scale", func(p *problem) { p.Scale = 0 }},
	{"dropout", func(p *problem) { p.Dropout, p.Key = 0.3, 12345 }},
	{"weights", func(p *problem) { p.dweights = normal(rand.New(rand.NewPCG(4, 4)), p.B*p.H*p.Lq*p.Lk, 1) }},
	{"sinks", func(p *problem) { p.Sinks = normal(rand.New(rand.NewPCG(5, 5)), p.H, 3) }},
	{"gradient of log-sum-exp", func(p *problem) {
		p.dlse = normal(rand.New(rand.NewPCG(9, 9)), p.B*p.H*p.Lq, 1)
	}},
	{"large", func(p *problem) {
		by := float32(1e2)
		if p.Gaussian != nil {
			by = 10 // squared
		}
		for i := range p.Q.Data {
			p.Q.Data[i] *= by
			p.V.Data[i%len(p.V.Data)] *= 3
		}
	}},
	{"huge", func(p *problem) {
		for _, x := range [][]float32{p.Q.Data, p.K.Data, p.V.Data} {
			if &x[0] == &p.V.Data[0] && p.Additive != nil {
				break // the slope of tanh is only accurate to 1e-8
			}
			for i := range x {
				x[i] *= 5e3
			}
		}
	}},
	// Scores rise from block to block, first by little and then by more than the allowed lag of
	// the shifts.
	{"rising", func(p *problem) {
		for b := range p.B {
			for g := range p.G {
				for j := range p.Lk {
					fillWith(p.K.at(b, g, j)[:p.E], float32(j)*0.05)
				}
			}
		}
		for i, v := range p.Q.Data {
			p.Q.Data[i] = float32(math.Abs(float64(v)))
		}
	}},
	{"rounded", func(p *problem) { p.Rounded = true }},
	{"rounded and causal, with dropout and sinks", func(p *problem) {
		p.seen = func(b, h, i, j int) bool { return j <= i+p.Lk-p.Lq }
		p.Mask = []MaskRule{funcMask{p, true}}
		p.Rounded, p.Dropout, p.Key = true, 0.3, 12345
		p.Sinks = normal(rand.New(rand.NewPCG(5, 5)), p.H, 3)
	}},
	{"all", func(p *problem) {
		p.seen = func(b, h, i, j int) bool { return (i*31+j*17+h*5+b)%7 < 5 && j <= i+p.Lk/2 }
		p.Mask = []MaskRule{funcMask{p, false}}
		p.SoftCap, p.Dropout, p.Key = 3, 0.2, 99
		p.Bias = &bias{normal(rand.New(rand.NewPCG(3, 3)), p.H*p.Lq*p.Lk, 1), 0, p.Lq * p.Lk, p.Lk, 1}
		p.dweights = normal(rand.New(rand.NewPCG(4, 4)), p.B*p.H*p.Lq*p.Lk, 1)
	}},
}

func TestKinds(t *testing.T) {
	for i, s := range []struct{ b, h, g, lq, lk, e, ev int }{
		{2, 4, 2, 13, 70, 17, 33}, {1, 2, 2, 61, 300, 16, 8}, {2, 3, 1, 1, 600, 9, 20}, {1, 2, 2, 75, 130, 64, 64}, {3, 2, 1, 130, 10, 8, 65}, {1, 1, 1, 50, 1100, 12, 8},
	} {
		for j, k := range kinds {
			if i > 1 && (i+j)%2 > 0 && !strings.HasSuffix(k.name, "all") {
				continue
			}
			gaussian, additive := strings.HasPrefix(k.name, "gaussian"), strings.HasPrefix(k.name, "additive")
			if (gaussian || additive) && s.lk >= 300 && (testing.Short() || !strings.HasSuffix(k.name, "all")) &&
				(s.lk > 300 || !strings.HasSuffix(k.name, "causal") && !strings.HasSuffix(k.name, "intervals")) {
				continue // blocks of keys work the same for all forms; in a chunk, masks decide which keys are next
			}
			if testing.Short() && s.lq > 50 {
				continue // TestEdges covers such lengths
			}
			t.Run(fmt.Sprintf("%s/%v", k.name, s), func(t *testing.T) {
				t.Parallel()
				e := s.e
				if gaussian || additive {
					e = min(e, 20) // the plain formula is slow
				}
				p := newProblem(5, s.b, s.h, s.g, s.lq, s.lk, e, s.ev)
				k.set(p)
				check(t, p)
			})
		}
	}
}

// All other kernel implementations that this machine supports.
func TestImplementations(t *testing.T) {
	lengths := []int{10, 130}
	if testing.Short() {
		lengths = lengths[:1]
	}
	type solved struct {
		p      *problem
		want   plain[float64]
		single [2]plain[float32]
	}
	all := map[string][]solved{} // once for all implementations
	simd.Each(func(name string) {
		for _, k := range kinds {
			t.Run(name+"/"+k.name, func(t *testing.T) {
				if all[k.name] == nil {
					for _, lk := range lengths {
						p := newProblem(9, 2, 2, 1, 14, lk, 11, 21)
						k.set(p)
						all[k.name] = append(all[k.name], solved{p, solve[float64](p), singles(p)})
					}
				}
				for _, s := range all[k.name] {
					s.p.compare(t, s.want, s.single)
				}
			})
		}
	})
}

// Lengths at, one below and one above the sizes of tiles, bands, blocks and chunks.
func TestEdges(t *testing.T) {
	for i, lq := range []int{1, 11, 12, 13, 59, 60, 61, 95, 96, 97, 121} {
		for j, lk := range []int{1, 63, 64, 65, 255, 256, 257, 511, 512, 513} {
			if testing.Short() && (i+j)%3 > 0 {
				continue
			}
			p := newProblem(6, 1, 1, 1, lq, lk, 5, 7)
			p.seen = func(_, _, i, j int) bool { return j <= i*lk/lq }
			p.Mask = []MaskRule{funcMask{p, (lq+lk)%2 == 0}}
			t.Run(fmt.Sprintf("Lq=%d,Lk=%d", lq, lk), func(t *testing.T) { check(t, p) })
		}
	}
}

func BenchmarkTraining(b *testing.B) {
	for _, c := range []struct{ b, h, lq, lk, e int }{
		{1, 12, 512, 512, 64}, {1, 16, 1024, 1024, 128}, {8, 12, 128, 128, 64}, {64, 6, 12, 10, 50}, {1, 1, 1024, 1024, 64},
	} {
		b.Run(fmt.Sprint(c), func(b *testing.B) {
			p := newProblem(1, c.b, c.h, c.h, c.lq, c.lk, c.e, c.e)
			forwardOf(p)
			to := Grads{DOut: headFirst(p.dout, p.H, p.Lq, p.EV), Q: p.Q, K: p.K, V: p.V}
			to.Q.Data, to.K.Data, to.V.Data = make([]float32, len(p.Q.Data)), make([]float32, len(p.K.Data)), make([]float32, len(p.V.Data))
			for b.Loop() {
				Forward(&p.Attention)
				Backward(&p.Attention, &to)
			}
			flop := 14 * float64(c.b*c.h*c.lq*c.lk*c.e)
			b.ReportMetric(flop*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
