package optim

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Optimizer updates the parameters of a module from their gradients. It lists the module's parameters at every step,
// so it also trains parameters that appear later, such as those of a layer that takes its widths from the first
// batch.
type Optimizer interface {
	// Step makes one update with the given learning rate. It uses the gradients of the parameters and does not change
	// them. A parameter without a gradient does not change.
	Step(lr float64)
	// State returns the optimiser's state, named after the parameters. A run that saves and loads it resumes exactly.
	State() nn.Params
}

// ZeroGrad clears the gradients of all parameters of a module.
func ZeroGrad(m nn.Module) {
	s := takeGradients(m)
	defer s.free()
	s.each(func(g []float32, _ *float64) { clear(g) })
}

// ClipGradNorm scales all gradients of a module by one factor so that their joint Euclidean norm is at most limit. It
// returns the norm before scaling. It panics with a *tensor.ValueError if the limit is negative or NaN.
func ClipGradNorm(m nn.Module, limit float32) float32 {
	if !(limit >= 0) {
		panic(&tensor.ValueError{Op: "optim: ClipGradNorm", Arg: "limit", Got: fmt.Sprint(limit), Want: "a number of at least 0"})
	}
	s := takeGradients(m)
	defer s.free()
	s.each(func(g []float32, square *float64) { *square = float64(simd.SumSquares(g)) })
	var squares float64
	for _, square := range s.squares {
		squares += square
	}
	norm := float32(math.Sqrt(squares))
	// The margin is PyTorch's, against division by zero.
	if factor := limit / (norm + 1e-6); factor < 1 {
		s.each(func(g []float32, _ *float64) { simd.Scale(g, factor, g) })
	}
	return norm
}

// slot is a parameter with the optimiser's state for it.
type slot struct {
	name string
	p    *tensor.Tensor
	a, b []float32 // momenta; nil means that they are zero
}

// slots contains the trainable parameters of a module, in its order.
type slots struct {
	module nn.Module
	list   []slot
}

func slotsOf(op string, m nn.Module) slots {
	if m == nil {
		panic(&tensor.ValueError{Op: "optim: " + op, Arg: "module", Got: "nil", Want: "a module"})
	}
	s := slots{module: m}
	s.refresh()
	return s
}

// refresh updates the list to the module's current parameters. It keeps the state of existing parameters; new ones
// start without state.
func (s *slots) refresh() {
	if s.module == nil {
		return
	}
	before := s.list
	s.list = make([]slot, 0, len(before))
	for name, p := range s.module.Params() {
		if !p.NeedsGrad() {
			continue
		}
		same := func(old slot) bool { return old.name == name && old.p == p }
		at := len(s.list) // its place before, unless the module has changed
		if at >= len(before) || !same(before[at]) {
			at = slices.IndexFunc(before, same)
		}
		now := slot{name: name, p: p}
		if at >= 0 {
			now = before[at]
		}
		s.list = append(s.list, now)
	}
}

// memory returns the momentum stored in to, which starts at zero.
func (s *slot) memory(to *[]float32) []float32 {
	if *to == nil {
		*to = make([]float32, s.p.Len())
	}
	return *to
}

// SGD is stochastic gradient descent with momentum μ and weight decay λ:
//
//	g ← g + λ·p
//	b ← μ·b + g          (b starts at 0)
//	p ← p − lr·b         or, with Nesterov, p ← p − lr·(g + μ·b)
//
// as PyTorch defines it.
type SGD struct {
	Momentum, WeightDecay float32
	Nesterov              bool
	slots                 slots
}

// NewSGD returns plain gradient descent on a module's parameters; set momentum and decay through the fields.
func NewSGD(m nn.Module) *SGD { return &SGD{slots: slotsOf("NewSGD", m)} }

// Step makes one update.
func (o *SGD) Step(lr float64) {
	o.slots.refresh()
	for i := range o.slots.list {
		s := &o.slots.list[i]
		grad := s.p.Grad()
		if grad == nil {
			continue
		}
		p, g := s.p.Data(), grad.Data()
		momentum := o.momentum(s)
		for j, v := range g {
			v += float32(o.WeightDecay * p[j])
			if momentum != nil {
				momentum[j] = float32(o.Momentum*momentum[j]) + v
				if o.Nesterov {
					v += float32(o.Momentum * momentum[j])
				} else {
					v = momentum[j]
				}
			}
			p[j] -= float32(float32(lr) * v)
		}
	}
}

// momentum returns the momentum of a slot, or nil if momentum is off.
func (o *SGD) momentum(s *slot) []float32 {
	if o.Momentum != 0 {
		return s.memory(&s.a)
	}
	return s.a
}

// State returns the momenta as "name.momentum". They share the optimiser's memory, so copy into them to load.
func (o *SGD) State() nn.Params {
	return func(yield func(string, *tensor.Tensor) bool) {
		o.slots.refresh()
		for i := range o.slots.list {
			s := &o.slots.list[i]
			if m := o.momentum(s); m != nil && !yield(s.name+".momentum", tensor.New(m, s.p.Shape()...)) {
				return
			}
		}
	}
}

// AdamW is Adam with decoupled weight decay. At step n:
//
//	p ← p − lr·λ·p
//	m ← β₁·m + (1−β₁)·g
//	v ← β₂·v + (1−β₂)·g²
//	p ← p − lr·(m/(1−β₁ⁿ)) / (√(v/(1−β₂ⁿ)) + ε)
//
// All parameters share the step count n: a parameter that appears later is treated as if it had been there with a
// gradient of zero.
//
// Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019,
// https://arxiv.org/abs/1711.05101; the form is PyTorch's.
type AdamW struct {
	Beta1, Beta2, Eps, WeightDecay float64
	steps                          int
	slots                          slots

	// During Step, the gradients of the slots and the number of elements up to the end of each.
	grads [][]float32
	ends  []int
}

// NewAdamW returns an optimiser of a module's parameters with β₁ = 0.9,
// β₂ = 0.999, ε = 1e-8 and no weight decay.
func NewAdamW(m nn.Module) *AdamW {
	return &AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, slots: slotsOf("NewAdamW", m)}
}

// Steps returns the number of updates made. SetSteps sets it when a run is resumed.
func (o *AdamW) Steps() int { return o.steps }

// SetSteps sets the number of updates made so far.
func (o *AdamW) SetSteps(n int) { o.steps = n }

// Step makes one update.
func (o *AdamW) Step(lr float64) {
	o.slots.refresh()
	o.steps++
	step := simd.AdamStep{
		Rate: lr, Beta1: o.Beta1, Beta2: o.Beta2, Epsilon: o.Eps, Decay: o.WeightDecay,
		Correction1: 1 - math.Pow(o.Beta1, float64(o.steps)),
		Correction2: 1 - math.Pow(o.Beta2, float64(o.steps)),
	}
	o.ends, o.grads = o.ends[:0], o.grads[:0]
	total := 0
	for i := range o.slots.list {
		s := &o.slots.list[i]
		var g []float32
		if grad := s.p.Grad(); grad != nil {
			g = grad.Data()
			s.memory(&s.a)
			s.memory(&s.b)
		}
		total += len(g)
		o.ends, o.grads = append(o.ends, total), append(o.grads, g)
	}
	par.For(total, par.ChunkOfNumbers(total, adamCost), func(lo, hi int) {
		for i := sort.SearchInts(o.ends, lo+1); lo < hi; i++ { // slot i has element lo
			s, g, end := &o.slots.list[i], o.grads[i], min(o.ends[i], hi)
			from, to := len(g)-(o.ends[i]-lo), len(g)-(o.ends[i]-end)
			simd.AdamW(s.p.Data()[from:to], g[from:to], s.a[from:to], s.b[from:to], step)
			lo = end
		}
	})
	clear(o.grads) // which it would keep alive
}

// adamCost is the cost of an element for par.Chunk.
const adamCost = 4

// State returns the moments as "name.m" and "name.v". They share the optimiser's memory, so copy into them to load.
func (o *AdamW) State() nn.Params {
	return func(yield func(string, *tensor.Tensor) bool) {
		o.slots.refresh()
		for i := range o.slots.list {
			s := &o.slots.list[i]
			a, b, shape := s.memory(&s.a), s.memory(&s.b), s.p.Shape()
			if !yield(s.name+".m", tensor.New(a, shape...)) || !yield(s.name+".v", tensor.New(b, shape...)) {
				return
			}
		}
	}
}

// Schedule returns the learning rate of a step, counted from 1, as a factor of the peak rate.
type Schedule func(step int) float64

// WarmupInvSqrt rises linearly to 1 over the warm-up and then falls with the inverse square root of the step. It does
// not depend on the length of training, so a run can be extended.
//
// Source: Vaswani et al., "Attention Is All You Need", 2017, eq. 3, scaled to
// peak at 1.
func WarmupInvSqrt(warmup int) Schedule {
	w := float64(max(warmup, 1))
	return func(step int) float64 {
		n := float64(max(step, 1))
		return min(n/w, math.Sqrt(w/n))
	}
}

// WarmupCosine rises linearly to 1 over the first warmup steps, and then falls to 0 along half a cosine (cosine
// annealing). At step total and after it, the rate is 0.
//
// Source: Loshchilov and Hutter, "SGDR", 2017,
// https://arxiv.org/abs/1608.03983, eq. 5, without restarts.
func WarmupCosine(warmup, total int) Schedule {
	w, span := float64(warmup), float64(max(total-warmup, 1))
	return func(step int) float64 {
		n := float64(step)
		if n < w {
			return n / w
		}
		return (1 + math.Cos(math.Pi*min((n-w)/span, 1))) / 2
	}
}
