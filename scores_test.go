package attn_test

import (
	"math"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// The values weighted by the softmax of the scores are the result of Attend, including gradients.
func TestScoresAreThoseOfAttend(t *testing.T) {
	mask := attn.And(mask.Causal(), mask.Lengths(7, 4), mask.QueryLengths(5, 4), mask.Strided(3))
	eachScore(t, func(t *testing.T, c scoreCase) {
		x := newCall(c, usual).bias(usual.b, 1, usual.lq, usual.lk).mask(mask)
		x.o.SoftCap, x.o.Changes = 4, []attn.ScoreChange{position.ALiBi()}
		want := x.run()

		tape := tensortest.Tape(tensor.Train)
		leaves := paramsOf(x.o.Score)
		leaves["dq"], leaves["dk"], leaves["dv"] = x.q.Clone().Param(), x.k.Clone().Param(), x.v.Clone().Param()
		leaves["dbias"] = x.o.Bias.Clone().Param()
		x.o.Bias = leaves["dbias"]
		s := usual
		weights := tensor.Softmax(tape, attn.Scores(tape, leaves["dq"], leaves["dk"], x.o))
		tall := tensor.Reshape(tape, weights, s.b, s.g, s.h/s.g*s.lq, s.lk)
		out := tensor.Reshape(tape, tensor.MatMul(tape, tall, leaves["dv"]), s.b, s.h, s.lq, s.v)
		tape.BackwardAll([]*tensor.Tensor{out, weights}, []*tensor.Tensor{x.dout, x.dweights})
		near(t, c.name, leave(attn.Output{Out: out, Weights: weights}, leaves), want)
	})
}

// The scores of each stage are Scores with the options up to that stage. Masked scores are −Inf
// whatever they contained.
func TestScoresOfEachStage(t *testing.T) {
	q, k := tensor.New([]float32{1, 0, 0, 2}, 1, 2, 2), tensor.New([]float32{3, 4, -5, 6, float32(math.NaN()), 1}, 1, 3, 2)
	bias := tensor.New([]float32{10, 20, 30}, 3)
	mask := mask.Lengths(2)
	negInf, many := math.Inf(-1), math.NaN()
	capped := func(s float64) float64 { return 2 * math.Tanh(s/2) }
	for _, c := range []struct {
		name string
		o    attn.Options
		want []float64
	}{
		{"score", attn.Options{Score: score.Dot()}, []float64{3, -5, many, 8, 12, many}},
		{"soft-cap", attn.Options{Score: score.Dot(), SoftCap: 2}, []float64{capped(3), capped(-5), many, capped(8), capped(12), many}},
		{"bias", attn.Options{Score: score.Dot(), Bias: bias}, []float64{13, 15, many, 18, 32, many}},
		{"mask", attn.Options{Score: score.Dot(), Bias: bias, Mask: mask}, []float64{13, 15, negInf, 18, 32, negInf}},
		{"default", attn.Options{Mask: mask}, []float64{3 / math.Sqrt2, -5 / math.Sqrt2, negInf, 8 / math.Sqrt2, 12 / math.Sqrt2, negInf}},
		{"what comes later", attn.Options{Score: score.Dot(), Mask: mask, Dropout: 0.5, Sinks: tensor.Zeros(1), Gates: tensor.Zeros(1)},
			[]float64{3, -5, negInf, 8, 12, negInf}},
	} {
		got := attn.Scores(nil, q, k, c.o)
		for i, want := range c.want {
			v := float64(got.Data()[i])
			if !(math.Abs(v-want) <= 1e-5 || v == want || math.IsNaN(v) && math.IsNaN(want)) {
				t.Errorf("%s: element %d is %v, want %v", c.name, i, v, want)
			}
		}
	}
}

// A score with mapped keys gives the same scores, also if heads share keys.
func TestScoresOnKeys(t *testing.T) {
	eachScore(t, func(t *testing.T, c scoreCase) {
		x := newCall(c, usual)
		want := attn.Scores(nil, x.q, x.k, x.o)
		x.o.Score = score.OnKeys(nil, x.o.Score, x.k)
		tensortest.Same(t, "scores", attn.Scores(nil, x.q, x.k, x.o).Data(), want.Data())
	})
}

// No gradient flows through a hidden score.
func TestHiddenScoresHaveNoGradient(t *testing.T) {
	x := newCall(scores[0], usual).mask(mask.Causal())
	grads := func(dscores *tensor.Tensor) trace {
		tape := tensortest.Tape(tensor.Train)
		q, k := x.q.Clone().Param(), x.k.Clone().Param()
		tape.Backward(attn.Scores(tape, q, k, x.o), dscores)
		return trace{"dq": q.Grad().Clone(), "dk": k.Grad().Clone()}
	}
	seen := x.dweights.Clone()
	each(seen, func(_, _, i, j int, v *float32) {
		if j > i+usual.lk-usual.lq {
			*v = 0
		}
	})
	same(t, "hidden", grads(x.dweights), grads(seen))
}

func TestErrorsOfAllScores(t *testing.T) {
	q, k := shaped(2, 6, 5, 8), shaped(2, 3, 7, 8)
	for _, c := range []struct {
		want string
		call func()
	}{
		{"attn: Scores: key has shape [2 4 7 8], want [B=2 G Lk E] with G a divisor of H=6", func() { attn.Scores(nil, q, shaped(2, 4, 7, 8), attn.Options{}) }},
		{"attn: Scores: key is nil, want a tensor", func() { attn.Scores(nil, q, nil, attn.Options{}) }},
		{"attn: Scores: mask has valid length 8, want 0 to Lk=7", func() { attn.Scores(nil, q, k, attn.Options{Mask: mask.Lengths(8, 7)}) }},
	} {
		if err := tensor.Catch(c.call); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// Scores with three axes have one head, and their masks may have three axes too.
func TestMaskedSoftmaxOfThreeAxes(t *testing.T) {
	const b, lq, lk = 2, 3, 5
	rng := newRand(59)
	scores := tensor.Randn(rng, b, lq, lk)
	numbers := func(shape ...int) *tensor.Tensor {
		x := tensor.Uniform(rng, 0, 2, shape...)
		for i, v := range x.Data() {
			x.Data()[i] = float32(int(v))
		}
		return x
	}
	full, perQuery := numbers(b, lq, lk), numbers(b, 1, lk)
	perHead := func(x *tensor.Tensor) attn.Mask {
		return mask.AllowTensor(tensor.Reshape(nil, x, x.Dim(0), 1, x.Dim(1), x.Dim(2)))
	}
	for name, c := range map[string]struct{ three, four attn.Mask }{
		"nothing hidden":        {},
		"valid lengths":         {mask.Lengths(2, 3), mask.Lengths(2, 3)},
		"valid lengths of rows": {mask.LengthsOfQueries([][]int{{1, 3, 0}, {5, 4, 2}}), mask.LengthsOfQueries([][]int{{1, 3, 0}, {5, 4, 2}})},
		"causal":                {mask.Causal(), mask.CausalAt(lk - lq)},
		"window of sequences":   {mask.WindowAt(1, 0, 0, 2), mask.WindowAt(1, 0, 0, 2)},
		"all axes":              {mask.AllowTensor(full), perHead(full)},
		"each sequence":         {mask.AllowTensor(perQuery), perHead(perQuery)},
		"keys":                  {mask.Allow([]bool{true, false, true, true, false}, lk), mask.Allow([]bool{true, false, true, true, false}, lk)},
		"function":              {mask.AllowFunc(func(b, h, i, j int) bool { return (b+h+i+j)%3 > 0 }), mask.AllowFunc(func(b, h, i, j int) bool { return (b+h+i+j)%3 > 0 })},
	} {
		x3, x4 := scores.Clone().Param(), tensor.Reshape(nil, scores, b, 1, lq, lk).Clone().Param()
		tape := tensortest.Tape(tensor.Train)
		y3, y4 := attn.MaskedSoftmax(tape, x3, c.three), attn.MaskedSoftmax(tape, x4, c.four)
		tensortest.Same(t, name, y3.Data(), y4.Data())
		d := tensor.Randn(rng, b, lq, lk)
		tape.BackwardAll([]*tensor.Tensor{y3, y4}, []*tensor.Tensor{d, tensor.Reshape(nil, d, b, 1, lq, lk)})
		tensortest.Same(t, name+": gradient", x3.Grad().Data(), x4.Grad().Data())
	}
}

// A hidden key has weight zero even in a row that contains NaN or Inf, and a masked NaN has no
// influence, forward or backward.
func TestMaskedSoftmaxOfNaN(t *testing.T) {
	hidden := mask.Allow([]bool{false, true, true, true, false, true, true}, 7)
	for _, bad := range poisons[:2] {
		y := attn.MaskedSoftmax(nil, tensor.New([]float32{1, bad, 3, bad, 5, 6, 7}, 1, 1, 7), hidden).Data()
		if y[0] != 0 || y[4] != 0 {
			t.Errorf("with a %v that is seen the hidden keys have weights %v and %v, want 0", bad, y[0], y[4])
		}
		if y[1] == y[1] {
			t.Errorf("a %v that is seen leaves no trace: %v", bad, y)
		}
	}
	run := func(bad float32) (y, dx *tensor.Tensor) {
		x := tensor.New([]float32{bad, 2, 3, 1, bad, 2, -1}, 1, 1, 7).Param()
		tape := tensortest.Tape(tensor.Train)
		y = attn.MaskedSoftmax(tape, x, hidden)
		tape.Backward(y, tensor.New([]float32{1, 2, 3, 4, 5, 6, 7}, 1, 1, 7))
		return y, x.Grad()
	}
	want, gradient := run(0)
	for _, bad := range poisons {
		y, dx := run(bad)
		tensortest.Same(t, "weights", y.Data(), want.Data())
		tensortest.Same(t, "gradient", dx.Data(), gradient.Data())
	}
}
