package lens

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// Change puts a value in a place of a run.
type Change struct {
	Site
	// Value takes the place of what the run computes: [N], the same at each position of the site, or [L N], a vector for
	// each position. N is the size of the part, L for a Pattern. Nil means zeros.
	Value *tensor.Tensor
}

// A Source says what to put in a place: Zero, the Means of texts, a Record of another text, or a function of your own. It
// returns nil for zeros, and an error for a site that it does not have.
type Source func(Site) (*tensor.Tensor, error)

// Zero silences.
func Zero(Site) (*tensor.Tensor, error) { return nil, nil }

// Change returns the change that puts the source's value in a site.
func (s Source) Change(at Site) (Change, error) {
	v, err := s(at)
	return Change{at, v}, err
}

// edit is a change of one sequence of a batch.
type edit struct {
	Change
	sequence int
}

// edits are the changes of a batch, by layer and part.
type edits map[string]map[Part][]edit

// add adds the changes of a sequence.
func (e edits) add(sequence int, list []Change) {
	for _, c := range list {
		layer := c.owner()
		if e[layer] == nil {
			e[layer] = map[Part][]edit{}
		}
		e[layer][c.Part] = append(e[layer][c.Part], edit{c, sequence})
	}
}

// set makes a run obey the edits. from is the position of the first token that it reads.
func (e edits) set(r *models.Run, from int) {
	if len(e) == 0 {
		return
	}
	setEdits(r, func(layer string, p Part) attn.Edit {
		list := e[layer][p]
		if list == nil {
			return nil
		}
		return func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return replace(t, x, list, from) }
	})
	for _, list := range e {
		if list[Residual] != nil || list[FeedForward] != nil {
			return
		}
	}
	r.Blocks = nil // whose edits prevent that sums and norms are computed together
}

// replace returns x with the values of edits. x is [B H L N], or [B L N] of a block, and begins with the token at position
// from. Gradients flow to what stays.
func replace(t *tensor.Tape, x *tensor.Tensor, list []edit, from int) *tensor.Tensor {
	y := t.Make(x.Shape()...)
	copy(y.Data(), x.Data())
	eachRow(x, list, from, func(row int, e *edit, value []float32) {
		to := y.Data()[row*x.Dim(-1):][:x.Dim(-1)]
		if clear(to); value != nil {
			copy(to, value)
		}
	})
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			left := slices.Clone(dy)
			eachRow(x, list, from, func(row int, _ *edit, _ []float32) { clear(left[row*x.Dim(-1):][:x.Dim(-1)]) })
			dx := t.GradOf(x)
			for i, d := range left {
				dx[i] += d
			}
		})
	}
	return y
}

// eachRow calls do with the number of each row of x that an edit replaces, and the value, nil for zeros.
func eachRow(x *tensor.Tensor, list []edit, from int, do func(row int, e *edit, value []float32)) {
	heads, l := 1, x.Dim(-2)
	if x.Rank() == 4 {
		heads = x.Dim(1)
	}
	for i := range list {
		e := &list[i]
		if e.Head < 0 || e.Head >= heads {
			panic(&tensor.ValueError{Op: "lens: Measure", Arg: e.Site.String(), Got: fmt.Sprint("head ", e.Head), Want: fmt.Sprintf("less than %d", heads)})
		}
		first := (e.sequence*heads + e.Head) * l
		for j := range l {
			if p := from + j; e.Position == All || e.Position == p {
				do(first+j, e, e.row(p, x.Dim(-1)))
			}
		}
	}
}

// row returns the value at a position, of size n; nil for zeros.
func (c *Change) row(position, n int) []float32 {
	v := c.Value
	if v == nil {
		return nil
	}
	at := 0
	if v.Rank() == 2 {
		at = position
	}
	if v.Dim(-1) != n || v.Rank() > 2 || v.Rank() == 2 && position >= v.Dim(0) {
		panic(&tensor.ShapeError{Op: "lens: Measure", Arg: "value of " + c.Site.String(), Got: v.Shape(), Want: fmt.Sprintf("[%d], or [L %d] with L > %d", n, n, position)})
	}
	return v.Data()[at*n:][:n]
}

// Record is what a run has computed at the sites of a text.
type Record struct {
	// Metric is the number of the run.
	Metric float64
	values values // [H L N], or [L N] of a block
}

// values are what a run has computed, by layer or block and part.
type values map[string]map[Part]*tensor.Tensor

func (v values) put(layer string, p Part, x *tensor.Tensor) {
	if v[layer] == nil {
		v[layer] = map[Part]*tensor.Tensor{}
	}
	v[layer][p] = x
}

// Value returns a head's [L N], or a block's, for a Change: it is a Source. The positions of the site do not matter.
func (r *Record) Value(at Site) (*tensor.Tensor, error) {
	layer := at.owner()
	v := r.values[layer][at.Part]
	switch {
	case v == nil:
		return nil, fmt.Errorf("lens: no %s was recorded of layer %s", at.Part, layer)
	case at.Part.OfBlock():
		return v, nil
	case at.Head < 0 || at.Head >= v.Dim(0):
		return nil, fmt.Errorf("lens: %s: want a head less than %d", at, v.Dim(0))
	}
	return tensor.Index(nil, v, at.Head), nil
}

// record makes a run with one sequence collect values.
func (v values) record(r *models.Run, wanted []Part, layers []attn.LayerHeads) {
	setEdits(r, func(layer string, p Part) attn.Edit {
		if !slices.Contains(wanted, p) || lacks(layers, layer, p) {
			return nil
		}
		return func(_ *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
			v.put(layer, p, tensor.New(slices.Clone(x.Data()), x.Shape()[1:]...))
			return x
		}
	})
}

// lacks reports whether a layer of attention has no such part.
func lacks(layers []attn.LayerHeads, layer string, p Part) bool {
	return slices.ContainsFunc(layers, func(l attn.LayerHeads) bool { return l.Name == layer && headsOf(l, p) == 0 })
}

// setEdits makes a run call the edits that of returns for the parts of layers and blocks.
func setEdits(r *models.Run, of func(layer string, p Part) attn.Edit) {
	r.Edits = func(layer string) attn.Edits {
		return attn.Edits{
			Queries: of(layer, Query), Keys: of(layer, Key), Values: of(layer, Value), Weights: of(layer, Pattern), Outputs: of(layer, Head),
		}
	}
	r.Blocks = func(block string) models.BlockEdits {
		return models.BlockEdits{Input: of(block, Residual), FeedForward: of(block, FeedForward)}
	}
}

// Means are means over positions and texts.
type Means map[string]map[Part]*mean

type mean struct {
	sums         []float64 // [H N]
	heads, count int
}

// Value returns the mean [N] of a site, over all positions of all texts: it is a Source.
func (m Means) Value(at Site) (*tensor.Tensor, error) {
	of := m[at.owner()][at.Part]
	if of == nil || at.Head < 0 || at.Head >= of.heads {
		return nil, fmt.Errorf("lens: %s has no mean", at)
	}
	size := len(of.sums) / of.heads
	y := tensor.Zeros(size)
	for i, s := range of.sums[at.Head*size:][:size] {
		y.Data()[i] = float32(s / float64(of.count))
	}
	return y, nil
}

// Means runs texts, and returns the means of parts of the model. A Pattern has no mean.
//
// Errors: no texts; Pattern; those of Record.
func (l *Lens) Means(ctx context.Context, texts []models.Batch, wanted ...Part) (Means, error) {
	if len(texts) == 0 || slices.Contains(wanted, Pattern) {
		return nil, errors.New("lens: Means: want texts, and parts other than pattern, whose size depends on the text")
	}
	m := Means{}
	for _, x := range texts {
		r, err := l.Record(ctx, x, wanted...)
		if err != nil {
			return nil, err
		}
		for layer, values := range r.values {
			if m[layer] == nil {
				m[layer] = map[Part]*mean{}
			}
			for p, v := range values {
				n, positions := v.Dim(-1), v.Dim(-2)
				of := m[layer][p]
				if of == nil {
					of = &mean{heads: v.Len() / (n * positions)}
					of.sums, m[layer][p] = make([]float64, of.heads*n), of
				}
				of.count += positions
				for i, y := range v.Data() {
					of.sums[i/(n*positions)*n+i%n] += float64(y)
				}
			}
		}
	}
	return m, nil
}
