package lens

import (
	"context"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// MeasureCircuits returns the metric of the clean text for each circuit: edges in it carry what the run computes, all others
// what they carry for the corrupted text. A circuit with all edges has the metric of the clean text; one without, that of the
// corrupted text. A circuit that leaves out one edge measures the exact effect of that edge.
//
// Errors: those of Edges.
func (l *Lens) MeasureCircuits(ctx context.Context, clean, corrupted models.Batch, circuits ...*Circuit) ([]float64, error) {
	p, err := l.newPaths(ctx, clean, corrupted)
	if err != nil {
		return nil, err
	}
	metrics, t := make([]float64, len(circuits)), tape(ctx, tensor.Infer)
	for i, c := range circuits {
		if err := tensor.Catch(func() { metrics[i] = p.run(t, c) }); err != nil {
			return nil, err
		}
		t.Reset()
		if l.Progress != nil {
			l.Progress(i+1, len(circuits))
		}
	}
	return metrics, nil
}

// run returns the metric of the clean text with a circuit.
func (p *paths) run(t *tensor.Tape, c *Circuit) float64 {
	g, n := p.graph, len(p.clean.IDs[0])
	// What each source carries for the corrupted text, less what it has written in this run.
	missing := p.corrupted.Clone()
	wrote := func(source int, x *tensor.Tensor) {
		row := missing.Data()[source*n*g.width:][:n*g.width]
		for i, v := range x.Data() {
			row[i] -= v
		}
	}
	// read returns the stream x [1 L D] as some destinations of one layer read it: [N L D].
	read := func(x *tensor.Tensor, first, count int) *tensor.Tensor {
		sources := g.before(first + count - 1)
		out := tensor.Zeros(count, sources)
		for j := range count {
			for s := range g.before(first + j) {
				if !c.in[s*g.destinations()+first+j] {
					out.Data()[j*sources+s] = 1
				}
			}
		}
		delta := tensor.Reshape(nil, tensor.Mix(nil, out, missing.Rows(0, sources)), count, n, g.width)
		return tensor.Add(nil, delta, tensor.BroadcastTo(nil, x, count, n, g.width))
	}
	r := models.Run{}
	var inputs map[Part]*tensor.Tensor // of the layer that runs
	r.Blocks = func(block string) models.BlockEdits {
		_, layer := Site{Layer: block}.block()
		first := layer * g.reads()
		if layer == g.layers {
			return models.BlockEdits{Input: func(_ *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return read(x, first, 1) }}
		}
		return models.BlockEdits{
			Input: func(_ *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
				if layer == 0 {
					wrote(0, x)
				}
				norm, _, _ := g.model.BranchNorm(layer)
				h := norm.Forward(nil, read(x, first, g.reads()-1))
				parts := map[Part][]*tensor.Tensor{}
				for i := range g.reads() - 1 {
					part, _ := g.place(i)
					w, b := g.weights(layer, i)
					parts[part] = append(parts[part], tensor.Linear(nil, tensor.Slice(nil, h, 0, i, i+1), w, b))
				}
				inputs = map[Part]*tensor.Tensor{}
				for part, list := range parts {
					y := tensor.Concat(nil, 0, list...) // [H L E]
					inputs[part] = tensor.Reshape(nil, y, 1, len(list), n, -1)
				}
				return x
			},
			Read: func(_ *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return read(x, first+g.reads()-1, 1) },
			FeedForward: func(_ *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
				wrote(1+layer*(g.heads+1)+g.heads, x)
				return x
			},
		}
	}
	r.Edits = func(name string) attn.Edits {
		_, layer := Site{Layer: name}.block()
		of := func(part Part) attn.Edit {
			return func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor { return inputs[part] }
		}
		return attn.Edits{Queries: of(Query), Keys: of(Key), Values: of(Value), Outputs: func(_ *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
			for h := range g.heads {
				wrote(1+layer*(g.heads+1)+h, g.written(layer, h, tensor.Reshape(nil, tensor.Slice(nil, x, 1, h, h+1), n, -1)))
			}
			return x
		}}
	}
	return p.values(t, p.model.Hidden(t, p.clean, r), p.clean)[0]
}

// Sizes are the shares of all edges for which MIB measures circuits.
var Sizes = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1}

// Faithfulness is how much of the metric the circuits of the edges with the largest scores keep, as MIB defines it.
type Faithfulness struct {
	Shares []float64 // Sizes
	// Kept is (metric of the circuit − metric of the corrupted text)/(metric of the clean text − that of the corrupted).
	Kept []float64
	CPR  float64 // the integral of Kept over the shares: larger is better
	CMD  float64 // the integral of |1 − Kept|: smaller is better
}

// Faithfulness measures the circuits of the top edges of c.
//
// Errors: those of Edges.
//
// Source: Mueller et al., "MIB: A Mechanistic Interpretability Benchmark", 2025, https://arxiv.org/abs/2504.13151, section 3.
func (l *Lens) Faithfulness(ctx context.Context, clean, corrupted models.Batch, c *Circuit) (f Faithfulness, err error) {
	n := len(c.Edges())
	all := []*Circuit{c.Top(n), c.Top(0)}
	for _, share := range Sizes {
		all = append(all, c.Top(int(float64(n)*share)))
	}
	m, err := l.MeasureCircuits(ctx, clean, corrupted, all...)
	if err != nil {
		return f, err
	}
	f.Shares = Sizes
	for i := range Sizes {
		f.Kept = append(f.Kept, (m[2+i]-m[1])/(m[0]-m[1]))
		if i > 0 {
			width := (Sizes[i] - Sizes[i-1]) / 2
			f.CPR += float64(width * (f.Kept[i-1] + f.Kept[i]))
			f.CMD += float64(width * (math.Abs(1-f.Kept[i-1]) + math.Abs(1-f.Kept[i])))
		}
	}
	return f, nil
}
