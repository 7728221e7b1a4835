package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// Training configures the training of a Probe. Fields other than Steps and Rate may be zero.
type Training struct {
	Steps int
	Rate  float64 // the largest learning rate
	Seed  uint64  // of the order of batches
	// Progress, if not nil, is called after each step.
	Progress func(step int)
}

// ErrDiverged means that the loss or the gradient of a training step is not finite. The step has not
// changed the parameters.
var ErrDiverged = errors.New("the loss has diverged; a smaller learning rate may help")

// Train trains the model of p on the examples of another probe for the same task, one batch per
// step, in random order. It uses AdamW without weight decay, gradients clipped at a norm of 1,
// and a learning rate that grows over the first tenth of the steps and then falls to 0 along a
// cosine. Removed heads stay removed, and their weights do not change. p gets its own copy of the
// model, so other probes of the model do not change.
//
// Errors: those of Load, because the directory is read again; ErrDiverged; if ctx ends,
// ctx.Err(). After the last two, p is partly trained.
func (p *Probe) Train(ctx context.Context, examples *Probe, o Training) (err error) {
	if o.Steps < 0 || !(o.Rate > 0) {
		return fmt.Errorf("models: Train: Steps %d and Rate %v, want Steps at least 0 and Rate above 0", o.Steps, o.Rate)
	}
	if err := p.own(); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, p.renew()) }()
	on := p.On(examples)
	optimizer := nn.NewAdamW(p.model)
	optimizer.WeightDecay = 0
	schedule := nn.WarmupCosine(max(1, o.Steps/10), o.Steps+1) // so that the rate of the last step is not 0
	rng := rand.New(rand.NewPCG(o.Seed, 7))
	tape := tensor.NewTape(tensor.Eval) // without dropout
	tape.SetContext(ctx)
	var order []int
	for step := range o.Steps {
		if len(order) == 0 {
			order = rng.Perm(len(on.batches))
		}
		tape.Reset()
		nn.ZeroGrad(p.model)
		diverged := false
		if err := par.Stopped(func() {
			out := on.Run(tape, order[0], prune.Pass{})
			loss := tensor.Scale(tape, out.Loss, 1/float32(out.Terms))
			if v := float64(loss.Item()); math.IsNaN(v) || math.IsInf(v, 0) {
				diverged = true
				return
			}
			tape.Backward(loss, nil)
		}); err != nil {
			return err
		}
		if diverged {
			return ErrDiverged
		}
		order = order[1:]
		nn.ClipGradNorm(p.model, 1)
		optimizer.Step(o.Rate * schedule(step+1))
		if o.Progress != nil {
			o.Progress(step + 1)
		}
	}
	return nil
}

// own replaces the probe's model with a copy.
func (p *Probe) own() error {
	m, err := Load(p.model.Dir, p.model.options)
	if err != nil {
		return err
	}
	a, err := p.aim.onModel(m)
	if err != nil {
		return err
	}
	for i, x := range m.params {
		copy(x.Tensor.Data(), p.model.params[i].Tensor.Data())
	}
	m.trained = true
	p.model, p.aim = m, a
	return p.renew()
}
