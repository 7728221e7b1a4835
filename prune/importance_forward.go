package prune

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/attn-go/attn/internal/exact"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// leaveOneOut measures by LeaveOneOut, one head after another. If the subject keeps what a layer reads, passes without gates
// are repeated for each layer, and those with gates begin there.
func (r *ranking) leaveOneOut(ctx context.Context) error {
	tape := tensor.NewTape(tensor.Infer)
	kept, whole, terms := make([]Kept, len(r.batches)), make([][]float64, len(r.batches)), 0
	for _, l := range r.layers {
		for i := range r.batches {
			if again := whole[i] != nil; l.Heads == 0 || again && kept[i].Input == nil {
				kept[i].Layer = l.Name
				continue
			} else if again {
				r.all++
			}
			kept[i] = Kept{Layer: l.Name}
			losses, n, err := r.losses(ctx, tape, i, &kept[i], nil)
			if err != nil {
				return err
			}
			if whole[i] == nil {
				whole[i], terms = losses, terms+n
			}
		}
		for h := range l.Heads {
			if terms <= 0 {
				return errNoTerms
			}
			gates, more := tensor.Full(1, l.Heads), exact.Sum{}
			gates.Data()[h] = 0
			for i := range r.batches {
				without, _, err := r.losses(ctx, tape, i, &kept[i], gates)
				if err != nil {
					return err
				}
				for j, loss := range without {
					more.Add(loss - whole[i][j])
				}
			}
			r.divide(LeaveOneOut, l.Name, h, &more, terms)
		}
	}
	return nil
}

// losses returns the losses of a batch and the number of their terms, with gates in one layer. There is one loss for each
// example, or one for the batch if Outcome.Losses is nil.
func (r *ranking) losses(ctx context.Context, t *tensor.Tape, batch int, kept *Kept, gates *tensor.Tensor) (losses []float64, terms int, err error) {
	start, asked := time.Now(), map[string]bool{}
	out, err := r.batch(ctx, t, batch, Pass{Kept: kept, Gates: func(layer string) *tensor.Tensor {
		asked[layer] = true
		if layer != kept.Layer {
			return nil
		}
		return gates
	}})
	if err != nil {
		return nil, 0, err
	}
	if out.Losses == nil {
		losses = []float64{float64(out.Loss.Item())}
	} else if err := par.Stopped(func() { losses = out.Losses() }); err != nil {
		return nil, 0, err
	}
	r.ran(start, 1, LeaveOneOut)
	if gates != nil { // which may begin at the layer
		asked = map[string]bool{kept.Layer: asked[kept.Layer]}
		for _, l := range r.layers {
			asked[l.Name] = asked[l.Name] || l.Name != kept.Layer
		}
	}
	return losses, out.Terms, r.wantAll(asked, "was run without its gates")
}

// confidence measures by Confidence.
func (r *ranking) confidence(ctx context.Context) error {
	means, signed := map[string][]exactMean{}, map[string]bool{}
	for _, l := range r.layers {
		means[l.Name], signed[l.Name] = make([]exactMean, l.Heads), l.Signed
	}
	tape, told := tensor.NewTape(tensor.Infer), map[string]bool{}
	for i := range r.batches {
		start := time.Now()
		seen := map[string][]peaks{} // the numbers of queries without padding are known only after the run
		out, err := r.batch(ctx, tape, i, Pass{
			Gates:   func(string) *tensor.Tensor { return nil },
			Observe: func(layer string, w *tensor.Tensor) { seen[layer] = append(seen[layer], peaksOf(w, signed[layer])) },
		})
		if err != nil {
			return err
		}
		for layer, parts := range seen {
			if means[layer] == nil {
				continue // not a layer of the subject; gates ignore it too
			}
			told[layer] = true
			var queries []int
			if out.Queries != nil {
				queries = out.Queries(layer)
			}
			first := 0
			for _, p := range parts {
				p.addTo(means[layer], first, queries)
				first += p.rows
			}
		}
		r.ran(start, 1, Confidence)
	}
	if err := r.wantAll(told, "was run without an observer"); err != nil {
		return err
	}
	for name, heads := range means {
		for h := range heads {
			r.divide(Confidence, name, h, &heads[h].sum, heads[h].n)
		}
	}
	return nil
}

// exactMean accumulates the mean of n numbers.
type exactMean struct {
	sum exact.Sum
	n   int
}

// peaks has the largest weight of each row of a layer, or of some of its rows if the layer runs step by
// step.
type peaks struct {
	heads, rows int
	largest     []float32 // [B heads rows]
}

// peaksOf returns the peaks of weights, or, if these are signed, of their shares |w|/Σ|w| of a row.
func peaksOf(w *tensor.Tensor, signed bool) peaks {
	p := peaks{heads: w.Dim(1), rows: w.Dim(2), largest: make([]float32, w.Dim(0)*w.Dim(1)*w.Dim(2))}
	if lk := w.Dim(3); lk > 0 {
		for i := range p.largest {
			row, sum, most := w.Data()[i*lk:(i+1)*lk], 0., 0.
			if p.largest[i] = slices.Max(row); !signed {
				continue
			}
			for _, x := range row {
				sum, most = sum+math.Abs(float64(x)), max(most, math.Abs(float64(x)))
			}
			if p.largest[i] = 0; sum > 0 {
				p.largest[i] = float32(most / sum)
			}
		}
	}
	return p
}

// addTo adds the peaks of rows that are not padding and attend to a key. The first row is query first of
// the layer. queries, if not nil, has the number of each example's queries without padding.
func (p peaks) addTo(heads []exactMean, first int, queries []int) {
	if len(heads) != p.heads {
		panic(&tensor.ShapeError{
			Op: "prune: Importance", Arg: "weights", What: "heads", Got: []int{p.heads}, Want: fmt.Sprint("H=", len(heads)),
		})
	}
	for at, w := range p.largest {
		b, h, query := at/p.rows/p.heads, at/p.rows%p.heads, first+at%p.rows
		if w != 0 && (queries == nil || query < queries[b]) {
			heads[h].sum.Add(float64(w))
			heads[h].n++
		}
	}
}
