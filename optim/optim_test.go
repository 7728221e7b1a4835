package optim_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// setGrad makes grad the gradient of a parameter.
func setGrad(p, grad *tensor.Tensor) {
	p.ZeroGrad()
	tensor.NewTape(tensor.Train).Backward(p, grad)
}

// weightAndBias returns fresh parameters of the golden file.
func weightAndBias(g *tensortest.Golden) nn.Vars {
	return nn.Vars{{Name: "w", Tensor: g.Tensor("init.w").Param()}, {Name: "b", Tensor: g.Tensor("init.b").Param()}}
}

// setGrads gives the parameters the golden gradients of a step.
func setGrads(g *tensortest.Golden, m nn.Module, step int) {
	for name, p := range m.Params() {
		setGrad(p, g.Tensor(fmt.Sprintf("step%d.grad.%s", step, name)))
	}
}

// optimisers creates the optimisers of the golden file.
var optimisers = map[string]func(g *tensortest.Golden, m nn.Module) optim.Optimizer{
	"sgd":      goldenSGD("sgd", false),
	"nesterov": goldenSGD("nesterov", true),
	"adamw": func(g *tensortest.Golden, m nn.Module) optim.Optimizer {
		o := optim.NewAdamW(m)
		o.Beta1, o.Beta2 = g.Number("adamw.beta1"), g.Number("adamw.beta2")
		o.Eps, o.WeightDecay = g.Number("adamw.eps"), g.Number("adamw.weight_decay")
		return o
	},
}

func goldenSGD(name string, nesterov bool) func(g *tensortest.Golden, m nn.Module) optim.Optimizer {
	return func(g *tensortest.Golden, m nn.Module) optim.Optimizer {
		o := optim.NewSGD(m)
		o.Momentum, o.WeightDecay = float32(g.Number(name+".momentum")), float32(g.Number(name+".weight_decay"))
		o.Nesterov = nesterov
		return o
	}
}

func TestOptimisersGolden(t *testing.T) {
	g := tensortest.Open(t, "../testdata/golden/optim.safetensors")
	for kind, create := range optimisers {
		t.Run(kind, func(t *testing.T) {
			g := g.On(t)
			params := weightAndBias(g)
			o := create(g, params)
			for step := 1; step <= int(g.Number("steps")); step++ {
				setGrads(g, params, step)
				before := grads(params)
				setGrads(g, params, step)
				o.Step(g.Number(kind + ".lr"))
				for name, p := range params.Params() {
					g.Check(fmt.Sprintf("%s.step%d.%s", kind, step, name), p)
					tensortest.Same(t, "the gradient afterwards", p.Grad().Data(), before[name])
				}
			}
		})
	}
}

// An optimiser that loads the state of another continues with the same bits.
func TestOptimisersContinue(t *testing.T) {
	g := tensortest.Open(t, "../testdata/golden/optim.safetensors")
	for kind, create := range optimisers {
		params := weightAndBias(g)
		o := create(g, params)
		step := func(o optim.Optimizer, m nn.Module, n int) {
			setGrads(g, m, n)
			o.Step(g.Number(kind + ".lr"))
		}
		step(o, params, 1)
		step(o, params, 2)

		copied := nn.Vars{}
		for name, p := range params.Params() {
			copied = append(copied, nn.Var{Name: name, Tensor: p.Clone().Param()})
		}
		other := create(g, copied)
		saved := map[string]*tensor.Tensor{}
		for name, s := range o.State() {
			saved[name] = s.Clone()
		}
		loaded := 0
		for name, s := range other.State() {
			copy(s.Data(), saved[name].Data())
			if !slices.Equal(s.Shape(), saved[name].Shape()) {
				t.Errorf("%s: state %q has shape %v", kind, name, s.Shape())
			}
			loaded++
		}
		if loaded != len(saved) || loaded == 0 {
			t.Errorf("%s: %d tensors of state loaded, %d saved", kind, loaded, len(saved))
		}
		if a, ok := o.(*optim.AdamW); ok {
			other.(*optim.AdamW).SetSteps(a.Steps())
		}
		for n := 3; n <= 5; n++ {
			step(o, params, n)
			step(other, copied, n)
		}
		for i := range params {
			tensortest.Same(t, kind+": "+params[i].Name+" after resuming", copied[i].Tensor.Data(), params[i].Tensor.Data())
		}
	}
}

func TestOptimiserState(t *testing.T) {
	params := nn.Vars{
		{Name: "w", Tensor: tensor.Full(2, 3).Param()},
		{Name: "frozen", Tensor: tensor.Full(2, 3)},
		{Name: "b", Tensor: tensor.Full(2, 1).Param()},
	}
	names := func(o optim.Optimizer) []string {
		var all []string
		for name := range o.State() {
			all = append(all, name)
		}
		for range o.State() {
			break // the case must be possible
		}
		return all
	}
	sgd := optim.NewSGD(params)
	if got := names(sgd); got != nil {
		t.Errorf("SGD without momentum has the state %v", got)
	}
	sgd.Momentum = 0.9
	if got, want := names(sgd), []string{"w.momentum", "b.momentum"}; !slices.Equal(got, want) {
		t.Errorf("SGD has the state %v, want %v", got, want)
	}
	adam := optim.NewAdamW(params)
	if got, want := names(adam), []string{"w.m", "w.v", "b.m", "b.v"}; !slices.Equal(got, want) {
		t.Errorf("AdamW has the state %v, want %v", got, want)
	}
	if adam.Beta1 != 0.9 || adam.Beta2 != 0.999 || adam.Eps != 1e-8 || adam.WeightDecay != 0 || adam.Steps() != 0 {
		t.Errorf("AdamW starts as %+v", adam)
	}

	// Only b has a gradient; decay does not change the other parameters.
	setGrad(params[2].Tensor, tensor.Full(1, 1))
	sgd.WeightDecay, adam.WeightDecay = 0.5, 0.5
	for _, o := range []optim.Optimizer{sgd, adam} {
		before := params[2].Tensor.Item()
		o.Step(0.1)
		if after := params[2].Tensor.Item(); after >= before {
			t.Errorf("%T: b went from %v to %v", o, before, after)
		}
		for _, v := range params[:2] {
			tensortest.Same(t, fmt.Sprintf("%T: %s", o, v.Name), v.Tensor.Data(), []float32{2, 2, 2})
		}
	}
	if adam.Steps() != 1 {
		t.Errorf("AdamW counts %d steps, want 1", adam.Steps())
	}
}

// growing is a module that gains parameters.
type growing struct{ vars nn.Vars }

func (g *growing) Params() nn.Params { return g.vars.Params() }

// Parameters that appear later are trained like the others, in the module's order, and the state of the others is
// kept.
func TestOptimisersAdopt(t *testing.T) {
	g := tensortest.Open(t, "../testdata/golden/optim.safetensors")
	for kind, create := range optimisers {
		for _, late := range []int{0, 1} { // the first parameter, or the second
			want, all := weightAndBias(g), weightAndBias(g)
			module := &growing{nn.Vars{all[1-late]}}
			whole, o := create(g, want), create(g, module)
			module.vars = all
			for n := 1; n <= 3; n++ {
				setGrads(g, want, n)
				setGrads(g, all, n)
				whole.Step(g.Number(kind + ".lr"))
				o.Step(g.Number(kind + ".lr"))
			}
			for i := range want {
				tensortest.Same(t, fmt.Sprintf("%s: %s, number %d late", kind, want[i].Name, late), all[i].Tensor.Data(), want[i].Tensor.Data())
			}
			var got []string
			for name, s := range o.State() {
				got = append(got, name)
				for other, w := range whole.State() {
					if other == name {
						tensortest.Same(t, kind+": "+name, s.Data(), w.Data())
					}
				}
			}
			var names []string
			for name := range whole.State() {
				names = append(names, name)
			}
			if !slices.Equal(got, names) {
				t.Errorf("%s: state %v, want %v", kind, got, names)
			}

			// A parameter may be replaced by another, of any size: the new one is trained.
			other := tensor.Full(3, 2, 2).Param()
			module.vars = nn.Vars{all[0], {Name: all[1].Name, Tensor: other}}
			setGrad(other, tensor.Full(1, 2, 2))
			gone := all[1].Tensor.Clone()
			o.Step(0.1)
			tensortest.Same(t, kind+": a parameter that has gone", all[1].Tensor.Data(), gone.Data())
			if !(other.At(1, 1) < 3) {
				t.Errorf("%s: a new parameter went from 3 to %v", kind, other)
			}
		}
	}
}

// Large parameters are updated in pieces, with the same result.
func TestAdamWOfLargeParameters(t *testing.T) {
	const n = 10_007
	rng := rand.New(rand.NewPCG(1, 8))
	whole, grad := tensor.Randn(rng, n).Param(), tensor.Randn(rng, n)
	parts := nn.Vars{}
	for at := 0; at < n; at += 501 {
		p := tensor.Slice(nil, whole, 0, at, min(at+501, n)).Param()
		setGrad(p, tensor.Slice(nil, grad, 0, at, min(at+501, n)))
		parts = append(parts, nn.Var{Name: fmt.Sprint(at), Tensor: p})
	}
	setGrad(whole, grad)
	a, b := optim.NewAdamW(nn.Vars{{Name: "whole", Tensor: whole}}), optim.NewAdamW(parts)
	for range 3 {
		a.Step(0.01)
		b.Step(0.01)
	}
	var got []float32
	for _, p := range parts.Params() {
		got = append(got, p.Data()...)
	}
	tensortest.Same(t, "parameters", got, whole.Data())
}

func TestClipGradNorm(t *testing.T) {
	g := tensortest.Open(t, "../testdata/golden/optim.safetensors")
	for _, kind := range []string{"clip", "clip_idle"} {
		params := append(weightAndBias(g), nn.Var{Name: "unused", Tensor: tensor.Zeros(3).Param()})
		setGrads(g, params[:2], 1)
		norm := optim.ClipGradNorm(params, float32(g.Number(kind+".max_norm")))
		g.Check(kind+".norm", tensor.Full(norm))
		for _, v := range params[:2] {
			g.CheckGrad(kind+".grad."+v.Name, v.Tensor)
		}
	}
	p := tensor.Full(1, 2).Param()
	setGrad(p, tensor.Full(float32(math.NaN()), 2))
	if norm := optim.ClipGradNorm(nn.Vars{{Name: "p", Tensor: p}}, 1); norm == norm {
		t.Errorf("the norm of NaN is %v", norm)
	}
}

func TestSchedules(t *testing.T) {
	type points map[int]float64
	for _, c := range []struct {
		name string
		s    optim.Schedule
		want points
	}{
		{"inverse square root", optim.WarmupInvSqrt(4), points{0: 0.25, 1: 0.25, 2: 0.5, 4: 1, 16: 0.5, 400: 0.1}},
		{"inverse square root without warm-up", optim.WarmupInvSqrt(0), points{1: 1, 4: 0.5, 100: 0.1}},
		{"cosine", optim.WarmupCosine(2, 10), points{0: 0, 1: 0.5, 2: 1, 4: (1 + math.Sqrt2/2) / 2, 6: 0.5, 10: 0, 11: 0, 1000: 0}},
		{"cosine without warm-up", optim.WarmupCosine(0, 4), points{0: 1, 2: 0.5, 4: 0}},
		{"cosine that ends with its warm-up", optim.WarmupCosine(4, 4), points{2: 0.5, 4: 1, 5: 0}},
	} {
		for step, want := range c.want {
			if got := c.s(step); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: step %d is %v, want %v", c.name, step, got, want)
			}
		}
	}
}

func TestPanics(t *testing.T) {
	for _, c := range []struct {
		f    func()
		want string
	}{
		{func() { optim.NewSGD(nil) }, "optim: NewSGD: module is nil, want a module"},
		{func() { optim.NewAdamW(nil) }, "optim: NewAdamW: module is nil, want a module"},
		{func() { optim.ClipGradNorm(nn.Vars{}, -1) }, "optim: ClipGradNorm: limit is -1, want a number of at least 0"},
		{func() { optim.ClipGradNorm(nn.Vars{}, float32(math.NaN())) }, "optim: ClipGradNorm: limit is NaN, want a number of at least 0"},
	} {
		err := tensor.Catch(c.f)
		if !errors.As(err, new(*tensor.ValueError)) || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// grads returns copies of the gradients of a module, and clears them.
func grads(m nn.Module) map[string][]float32 {
	all := map[string][]float32{}
	for name, p := range m.Params() {
		all[name] = slices.Clone(p.Grad().Data())
	}
	optim.ZeroGrad(m)
	return all
}
