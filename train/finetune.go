package train

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// Tuning configures FineTune. Fields other than Steps and Rate may be zero.
type Tuning struct {
	Steps     int
	Rate      float64 // the largest learning rate
	Smoothing float32 // of the labels, for a task with labels
	// Params returns the parameters to train; nil means all. OutputMaps suits a few hundred steps.
	Params func(m *models.Model) nn.Params
	Seed   uint64 // of the order of batches
	// Progress, if not nil, is called after each step.
	Progress func(step int)
}

// OutputMaps returns the output maps of the attention, all biases and the scales of norms. They adapt to removed heads in
// fewer steps than all parameters do, and with less dependence on the rate.
func OutputMaps(m *models.Model) nn.Params {
	maps := map[*tensor.Tensor]bool{}
	for _, l := range m.HeadLayers() {
		maps[l.Out.Weight] = true
	}
	return func(yield func(string, *tensor.Tensor) bool) {
		for name, p := range m.Params() {
			if (p.Rank() == 1 || maps[p]) && !yield(name, p) {
				return
			}
		}
	}
}

// FineTune trains the model of p on the examples of another probe for the same task, one batch per step, in random
// order: a pruned model, of any family, regains a part of what its removed heads did. It uses AdamW without weight decay,
// no dropout, gradients clipped at a norm of 1, and a learning rate that grows over the first tenth of the steps and then
// falls to 0 along a cosine. Removed heads stay removed, and their weights do not change. p gets its own copy of the
// model, so other probes of the model do not change.
//
// Errors: those of Probe.Change; models.ErrDiverged; if ctx ends, ctx.Err(). After the last two, p is partly trained.
func FineTune(ctx context.Context, p, examples *probe.Probe, o Tuning) error {
	if o.Steps < 0 || !(o.Rate > 0) || !(o.Smoothing >= 0 && o.Smoothing < 1) {
		return fmt.Errorf("train: FineTune: Steps %d, Rate %v and Smoothing %v, "+
			"want Steps at least 0, Rate above 0 and Smoothing from 0 to below 1", o.Steps, o.Rate, o.Smoothing)
	}
	return p.Change(func(m *models.Model) error {
		on := p.On(examples).Smoothed(o.Smoothing)
		schedule := optim.WarmupCosine(max(1, o.Steps/10), o.Steps+1) // so that the rate of the last step is not 0
		rng := rand.New(rand.NewPCG(o.Seed, 7))
		tape := tensor.NewTape(tensor.Eval)
		tape.SetContext(ctx)
		trained := nn.Module(m)
		if o.Params != nil {
			trained = nn.ModuleFunc(func() nn.Params { return o.Params(m) })
			var leaves []*tensor.Tensor
			for _, p := range trained.Params() {
				leaves = append(leaves, p)
			}
			tape.Only(leaves...)
		}
		optimizer := optim.NewAdamW(trained)
		optimizer.WeightDecay = 0
		var order []int
		for step := range o.Steps {
			if len(order) == 0 {
				order = rng.Perm(len(on.Batches()))
			}
			tape.Reset()
			optim.ZeroGrad(trained)
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
				return models.ErrDiverged
			}
			order = order[1:]
			optim.ClipGradNorm(trained, 1)
			optimizer.Step(o.Rate * schedule(step+1))
			if o.Progress != nil {
				o.Progress(step + 1)
			}
		}
		return nil
	})
}
