package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

func phi(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func geluGrad64(x float64) float64 {
	if math.Abs(x) > 40 {
		return phi(x)
	}
	return phi(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}

func gelu64(x float64) float64 {
	if x < -40 {
		return 0
	}
	return x * phi(x)
}

// functions are the functions of one slice. The bound is in units in the last place of the exact
// result. If absolute is set, it is in multiples of 2^-24 if that is more. Results below tiny may
// be flushed to 0, so the error may be as large as they are.
var functions = []struct {
	name     string
	f        func(dst, x []float32)
	exact    func(x float64) float64
	bound    float64
	absolute bool
}{
	{"Exp", Exp, math.Exp, 1, false},
	{"Tanh", Tanh, math.Tanh, 2.5, false},
	{"Sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 2.5, false},
	{"GELU", GELU, gelu64, 6, false},
	{"GELUGrad", GELUGrad, geluGrad64, 4, true},
}

const tiny = 1.0 / (1 << 62) / (1 << 62) * 0.75 // about 2^-124.4

func TestFunctionsAreAccurate(t *testing.T) {
	onEach(t, func(t *testing.T) {
		for _, f := range functions {
			// Numbers evenly spread over the bits of floats, and numbers where the curves bend.
			var x []float32
			for bits := uint64(0); bits < 1<<32; bits += 30011 {
				x = append(x, math.Float32frombits(uint32(bits)))
			}
			for v := -110.0; v < 110; v += 0.0007 {
				x = append(x, float32(v))
			}
			y := make([]float32, len(x))
			f.f(y, x)
			worst, at := 0.0, 0
			for i, v := range x {
				want := f.exact(float64(v))
				if math.Abs(want) < tiny && math.Abs(float64(y[i])) < tiny && (v < 0 || f.name == "Exp") {
					continue
				}
				e := ulps(y[i], want)
				if f.absolute {
					e = min(e, math.Abs(float64(y[i])-want)*(1<<24))
				}
				if e > worst {
					worst, at = e, i
				}
			}
			t.Logf("%s: error %.2f at %v", f.name, worst, x[at])
			if worst > f.bound {
				t.Errorf("%s(%v) = %v, want %v: off by %.2f, more than %v",
					f.name, x[at], y[at], f.exact(float64(x[at])), worst, f.bound)
			}
		}
	})
}

func TestFunctionsAtTheEdges(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	denormal := math.Float32frombits(1)
	zero, minusZero := float32(0), float32(math.Copysign(0, -1))
	for _, c := range []struct {
		name string
		f    func(dst, x []float32)
		x, y []float32
	}{
		{"Exp", Exp, []float32{-inf, inf, nan, 0, minusZero, denormal, -1000, 1000, 88.72283, 88.72284, -3e38},
			[]float32{0, inf, nan, 1, 1, 1, 0, inf, 3.4027977e38, inf, 0}},
		{"Tanh", Tanh, []float32{-inf, inf, nan, 0, minusZero, denormal, -denormal, 100, -100, 1e-30},
			[]float32{-1, 1, nan, 0, minusZero, denormal, -denormal, 1, -1, 1e-30}},
		{"Sigmoid", Sigmoid, []float32{-inf, inf, nan, 0, -1000, 1000}, []float32{0, 1, nan, 0.5, 0, 1}},
		{"GELU", GELU, []float32{-inf, inf, nan, 0, -1000, 1000, 3e38}, []float32{zero, inf, nan, 0, 0, 1000, 3e38}},
		{"GELUGrad", GELUGrad, []float32{-inf, inf, nan, 0, -1000, 1000}, []float32{0, 1, nan, 0.5, 0, 1}},
	} {
		onEach(t, func(t *testing.T) {
			y := make([]float32, len(c.x))
			c.f(y, c.x)
			for i, v := range y {
				if v == 0 && c.name != "Tanh" {
					v = zero // -0 is correct too
				}
				off := math.Abs(float64(v)-float64(c.y[i])) / math.Abs(float64(c.y[i]))
				if !same([]float32{v}, c.y[i:i+1]) && !(off < 5e-7) {
					t.Errorf("%s(%v) = %v, want %v", c.name, c.x[i], v, c.y[i])
				}
			}
		})
	}
}

// Every element must have the same result as alone, whatever the length and its position.
func TestFunctionsAtEveryLength(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 12))
		for _, f := range functions {
			for _, n := range lengths {
				x, dst := newGuarded(r, n), newGuarded(r, n)
				before := clone(x.x)
				want := make([]float32, n)
				for i := range want {
					f.f(want[i:i+1], x.x[i:i+1])
				}
				f.f(dst.x, x.x)
				if !same(dst.x, want) || !same(x.x, before) || !dst.intact() || !x.intact() {
					t.Fatalf("%s: wrong at length %d", f.name, n)
				}
				f.f(x.x, x.x)
				if !same(x.x, want) || !x.intact() {
					t.Fatalf("%s: wrong at length %d in place", f.name, n)
				}
			}
		}
	})
}

func TestExpSum(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 14))
		for _, n := range lengths {
			x, dst := newGuarded(r, n), newGuarded(r, n)
			shift := Max(x.x)
			if n == 0 {
				shift = 0
			}
			want := make([]float32, n)
			for i := range want {
				want[i] = x.x[i] - shift
			}
			Exp(want, want)
			sum := ExpSum(dst.x, x.x, shift)
			if !same(dst.x, want) || !dst.intact() {
				t.Fatalf("length %d: differs from Exp", n)
			}
			if lanes := expSumByLanes(dst.x); sum != lanes {
				t.Fatalf("length %d: sum %v, want %v", n, sum, lanes)
			}
			// Zeros at the end change nothing.
			longer := append(clone(x.x), make([]float32, 50)...)
			for i := n; i < len(longer); i++ {
				longer[i] = float32(math.Inf(-1))
			}
			if again := ExpSum(longer, longer, shift); again != sum {
				t.Fatalf("length %d: sum %v with zeros appended, %v without", n, again, sum)
			}
			if again := ExpSum(x.x, x.x, shift); again != sum || !same(x.x, want) || !x.intact() {
				t.Fatalf("length %d: wrong in place", n)
			}
		}
	})
}

// expSumByLanes adds in the order that the comment of ExpSum describes.
func expSumByLanes(e []float32) float32 {
	var total float32
	for len(e) > 0 {
		n := min(len(e), 1<<14)
		var lane [16]float32
		for i, v := range e[:n] {
			lane[i%16] += v
		}
		for d := 8; d > 0; d /= 2 {
			for i := range d {
				lane[i] += lane[i+d]
			}
		}
		total += lane[0]
		e = e[n:]
	}
	return total
}
