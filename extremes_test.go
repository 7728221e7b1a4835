package attn_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// times returns x·2^power.
func times(x *tensor.Tensor, power int) *tensor.Tensor {
	y := x.Clone()
	for i, v := range y.Data() {
		y.Data()[i] = float32(math.Ldexp(float64(v), power))
	}
	return y
}

// Cosine depends only on the directions of vectors, whatever their norms: there is no ε that
// would make short vectors less similar, and no square that overflows.
func TestCosineOfExtremes(t *testing.T) {
	c := newCall(kindCase("dot"), usual)
	c.o.Score = &score.Cosine{Scale: tensor.Full(3, 1).Param()}
	want := c.run()
	for _, p := range []int{-120, -60, -44, -40, -30, 30, 62, 64, 100, 120} {
		for _, both := range []bool{false, true} {
			other := c
			other.q = times(c.q, p)
			if both {
				other.k = times(c.k, p)
			}
			got := other.run()
			// Longer vectors have smaller gradients; scaled back, they are equal.
			got["dq"] = times(got["dq"], p)
			if both {
				got["dk"] = times(got["dk"], p)
			}
			near(t, fmt.Sprint("times 2^", p), got, want)
		}
	}

	zero := c
	zero.q = tensor.Zeros(c.q.Shape()...)
	got := zero.run()
	weights := tensor.Full(1/float32(usual.lk), got["weights"].Shape()...)
	nearTensor(t, "weights of zeros", got["weights"], weights)
	for _, name := range []string{"dq", "dk"} {
		tensortest.Same(t, name+" of zeros", got[name].Data(), make([]float32, got[name].Len()))
	}
}

// A query that is far from all keys attends to the nearest, at any distance.
func TestGaussianFarAway(t *testing.T) {
	const huge = 1e25
	keys := tensor.New([]float32{0, 0, 0.5 * huge, 0, 0.9 * huge, 0, -huge, huge, 0.9 * huge, 1}, 1, 1, 5, 2)
	values := tensor.New([]float32{1, 2, 3, 4, 5}, 1, 1, 5, 1)
	query := tensor.New([]float32{huge, 0, -huge, 2 * huge, 3, 0}, 1, 1, 3, 2)
	w := func(x float32) *score.Gaussian { return &score.Gaussian{W: tensor.Full(x, 1).Param()} }
	many := float32(math.NaN()) // if several keys contribute
	for _, c := range []struct {
		name  string
		score *score.Gaussian
		o     attn.Options
		want  []float32
	}{
		// Within float32, keys 2 and 4 are equally near to the first query.
		{"the nearest", &score.Gaussian{}, attn.Options{}, []float32{4, 4, 1}},
		{"with a parameter", w(2), attn.Options{}, []float32{4, 4, 1}},
		{"with a small one", w(1e-24), attn.Options{}, []float32{many, 4, many}},
		{"the nearest that is seen", w(1), attn.Options{Mask: mask.Lengths(2)}, []float32{2, 1, 1}},
		{"the only one that is seen", w(1), attn.Options{Mask: mask.AllowFunc(func(_, _, _, j int) bool { return j == 3 })}, []float32{4, 4, 4}},
		{"none is seen", w(1), attn.Options{Mask: mask.Lengths(0)}, []float32{0, 0, 0}},
		{"a bias hides the nearest", w(1), attn.Options{Bias: tensor.New([]float32{0, 0, float32(math.Inf(-1)), float32(math.Inf(-1)), float32(math.Inf(-1))}, 5)}, []float32{2, 1, 1}},
		{"what is hidden has a bias", w(1), attn.Options{Mask: mask.AllowFunc(func(_, _, _, j int) bool { return j < 2 }), Bias: tensor.New([]float32{0, 0, many, float32(math.Inf(1)), many}, 5)}, []float32{2, 1, 1}},
		{"a bias hides all", w(1), attn.Options{Bias: tensor.Full(float32(math.Inf(-1)), 5)}, []float32{0, 0, 0}},
		{"a bias counts among equals", w(1), attn.Options{Bias: tensor.New([]float32{0, 0, 0, 0, 100}, 5)}, []float32{5, 4, 1}},
		{"a soft-cap makes all alike", w(1), attn.Options{SoftCap: 3, Mask: mask.Lengths(2)}, []float32{1.5, 1.5, many}},
	} {
		c.o.Score = c.score
		tape := tensortest.Tape(tensor.Eval)
		q, k, v := query.Clone().Param(), keys.Clone().Param(), values.Clone().Param()
		c.o.Weights = true
		y := attn.Attend(tape, q, k, v, c.o)
		tape.Backward(y.Out, tensor.Full(1, 1, 1, 3, 1))
		for i, want := range c.want {
			got := y.Out.Data()[i]
			if !math.IsNaN(float64(want)) && !(math.Abs(float64(got-want)) <= 1e-6) {
				t.Errorf("%s: query %d gets %v, want %v", c.name, i, got, want)
			}
		}
		for name, x := range map[string]*tensor.Tensor{"dq": q, "dk": k, "dv": v} {
			if g := x.Grad(); !(magnitude(g) < math.Inf(1)) {
				t.Errorf("%s: %s is %v", c.name, name, g)
			}
		}
	}
}

// A query that is far from all keys attends to the nearest one on every code path: among many keys, which
// are split between processors, from a cache, and with dropout.
func TestGaussianFarAwayOnEveryWay(t *testing.T) {
	const lk, e, v = 1100, 3, 2
	rng := newRand(5)
	values := tensor.Randn(rng, 1, 1, lk, v)
	keys := tensor.Randn(rng, 1, 1, lk, e)
	for i := range keys.Data() {
		keys.Data()[i] *= 1e22
	}
	copy(keys.Data()[700*e:], keys.Data()[300*e:301*e]) // two equal keys
	for _, lq := range []int{1, 60} {
		q := tensor.Full(0, 1, 1, lq, e)
		each(q, func(_, _, i, f int, x *float32) { *x = keys.Data()[(300+i)*e+f] + 1e20 })
		for _, w := range []*tensor.Tensor{nil, tensor.New([]float32{1, 2, 3}, e).Param()} {
			o := attn.Options{Score: &score.Gaussian{W: w}, Weights: true, LogSumExp: true}
			for _, dropout := range []float32{0, 0.5} {
				if o.Dropout = dropout; dropout > 0 && lq == 1 {
					continue
				}
				tape := tensortest.Tape(tensor.Train)
				q, k := q.Clone().Param(), keys.Clone().Param()
				y := attn.Attend(tape, q, k, values, o)
				dout := tensor.Full(1, 1, 1, lq, v)
				tape.Backward(y.Out, dout)
				each(y.Weights, func(_, _, i, j int, x *float32) {
					want := float32(0)
					switch {
					case i == 0 && (j == 300 || j == 700):
						want = 0.5
					case i > 0 && j == 300+i:
						want = 1
					}
					if *x != want {
						t.Fatalf("%d queries: query %d has weight %v for key %d, want %v", lq, i, *x, j, want)
					}
				})
				for _, x := range y.LogSumExp.Data() {
					if !math.IsInf(float64(x), -1) {
						t.Fatalf("%d queries: log-sum-exp %v, want -Inf", lq, x)
					}
				}
				if dropout == 0 {
					// The two keys share the weight. By w·(dw − Σw·dw), their gradients are
					// opposite for different values.
					a, b := k.Grad().Data()[300*e:][:e], k.Grad().Data()[700*e:][:e]
					for f := range a {
						if a[f] == 0 || math.Abs(float64(a[f]+b[f])) > 1e-6*math.Abs(float64(a[f])) {
							t.Fatalf("%d queries: gradients of the two nearest keys are %v and %v, want opposite", lq, a, b)
						}
					}
				}
				if dropout > 0 {
					continue
				}
				for _, storage := range storages {
					if storage.storage == tensor.Float16 {
						continue // numbers of this format end at 65,504
					}
					c, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: e, ValueSize: v, Score: o.Score, Storage: storage.storage})
					if err != nil {
						t.Fatal(err)
					}
					c.Append(keys, values, nil)
					o := o
					o.Score = nil
					z := c.Attend(nil, q, o)
					each(z.Weights, func(_, _, i, j int, x *float32) {
						if want := float32(0.5); i == 0 && (j == 300 || j == 700) && *x != want {
							t.Fatalf("%d queries, cache of %v: weight %v, want %v", lq, storage.storage, *x, want)
						}
					})
				}
			}
		}
	}
}

// Rows far from all keys match float64 results, with groups, masks and biases.
func TestGaussianFarAwayAgainstDefinition(t *testing.T) {
	s := usual
	for _, power := range []int{62, 66, 100} {
		c := newCall(kindCase("dot"), s).mask(mask.Lengths(6, 4)).bias(s.h, 1, s.lk)
		c.o.Score = &score.Gaussian{}
		// The keys are on a line, so that differences of squares are representable.
		for i := range c.k.Len() {
			c.k.Data()[i] = 0
		}
		each(c.k, func(_, g, j, e int, v *float32) {
			if e == 0 {
				*v = float32(math.Ldexp(float64((j*3+g)%s.lk), power))
			}
		})
		each(c.q, func(_, h, i, e int, v *float32) {
			*v = 0
			if e == 0 {
				*v = float32(math.Ldexp(float64(20+h-i), power))
			}
		})
		got := c.run()
		each(got["weights"], func(b, h, i, j int, w *float32) {
			best, at := math.Inf(1), 0
			for j := range []int{6, 4}[b] {
				if d := math.Abs(float64(20+h-i) - float64((j*3+h/(s.h/s.g))%s.lk)); d < best {
					best, at = d, j
				}
			}
			want := float32(0)
			if j == at {
				want = 1
			}
			if *w != want {
				t.Fatalf("times 2^%d: query %d of head %d of sequence %d has weight %v for key %d, want %v", power, i, h, b, *w, j, want)
			}
		})
	}
}

// The score of a pair is finite if its exact value is in range, even if differences overflow.
func TestGaussianOfHugeDifferences(t *testing.T) {
	q := tensor.New([]float32{math.MaxFloat32}, 1, 1, 1, 1)
	k := tensor.New([]float32{-math.MaxFloat32}, 1, 1, 1, 1)
	s := &score.Gaussian{W: tensor.Full(float32(math.Ldexp(1, -127)), 1)}
	if got := attn.Scores(nil, q, k, attn.Options{Score: s}).Item(); math.Abs(float64(got)+8) > 1e-5 { // −½·(2·2¹²⁸·2⁻¹²⁷)²
		t.Errorf("score %v, want -8", got)
	}
}

// Tiny values give results with full precision, on every implementation, for many queries and,
// from a cache, for one.
func TestTinyValues(t *testing.T) {
	const keys, size = 70, 64
	r := newRand(7)
	q, k, v := tensor.Randn(r, 1, 1, keys, size), tensor.Randn(r, 1, 1, keys, size), tensor.Randn(r, 1, 1, keys, size)
	for _, power := range []int{0, -80, -100, -110} {
		tiny := times(v, power)
		simd.Each(func(kernels string) {
			what := fmt.Sprintf("%s: times 2^%d", kernels, power)
			o := attn.Options{Mask: mask.Causal()}
			want := attn.Attend(nil, q, k, v, o).Out
			got := attn.Attend(nil, q, k, tiny, o).Out
			nearTensor(t, what, times(got, -power), want)
			cache, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: size})
			if err != nil {
				t.Fatal(err)
			}
			cache.Append(k, tiny, nil)
			last := tensor.New(q.Data()[(keys-1)*size:], 1, 1, 1, size)
			one := cache.Attend(nil, last, o).Out
			tensortest.Same(t, what+", in a cache", one.Data(), got.Data()[(keys-1)*size:])
		})
	}
}
