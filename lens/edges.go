package lens

import (
	"context"
	"errors"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// Edges scores every edge of a model, from what a head or a feed-forward network has written to what another reads, as
// queries, keys or values: to first order, by how much the metric of the clean text would change if the edge had what it
// carries for the corrupted text.
//
//	score(u → v) = Σ (u of corrupted − u of clean)·(mean over steps of ∂metric/∂(input of v))
//
// With steps = 0 the gradient is that of the clean text (edge attribution patching). With steps > 0 it is the mean over
// embeddings from the corrupted text to the clean one, corrupted + k/steps·(clean − corrupted) for k = 0 … steps − 1, which
// saturated softmaxes mislead less (EAP-IG).
//
// The model is a decoder or an encoder whose blocks read the residual stream behind a norm. Heads of grouped keys and values
// are as many as they are; their edges are the sums of those of repeated heads.
//
// Errors: those of Record; texts of different lengths; another kind of block; a model that is packed for inference, see
// models.Options.Trainable.
//
// Source: Syed et al., "Attribution Patching Outperforms Automated Circuit Discovery", 2023,
// https://arxiv.org/abs/2310.10348; Hanna et al., "Have Faith in Faithfulness", 2024, https://arxiv.org/abs/2403.17806.
func (l *Lens) Edges(ctx context.Context, clean, corrupted models.Batch, steps int) (*Circuit, error) {
	p, err := l.newPaths(ctx, clean, corrupted)
	if err != nil {
		return nil, err
	}
	g, n := p.graph, len(clean.IDs[0])
	p.corrupted = nil // only circuits need it
	t, slopes := tape(ctx, tensor.Eval), make([]float32, g.destinations()*n*g.width)
	wanted := map[Part]bool{Query: true, Key: true, Value: true, Residual: true}
	all := max(1, steps)
	for done := 0; done < all; {
		const both = 3                                 // values, gradients and what a layer keeps for them, in units of most
		some := min(l.most(both*n*g.layers), all-done) // a pass for several steps reads each weight once
		var begin attn.Edit
		if steps > 0 {
			at := make([]*tensor.Tensor, some)
			for k := range at {
				share := float32(done+k) / float32(steps)
				at[k] = tensor.Add(nil, tensor.Scale(nil, p.first[0], share), tensor.Scale(nil, p.first[1], 1-share))
			}
			begin = func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor {
				return tensor.Reshape(nil, tensor.Concat(nil, 0, at...), some, n, g.width)
			}
		}
		if err := tensor.Catch(func() { p.addSlopes(t, slopes, l.backward(t, repeated(clean, some, 0), wanted, begin)) }); err != nil {
			return nil, err
		}
		t.Reset()
		if done += some; l.Progress != nil {
			l.Progress(done, all)
		}
	}
	return g.circuit(p.differences, tensor.New(slopes, g.destinations(), n*g.width), 1/float32(all)), nil
}

// paths are a model as a graph, with two texts.
type paths struct {
	*Lens
	graph       *graph
	clean       models.Batch
	first       [2]*tensor.Tensor // embeddings of clean and corrupted: [L D]
	corrupted   *tensor.Tensor    // contributions to the corrupted text: [sources L·D]
	differences *tensor.Tensor    // corrupted − clean: [sources L·D]
}

func (l *Lens) newPaths(ctx context.Context, clean, corrupted models.Batch) (*paths, error) {
	if err := l.model.WantTrainable("lens: Edges"); err != nil {
		return nil, err
	}
	g, err := newGraph(l.model)
	if err != nil {
		return nil, err
	}
	if len(clean.IDs) == 1 && len(corrupted.IDs) == 1 && len(clean.IDs[0]) != len(corrupted.IDs[0]) {
		return nil, errors.New("lens: edges: the texts differ in their number of tokens, want equal lengths")
	}
	p := &paths{Lens: l, graph: g, clean: clean}
	var sums [2]*tensor.Tensor
	for i, x := range []models.Batch{clean, corrupted} {
		r, err := l.Record(ctx, x, Head, FeedForward, Residual)
		if err != nil {
			return nil, err
		}
		p.first[i] = r.values[g.block(0)][Residual]
		y, err := g.contributions(r)
		if err != nil {
			return nil, err
		}
		sums[i] = tensor.Reshape(nil, y, g.sources(), -1)
	}
	p.corrupted, p.differences = sums[1], tensor.Sub(nil, sums[1], sums[0])
	return p, nil
}

// addSlopes adds the gradients of the inputs of all destinations, [destinations L D], for each copy of the text.
func (p *paths) addSlopes(t *tensor.Tape, to []float32, g *gradients) {
	gr := p.graph
	n := len(p.clean.IDs[0]) * gr.width
	add := func(destination int, x []float32, factor float32) {
		simd.Axpy(factor, x, to[destination*n:][:n])
	}
	stream := func(block int) *tensor.Tensor { return g.values[gr.block(block)][Residual] }
	read := func(own *tensor.Tape, layer, k int) {
		x := tensor.New(stream(layer).Data()[k*n:][:n], len(p.clean.IDs[0]), gr.width).Param()
		own.Only(x)
		norm, _, _ := gr.model.BranchNorm(layer)
		first, last := layer*gr.reads(), layer*gr.reads()+gr.reads()-1
		// What the feed-forward network reads has the rest of the gradient of what the block reads.
		add(last, stream(layer).Grad().Data()[k*n:][:n], 1)
		add(last, stream(layer + 1).Grad().Data()[k*n:][:n], -1)
		for read := range gr.reads() - 1 {
			part, head := gr.place(read)
			w, _ := gr.weights(layer, read)
			slope := g.values[gr.attention[layer].Config().Name][part].Grad()
			x.ZeroGrad()
			own.Backward(norm.Forward(own, x), tensor.MatMul(own, tensor.Index(nil, slope, k, head), w))
			add(first+read, x.Grad().Data(), 1)
			add(last, x.Grad().Data(), -1)
			own.Reset() // one head after another needs no more memory than the processor's cache has
		}
	}
	copies := stream(0).Dim(0)
	par.For(gr.layers, 1, func(lo, hi int) {
		own := tape(t.Context(), tensor.Eval)
		for layer := lo; layer < hi; layer++ {
			for k := range copies {
				read(own, layer, k)
			}
		}
	})
	for k := range copies {
		add(gr.destinations()-1, stream(gr.layers).Grad().Data()[k*n:][:n], 1)
	}
}
