package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

func init() {
	handle("regression.data", regressionData)
	handle("regression.estimate", regressionEstimate)
	handle("regression.learn", regressionLearn)
}

const (
	places           = 101 // where the curve is estimated, from 0 to 5
	mostObservations = 500
)

func truth(x float64) float64 { return 2*math.Sin(x) + math.Pow(max(x, 0), 0.8) }

// observations are places with observed values.
type observations struct {
	X []float32 `json:"x"`
	Y []float32 `json:"y"`
}

func (o observations) check() error {
	switch n := len(o.X); {
	case n == 0:
		return errors.New("there are no observations: attention needs at least one key")
	case n != len(o.Y):
		return fmt.Errorf("%d places have %d values", n, len(o.Y))
	case n > mostObservations:
		return fmt.Errorf("%d observations, want at most %d", n, mostObservations)
	}
	return nil
}

// tensors returns places and values as keys and values of one sequence, [1 Lk 1].
func (o observations) tensors() (x, y *tensor.Tensor) {
	return tensor.New(o.X, 1, len(o.X), 1), tensor.New(o.Y, 1, len(o.Y), 1)
}

// queries returns the places where the curve is estimated.
func queries() *tensor.Tensor {
	return tensor.Reshape(nil, tensor.Linspace(0, 5, places), 1, places, 1)
}

// regressionData draws observations as examples/regression does.
func regressionData(_ context.Context, a struct {
	Seed  uint64  `json:"seed"`
	N     int     `json:"n"`
	Noise float64 `json:"noise"`
}, _ func(any)) (any, error) {
	if a.N < 1 || a.N > mostObservations {
		return nil, fmt.Errorf("%d observations, want 1 to %d", a.N, mostObservations)
	}
	rng := rand.New(rand.NewPCG(a.Seed, 2))
	x := tensor.Uniform(rng, 0, 5, 1, a.N, 1).Data()
	slices.SortFunc(x, cmp.Compare[float32])
	o := observations{X: x, Y: make([]float32, a.N)}
	for i, v := range x {
		o.Y[i] = float32(truth(float64(v)) + float64(a.Noise*rng.NormFloat64()))
	}
	return o, nil
}

// estimated is the curve at all places.
type estimated struct {
	X       reals `json:"x"`
	Truth   reals `json:"truth"`
	Out     reals `json:"out"`
	Weights reals `json:"weights"` // [places, observations]
	Error   real  `json:"error"`   // the mean squared distance from the truth
	Loss    real  `json:"loss"`    // of the observations, each estimated from the others
	SelfToo real  `json:"selfToo"` // of the observations, each estimated from all, itself included
}

// estimate returns the curve for a kernel.
func estimate(kernel *score.Gaussian, o observations) estimated {
	x, y := o.tensors()
	at := queries()
	out := attn.Attend(nil, at, x, y, attn.Options{Score: kernel, Weights: true})
	e := estimated{X: at.Data(), Out: out.Out.Data(), Weights: out.Weights.Data()}
	for i, v := range at.Data() {
		t := truth(float64(v))
		e.Truth = append(e.Truth, float32(t))
		e.Error += real((float64(e.Out[i]) - t) * (float64(e.Out[i]) - t) / places)
	}
	e.Loss = real(nn.MSE(nil, attn.Attend(nil, x, x, y, attn.Options{Score: kernel, Mask: others}).Out, y).Item())
	e.SelfToo = real(nn.MSE(nil, attn.Attend(nil, x, x, y, attn.Options{Score: kernel}).Out, y).Item())
	return e
}

// others hides each observation from itself.
var others = mask.AllowFunc(func(_, _, i, j int) bool { return i != j })

func regressionEstimate(_ context.Context, a struct {
	observations
	W float32 `json:"w"`
}, _ func(any)) (any, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	return estimate(&score.Gaussian{W: tensor.Full(a.W, 1)}, a.observations), nil
}

// learning is the state after a step of learning w.
type learning struct {
	Step int  `json:"step"`
	W    real `json:"w"`
	estimated
}

// regressionLearn learns w by gradient descent. A frame follows each step. With Self, an
// observation takes part in its own estimate: the trap.
func regressionLearn(ctx context.Context, a struct {
	observations
	W     float32 `json:"w"`
	Steps int     `json:"steps"`
	Rate  float64 `json:"rate"`
	Self  bool    `json:"self"`
}, frame func(any)) (any, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	if len(a.X) < 2 && !a.Self {
		return nil, errors.New("one observation has no others to be estimated from: add a second one")
	}
	x, y := a.tensors()
	kernel := &score.Gaussian{W: tensor.Full(a.W, 1).Param()}
	options := attn.Options{Score: kernel, Mask: others}
	if a.Self {
		options.Mask = attn.Mask{}
	}
	optimizer := optim.NewAdamW(kernel)
	tape := tensor.NewTape(tensor.Train)
	state := learning{W: real(a.W), estimated: estimate(kernel, a.observations)}
	frame(state)
	for step := range min(a.Steps, 2000) {
		pause()
		if ctx.Err() != nil {
			break
		}
		tape.Reset()
		optim.ZeroGrad(kernel)
		tape.Backward(nn.MSE(tape, attn.Attend(tape, x, x, y, options).Out, y), nil)
		optimizer.Step(a.Rate)
		state = learning{step + 1, real(kernel.W.Item()), estimate(kernel, a.observations)}
		frame(state)
	}
	return state, nil
}
