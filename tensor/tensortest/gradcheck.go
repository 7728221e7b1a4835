package tensortest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/tensor"
)

// The numeric derivative of float32 code has two errors: rounding of the results, which is divided by the step, and
// curvature, which is multiplied by it. Central differences over one and two steps, extrapolated to a step of zero,
// have an error of the fourth order, so the step can be large.
const (
	step     = 1.0 / 64    // times max(1, |x|)
	relative = 1e-3        // tolerance, as a fraction of the largest gradient of an input
	noise    = 1.0 / 16384 // tolerance, as a fraction of the result's length, whose rounding is divided by step
	again    = 1e-5        // tolerance, as a fraction of the largest gradient, where only the order of a sum differs
	sample   = 211         // number of elements that are checked in a larger input
	seed     = 20170612
)

// GradCheck checks an operation f of the tensors in, which it makes parameters. Let r be a fixed random tensor with
// the shape of the result. GradCheck checks that
//
//   - the gradients of Σ f·r agree with central differences, whose sums are computed in float64;
//   - gradients add up over two backward passes, and over two uses on one tape;
//   - f returns the same bits on a nil tape, on tapes of all modes, and on memory with other contents. Mode Train is
//     left out if f drops elements at random, which GradCheck detects by a result that depends on the seed.
//
// The inputs are changed in place for the differences and then restored, so f may also use them through a closure,
// for instance as the parameters of a layer. f must be smooth within 1/32·max(1, |x|) of each input x: keep inputs
// away from the corner of a ReLU. Of an input with many elements, only a sample is checked.
func GradCheck(tb testing.TB, name string, f func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor, in []*tensor.Tensor) {
	tb.Helper()
	for _, x := range in {
		x.Param().ZeroGrad()
	}
	c := &checker{tb: tb, name: name, f: f, in: in, rng: rand.New(rand.NewPCG(seed, 1))}
	c.modes()
	once := c.derivatives()
	c.accumulation(once)
	for _, x := range in {
		x.ZeroGrad()
	}
}

type checker struct {
	tb   testing.TB
	name string
	f    func(*tensor.Tape, []*tensor.Tensor) *tensor.Tensor
	in   []*tensor.Tensor
	rng  *rand.Rand
}

func (c *checker) tape() *tensor.Tape {
	t := Tape(tensor.Train)
	t.Seed(seed, 0)
	return t
}

// modes compares the results on tapes of all modes.
func (c *checker) modes() {
	c.tb.Helper()
	want := c.f(nil, c.in).Data()
	Same(c.tb, c.name+": on a tape in mode Infer", c.f(Tape(tensor.Infer), c.in).Data(), want)
	Same(c.tb, c.name+": on a tape in mode Eval", c.f(Tape(tensor.Eval), c.in).Data(), want)
	t := c.tape()
	got := c.f(t, c.in).Clone().Data()
	t.Reset()
	t.Seed(seed, 0)
	Same(c.tb, c.name+": in reused memory", c.f(t, c.in).Data(), got)
	t = Tape(tensor.Train)
	t.Seed(seed+1, 0)
	if equal(c.f(t, c.in).Data(), got) { // false if f uses dropout
		Same(c.tb, c.name+": on a tape in mode Train", got, want)
	}
}

// derivatives compares gradients with differences, and returns the gradients
// and the random upstream gradient.
func (c *checker) derivatives() []*tensor.Tensor {
	c.tb.Helper()
	t := c.tape()
	y := c.f(t, c.in)
	r := tensor.Randn(c.rng, y.Shape()...)
	length := 0.0 // length of the weighted result
	for i, v := range y.Data() {
		length += math.Pow(float64(v)*float64(r.Data()[i]), 2)
	}
	length = math.Sqrt(length)
	backward(t, []*tensor.Tensor{y}, []*tensor.Tensor{r})
	grads := c.gradients()
	for i, x := range c.in {
		tolerance := relative*largest(grads[i].Data()) + noise*length
		for _, e := range c.elements(x.Len()) {
			got, want := float64(grads[i].Data()[e]), c.slope(r, &x.Data()[e])
			if !(math.Abs(got-want) <= tolerance) {
				c.tb.Errorf("%s: gradient of input %d, shape %v, element %d is %.6g, differences say %.6g: off by %.3g, allowed %.3g",
					c.name, i, x.Shape(), e, got, want, got-want, tolerance)
				break
			}
		}
	}
	return grads
}

// slope returns the numeric derivative of Σ f·r with respect to *x.
func (c *checker) slope(r *tensor.Tensor, x *float32) float64 {
	old := *x
	defer func() { *x = old }()
	t := tensor.NewTape(tensor.Train) // this mode includes dropout
	h := float32(step) * max(1, float32(math.Abs(float64(old))))
	over := func(h float32) float64 {
		var sum, width float64
		for _, sign := range []float32{1, -1} {
			*x = old + sign*h
			width += float64(sign) * float64(*x) // the step after rounding
			t.Reset()
			t.Seed(seed, 0)
			for i, v := range c.f(t, c.in).Data() {
				sum += float64(sign) * float64(v) * float64(r.Data()[i])
			}
		}
		return sum / width
	}
	return (4*over(h) - over(2*h)) / 3
}

// accumulation checks that gradients of several passes and uses add up.
func (c *checker) accumulation(once []*tensor.Tensor) {
	c.tb.Helper()
	// A second record for the same parameters, without ZeroGrad in between.
	rng := rand.New(rand.NewPCG(seed, 1)) // the same r as before
	t := c.tape()
	y := c.f(t, c.in)
	backward(t, []*tensor.Tensor{y}, []*tensor.Tensor{tensor.Randn(rng, y.Shape()...)})
	c.near("after two backward passes", c.gradients(), once, once)

	// Two uses on one tape: the gradients of the separate uses must add up to the gradient of both. All three runs
	// record both uses, so that dropout is also the same.
	r1, r2 := tensor.Randn(rng, y.Shape()...), tensor.Randn(rng, y.Shape()...)
	run := func(use1, use2 bool) []*tensor.Tensor {
		for _, x := range c.in {
			x.ZeroGrad()
		}
		t := c.tape()
		y1, y2 := c.f(t, c.in), c.f(t, c.in)
		var outs, douts []*tensor.Tensor
		if use1 {
			outs, douts = append(outs, y1), append(douts, r1)
		}
		if use2 {
			outs, douts = append(outs, y2), append(douts, r2)
		}
		backward(t, outs, douts)
		return c.gradients()
	}
	first, second := run(true, false), run(false, true)
	c.near("of two uses on one tape", run(true, true), first, second)
}

// backward is BackwardAll, except that it does not panic if no output depends on an input. The comparison with
// differences then checks that the gradients are zero.
func backward(t *tensor.Tape, outs, douts []*tensor.Tensor) {
	if slices.ContainsFunc(outs, (*tensor.Tensor).NeedsGrad) {
		t.BackwardAll(outs, douts)
	}
}

// near compares gradients with the sum of two others.
func (c *checker) near(when string, got, a, b []*tensor.Tensor) {
	c.tb.Helper()
	for i := range got {
		allowed := again*(largest(a[i].Data())+largest(b[i].Data())) + 1e-30
		for e, g := range got[i].Data() {
			want := float64(a[i].Data()[e]) + float64(b[i].Data()[e])
			if !(math.Abs(float64(g)-want) <= allowed) {
				c.tb.Errorf("%s: gradient %s of input %d, element %d is %v, want the sum %v", c.name, when, i, e, g, want)
				break
			}
		}
	}
}

// gradients returns copies of the gradients of the inputs, or zeros where there is none.
func (c *checker) gradients() []*tensor.Tensor {
	grads := make([]*tensor.Tensor, len(c.in))
	for i, x := range c.in {
		if g := x.Grad(); g != nil {
			grads[i] = g.Clone()
		} else {
			grads[i] = tensor.Zeros(x.Shape()...)
		}
	}
	return grads
}

// elements returns the indices to check, out of n elements.
func (c *checker) elements(n int) []int {
	if n <= sample {
		return stats.Numbers(n)
	}
	return rand.New(rand.NewPCG(seed, 2)).Perm(n)[:sample]
}

// equal reports whether a and b are the same numbers; a NaN equals a NaN.
func equal(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(a, b float32) bool { return a == b || (a != a && b != b) })
}
