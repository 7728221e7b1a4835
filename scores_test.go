package attn_test

import (
	"fmt"
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

func ExampleScores() {
	q := tensor.New([]float32{1, 0, 0, 1}, 1, 2, 2)
	k := tensor.New([]float32{2, 4, 6, 8}, 1, 2, 2)
	fmt.Println(attn.Scores(nil, q, k, attn.Options{Score: score.Dot()}).Data())
	fmt.Println(attn.Scores(nil, q, k, attn.Options{Score: score.Dot(), Bias: tensor.New([]float32{10, 20}, 2), Mask: mask.Causal()}).Data())
	// Output:
	// [2 6 4 8]
	// [12 -Inf 14 28]
}
