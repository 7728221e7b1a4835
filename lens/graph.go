package lens

import (
	"errors"
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// graph is a model as nodes that add to the residual stream, its sources, and inputs that read the stream, its
// destinations: a head reads it three times, as queries, keys and values. Heads of keys and values are as many as they are.
//
//	sources       input, then for each layer its heads and its feed-forward network
//	destinations  for each layer queries, keys, values and the feed-forward network, then logits
type graph struct {
	layers, heads, shared, width int // shared are heads of keys
	parallel                     bool
	model                        *models.Model
	attention                    []*attn.MultiHead
}

// newGraph returns the graph of a model, or an error if its residual stream is not the sum of the sources.
func newGraph(m *models.Model) (*graph, error) {
	z := m.Sizes()
	g := &graph{layers: z.Layers, heads: z.Heads, shared: z.KVHeads, width: z.Width, model: m, attention: m.Attention()}
	for i := range z.Layers {
		var ok bool
		if _, g.parallel, ok = m.BranchNorm(i); !ok {
			return nil, fmt.Errorf("lens: block %d is not one that adds attention and a feed-forward network to the residual stream, each behind a norm", i)
		}
		if c := g.attention[i].Config(); c.Heads != z.Heads || c.KVHeads != z.KVHeads {
			return nil, fmt.Errorf("lens: layer %d has %d heads, and %d of keys, want %d and %d as the others", i, c.Heads, c.KVHeads, z.Heads, z.KVHeads)
		}
	}
	return g, nil
}

// HeadCircuits returns what is read from the weights of a decoder alone: the circuits of the heads of each block, for their
// Composition, and W_Eᵀ·W_U [D D] for their Copying. W_E are the embeddings of tokens, and W_U is the map to logits with the
// factors of the final norm, less the mean of all tokens, which no probability depends on.
//
// Errors: a model whose blocks do not read the residual stream behind a norm, or without such maps of tokens; one that is
// packed for inference, see models.Options.Trainable.
func HeadCircuits(m *models.Model) (blocks []*heads.Circuits, gram *tensor.Tensor, err error) {
	if err := m.WantTrainable("lens: HeadCircuits"); err != nil {
		return nil, nil, err
	}
	g, err := newGraph(m)
	if err != nil {
		return nil, nil, err
	}
	embed, unembed, ok := m.TokenMaps()
	gain, _, centred, normed := models.NormGain(m.FinalNorm())
	if !ok || !normed {
		return nil, nil, errors.New("lens: the model has no map from states to logits of tokens behind a norm, want a decoder")
	}
	for i, layer := range g.attention {
		norm, _, _ := m.BranchNorm(i)
		scale, _, less, _ := models.NormGain(norm)
		blocks = append(blocks, heads.NewCircuits(layer, scale, less))
	}
	n, d := embed.Dim(0), embed.Dim(1)
	mean := tensor.Scale(nil, tensor.SumAxis(nil, unembed, 0), 1/float32(n))
	gram = tensor.Zeros(d, d)
	for lo := 0; lo < n; lo += 4096 {
		hi := min(lo+4096, n)
		u := tensor.Sub(nil, unembed.Rows(lo, hi), tensor.BroadcastTo(nil, mean, hi-lo, d))
		gram = tensor.Add(nil, gram, tensor.MatMul(nil, tensor.Transpose(nil, embed.Rows(lo, hi), 1, 0), u))
	}
	gram = tensor.Mul(nil, gram, gain)
	if centred {
		gram = tensor.Sub(nil, gram, tensor.Scale(nil, tensor.Reshape(nil, tensor.SumAxis(nil, gram, 1), d, 1), 1/float32(d)))
	}
	return blocks, gram, nil
}

// sources and destinations return their numbers.
func (g *graph) sources() int      { return 1 + g.layers*(g.heads+1) }
func (g *graph) destinations() int { return g.layers*g.reads() + 1 }

// reads returns how often a block reads the stream.
func (g *graph) reads() int { return g.heads + 2*g.shared + 1 }

// before returns how many sources a destination reads: those that come before it.
func (g *graph) before(destination int) int {
	layer, read := destination/g.reads(), destination%g.reads()
	n := 1 + layer*(g.heads+1)
	if read == g.reads()-1 && layer < g.layers && !g.parallel {
		n += g.heads
	}
	return n
}

// source returns the name of a source: "input", "a5.h3" or "m5".
func (g *graph) source(i int) string {
	layer, head := (i-1)/(g.heads+1), (i-1)%(g.heads+1)
	switch {
	case i == 0:
		return "input"
	case head == g.heads:
		return fmt.Sprintf("m%d", layer)
	}
	return fmt.Sprintf("a%d.h%d", layer, head)
}

// destination returns the name of a destination: "a5.h3<q>", "m5" or "logits".
func (g *graph) destination(i int) string {
	layer, read := i/g.reads(), i%g.reads()
	switch {
	case layer == g.layers:
		return "logits"
	case read == g.reads()-1:
		return fmt.Sprintf("m%d", layer)
	case read < g.heads:
		return fmt.Sprintf("a%d.h%d<q>", layer, read)
	case read < g.heads+g.shared:
		return fmt.Sprintf("a%d.h%d<k>", layer, read-g.heads)
	}
	return fmt.Sprintf("a%d.h%d<v>", layer, read-g.heads-g.shared)
}

// block returns the name of a block.
func (g *graph) block(i int) string {
	if g.model.Sizes().Causal {
		return fmt.Sprintf("decoder.%d", i)
	}
	return fmt.Sprintf("encoder.%d", i)
}

// written returns what a head has added to the residual stream [B L D], of its outputs [B L V].
func (g *graph) written(layer, head int, x *tensor.Tensor) *tensor.Tensor {
	w := g.attention[layer].Out.Weight // [D H·V]
	n := w.Dim(1) / g.heads
	return tensor.Linear(nil, x, tensor.Slice(nil, w, 1, head*n, (head+1)*n), nil)
}

// contributions returns what the sources have added to the residual stream: [sources L D]. It returns an error if the
// stream is not their sum.
func (g *graph) contributions(r *Record) (*tensor.Tensor, error) {
	first := r.values[g.block(0)][Residual]
	y, at := tensor.Zeros(g.sources(), first.Len()/g.width, g.width), 0
	add := func(x *tensor.Tensor) { at += copy(y.Data()[at:], x.Data()) }
	add(first)
	for i, layer := range g.attention {
		z := r.values[layer.Config().Name][Head]
		for h := range g.heads {
			add(g.written(i, h, tensor.Index(nil, z, h)))
		}
		add(r.values[g.block(i)][FeedForward])
	}
	sum := tensor.SumAxis(nil, y, 0)
	for _, layer := range g.attention {
		if b := layer.Out.Bias; b != nil {
			sum = tensor.Add(nil, sum, tensor.BroadcastTo(nil, b, sum.Shape()...))
		}
	}
	last := r.values[g.block(g.layers)][Residual]
	difference, size := tensor.Sub(nil, sum, last), tensor.Square(nil, last)
	if d := tensor.Sum(nil, tensor.Square(nil, difference)).Item(); !(d <= 1e-6*tensor.Sum(nil, size).Item()) {
		return nil, fmt.Errorf("lens: the residual stream is not the sum of what heads and feed-forward networks return, want a model without factors or norms behind them")
	}
	return y, nil
}

// place returns which of the parts Query, Key and Value a head reads the stream for, and its number there.
func (g *graph) place(read int) (p Part, head int) {
	switch {
	case read >= g.heads+g.shared:
		return Value, read - g.heads - g.shared
	case read >= g.heads:
		return Key, read - g.heads
	}
	return Query, read
}

// maps returns the map of a layer to a part, and its number of heads.
func (g *graph) maps(layer int, p Part) (of *nn.Linear, n int) {
	m := g.attention[layer]
	switch p {
	case Key:
		return m.K, g.shared
	case Value:
		return m.V, g.shared
	}
	return m.Q, g.heads
}

// weights returns the weights [N D] and the bias [N], or nil, with which a head reads the norm of the stream.
func (g *graph) weights(layer, read int) (w, b *tensor.Tensor) {
	p, i := g.place(read)
	of, n := g.maps(layer, p)
	size := of.Weight.Dim(0) / n
	if of.Bias != nil {
		b = of.Bias.Rows(i*size, (i+1)*size)
	}
	return of.Weight.Rows(i*size, (i+1)*size), b
}
