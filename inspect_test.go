package attn_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// rowsOf returns softmax(scale·q·k) [B H Lq Lk] for queries that attend to every key.
func rowsOf(p attn.Parts) []float64 {
	q, k := p.Queries, p.Keys
	b, h, lq, e, g, lk := q.Dim(0), q.Dim(1), q.Dim(2), q.Dim(3), k.Dim(1), k.Dim(2)
	var out []float64
	for z := range b * h * lq {
		at := z / lq
		keys := (at/h*g + at%h/(h/g)) * lk
		row, sum := make([]float64, lk), 0.
		for j := range row {
			for d := range e {
				row[j] += float64(q.Data()[z*e+d]) * float64(k.Data()[(keys+j)*e+d])
			}
			row[j] = math.Exp(row[j] * float64(p.Scale))
			sum += row[j]
		}
		for _, x := range row {
			out = append(out, x/sum)
		}
	}
	return out
}

// The queries and keys of an inspector give the weights. For scores other than dot products, they
// are nil.
func TestInspectedPartsMakeWeights(t *testing.T) {
	for _, s := range scores {
		rng := newRand(3)
		q, k, v := tensor.Randn(rng, 2, 6, 5, s.eq), tensor.Randn(rng, 2, 3, 7, s.ek), tensor.Randn(rng, 2, 3, 7, 11)
		var told attn.Parts
		y := attn.Attend(nil, q, k, v, attn.Options{Score: s.make(), Weights: true, Layer: "one", Inspect: func(layer string, p attn.Parts) {
			if layer != "one" {
				t.Errorf("%s: the layer is %q", s.name, layer)
			}
			told = p
		}})
		form := s.make().Form()
		if dot := form.Additive == nil && form.Gaussian == nil && form.Given == nil; dot != (told.Queries != nil) || dot != (told.Keys != nil) {
			t.Errorf("%s: told of queries: %v", s.name, told.Queries != nil)
		} else if dot {
			tensortest.Close(t, s.name, y.Weights.Data(), rowsOf(told), 2e-5)
		}
		for z := range 2 * 6 {
			for j := range 7 {
				sum := 0.
				for d := range 11 {
					x := float64(v.Data()[((z/2)*7+j)*11+d])
					sum += x * x
				}
				if got, want := float64(told.ValueNorms().Data()[z*7+j]), math.Sqrt(sum); math.Abs(got-want) > 1e-6*want {
					t.Fatalf("%s: head %d, key %d: the norm is %v, want %v", s.name, z, j, got, want)
				}
			}
		}
	}
}

// In a layer, value norms are the norms of a head's contribution to the output if it attends to a
// single key. Extra keys in front of the caller's keys are not included.
func TestInspectedLayer(t *testing.T) {
	const b, lq, lk, width = 2, 3, 5, 18
	for name, change := range map[string]func(*attn.MultiHeadConfig){
		"plain":          func(*attn.MultiHeadConfig) {},
		"sequence first": func(c *attn.MultiHeadConfig) { c.Layout = attn.SequenceFirst },
		"extra keys":     func(c *attn.MultiHeadConfig) { c.BiasKV, c.ZeroKV = true, true },
	} {
		rng := newRand(5)
		c := attn.MultiHeadConfig{Width: width, Heads: 6, KVHeads: 3, HeadSize: 7, ValueSize: 4, Bias: attn.NoProjection, Name: "cross"}
		change(&c)
		m, err := attn.NewMultiHead(c, rng)
		if err != nil {
			t.Fatal(err)
		}
		input := func(l int) *tensor.Tensor {
			if c.Layout == attn.SequenceFirst {
				return tensor.Randn(rng, l, b, width)
			}
			return tensor.Randn(rng, b, l, width)
		}
		q, x := input(lq), input(lk)
		var told attn.Parts
		o := attn.Options{Weights: true, Inspect: func(layer string, p attn.Parts) {
			if layer != "cross" {
				t.Errorf("%s: the layer is %q", name, layer)
			}
			told = p
		}}
		y := m.Forward(nil, q, x, x, o)
		if got := told.ValueNorms().Shape(); got[0] != b || got[1] != 6 || got[2] != lk || told.Keys.Dim(2) != lk {
			t.Fatalf("%s: norms have shape %v, keys %v", name, got, told.Keys.Shape())
		}
		if name != "extra keys" {
			tensortest.Close(t, name, y.Weights.Data(), rowsOf(told), 2e-5)
		}
		// Without biases, the output for one key, with one head selected by its gate, is W_h·v_j.
		for h := range 6 {
			gates := tensor.Zeros(6)
			gates.Data()[h] = 1
			for j := range lk {
				one := attn.Options{Gates: gates, Mask: mask.AllowFunc(func(_, _, _, key int) bool { return key == j })}
				if name == "extra keys" {
					continue // every query attends to them
				}
				y := m.Forward(nil, q, x, x, one)
				for z := range b {
					sum := 0.
					for d := range width {
						at := (z*lq)*width + d
						if c.Layout == attn.SequenceFirst {
							at = z*width + d
						}
						sum += float64(y.Out.Data()[at]) * float64(y.Out.Data()[at])
					}
					if got, want := float64(told.ValueNorms().Data()[(z*6+h)*lk+j]), math.Sqrt(sum); math.Abs(got-want) > 1e-5*want {
						t.Fatalf("%s: sequence %d, head %d, key %d: the norm is %v, want %v", name, z, h, j, got, want)
					}
				}
			}
		}
	}
}

// With a cache, an inspector receives at each step the queries of that step and all keys up to
// it.
func TestInspectedCache(t *testing.T) {
	rng := newRand(7)
	rope, err := position.NewRoPE(position.RoPEConfig{Size: 6})
	if err != nil {
		t.Fatal(err)
	}
	m, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 12, Heads: 2, Position: rope, Score: &score.Cosine{Scale: tensor.Full(3, 1).Param()}}, rng)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Randn(rng, 1, 5, 12)
	var whole, step attn.Parts
	m.Forward(nil, x, x, x, attn.Options{Mask: mask.Causal(), Inspect: func(_ string, p attn.Parts) { whole = p }})
	cache, err := m.NewCache(1, attn.CacheConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		m.Extend(nil, tensor.Slice(nil, x, 1, i, i+1), cache, attn.Options{Inspect: func(_ string, p attn.Parts) { step = p }})
		for h := range 2 {
			tensortest.Same(t, "query", step.Queries.Data()[h*6:(h+1)*6], whole.Queries.Data()[(h*5+i)*6:][:6])
			tensortest.Same(t, "keys", step.Keys.Data()[h*(i+1)*6:(h+1)*(i+1)*6], whole.Keys.Data()[h*5*6:][:(i+1)*6])
			tensortest.Same(t, "norms", step.ValueNorms().Data()[h*(i+1):(h+1)*(i+1)], whole.ValueNorms().Data()[h*5:][:i+1])
		}
	}
}

// The norms of a layer with a bfloat16 output projection are equal to the norms for the same
// numbers in float32.
func TestInspectedPacked(t *testing.T) {
	rng := newRand(7)
	m, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 18, Heads: 3, HeadSize: 5, ValueSize: 7}, rng)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range m.Out.Weight.Data() { // round to bfloat16
		m.Out.Weight.Data()[i] = math.Float32frombits(math.Float32bits(w) &^ 0xffff)
	}
	x := tensor.Randn(rng, 2, 11, 18)
	norms := func() (n []float32) {
		m.Forward(nil, x, x, x, attn.Options{Inspect: func(_ string, p attn.Parts) { n = p.ValueNorms().Data() }})
		return n
	}
	want := norms()
	m.Out.Packed = tensor.NewPacked(18, 3*7, tensor.BFloat16)
	m.Out.Packed.SetRows(0, m.Out.Weight.Data())
	m.Out.Weight = nil
	if got := norms(); !slices.Equal(got, want) {
		t.Errorf("norms\n%v, want\n%v", got, want)
	}
}

// toldCall records a call of attention: the weights that an observer receives, and the parts that
// an inspector receives.
type toldCall struct {
	weights *tensor.Tensor
	parts   attn.Parts
}

// watch adds observers to o that fill w.
func (w *toldCall) watch(o attn.Options) attn.Options {
	o.Observers = append(o.Observers, observe.Weights(func(_ string, x *tensor.Tensor) { w.weights = x }))
	o.Inspect = func(_ string, p attn.Parts) { w.parts = p }
	return o
}

// same fails the test unless the weights recomputed after the call are equal to the observed
// weights, bit for bit.
func (w *toldCall) same(t *testing.T) {
	t.Helper()
	p := w.parts
	n := p.Sizes.Lq * p.Sizes.Lk
	if w.weights.Len() != p.Sizes.B*p.Sizes.H*n || p.RetainedBytes <= 0 {
		t.Fatalf("weights %v of sizes %+v, with %d bytes held", w.weights.Shape(), p.Sizes, p.RetainedBytes)
	}
	for z := range p.Sizes.B * p.Sizes.H {
		got := p.Weights(z/p.Sizes.H, z%p.Sizes.H)
		for i, want := range w.weights.Data()[z*n:][:n] {
			if g := got[i]; math.Float32bits(g) != math.Float32bits(want) && (g == g || want == want) {
				t.Fatalf("weight %d of head %d of %d is %v, want %v", i, z, p.Sizes.B*p.Sizes.H, g, want)
			}
		}
	}
}

// sameAgain runs a call and compares recomputed weights with the returned weights.
func sameAgain(t *testing.T, o attn.Options, run func(o attn.Options)) {
	t.Helper()
	var w toldCall
	run(w.watch(o))
	w.same(t)
}

// For any combination of features, the recomputed weights of one head have the same bits as in
// the call.
func TestWeightsAgain(t *testing.T) {
	given := func(_ string, x *tensor.Tensor) *tensor.Tensor { return x }
	for seed := range seeds(3) {
		c := drawCombination(uint64(seed))
		l := drawLayerCombination(t, uint64(seed))
		t.Run(c.name, func(t *testing.T) {
			o := c.options.options(given)
			o.Score = c.score()
			c.backend.run(func() {
				sameAgain(t, o, func(o attn.Options) { attn.Attend(tensortest.Tape(tensor.Train), c.q, c.k, c.v, o) })
			})
		})
		t.Run(l.name, func(t *testing.T) {
			o := l.options.options(given)
			o.KeyLens = l.keyLens
			l.backend.run(func() {
				sameAgain(t, o, func(o attn.Options) { l.layer(nil, l.q, l.k, l.v, o) })
			})
		})
	}
	rng := newRand(7)
	q, k, v := tensor.Randn(rng, 2, 6, 5, 7), tensor.Randn(rng, 2, 3, 11, 7), tensor.Randn(rng, 2, 3, 11, 13)
	sameAgain(t, attn.Options{Score: new(score.L1)}, func(o attn.Options) { attn.Attend(nil, q, k, v, o) })
}

// After a cache has grown, recomputed weights are still the weights of the earlier step.
func TestWeightsAgainOfCache(t *testing.T) {
	for name, c := range map[string]attn.CacheConfig{
		"float32": {}, "int8": {Format: tensor.Int8}, "window": {Window: 5, Sinks: 1}, "long": {},
	} {
		rng := newRand(7)
		layer := mustMultiHead(t, attn.MultiHeadConfig{Width: 22, Heads: 6, KVHeads: 3, HeadSize: 7})
		cache, err := layer.NewCache(2, c)
		if err != nil {
			t.Fatal(err)
		}
		lens := []int{7, 1, 1, 3, 1, 9}
		if name == "long" { // beyond the end of a page
			lens = []int{509, 1, 5, 2}
		}
		steps := make([]toldCall, len(lens))
		for i, n := range lens {
			layer.Extend(nil, tensor.Randn(rng, 2, n, 22), cache, steps[i].watch(attn.Options{Mask: mask.Causal()}))
			if want := 4 * 2 * n * (6*7 + 2*3*7); steps[i].parts.RetainedBytes < want {
				t.Errorf("%s: %d bytes are held of %d positions, want at least %d", name, steps[i].parts.RetainedBytes, n, want)
			}
		}
		for i := range steps {
			steps[i].same(t)
		}
	}
}

// A head that does not exist is rejected.
func TestWeightsAgainRefused(t *testing.T) {
	rng := newRand(7)
	var p attn.Parts
	q, k, v := tensor.Randn(rng, 2, 6, 5, 7), tensor.Randn(rng, 2, 3, 11, 7), tensor.Randn(rng, 2, 3, 11, 13)
	attn.Attend(nil, q, k, v, attn.Options{Inspect: func(_ string, told attn.Parts) { p = told }})
	for _, z := range [][2]int{{2, 0}, {0, 6}, {-1, 0}, {0, -1}} {
		var wrong *tensor.ValueError
		if err := tensor.Catch(func() { p.Weights(z[0], z[1]) }); !errors.As(err, &wrong) {
			t.Errorf("head %d of sequence %d: %v", z[1], z[0], err)
		}
	}
}
