package attn_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// TestMain sets one thread; tests of threads set more.
func TestMain(m *testing.M) {
	partest.OneThread()
	m.Run()
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// scoreCase is a score with the sizes of queries and keys that it compares.
type scoreCase struct {
	name   string
	eq, ek int
	make   func() attn.Score
}

// scores are all scores: those of the table with all their parameters, without optional
// parameters, and with a factor; and a user-defined one. Each call of make returns the same
// parameters.
var scores = allScores()

func allScores() []scoreCase {
	var all []scoreCase
	for _, kind := range score.Kinds() {
		s := sizesOf(kind)
		add := func(name string, make func() attn.Score) {
			all = append(all, scoreCase{name, s.Query, s.Key, make})
		}
		add(kind.Name, func() attn.Score { return kind.New(s, newRand(2)) })
		if plain, err := kind.With(nil); err == nil && len(kind.Params) > 0 {
			add(kind.Name+"_plain", func() attn.Score { return plain })
		}
		if kind.Scaled != nil {
			add(kind.Name+"_scale", func() attn.Score { return kind.Scaled(0.3) })
		}
	}
	return append(all,
		scoreCase{"dot_scale_zero", 5, 5, func() attn.Score { return score.DotScale(0) }},
		scoreCase{"gaussian_scalar", 5, 5, func() attn.Score { return &score.Gaussian{W: tensor.Full(0.6, 1).Param()} }},
		scoreCase{"own", 5, 5, func() attn.Score { return score.Func(ownScore) }},
		scoreCase{"own_nonlinear", 5, 5, func() attn.Score { return score.Func(ownNonlinearScore) }},
	)
}

// sizesOf returns sizes of vectors that a kind of score accepts, different ones if possible.
func sizesOf(kind score.Kind) score.Sizes {
	s := score.Sizes{Query: 5, Key: 5, Hidden: 11}
	for _, p := range kind.Params {
		if slices.Contains(p.Axes, "Ek") {
			s.Key = 7
		}
	}
	return s
}

// kindCase returns the case of a kind of score.
func kindCase(name string) scoreCase {
	return scores[slices.IndexFunc(scores, func(c scoreCase) bool { return c.name == name })]
}

// ownScore is a user-defined score: relu(q)ᵀk/3.
func ownScore(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
	return tensor.Scale(t, tensor.MatMulT(t, tensor.ReLU(t, q), k), 1.0/3)
}

// ownNonlinearScore uses operations whose derivatives depend on their arguments, so the
// derivatives are NaN if the scores are.
func ownNonlinearScore(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
	s := tensor.MatMulT(t, q, k)
	s = tensor.Mul(t, tensor.Sigmoid(t, s), tensor.Tanh(t, tensor.Square(t, s)))
	return tensor.Div(t, tensor.GELU(t, s), tensor.Shift(t, tensor.Exp(t, s), 1))
}

// eachScore runs a test for every score.
func eachScore(t *testing.T, test func(t *testing.T, c scoreCase)) {
	for _, c := range scores {
		t.Run(c.name, func(t *testing.T) { test(t, c) })
	}
}

// sizes are the sizes of a call of Attend. The defaults are distinct primes, except the heads.
type sizes struct{ b, h, g, lq, lk, v int }

var usual = sizes{b: 2, h: 6, g: 3, lq: 5, lk: 7, v: 3}

// call is one call of Attend and of its backward pass.
type call struct {
	q, k, v        *tensor.Tensor
	dout, dweights *tensor.Tensor
	o              attn.Options
}

// newCall draws the inputs of a call.
func newCall(c scoreCase, s sizes) call {
	rng := newRand(17)
	return call{
		q:        tensor.Randn(rng, s.b, s.h, s.lq, c.eq),
		k:        tensor.Randn(rng, s.b, s.g, s.lk, c.ek),
		v:        tensor.Randn(rng, s.b, s.g, s.lk, s.v),
		dout:     tensor.Randn(rng, s.b, s.h, s.lq, s.v),
		dweights: tensor.Randn(rng, s.b, s.h, s.lq, s.lk),
		o:        attn.Options{Score: c.make(), Weights: true},
	}
}

// bias draws a bias of the given shape for the call.
func (c call) bias(shape ...int) call {
	c.o.Bias = tensor.Randn(newRand(19), shape...)
	return c
}

func (c call) mask(m attn.Mask) call {
	c.o.Mask = m
	return c
}

// trace are the results and gradients of a call by name: "out", "weights", "dq", "dk", "dv",
// "dbias" and, for a score with a parameter w, "dw".
type trace map[string]*tensor.Tensor

// run makes the call, forward and backward, on new leaves.
func (c call) run() trace { return c.runBy(attn.Attend) }

// runBy is run with Attend or with the formula.
func (c call) runBy(attend attend) trace {
	tape := tensortest.Tape(tensor.Train)
	leaves := paramsOf(c.o.Score)
	leaves["dq"], leaves["dk"], leaves["dv"] = c.q.Clone().Param(), c.k.Clone().Param(), c.v.Clone().Param()
	if c.o.Bias != nil {
		c.o.Bias = c.o.Bias.Clone().Param()
		leaves["dbias"] = c.o.Bias
	}
	y := attend(tape, leaves["dq"], leaves["dk"], leaves["dv"], c.o)
	outs, douts := []*tensor.Tensor{y.Out}, []*tensor.Tensor{c.dout}
	if y.Weights != nil && c.dweights != nil {
		outs, douts = append(outs, y.Weights), append(douts, c.dweights)
	}
	tape.BackwardAll(outs, douts)
	return leave(y, leaves)
}

// runLayer is run for a layer.
func runLayer(m *attn.MultiHead, q, k, v, dout *tensor.Tensor, o attn.Options) trace {
	tape := tensortest.Tape(tensor.Train)
	leaves := paramsOf(m)
	clones := map[*tensor.Tensor]*tensor.Tensor{} // clones of one tensor remain one tensor
	clone := func(x *tensor.Tensor) *tensor.Tensor {
		if clones[x] == nil {
			clones[x] = x.Clone().Param()
		}
		return clones[x]
	}
	leaves["dq"], leaves["dk"], leaves["dv"] = clone(q), clone(k), clone(v)
	y := m.Forward(tape, leaves["dq"], leaves["dk"], leaves["dv"], o)
	tape.Backward(y.Out, dout)
	return leave(y, leaves)
}

// paramsOf returns the parameters of a module by "d" and their names, with their gradients
// cleared. Other values have none.
func paramsOf(module any) map[string]*tensor.Tensor {
	leaves := map[string]*tensor.Tensor{}
	if m, ok := module.(nn.Module); ok {
		for name, p := range m.Params() {
			p.ZeroGrad()
			leaves["d"+name] = p
		}
	}
	return leaves
}

// leave collects results and the gradients of leaves.
func leave(y attn.Output, leaves map[string]*tensor.Tensor) trace {
	tr := trace{"out": y.Out.Clone()}
	if y.Weights != nil {
		tr["weights"] = y.Weights.Clone()
	}
	for name, x := range leaves {
		tr[name] = tensor.Zeros(x.Shape()...)
		if g := x.Grad(); g != nil {
			tr[name] = g.Clone()
		}
	}
	return tr
}

// same fails the test unless two traces are equal bit for bit.
func same(t *testing.T, what string, got, want trace) {
	t.Helper()
	compare(t, got, want, func(name string, got, want *tensor.Tensor) {
		t.Helper()
		tensortest.Same(t, what+": "+name, got.Data(), want.Data())
	})
}

// near fails the test unless two traces are equal up to rounding.
func near(t *testing.T, what string, got, want trace) {
	t.Helper()
	compare(t, got, want, func(name string, got, want *tensor.Tensor) {
		t.Helper()
		tensortest.Near(t, what+": "+name, got, want)
	})
}

func compare(t *testing.T, got, want trace, tensors func(name string, got, want *tensor.Tensor)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch {
		case got[name] == nil:
			t.Errorf("%s is missing", name)
		case !slices.Equal(got[name].Shape(), want[name].Shape()):
			t.Errorf("%s has shape %v, want %v", name, got[name].Shape(), want[name].Shape())
		default:
			tensors(name, got[name], want[name])
		}
	}
}

// pick returns the elements of x with indices lo to hi on an axis.
func pick(x *tensor.Tensor, axis, lo, hi int) *tensor.Tensor {
	return tensor.Slice(nil, x, axis, lo, hi)
}

// each calls f with the indices of every element of a tensor of four axes.
func each(x *tensor.Tensor, f func(b, h, i, j int, v *float32)) {
	data := x.Data()
	for b := range x.Dim(0) {
		for h := range x.Dim(1) {
			for i := range x.Dim(2) {
				for j := range x.Dim(3) {
					f(b, h, i, j, &data[0])
					data = data[1:]
				}
			}
		}
	}
}

// fill overwrites a row of a tensor of four axes.
func fill(x *tensor.Tensor, b, h, i int, value float32) {
	n := x.Dim(3)
	row := x.Data()[((b*x.Dim(1)+h)*x.Dim(2)+i)*n:][:n]
	for j := range row {
		row[j] = value
	}
}

// poisons are numbers that must have no effect when they are masked. The largest finite number
// becomes infinite in products.
var poisons = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32}

// mustMultiHead returns a layer with random biases instead of 0.
func mustMultiHead(t testing.TB, c attn.MultiHeadConfig) *attn.MultiHead {
	t.Helper()
	rng := newRand(23)
	m, err := attn.NewMultiHead(c, rng)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*nn.Linear{m.Q, m.K, m.V, m.Out} {
		if l != nil && l.Bias != nil {
			copy(l.Bias.Data(), tensor.Randn(rng, l.Bias.Len()).Data())
		}
	}
	return m
}

// magnitude returns the largest magnitude in x.
func magnitude(x *tensor.Tensor) float64 {
	m := 0.0
	for _, v := range x.Data() {
		m = max(m, math.Abs(float64(v)))
	}
	return m
}

// mustCache returns a cache of a layer.
func mustCache(t testing.TB, m *attn.MultiHead, batch int, c attn.CacheConfig) *attn.Cache {
	t.Helper()
	cache, err := m.NewCache(batch, c)
	if err != nil {
		t.Fatal(err)
	}
	return cache
}
