package attn_test

import (
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

var (
	combinations = flag.Int("combinations", 0, "how many random combinations of options are tried (0: 300, -short: 100)")
	first        = flag.Int("first", 0, "the number of the first of them")
)

// seeds returns the seeds of the combinations, or one of every share of them.
func seeds(share int) iter.Seq[int] {
	return func(yield func(int) bool) {
		n := *combinations
		switch {
		case n > 0:
		case testing.Short():
			n = 100
		default:
			n = 300 // CI tries ten thousand
		}
		for seed := *first / share; seed < (*first+n)/share && yield(seed); seed++ {
		}
	}
}

// For any combination of features, Attend computes the formula: out, weights, log-sum-exp, the
// rows that observers receive, and all gradients.
func TestCombinations(t *testing.T) {
	for seed := range seeds(1) {
		c := drawCombination(uint64(seed))
		if c.try(t); t.Failed() {
			t.Fatalf("combination %d: %s", seed, c.name)
		}
	}
}

func FuzzCombinations(f *testing.F) {
	f.Add(uint64(1) << 40)
	f.Fuzz(func(t *testing.T, seed uint64) {
		c := drawCombination(seed)
		if c.try(t); t.Failed() {
			t.Errorf("combination %d: %s", seed, c.name)
		}
	})
}

// combination is a random call of Attend.
type combination struct {
	name                          string
	s                             sizes
	eq, ek                        int
	q, k, v, dout, dweights, dlse *tensor.Tensor
	score                         func() attn.Score
	options                       drawnOptions
	backend
}

// leaves makes a tensor a leaf, whose gradient is stored under name.
type leaves func(name string, x *tensor.Tensor) *tensor.Tensor

// drawnOptions are random options of a call.
type drawnOptions struct {
	with         []func(o *attn.Options, leaf leaves)
	mask         attn.Mask
	weights, lse bool
	words        []string // description of the options
}

// options returns the options without the score.
func (d *drawnOptions) options(leaf leaves) attn.Options {
	o := attn.Options{Mask: d.mask, Weights: d.weights, LogSumExp: d.lse}
	for _, f := range d.with {
		f(&o, leaf)
	}
	return o
}

func (d *drawnOptions) note(format string, args ...any) {
	d.words = append(d.words, fmt.Sprintf(format, args...))
}

// backend is a number of threads and an instruction set for computing a call.
type backend struct {
	procs int
	simd  string
}

// instructionSets are all instruction sets of this machine.
var instructionSets = func() (names []string) {
	simd.Each(func(name string) { names = append(names, name) })
	return names
}()

func drawBackend(rng *rand.Rand) backend {
	b := backend{[]int{1, 1, 1, 2, 2, 3, 4}[rng.IntN(7)], simd.Implementation()}
	if rng.IntN(3) == 0 {
		b.simd = instructionSets[rng.IntN(len(instructionSets))]
	}
	return b
}

// run runs f on the backend.
func (b backend) run(f func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(b.procs))
	simd.Each(func(name string) {
		if name == b.simd {
			f()
		}
	})
}

func (b backend) String() string { return fmt.Sprintf("%d threads, %s", b.procs, b.simd) }

// drawCombination draws sizes, inputs and options.
func drawCombination(seed uint64) *combination {
	rng := rand.New(rand.NewPCG(seed, 77))
	some := func(p float64) bool { return rng.Float64() < p }
	c := &combination{s: sizes{b: 1 + rng.IntN(3), g: 1 + rng.IntN(3), lq: 1 + rng.IntN(17), lk: 1 + rng.IntN(23), v: 1 + rng.IntN(9)}}
	s := &c.s
	s.h = s.g * (1 + rng.IntN(3))
	switch rng.IntN(12) {
	case 0: // slightly more than a block of keys
		s.lk, s.lq = 513+rng.IntN(150), 1+rng.IntN(5)
	case 1: // more than a band of queries
		s.lq = 90 + rng.IntN(40)
	case 2:
		s.lk = 0
	}
	c.eq = 1 + rng.IntN(19)
	c.ek = c.eq
	kind := drawKind(rng)
	if sizes := sizesOf(kind); sizes.Query != sizes.Key {
		c.ek = 1 + rng.IntN(19)
	}
	uneven := some(0.5) // makes parameters differ that would start with one value throughout
	c.score = func() attn.Score {
		score := kind.New(score.Sizes{Query: c.eq, Key: c.ek, Hidden: 1 + c.eq}, newRand(seed))
		if uneven {
			for _, p := range paramsOf(score) {
				rng := newRand(seed)
				for i := range p.Data() {
					p.Data()[i] *= 0.5 + rng.Float32()
				}
			}
		}
		return score
	}
	if kind.Scaled != nil && some(0.5) {
		c.score = func() attn.Score { return kind.Scaled(0.5) }
	}
	c.q = tensor.Randn(rng, s.b, s.h, s.lq, c.eq)
	c.k = tensor.Randn(rng, s.b, s.g, s.lk, c.ek)
	c.v = tensor.Randn(rng, s.b, s.g, s.lk, s.v)
	c.dout = tensor.Randn(rng, s.b, s.h, s.lq, s.v)

	c.options = drawOptions(rng, *s, c.eq, c.ek)
	if c.options.weights {
		c.dweights = tensor.Randn(rng, s.b, s.h, s.lq, s.lk)
	}
	if c.options.lse {
		c.dlse = tensor.Randn(rng, s.b, s.h, s.lq)
	}
	c.backend = drawBackend(rng)
	c.name = fmt.Sprintf("%+v, E=%d/%d, %s, %v, %v", c.s, c.eq, c.ek, kind.Name, c.options.words, c.backend)
	return c
}

// drawKind draws a kind of score, often the default.
func drawKind(rng *rand.Rand) score.Kind {
	kinds := score.Kinds()
	if rng.Float64() < 0.3 {
		return kinds[0]
	}
	return kinds[rng.IntN(len(kinds))]
}

// drawOptions draws options for a call of the given sizes, whose queries and keys have eq and ek
// elements.
func drawOptions(rng *rand.Rand, s sizes, eq, ek int) (d drawnOptions) {
	some := func(p float64) bool { return rng.Float64() < p }
	var masks []attn.Mask
	for some(0.45) && len(masks) < 3 {
		kind := maskKinds[rng.IntN(len(maskKinds))]
		masks = append(masks, kind.draw(rng, s))
		d.note("%s", kind.name)
	}
	d.mask = attn.And(masks...)

	type option = func(o *attn.Options, leaf leaves)
	add := func(p float64, what string, f func() option) {
		if some(p) {
			d.note("%s", what)
			d.with = append(d.with, f())
		}
	}
	add(0.2, "soft-cap", func() option {
		return func(o *attn.Options, _ leaves) { o.SoftCap = 1.5 }
	})
	add(0.2, "score modification", func() option {
		return func(o *attn.Options, _ leaves) {
			o.Changes = append(o.Changes, squash{c: 0.3}, attn.SoftCap(4))
		}
	})
	add(0.3, "bias", func() option {
		shape := []int{s.b, s.h, s.lq, s.lk}[rng.IntN(4):]
		for i := range shape {
			if some(0.4) {
				shape[i] = 1
			}
		}
		x := tensor.Randn(rng, shape...)
		return func(o *attn.Options, leaf leaves) { o.Bias = leaf("bias", x) }
	})
	add(0.15, "ALiBi", func() option {
		return func(o *attn.Options, _ leaves) {
			o.Changes = append(o.Changes, position.ALiBi())
		}
	})
	add(0.15, "T5", func() option {
		x, causal := tensor.Randn(rng, 8, s.h), some(0.5)
		return func(o *attn.Options, leaf leaves) {
			o.Changes = append(o.Changes, position.T5Bias(leaf("t5", x), position.T5Config{MaxDistance: 20, Causal: causal}))
		}
	})
	if eq == ek {
		add(0.15, "Shaw", func() option {
			x := tensor.Randn(rng, 2*rng.IntN(9)+1, eq)
			return func(o *attn.Options, leaf leaves) {
				o.Changes = append(o.Changes, position.ShawBias(leaf("shaw", x)))
			}
		})
		add(0.15, "Transformer-XL", func() option {
			r, u, v := tensor.Randn(rng, s.h, 2*rng.IntN(9)+1, eq), tensor.Randn(rng, s.h, eq), tensor.Randn(rng, s.h, eq)
			return func(o *attn.Options, leaf leaves) {
				o.Changes = append(o.Changes, position.TransformerXLBias(leaf("xl.r", r), leaf("xl.u", u), leaf("xl.v", v))...)
			}
		})
		add(0.15, "DeBERTa", func() option {
			r := []*tensor.Tensor{tensor.Randn(rng, s.h, 2*rng.IntN(9)+1, eq), tensor.Randn(rng, 2*rng.IntN(9)+1, eq)}
			rng.Shuffle(len(r), func(i, j int) { r[i], r[j] = r[j], r[i] })
			without := rng.IntN(4) // one of the terms, or neither
			return func(o *attn.Options, leaf leaves) {
				var terms [2]*tensor.Tensor
				for i := range terms {
					if i != without {
						terms[i] = leaf(fmt.Sprint("deberta", i), r[i])
					}
				}
				o.Changes = append(o.Changes, position.DeBERTaBias(terms[0], terms[1], 0.4)...)
			}
		})
	}
	add(0.25, "sinks", func() option {
		x := tensor.Randn(rng, s.h)
		return func(o *attn.Options, leaf leaves) { o.Sinks = leaf("sinks", x) }
	})
	add(0.2, "dropout", func() option {
		return func(o *attn.Options, _ leaves) { o.Dropout = 0.3 }
	})
	add(0.15, "gates", func() option {
		x := tensor.Randn(rng, s.b, s.h)
		return func(o *attn.Options, leaf leaves) { o.Gates = leaf("gates", x) }
	})
	if d.weights = some(0.5); d.weights {
		d.note("weights")
	}
	if d.lse = some(0.4); d.lse {
		d.note("log-sum-exp")
	}
	return d
}

// maskKinds draw a mask of each kind. Package mask compares them with their definitions.
var maskKinds = []struct {
	name string
	draw func(rng *rand.Rand, s sizes) attn.Mask
}{
	{"causal", func(*rand.Rand, sizes) attn.Mask { return mask.Causal() }},
	{"causal at", func(rng *rand.Rand, s sizes) attn.Mask { return mask.CausalAt(drawOffsets(rng, s)...) }},
	{"window", func(rng *rand.Rand, _ sizes) attn.Mask { return mask.Window(rng.IntN(6)-1, rng.IntN(6)-1) }},
	{"window at", func(rng *rand.Rand, s sizes) attn.Mask {
		return mask.WindowAt(rng.IntN(6)-1, rng.IntN(6)-1, drawOffsets(rng, s)...)
	}},
	{"window with sinks", func(rng *rand.Rand, _ sizes) attn.Mask {
		return mask.WindowWithSinks(rng.IntN(6)-1, rng.IntN(6)-1, rng.IntN(4))
	}},
	{"prefix", func(rng *rand.Rand, s sizes) attn.Mask {
		return mask.Prefix(drawLengths(rng, oneOr(rng, s.b), s.lk)...)
	}},
	{"valid lengths", func(rng *rand.Rand, s sizes) attn.Mask { return mask.Lengths(drawLengths(rng, s.b, s.lk)...) }},
	{"valid lengths by row", func(rng *rand.Rand, s sizes) attn.Mask {
		lens := make([][]int, s.b)
		for b := range lens {
			lens[b] = drawLengths(rng, s.lq, s.lk)
		}
		return mask.LengthsOfQueries(lens)
	}},
	{"valid queries", func(rng *rand.Rand, s sizes) attn.Mask {
		return mask.QueryLengths(drawLengths(rng, s.b, s.lq)...)
	}},
	{"documents", func(rng *rand.Rand, s sizes) attn.Mask {
		ends := make([][]int, oneOr(rng, s.b))
		for b := range ends {
			ends[b] = drawLengths(rng, rng.IntN(4), s.lk)
			slices.Sort(ends[b])
		}
		return mask.Documents(ends...)
	}},
	{"blocks", func(rng *rand.Rand, _ sizes) attn.Mask { return mask.Blocks(1+rng.IntN(5), rng.IntN(3), rng.IntN(3)) }},
	{"strided", func(rng *rand.Rand, _ sizes) attn.Mask { return mask.Strided(1 + rng.IntN(5)) }},
	{"booleans", func(rng *rand.Rand, s sizes) attn.Mask { // any shape that broadcasts
		shape, n := []int{s.b, s.h, s.lq, s.lk}, 1
		for a := 3; a >= 0; a-- {
			if rng.IntN(2) == 0 {
				shape[a] = 1
			}
			n *= shape[a]
		}
		for len(shape) > 0 && shape[0] == 1 && rng.IntN(2) == 0 {
			shape = shape[1:]
		}
		return drawAllowed(rng, n, func(seen []bool) attn.Mask { return mask.Allow(seen, shape...) },
			func(seen []float32) attn.Mask { return mask.AllowTensor(tensor.New(seen, shape...)) })
	}},
	{"booleans, sequence first", func(rng *rand.Rand, s sizes) attn.Mask {
		lq, b := oneOr(rng, s.lq), oneOr(rng, s.b)
		return drawAllowed(rng, lq*s.lk*b, func(seen []bool) attn.Mask { return mask.AllowSequenceFirst(seen, lq, s.lk, b) }, nil)
	}},
	{"function", func(rng *rand.Rand, _ sizes) attn.Mask {
		k := 1 + rng.IntN(3)
		return mask.AllowFunc(func(b, h, i, j int) bool { return (b+2*h+3*i+5*j)%4 != k })
	}},
}

// oneOr draws 1 or n.
func oneOr(rng *rand.Rand, n int) int { return []int{1, n}[rng.IntN(2)] }

// drawOffsets draws an offset for all sequences or for each, near the one that aligns the ends.
func drawOffsets(rng *rand.Rand, s sizes) []int {
	o := make([]int, oneOr(rng, s.b))
	for i := range o {
		o[i] = s.lk - s.lq + rng.IntN(7) - 3
	}
	return o
}

// drawLengths draws n lengths up to most.
func drawLengths(rng *rand.Rand, n, most int) []int {
	lens := make([]int, n)
	for i := range lens {
		lens[i] = rng.IntN(most + 1)
	}
	return lens
}

// drawAllowed draws n truth values, and makes a mask of them or of the same numbers.
func drawAllowed(rng *rand.Rand, n int, bools func([]bool) attn.Mask, numbers func([]float32) attn.Mask) attn.Mask {
	seen, ones := make([]bool, n), make([]float32, n)
	for i := range seen {
		if seen[i] = rng.IntN(4) > 0; seen[i] {
			ones[i] = 1
		}
	}
	if numbers != nil && rng.IntN(2) == 0 {
		return numbers(ones)
	}
	return bools(seen)
}

// squash is a user-defined score change, s·exp(−c·s²), whose gradient needs the original scores.
type squash struct {
	attn.NoParam
	c float64
}

func (squash) Adds() bool { return false }

func (m squash) Apply(at attn.Row, _, scores []float32) {
	for j, s := range scores {
		scores[j] = float32(float64(s)*math.Exp(-m.c*float64(s)*float64(s))) + 0.1*float32(at.Key+j-at.Position)
	}
}

func (m squash) Back(_ attn.Row, _, _, before, _, grad []float32) {
	for j, s := range before {
		x := m.c * float64(s) * float64(s)
		grad[j] = float32(float64(grad[j]) * math.Exp(-x) * (1 - 2*x))
	}
}

// rowTotals is a user-defined observer; it must receive the returned weights.
type rowTotals struct {
	observe.ChosenWeights
	observe.Entropy
}

func (r *rowTotals) Begin(s attn.Sizes) { r.ChosenWeights.Begin(s); r.Entropy.Begin(s) }
func (r *rowTotals) Row(at attn.Row, w []float32) {
	r.ChosenWeights.Row(at, w)
	r.Entropy.Row(at, w)
}

// attend is attn.Attend, or the formula.
type attend func(t *tensor.Tape, q, k, v *tensor.Tensor, o attn.Options) attn.Output

// run makes the call with a score and returns its results and gradients.
func (c *combination) run(attend attend, score attn.Score, params trace) trace {
	tape := tensortest.Tape(tensor.Train)
	leaves := params
	leaf := func(name string, x *tensor.Tensor) *tensor.Tensor {
		y := x.Clone().Param()
		leaves["d"+name] = y
		return y
	}
	q, k, v := leaf("q", c.q), leaf("k", c.k), leaf("v", c.v)
	o := c.options.options(leaf)
	o.Score = score
	rows := new(rowTotals)
	o.Observers = append(o.Observers, rows)
	y := attend(tape, q, k, v, o)
	outs, douts := []*tensor.Tensor{y.Out}, []*tensor.Tensor{c.dout}
	if c.options.weights {
		outs, douts = append(outs, y.Weights), append(douts, c.dweights)
	}
	if c.options.lse {
		outs, douts = append(outs, y.LogSumExp), append(douts, c.dlse)
	}
	tape.BackwardAll(outs, douts)
	got := leave(y, leaves)
	if c.options.lse {
		got["log-sum-exp"] = y.LogSumExp.Clone()
	}
	got["rows"], got["entropy"] = rows.Weights(), rows.Values()
	if y.Weights != nil {
		// The rows are equal to the weights, bit for bit.
		for i, w := range y.Weights.Data() {
			if r := got["rows"].Data()[i]; r != w {
				panic(fmt.Sprintf("%s: an observer was told of weight %v, the result is %v", c.name, r, w))
			}
		}
	}
	return got
}

// try compares Attend with the formula.
func (c *combination) try(t *testing.T) {
	t.Helper()
	fastScore := c.score()
	var fast trace
	c.backend.run(func() { fast = c.run(attn.Attend, fastScore, paramsOf(fastScore)) })
	score := c.score()
	agree(t, fast, c.run(formula, score, paramsOf(score)))
}

// agree fails the test unless two traces agree within tolerance.
func agree(t *testing.T, fast, readable trace) {
	t.Helper()
	compare(t, fast, readable, func(name string, got, want *tensor.Tensor) {
		t.Helper()
		largest := 1.0
		for _, w := range want.Data() {
			if x := math.Abs(float64(w)); !math.IsInf(x, 0) {
				largest = max(largest, x)
			}
		}
		for i, w := range want.Data() {
			g := got.Data()[i]
			if g != w && !(math.Abs(float64(g)-float64(w)) <= 5e-5*largest) {
				t.Errorf("%s: element %d is %v, %v by the formula", name, i, g, w)
				return
			}
		}
	})
}
