package flash

import (
	"fmt"
	"math"
	"testing"
)

// A head has the same result alone and among other heads, although it prefetches the next head
// while it is computed. A query has the same result in strips of twelve, which a mask with a hole
// in another row causes.
func TestHeadsAreIndependent(t *testing.T) {
	const b, h, ev = 2, 3, 59
	for _, s := range []struct{ lq, lk, e int }{{61, 67, 53}, {13, 11, 7}, {101, 131, 64}, {3, 1, 2}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			p := newProblem(5, b, h, h, s.lq, s.lk, s.e, ev)
			p.Q.Data[s.e+1] = float32(math.NaN()) // row 1 is not finite
			all := forwardOf(p)
			size := s.lq * ev
			for z := range b * h {
				one := *p
				one.B, one.H, one.G = 1, 1, 1
				one.Q.Data, one.K.Data, one.V.Data = p.Q.at(z/h, z%h, 0), p.K.at(z/h, z%h, 0), p.V.at(z/h, z%h, 0)
				out := forwardOf(&one)
				name := fmt.Sprintf("head %d: ", z)
				sameBits(t, name+"out", out, all[z*size:][:size])
				sameBits(t, name+"log-sum-exp", one.LogSumExp, p.LogSumExp[z*s.lq:][:s.lq])
			}
			if s.lk == 1 {
				return
			}
			holed := *p
			holed.seen = func(b, h, i, j int) bool { return i > 0 || j > 0 }
			holed.Mask = []MaskRule{funcMask{p: &holed}}
			out := forwardOf(&holed)
			for z := range b * h {
				sameBits(t, fmt.Sprintf("head %d under a mask", z), out[z*size+ev:][:size-ev], all[z*size+ev:][:size-ev])
			}
		})
	}
}

// Heads that are computed together have the same bits as one by one, as Only computes them.
func TestHeadsTogether(t *testing.T) {
	tested := 0
	for n, s := range []way{{5, 3, 3, 12, 10, 50, 50}, {2, 6, 2, 5, 30, 16, 24}, {3, 2, 1, 7, 64, 8, 70}, {9, 1, 1, 1, 33, 4, 4}, {4, 2, 2, 30, 90, 8, 8}} {
		for _, k := range append(features, []kind{
			{"NaN and infinite", func(p *problem) {
				p.Q.Data[s.e+1], p.K.Data[len(p.K.Data)-1], p.V.Data[2] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))
			}},
			{"padding with NaN", func(p *problem) {
				p.QueryLens, p.KeyLens = make([]int, s.b), make([]int, s.b)
				for b := range s.b {
					p.QueryLens[b], p.KeyLens[b] = (b*3+1)%(s.lq+1), (b*7+5)%(s.lk+1)
					for j := p.KeyLens[b]; j < s.lk; j++ {
						p.K.at(b, 0, j)[0], p.V.at(b, 0, j)[s.ev-1] = float32(math.NaN()), float32(math.NaN())
					}
				}
			}},
			{"padding, holes and dropout", func(p *problem) {
				p.KeyLens = make([]int, s.b)
				p.seen = func(b, h, i, j int) bool { return (i+j*5+h)%4 > 0 }
				p.Mask, p.Dropout, p.Key = []MaskRule{funcMask{p, false}}, 0.4, 99
				for b := range s.b {
					p.KeyLens[b] = s.lk - b%s.lk
				}
			}},
			{"extra keys", func(p *problem) { p.Extra, p.Lk = 2, p.Lk-2 }},
			{"rounded", func(p *problem) { p.Rounded = true }},
		}...) {
			p := newProblem(uint64(n), s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev)
			k.set(p)
			name := fmt.Sprintf("%v, %s", s, k.name)
			got := forwardOf(p)
			f := forward{Attention: &p.Attention, count: 1, height: p.H / p.G * p.Lq}
			if f.together() > 1 {
				tested++
			}
			one := p.Attention
			out := rubbish(len(got))
			one.Results = one.rubbishResults(headFirst(out, p.H, p.Lq, p.EV))
			for head := range p.B * p.H {
				one.Only = &head
				Forward(&one)
			}
			sameBits(t, name, got, out)
			sameBits(t, name+": shift", p.Shift, one.Shift)
			sameBits(t, name+": inverse", p.Inverse, one.Inverse)
			sameBits(t, name+": log-sum-exp", p.LogSumExp, one.LogSumExp)
		}
	}
	if tested < 60 {
		t.Errorf("only %d calls computed heads together", tested)
	}
}

// A search of a sequence covers all heads, and its result is not used for another sequence.
func TestScan(t *testing.T) {
	const b, heads, length, size = 2, 3, 4, 5
	x := Heads{make([]float32, b*length*heads*size), length * heads * size, size, heads * size}
	for i := range x.Data {
		x.Data[i] = negInf
		var s scan
		for j := range b {
			want := j != i/x.Batch
			for range 2 {
				if got := s.finite(x, j, heads, length, size); got != want {
					t.Errorf("with element %d infinite, sequence %d is finite: %v, want %v", i, j, got, want)
				}
			}
		}
		x.Data[i] = 0
	}
	apart := Heads{x.Data, x.Batch, length * size, size}
	if new(scan).finite(apart, 0, heads, length, size) {
		t.Error("heads that are not side by side are searched as if they were")
	}
}

// beside returns x [B H L size] with the heads of a vector side by side.
func beside(x Heads, b, h, l, size int) Heads {
	y := Heads{make([]float32, b*h*l*size), l * h * size, size, h * size}
	for i := range b * h * l {
		copy(y.at(i/l/h, i/l%h, i%l)[:size], x.at(i/l/h, i/l%h, i%l)[:size])
	}
	return y
}

// Gradients have the same bits with heads one after the other and side by side.
func TestHeadsSideBySide(t *testing.T) {
	for _, s := range []struct{ b, h, lq, lk, e, ev int }{
		{3, 4, 20, 25, 16, 16}, {5, 3, 63, 7, 5, 9}, {2, 2, 64, 3, 8, 8}, {70, 2, 1, 9, 3, 70}, {2, 1, 5, 6, 4, 4},
	} {
		for _, dropout := range []float32{0, 0.3} {
			p := newProblem(8, s.b, s.h, s.h, s.lq, s.lk, s.e, s.ev)
			p.Dropout, p.Key = dropout, 7
			dout := headFirst(p.dout, s.h, s.lq, s.ev)
			q := beside(p.Q, s.b, s.h, s.lq, s.e)
			k, v := beside(p.K, s.b, s.h, s.lk, s.e), beside(p.V, s.b, s.h, s.lk, s.ev)
			want := run(p)
			a := p.Attention
			a.Q, a.K, a.V, a.Weights = q, k, v, nil
			a.Results = a.rubbishResults(beside(dout, s.b, s.h, s.lq, s.ev))
			Forward(&a)
			to := Grads{DOut: beside(dout, s.b, s.h, s.lq, s.ev), Q: q, K: k, V: v}
			for _, x := range []*Heads{&to.Q, &to.K, &to.V} {
				x.Data = make([]float32, len(x.Data))
			}
			Backward(&a, &to)
			for _, x := range []struct {
				name    string
				got     Heads
				l, size int
				want    []float32
			}{
				{"out", a.Out, s.lq, s.ev, want.out}, {"dq", to.Q, s.lq, s.e, want.dq},
				{"dk", to.K, s.lk, s.e, want.dk}, {"dv", to.V, s.lk, s.ev, want.dv},
			} {
				one := headFirst(x.want, s.h, x.l, x.size)
				sameBits(t, fmt.Sprint(s, " ", x.name), x.got.Data, beside(one, s.b, s.h, x.l, x.size).Data)
			}
		}
	}
}
