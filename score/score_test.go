package score_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

func TestMain(m *testing.M) {
	partest.OneThread()
	m.Run()
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// Any finite scale of the dot product is valid, including zero.
func TestDotScale(t *testing.T) {
	rng := newRand(17)
	q, k := tensor.Randn(rng, 2, 3, 5, 5), tensor.Randn(rng, 2, 3, 7, 5)
	plain := attn.Scores(nil, q, k, attn.Options{Score: score.Dot()})
	for _, scale := range []float32{0, 1, -0.5, 3} {
		tensortest.Near(t, fmt.Sprint("scale ", scale), attn.Scores(nil, q, k, attn.Options{Score: score.DotScale(scale)}), tensor.Scale(nil, plain, scale))
	}
}

// Cosine depends only on the directions of vectors, whatever their norms: there is no ε that
// would make short vectors less similar, and no square that overflows.
func TestCosineOfExtremes(t *testing.T) {
	rng := newRand(17)
	q, k, v := tensor.Randn(rng, 2, 6, 5, 5), tensor.Randn(rng, 2, 3, 7, 5), tensor.Randn(rng, 2, 3, 7, 3)
	dout, dweights := tensor.Randn(rng, 2, 6, 5, 3), tensor.Randn(rng, 2, 6, 5, 7)
	run := func(q, k *tensor.Tensor) map[string]*tensor.Tensor {
		tape, scale := tensortest.Tape(tensor.Train), tensor.Full(3, 1).Param()
		q, k, v := q.Clone().Param(), k.Clone().Param(), v.Clone().Param()
		y := attn.Attend(tape, q, k, v, attn.Options{Score: &score.Cosine{Scale: scale}, Weights: true})
		tape.BackwardAll([]*tensor.Tensor{y.Out, y.Weights}, []*tensor.Tensor{dout, dweights})
		return map[string]*tensor.Tensor{
			"out": y.Out, "weights": y.Weights, "dq": q.Grad(), "dk": k.Grad(), "dv": v.Grad(), "dscale": scale.Grad(),
		}
	}
	times := func(x *tensor.Tensor, power int) *tensor.Tensor {
		return tensor.Scale(nil, x, float32(math.Ldexp(1, power)))
	}
	want := run(q, k)
	for _, p := range []int{-120, -60, -44, -40, -30, 30, 62, 64, 100, 120} {
		for _, both := range []bool{false, true} {
			longer := k
			if both {
				longer = times(k, p)
			}
			got := run(times(q, p), longer)
			// Longer vectors have smaller gradients; scaled back, they are equal.
			got["dq"] = times(got["dq"], p)
			if both {
				got["dk"] = times(got["dk"], p)
			}
			for name, x := range want {
				tensortest.Near(t, fmt.Sprintf("times 2^%d: %s", p, name), got[name], x)
			}
		}
	}

	got := run(tensor.Zeros(q.Shape()...), k)
	tensortest.Near(t, "weights of zeros", got["weights"], tensor.Full(1./7, 2, 6, 5, 7))
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
			if g := x.Grad(); slices.ContainsFunc(g.Data(), func(v float32) bool { return v-v != 0 }) {
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
		q := tensor.Slice(nil, keys, 2, 300, 300+lq).Clone()
		for i := range q.Data() {
			q.Data()[i] += 1e20
		}
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
				for n, w := range y.Weights.Data() {
					i, j, want := n/lk, n%lk, float32(0)
					switch {
					case i == 0 && (j == 300 || j == 700):
						want = 0.5
					case i > 0 && j == 300+i:
						want = 1
					}
					if w != want {
						t.Fatalf("%d queries: query %d has weight %v for key %d, want %v", lq, i, w, j, want)
					}
				}
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
				for _, storage := range []tensor.Format{tensor.Float32, tensor.BFloat16, tensor.Int8} {
					c, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: e, ValueSize: v, Score: o.Score, Format: storage})
					if err != nil {
						t.Fatal(err)
					}
					c.Append(keys, values, nil)
					o := o
					o.Score = nil
					z := c.Attend(nil, q, o)
					for _, j := range []int{300, 700} { // of the first query
						if w := z.Weights.Data()[j]; w != 0.5 {
							t.Fatalf("%d queries, cache of %v: weight %v, want 0.5", lq, storage, w)
						}
					}
				}
			}
		}
	}
}

// Rows far from all keys match float64 results, with groups, masks and biases.
func TestGaussianFarAwayAgainstDefinition(t *testing.T) {
	const h, g, lq, lk = 6, 3, 5, 7
	for _, power := range []int{62, 66, 100} {
		// The keys are on a line, so that differences of squares are representable.
		query := func(h, i int) float64 { return float64(20 + h - i) }
		key := func(g, j int) float64 { return float64((j*3 + g) % lk) }
		q, k := tensor.Zeros(2, h, lq, 5), tensor.Zeros(2, g, lk, 5)
		for n := range 2 * h * lq {
			q.Data()[n*5] = float32(math.Ldexp(query(n/lq%h, n%lq), power))
		}
		for n := range 2 * g * lk {
			k.Data()[n*5] = float32(math.Ldexp(key(n/lk%g, n%lk), power))
		}
		tape := tensortest.Tape(tensor.Train)
		y := attn.Attend(tape, q.Param(), k.Param(), tensor.Randn(newRand(17), 2, g, lk, 3), attn.Options{
			Score: &score.Gaussian{}, Mask: mask.Lengths(6, 4), Bias: tensor.Randn(newRand(19), h, 1, lk), Weights: true,
		})
		tape.Backward(y.Out, tensor.Full(1, 2, h, lq, 3))
		for n, w := range y.Weights.Data() {
			b, head, i, j := n/lk/lq/h, n/lk/lq%h, n/lk%lq, n%lk
			best, at := math.Inf(1), 0
			for j := range []int{6, 4}[b] {
				if d := math.Abs(query(head, i) - key(head/(h/g), j)); d < best {
					best, at = d, j
				}
			}
			want := float32(0)
			if j == at {
				want = 1
			}
			if w != want {
				t.Fatalf("times 2^%d: query %d of head %d of sequence %d has weight %v for key %d, want %v", power, i, head, b, w, j, want)
			}
		}
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
