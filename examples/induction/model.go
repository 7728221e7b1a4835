// Package induction has the model of lesson 9: two layers of attention and nothing else, which learn to continue sequences
// that repeat, and edits that show which of its heads do that.
package induction

import (
	"iter"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/tensor"
)

// Tokens are numbered from 0, and every sequence has Length of them. A new Model has Layers layers of Heads heads.
const (
	Tokens, Length = 24, 24
	Layers, Heads  = 2, 4
	width          = 48
)

// Draw returns n sequences [n Length]. Each repeats a number of tokens that differ from each other: period, or, if that is
// 0, a random number from 4 to 14. So no distance is the same in all sequences.
func Draw(rng *rand.Rand, n, period int) (ids []int) {
	for range n {
		p := period
		if p == 0 {
			p = 4 + rng.IntN(11)
		}
		tokens := rng.Perm(Tokens)
		for i := range Length {
			ids = append(ids, tokens[i%p])
		}
	}
	return ids
}

// Model predicts the next token.
type Model struct {
	Token, Position *nn.Embedding
	Layers          [Layers]*attn.MultiHead
	Out             *nn.Linear
}

// New returns a model with random parameters.
func New(seed uint64) *Model {
	rng := rand.New(rand.NewPCG(seed, 1))
	m := &Model{Token: nn.NewEmbedding(Tokens, width, 1, rng), Position: nn.NewEmbedding(Length, width, 1, rng), Out: nn.NewLinear(width, Tokens, false, rng)}
	for i := range m.Layers {
		m.Layers[i], _ = attn.NewMultiHead(attn.MultiHeadConfig{Width: width, Heads: Heads}, rng) // the sizes are valid
	}
	return m
}

// Params returns the parameters.
func (m *Model) Params() nn.Params {
	return nn.Join(append(nn.Numbered("layer", m.Layers[:]), nn.Named{Name: "token", Module: m.Token},
		nn.Named{Name: "position", Module: m.Position}, nn.Named{Name: "out", Module: m.Out})...)
}

// Keep returns a copy of the model with some heads of each layer, which are in ascending order.
func (m *Model) Keep(heads [Layers][]int) (small *Model, err error) {
	copied := func(x *tensor.Tensor) *tensor.Tensor { return x.Clone().Param() }
	small = &Model{Token: &nn.Embedding{Weight: copied(m.Token.Weight)}, Position: &nn.Embedding{Weight: copied(m.Position.Weight)}, Out: &nn.Linear{Weight: copied(m.Out.Weight)}}
	for i, layer := range m.Layers {
		if small.Layers[i], err = layer.Keep(heads[i]); err != nil {
			return nil, err
		}
	}
	return small, nil
}

// Edits replace the outputs of the heads of each layer; nil leaves them.
type Edits [Layers]attn.Edit

// Run is what a model computes for n sequences.
type Run struct {
	Logits           *tensor.Tensor         // [n Length Tokens], of the next token
	Weights, Outputs [Layers]*tensor.Tensor // of the heads: [n H Length Length], without a tape, and [n H Length V]
}

// Run runs the model on sequences ids [n Length].
func (m *Model) Run(t *tensor.Tape, ids []int, edits Edits) (r Run) {
	x := m.Token.Forward(t, ids, len(ids)/Length, Length) // [B L D]
	positions := tensor.BroadcastTo(t, m.Position.Weight, x.Shape()...)
	for i, layer := range m.Layers {
		o := attn.Options{Mask: mask.Causal(), Weights: t == nil}
		o.Edits.Outputs = func(t *tensor.Tape, heads *tensor.Tensor) *tensor.Tensor { // [B H L V]
			r.Outputs[i] = heads
			if edits[i] != nil {
				return edits[i](t, heads)
			}
			return heads
		}
		placed := tensor.Add(t, x, positions) // for queries and keys, not for values
		y := layer.Forward(t, placed, placed, x, o)
		x, r.Weights[i] = tensor.Add(t, x, y.Out), y.Weights
	}
	r.Logits = m.Out.Forward(t, x)
	return r
}

// Site is a head at one position, or at all if Position is −1.
type Site struct {
	Layer    int `json:"layer"`
	Head     int `json:"head"`
	Position int `json:"position"`
}

// Put returns edits that put the outputs of another run in place of those of some heads, or zeros if other is nil.
func Put(other *Run, sites ...Site) (edits Edits) {
	for i := range edits {
		edits[i] = func(t *tensor.Tape, heads *tensor.Tensor) *tensor.Tensor { // [B H L V]
			value, at := tensor.Zeros(heads.Shape()...), tensor.Zeros(1, heads.Dim(1), heads.Dim(2), 1)
			if other != nil {
				value = other.Outputs[i]
			}
			for _, s := range sites {
				for p := range Length {
					if s.Layer == i && (s.Position == p || s.Position == -1) {
						at.Data()[s.Head*Length+p] = 1
					}
				}
			}
			change := tensor.Mul(t, tensor.BroadcastTo(t, at, heads.Shape()...), tensor.Sub(t, value, heads))
			return tensor.Add(t, heads, change) // value where at is 1
		}
	}
	return edits
}

// Losses returns the mean loss in nats of predicting each token from the second on, [Length−1].
func (m *Model) Losses(ids []int, edits Edits) []float32 {
	means, n := make([]float32, Length-1), len(ids)/Length
	p := tensor.LogSoftmax(nil, m.Run(nil, ids, edits).Logits).Data()
	for s := range n {
		for i := range means {
			means[i] -= p[(s*Length+i)*Tokens+ids[s*Length+i+1]] / float32(n)
		}
	}
	return means
}

// Train trains the model, 32 sequences a step, and yields after each step.
func (m *Model) Train(steps int, seed uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		rng, optimizer, rate, tape := rand.New(rand.NewPCG(seed, 2)), optim.NewAdamW(m), optim.WarmupCosine(steps/10, steps), tensor.NewTape(tensor.Train)
		for step := 1; step <= steps; step++ {
			ids := Draw(rng, 32, 0)
			next := append(ids[1:len(ids):len(ids)], -1)
			for i := Length - 1; i < len(next); i += Length {
				next[i] = -1 // the last token of a sequence has none
			}
			tape.Reset()
			optim.ZeroGrad(m)
			tape.Backward(nn.CrossEntropy(tape, m.Run(tape, ids, Edits{}).Logits, next, -1, 0), nil)
			optim.ClipGradNorm(m, 1)
			optimizer.Step(0.01 * rate(step))
			if !yield(step) {
				return
			}
		}
	}
}
