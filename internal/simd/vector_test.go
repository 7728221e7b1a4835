package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// vectorOps are the functions of two slices that write to a third, each with its operation on one
// element.
var vectorOps = []struct {
	name string
	f    func(dst, x, y []float32)
	one  func(dst, x, y float32) float32
}{
	{"Add", Add, func(_, x, y float32) float32 { return x + y }},
	{"Mul", Mul, func(_, x, y float32) float32 { return x * y }},
	{"MulAdd", MulAdd, func(dst, x, y float32) float32 { return fma32(x, y, dst) }},
	{"Axpy", func(dst, x, _ []float32) { Axpy(1.7, x, dst) }, func(dst, x, _ float32) float32 { return fma32(1.7, x, dst) }},
	{"Scale", func(dst, x, _ []float32) { Scale(dst, 1.7, x) }, func(_, x, _ float32) float32 { return 1.7 * x }},
}

func TestVectorOps(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(21, 22))
		for _, op := range vectorOps {
			for _, n := range lengths {
				dst, x, y := newGuarded(r, n), newGuarded(r, n), newGuarded(r, n)
				if n > 3 {
					x.x[n-1], y.x[n/2], x.x[1] = float32(math.NaN()), float32(math.Inf(1)), math.Float32frombits(3)
				}
				xb, yb := clone(x.x), clone(y.x)
				want, inPlace := make([]float32, n), make([]float32, n)
				for i := range want {
					want[i] = op.one(dst.x[i], x.x[i], y.x[i])
					inPlace[i] = op.one(x.x[i], x.x[i], y.x[i])
				}
				op.f(dst.x, x.x, y.x)
				if !same(dst.x, want) || !dst.intact() || !same(x.x, xb) || !same(y.x, yb) {
					t.Fatalf("%s: wrong at length %d", op.name, n)
				}
				op.f(x.x, x.x, y.x)
				if !same(x.x, inPlace) || !x.intact() || !y.intact() {
					t.Fatalf("%s: wrong at length %d in place", op.name, n)
				}
			}
		}
	})
}

func TestReductions(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(23, 24))
		for _, n := range lengths {
			x, y := newGuarded(r, n), newGuarded(r, n)
			var sum, sumAbs, dot, dotAbs, squares float64
			highest := math.Inf(-1)
			for i, v := range x.x {
				a, b := float64(v), float64(y.x[i])
				sum += a
				sumAbs += math.Abs(a)
				dot += a * b
				dotAbs += math.Abs(a * b)
				squares += a * a
				highest = max(highest, a)
			}
			for _, c := range []struct {
				name            string
				got             float32
				want, magnitude float64
			}{
				{"Sum", Sum(x.x), sum, sumAbs},
				{"Dot", Dot(x.x, y.x), dot, dotAbs},
				{"SumSquares", SumSquares(x.x), squares, squares},
				{"Max", Max(x.x), highest, 0},
			} {
				// A sum of n terms in 4 lanes, and at most 16384 terms in a piece.
				bound := c.magnitude * float64(min(n, 1<<14)/4+10) / (1 << 24)
				if off := math.Abs(float64(c.got) - c.want); !(off <= bound) && float64(c.got) != c.want {
					t.Errorf("%s at length %d: %v, want %v within %v", c.name, n, c.got, c.want, bound)
				}
			}
			// Zeros at the end change nothing.
			longX, longY := append(clone(x.x), make([]float32, 70)...), append(clone(y.x), make([]float32, 70)...)
			if Sum(longX) != Sum(x.x) || Dot(longX, longY) != Dot(x.x, y.x) {
				t.Errorf("length %d: zeros at the end change a sum", n)
			}
		}
	})
}

func TestMaxAndFiniteSeeEveryElement(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(25, 26))
		for _, n := range lengths[1:] {
			x := newGuarded(r, n)
			for _, at := range []int{0, n / 3, n / 2, n - 1} {
				if !Finite(x.x) {
					t.Fatalf("length %d: not finite", n)
				}
				old := x.x[at]
				x.x[at] = 1000
				if m := Max(x.x); m != 1000 {
					t.Fatalf("length %d: Max is %v, want the element at %d", n, m, at)
				}
				for _, bad := range []float32{inf, -inf, nan} {
					x.x[at] = bad
					if Finite(x.x) {
						t.Fatalf("length %d: finite with %v at %d", n, bad, at)
					}
				}
				if m := Max(x.x); m == m {
					t.Fatalf("length %d: Max is %v with NaN at %d", n, m, at)
				}
				x.x[at] = math.MaxFloat32
				if !Finite(x.x) {
					t.Fatalf("length %d: not finite with the largest float at %d", n, at)
				}
				x.x[at] = old
			}
			for i := range x.x {
				x.x[i] = -inf
			}
			if m := Max(x.x); m != -inf {
				t.Fatalf("length %d: Max of -Inf is %v", n, m)
			}
		}
	})
}

func TestAdamW(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(27, 28))
		s := AdamStep{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01}
		for _, n := range lengths {
			p, g, m, v := newGuarded(r, n), newGuarded(r, n), newGuarded(r, n), newGuarded(r, n)
			for i := range v.x {
				v.x[i] = v.x[i] * v.x[i]
			}
			step := 1 + r.IntN(1000)
			s.Correction1, s.Correction2 = 1-math.Pow(s.Beta1, float64(step)), 1-math.Pow(s.Beta2, float64(step))
			before := [3][]float32{clone(p.x), clone(m.x), clone(v.x)}
			AdamW(p.x, g.x, m.x, v.x, s)
			for i, gi := range g.x {
				pw, gw, mw, vw := float64(before[0][i]), float64(gi), float64(before[1][i]), float64(before[2][i])
				pw -= s.Rate * s.Decay * pw
				mw = s.Beta1*mw + (1-s.Beta1)*gw
				vw = s.Beta2*vw + (1-s.Beta2)*gw*gw
				move := s.Rate * (mw / s.Correction1) / (math.Sqrt(vw/s.Correction2) + s.Epsilon)
				near := func(got float32, want, scale float64) bool {
					return math.Abs(float64(got)-want) <= 3e-7*scale
				}
				if !near(m.x[i], mw, math.Abs(mw)+math.Abs(gw)) || !near(v.x[i], vw, vw) ||
					!near(p.x[i], pw-move, math.Abs(pw)+math.Abs(move)) {
					t.Fatalf("length %d, element %d: p=%v m=%v v=%v, want %v %v %v", n, i, p.x[i], m.x[i], v.x[i], pw-move, mw, vw)
				}
			}
			for _, x := range []guarded{p, g, m, v} {
				if !x.intact() {
					t.Fatalf("length %d: wrote outside", n)
				}
			}
		}
	})
}

func TestLengthsThatDisagree(t *testing.T) {
	f := func(n int) []float32 { return make([]float32, n) }
	for _, c := range []struct {
		want string
		call func()
	}{
		{"simd: Exp: len(dst)=3, len(x)=4", func() { Exp(f(3), f(4)) }},
		{"simd: ExpSum: len(dst)=3, len(x)=4", func() { ExpSum(f(3), f(4), 0) }},
		{"simd: Tanh: len(dst)=3, len(x)=4", func() { Tanh(f(3), f(4)) }},
		{"simd: Sigmoid: len(dst)=3, len(x)=4", func() { Sigmoid(f(3), f(4)) }},
		{"simd: GELU: len(dst)=3, len(x)=4", func() { GELU(f(3), f(4)) }},
		{"simd: GELUGrad: len(dst)=3, len(x)=4", func() { GELUGrad(f(3), f(4)) }},
		{"simd: Dot: len(x)=3, len(y)=4", func() { Dot(f(3), f(4)) }},
		{"simd: Axpy: len(x)=3, len(y)=4", func() { Axpy(1, f(3), f(4)) }},
		{"simd: Scale: len(dst)=3, len(x)=4", func() { Scale(f(3), 1, f(4)) }},
		{"simd: ScaleShift: len(dst)=3, len(x)=4", func() { ScaleShift(f(3), 1, f(4), 0) }},
		{"simd: Add: len(dst)=3, len(x)=4", func() { Add(f(3), f(4), f(3)) }},
		{"simd: Mul: len(dst)=3, len(y)=4", func() { Mul(f(3), f(3), f(4)) }},
		{"simd: MulAdd: len(dst)=3, len(y)=4", func() { MulAdd(f(3), f(3), f(4)) }},
		{"simd: AdamW: len(p)=3, len(v)=4", func() { AdamW(f(3), f(3), f(3), f(4), AdamStep{}) }},
		{"simd: Dropout: len(dst)=3, len(x)=4", func() { Dropout(f(3), f(4), 0, 0, 0, 1) }},
		{"simd: DropoutAdd: len(dst)=3, len(y)=4", func() { DropoutAdd(f(3), f(3), f(4), 0, 0, 0, 1) }},
		{"simd: ReLU: len(dst)=3, len(x)=4", func() { ReLU(f(3), f(4)) }},
		{"simd: ReLUGrad: len(dx)=3, len(x)=4", func() { ReLUGrad(f(3), f(3), f(4)) }},
		{"simd: SoftmaxGrad: len(dx)=3, len(dy)=4", func() { SoftmaxGrad(f(3), f(4), f(3)) }},
		{"simd: Norm: len(dst)=3, len(shift)=4", func() { Norm(f(3), f(3), f(3), f(4), 0, 1) }},
		{"simd: LayerNorm: len(x)=5, len(mean by gain)=6", func() { LayerNorm(f(6), f(5), f(3), f(3), f(2), f(2), 0) }},
		{"simd: LayerNormGrad: len(dx)=6, len(x)=5", func() { LayerNormGrad(f(6), f(6), f(5), f(3), f(2), f(2)) }},
		{"simd: NormSums: len(dy)=3, len(gain)=4", func() { NormSums(f(3), f(3), f(4), 0, 1) }},
		{"simd: NormGrad: len(dx)=3, len(gain)=4", func() { NormGrad(f(3), f(3), f(3), f(4), 0, 1, 0, 0) }},
		{"simd: NormGains: len(mean)=2, len(inv)=1", func() { NormGains(f(3), f(3), f(6), f(6), f(2), f(1), 3) }},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, c.want) {
					t.Errorf("panicked with %q, want %q", got, c.want)
				}
			}()
			c.call()
		}()
	}
}
