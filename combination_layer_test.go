package attn_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// A layer with any configuration computes its formula, written as operations on tensors: out,
// weights, log-sum-exp and the gradients of inputs, parameters and options.
func TestLayerCombinations(t *testing.T) {
	for seed := range seeds(4) {
		if c := drawLayerCombination(t, uint64(seed)); !c.try(t) {
			t.Fatalf("combination %d: %s", seed, c.name)
		}
	}
}

func FuzzLayerCombinations(f *testing.F) {
	f.Add(uint64(1) << 40)
	f.Fuzz(func(t *testing.T, seed uint64) {
		if c := drawLayerCombination(t, seed); !c.try(t) {
			t.Errorf("combination %d: %s", seed, c.name)
		}
	})
}

// layerCombination is a random layer with random inputs and options.
type layerCombination struct {
	name    string
	m       *attn.MultiHead
	s       sizes
	q, k, v *tensor.Tensor // [B L D]; some may be the same tensor
	dout, dweights, dlse,
	queryPositions, keyPositions *tensor.Tensor // positions [B L] as numbers; nil for the defaults
	keyLens []int
	apart   bool // with Project and Query
	options drawnOptions
	backend
}

func drawLayerCombination(t *testing.T, seed uint64) *layerCombination {
	rng := rand.New(rand.NewPCG(seed, 83))
	some := func(p float64) bool { return rng.Float64() < p }
	c := &layerCombination{backend: drawBackend(rng)}
	config := attn.MultiHeadConfig{
		Width: 7 + rng.IntN(17), KVHeads: 1 + rng.IntN(3), HeadSize: 4 + 2*rng.IntN(5), ValueSize: 1 + rng.IntN(9),
		OutWidth: 1 + rng.IntN(11), Bias: attn.Projections(rng.IntN(16)), Layout: attn.Layout(rng.IntN(2)),
		Sinks: some(0.2), BiasKV: some(0.25), ZeroKV: some(0.25),
	}
	config.Heads = config.KVHeads * (1 + rng.IntN(3))
	c.s = sizes{b: 1 + rng.IntN(3), h: config.Heads, g: config.KVHeads, lq: 1 + rng.IntN(17), lk: rng.IntN(23), v: config.ValueSize}
	switch rng.IntN(8) {
	case 0: // slightly more than a block of keys
		c.s.lk, c.s.lq = 510+rng.IntN(20), 1+rng.IntN(5)
	case 1: // more than a band of queries
		c.s.lq = 90 + rng.IntN(40)
	}
	kind := drawKind(rng)
	e := config.HeadSize
	if config.Score = kind.New(score.Sizes{Query: e, Key: e, Hidden: 1 + rng.IntN(9)}, newRand(seed)); kind.Name == "scaled" {
		config.Score = nil
	}
	// A large eps prevents small vectors from amplifying rounding errors.
	rms, layer := nn.NewRMSNorm(e), nn.NewLayerNorm(e)
	rms.Eps, layer.Eps = 0.1, 0.1
	norms := []nn.Norm{nil, nil, rms, layer, nn.L2Norm{Eps: 0.3}}
	config.QueryNorm, config.KeyNorm = norms[rng.IntN(5)], norms[rng.IntN(5)]
	if some(0.2) { // with factors for all heads
		config.NormProjections = true
		config.QueryNorm, config.KeyNorm = nn.NewRMSNorm(e*config.Heads), nn.L2Norm{Eps: 0.3}
	}
	if some(0.4) {
		rope, err := position.NewRoPE(position.RoPEConfig{Size: 2 * rng.IntN(e/2+1), Pairs: position.Pairing(rng.IntN(2))})
		if err != nil {
			t.Fatal(err)
		}
		config.Position = rope
	} else if some(0.2) {
		config.Position = decay{0.99}
	}

	if rng := newRand(seed); rng.IntN(5) < 2 { // drawn apart, so that the rest of a combination keeps its number
		gates := []func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor{tensor.Sigmoid, tensor.Softplus, tensor.Tanh}
		config.OutputGate = attn.OutputGate{Activation: gates[rng.IntN(3)], Size: []int{0, 1, config.ValueSize}[rng.IntN(3)]}
		config.Bias |= attn.Projections(rng.IntN(2)) * attn.Gate
	}

	if rng := newRand(seed + 1); rng.IntN(3) == 0 { // drawn apart
		norm := nn.NewRMSNorm(config.ValueSize)
		norm.Eps = 0.1
		if config.ValueNorm = norm; config.NormProjections || rng.IntN(2) == 0 {
			config.ValueNorm = nn.L2Norm{Eps: 0.3}
		}
	}

	length := func(l, width int) *tensor.Tensor { return tensor.Randn(rng, c.s.b, l, width) }
	kindOfInput := rng.IntN(3)
	switch kindOfInput {
	case 0: // self-attention
		c.s.lq = min(c.s.lq, max(c.s.lk, 1))
		c.s.lk = c.s.lq
		c.q = length(c.s.lq, config.Width)
		c.k, c.v = c.q, c.q
	case 1: // the same tensor for keys and values
		config.KeyWidth = 7 + rng.IntN(17)
		config.ValueWidth = config.KeyWidth
		c.q, c.k = length(c.s.lq, config.Width), length(c.s.lk, config.KeyWidth)
		c.v = c.k
	default:
		config.KeyWidth, config.ValueWidth = 7+rng.IntN(17), 1+rng.IntN(23)
		c.q, c.k, c.v = length(c.s.lq, config.Width), length(c.s.lk, config.KeyWidth), length(c.s.lk, config.ValueWidth)
	}
	c.m = mustMultiHead(t, config)
	if c.m.Sinks != nil {
		copy(c.m.Sinks.Data(), tensor.Randn(rng, config.Heads).Data())
	}

	c.options = drawOptions(rng, c.s, e, e)
	if some(0.2) {
		c.keyLens = drawLengths(rng, c.s.b, c.s.lk)
	}
	if c.apart = some(0.3); !c.apart && config.Position != nil && some(0.5) {
		c.queryPositions, c.keyPositions = tensor.Zeros(c.s.b, c.s.lq), tensor.Zeros(c.s.b, c.s.lk)
		for _, x := range []*tensor.Tensor{c.queryPositions, c.keyPositions} {
			for i := range x.Data() {
				x.Data()[i] = float32(rng.IntN(99) - 9)
			}
		}
	}
	c.dout = tensor.Randn(rng, c.s.b, c.s.lq, config.OutWidth)
	c.dweights = tensor.Randn(rng, c.s.b, c.s.h, c.s.lq, c.s.lk)
	c.dlse = tensor.Randn(rng, c.s.b, c.s.h, c.s.lq)
	c.name = fmt.Sprintf("%+v, %+v, %s, input %d, %v, key lengths %v, apart %v, %v", config, c.s, kind.Name, kindOfInput, c.options.words, c.keyLens, c.apart, c.backend)
	return c
}

// run calls forward on the leaves and returns its results and the gradients of the leaves.
// forward takes and returns tensors whose first axis is the batch.
func (c *layerCombination) run(forward func(t *tensor.Tape, q, k, v *tensor.Tensor, o attn.Options) attn.Output) trace {
	tape := tensortest.Tape(tensor.Train)
	tr := trace(paramsOf(c.m))
	of := map[*tensor.Tensor]*tensor.Tensor{} // clones of one tensor remain one tensor
	leaf := func(name string, x *tensor.Tensor) *tensor.Tensor {
		if of[x] == nil {
			of[x] = x.Clone().Param()
			tr["d"+name] = of[x]
		}
		return of[x]
	}
	q, k, v := leaf("q", c.q), leaf("k", c.k), leaf("v", c.v)
	o := c.options.options(leaf)
	o.KeyLens = c.keyLens
	y := forward(tape, q, k, v, o)
	outs, douts := []*tensor.Tensor{y.Out}, []*tensor.Tensor{c.dout}
	if o.Weights {
		outs, douts = append(outs, y.Weights), append(douts, c.dweights)
	}
	if o.LogSumExp {
		outs, douts = append(outs, y.LogSumExp), append(douts, c.dlse)
	}
	tape.BackwardAll(outs, douts)
	got := leave(y, tr)
	if o.LogSumExp {
		got["log-sum-exp"] = y.LogSumExp.Clone()
	}
	return got
}

// layer calls the layer.
func (c *layerCombination) layer(t *tensor.Tape, q, k, v *tensor.Tensor, o attn.Options) attn.Output {
	swapped := map[*tensor.Tensor]*tensor.Tensor{}
	swap := func(x *tensor.Tensor) *tensor.Tensor {
		if c.m.Config().Layout == attn.BatchFirst {
			return x
		}
		if swapped[x] == nil {
			swapped[x] = tensor.Transpose(t, x, 1, 0, 2)
		}
		return swapped[x]
	}
	if c.keyPositions != nil {
		o.QueryPositions, o.KeyPositions = ids(c.queryPositions), ids(c.keyPositions)
	}
	rows := new(observe.ChosenWeights)
	o.Observers = append(o.Observers, rows)
	var y attn.Output
	if c.apart {
		y = c.m.Query(t, swap(q), c.m.Project(t, swap(k), swap(v)), o)
	} else {
		y = c.m.Forward(t, swap(q), swap(k), swap(v), o)
	}
	y.Out = swap(y.Out)
	if y.Weights != nil {
		told := rows.Weights().Data()
		for i, w := range y.Weights.Data() {
			if r := told[i]; r != w {
				panic(fmt.Sprintf("%s: an observer was told of weight %v, the result is %v", c.name, r, w))
			}
		}
	}
	return y
}

// ids returns the numbers of x as positions.
func ids(x *tensor.Tensor) attn.Positions {
	rows := make([][]int, x.Dim(0))
	for i, p := range x.Data() {
		rows[i/x.Dim(1)] = append(rows[i/x.Dim(1)], int(p))
	}
	return attn.Positions{IDs: rows}
}

// formula computes the layer with operations on tensors.
func (c *layerCombination) formula(t *tensor.Tape, q, k, v *tensor.Tensor, o attn.Options) attn.Output {
	m, config := c.m, c.m.Config()
	h, g, e, ev := config.Heads, config.KVHeads, config.HeadSize, config.ValueSize
	split := func(x *tensor.Tensor, count, size int) *tensor.Tensor {
		return tensor.Transpose(t, tensor.Reshape(t, x, x.Dim(0), x.Dim(1), count, size), 0, 2, 1, 3)
	}
	var gates *tensor.Tensor
	if m.Gate != nil {
		gates = split(config.OutputGate.Activation(t, m.Gate.Forward(t, q)), h, config.OutputGate.Size)
	}
	q, k, v = m.Q.Forward(t, q), m.K.Forward(t, k), m.V.Forward(t, v)
	norm := func(n nn.Norm, x *tensor.Tensor, whole bool) *tensor.Tensor {
		if n == nil || whole != config.NormProjections {
			return x
		}
		return n.Forward(t, x)
	}
	q, k = split(norm(config.QueryNorm, q, true), h, e), split(norm(config.KeyNorm, k, true), g, e)
	v = split(norm(config.ValueNorm, v, true), g, ev)
	q, k, v = norm(config.QueryNorm, q, false), norm(config.KeyNorm, k, false), norm(config.ValueNorm, v, false)
	if p := config.Position; p != nil {
		q = moved(t, p, q, attn.Query, func(b, l int) int {
			if c.queryPositions != nil {
				return int(c.queryPositions.At(b, l))
			}
			if c.keyLens != nil {
				return l + c.keyLens[b] - c.s.lq
			}
			return l + c.s.lk - c.s.lq
		})
		k = moved(t, p, k, attn.Key, func(b, l int) int {
			if c.keyPositions != nil {
				return int(c.keyPositions.At(b, l))
			}
			return l
		})
	}
	if o.Sinks == nil {
		o.Sinks = m.Sinks
	}
	o.Score = config.Score
	var y attn.Output
	if config.BiasKV || config.ZeroKV {
		y = c.withExtraKeys(t, q, k, v, o)
	} else {
		y = formula(t, q, k, v, o)
	}
	if gates != nil {
		y.Out = tensor.Mul(t, y.Out, gates)
	}
	joined := tensor.Reshape(t, tensor.Transpose(t, y.Out, 0, 2, 1, 3), c.s.b, c.s.lq, h*ev)
	y.Out = m.Out.Forward(t, joined)
	return y
}

// moved returns vectors [B H L E] moved to positions at. Each vector is multiplied by the matrix
// of the position embedding at its position.
func moved(t *tensor.Tape, p attn.Position, x *tensor.Tensor, of attn.Projections, at func(b, l int) int) *tensor.Tensor {
	b, h, l, e := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	matrices := tensor.Zeros(b, l, e, e)
	for row := range b * l * e {
		m := matrices.Data()[row*e:][:e]
		m[row%e] = 1
		p.Apply(m, m, at(row/e/l, row/e%l), of)
	}
	x = tensor.MatMul(t, tensor.Transpose(t, x, 0, 2, 1, 3), matrices) // [B L H E]
	return tensor.Transpose(t, tensor.Reshape(t, x, b, l, h, e), 0, 2, 1, 3)
}

// withExtraKeys attends to the keys of BiasKV and ZeroKV, which come first, and to the other keys
// with the given options.
func (c *layerCombination) withExtraKeys(t *tensor.Tape, q, k, v *tensor.Tensor, o attn.Options) attn.Output {
	config := c.m.Config()
	b, h, g, lq := c.s.b, config.Heads, config.KVHeads, c.s.lq
	inFront := func(row *tensor.Tensor, size int) (parts []*tensor.Tensor) {
		if config.BiasKV {
			parts = append(parts, tensor.BroadcastTo(t, tensor.Reshape(t, row, 1, g, 1, size), b, g, 1, size))
		}
		if config.ZeroKV {
			parts = append(parts, tensor.Zeros(b, g, 1, size))
		}
		return parts
	}
	extraKeys := tensor.Concat(t, 2, inFront(c.m.BiasK, config.HeadSize)...)
	v = tensor.Concat(t, 2, append(inFront(c.m.BiasV, config.ValueSize), v)...)
	n := extraKeys.Dim(2)

	s := tensor.Concat(t, 3, formulaScores(t, q, extraKeys, attn.Options{Score: o.Score, SoftCap: o.SoftCap}), formulaScores(t, q, k, o))
	sinks := 0
	if o.Sinks != nil {
		sinks = 1
		s = tensor.Concat(t, 3, tensor.BroadcastTo(t, tensor.Reshape(t, o.Sinks, 1, h, 1, 1), b, h, lq, 1), s)
	}
	w := tensor.Softmax(t, s)
	y := attn.Output{LogSumExp: tensor.LogSumExp(t, s)}
	w = tensor.Slice(t, w, 3, sinks, w.Dim(3))
	if o.Weights {
		y.Weights = tensor.Slice(t, w, 3, n, w.Dim(3))
	}
	lk := w.Dim(3)
	v = tensor.Reshape(t, tensor.BroadcastTo(t, tensor.Reshape(t, v, b, g, 1, lk, c.s.v), b, g, h/g, lk, c.s.v), b, h, lk, c.s.v)
	y.Out = tensor.Mix(t, tensor.Dropout(t, w, o.Dropout), v)
	if o.Gates != nil {
		y.Out = tensor.Mul(t, y.Out, tensor.BroadcastTo(t, tensor.Reshape(t, o.Gates, b, h, 1, 1), y.Out.Shape()...))
	}
	return y
}

// try reports whether the layer equals its formula.
func (c *layerCombination) try(t *testing.T) bool {
	var fast trace
	c.backend.run(func() { fast = c.run(c.layer) })
	agree(t, fast, c.run(c.formula))
	return !t.Failed()
}
