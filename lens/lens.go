package lens

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// Lens measures effects on a metric of a model's output.
type Lens struct {
	// Memory limits the memory of runs with changes and of the steps of Edges, in bytes, approximately: fewer run at the
	// same time. 0 means 256 MiB. It changes no bit of a result.
	Memory int
	// Progress, if not nil, is called with the number of sets of changes that are measured, and of all.
	Progress func(done, all int)

	model  *models.Model
	metric Metric
}

// New returns a lens for a model and a metric; nil is a metric that is always 0, for records and means. The model may be
// packed for inference, except for Attribute and Edges.
//
// Errors: a metric that the model does not have.
func New(m *models.Model, metric Metric) (*Lens, error) {
	if metric == nil {
		metric = none{}
	}
	if err := metric.Check(m, 0); err != nil {
		return nil, err
	}
	return &Lens{model: m, metric: metric}, nil
}

// check returns an error unless x is one sequence that the model can read, and the model has the sites.
func (l *Lens) check(x models.Batch, sites ...Site) error {
	if len(x.IDs) != 1 || len(x.IDs[0]) == 0 || l.model.Sizes().Decoder != nil && len(x.Targets) != 1 {
		return errors.New("lens: want a batch of one text with tokens, and its target if the model is an encoder–decoder")
	}
	if err := l.metric.Check(l.model, output(x)); err != nil {
		return err
	}
	for _, s := range sites {
		if err := l.has(s, x); err != nil {
			return err
		}
	}
	return l.model.Sizes().Check(x)
}

// output returns the number of tokens whose states a run returns.
func output(x models.Batch) int {
	if x.Targets != nil {
		return len(x.Targets[0])
	}
	return len(x.IDs[0])
}

// repeated returns n copies of a text, without its first tokens.
func repeated(x models.Batch, n, from int) models.Batch {
	y := models.Batch{IDs: slices.Repeat([][]int{x.IDs[0][from:]}, n)}
	if x.Types != nil {
		y.Types = slices.Repeat([][]int{x.Types[0][from:]}, n)
	}
	if x.Targets != nil {
		y.Targets = slices.Repeat(x.Targets, n)
	}
	return y
}

// tape returns a tape that ends with ctx.
func tape(ctx context.Context, mode tensor.Mode) *tensor.Tape {
	t := tensor.NewTape(mode)
	t.SetContext(ctx)
	return t
}

// Record runs a text, and returns what parts of the model have computed.
//
// Errors: a batch of several texts, or one that the model or the metric cannot read; ctx.Err() if ctx ends.
func (l *Lens) Record(ctx context.Context, x models.Batch, wanted ...Part) (*Record, error) {
	if err := l.check(x); err != nil {
		return nil, err
	}
	kept, r := values{}, models.Run{}
	if len(wanted) > 0 {
		kept.record(&r, wanted, l.model.HeadLayers())
	}
	t, y := tape(ctx, tensor.Infer), &Record{values: kept}
	err := tensor.Catch(func() { y.Metric = l.values(t, l.model.Hidden(t, x, r), x)[0] })
	return y, err
}

// values returns the metric of each sequence.
func (l *Lens) values(t *tensor.Tape, hidden *tensor.Tensor, x models.Batch) (all []float64) {
	y := l.metric.Values(t, l.model, hidden, x)
	for _, v := range y.Data() {
		all = append(all, float64(v))
	}
	return all
}

// Measure returns the metric of text x for each set of changes, each alone, and without changes.
//
// A set is computed from the first block that it changes on. In a decoder whose metric is of the last token, it is computed
// from its first position on, too. Sets of the same block are one batch.
//
// Errors: those of Record; a site that the model does not have; a value of another size.
func (l *Lens) Measure(ctx context.Context, x models.Batch, sets [][]Change) (base float64, metrics []float64, err error) {
	var sites []Site
	for _, c := range slices.Concat(sets...) {
		sites = append(sites, c.Site)
	}
	if err := l.check(x, sites...); err != nil {
		return 0, nil, err
	}
	m := &measurement{Lens: l, x: x, sets: sets, metrics: make([]float64, len(sets)), tape: tape(ctx, tensor.Infer)}
	err = tensor.Catch(func() { base = m.run() })
	if err != nil {
		return 0, nil, err
	}
	return base, m.metrics, nil
}

// has returns an error unless the model has a site.
func (l *Lens) has(s Site, x models.Batch) error {
	if s.Position != All && (s.Position < 0 || s.Position >= max(len(x.IDs[0]), output(x))) {
		return fmt.Errorf("lens: %s: want a position less than %d", s, max(len(x.IDs[0]), output(x)))
	}
	if s.Part.OfBlock() {
		if slices.Contains(blocks(l.model, s.Part), s.owner()) {
			return nil
		}
		return fmt.Errorf("lens: %s: the model has %s", s, quote.Texts(blocks(l.model, s.Part)))
	}
	for _, layer := range l.model.HeadLayers() {
		if layer.Name != s.Layer {
			continue
		}
		if n := headsOf(layer, s.Part); s.Head < 0 || s.Head >= n {
			return fmt.Errorf("lens: %s: layer %s has %d", s, layer.Name, n)
		}
		return nil
	}
	return fmt.Errorf("lens: %s: the model has no layer %s", s, s.Layer)
}

// measurement is a call of Measure.
type measurement struct {
	*Lens
	x       models.Batch
	sets    [][]Change
	metrics []float64
	tape    *tensor.Tape
	states  []*tensor.Tensor // what each block reads, without changes: [1 L D]
	done    int
}

// start is where a set begins to differ from a run without changes.
type start struct{ position, block int }

// run measures all sets, and returns the metric without changes.
func (m *measurement) run() (base float64) {
	t, resumes := m.tape, models.Resumes(m.model)
	r := models.Run{}
	if resumes {
		r.States = func(_ int, x *tensor.Tensor) { m.states = append(m.states, x.Clone()) }
	}
	base = m.values(t, m.model.Hidden(t, m.x, r), m.x)[0]
	t.Reset()
	groups := map[start][]int{}
	for i, set := range m.sets {
		at := m.start(set, resumes)
		groups[at] = append(groups[at], i)
	}
	var order []start
	for at := range groups {
		order = append(order, at)
	}
	slices.SortFunc(order, func(a, b start) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.block, b.block))
	})
	for len(order) > 0 {
		n := 1
		for n < len(order) && order[n].position == order[0].position {
			n++
		}
		if p := order[0].position; p > 0 {
			m.sweep(p, order[:n], groups)
		} else {
			for _, at := range order[:n] {
				m.restart(at.block, groups[at])
			}
		}
		order = order[n:]
	}
	return base
}

// start returns where a set begins.
func (m *measurement) start(set []Change, resumes bool) start {
	if !resumes {
		return start{}
	}
	last := m.model.Sizes().Layers - 1
	at := start{len(m.x.IDs[0]) - 1, last}
	for _, c := range set {
		_, block := c.block()
		at.block = min(at.block, block)
		at.position = min(at.position, max(c.Position, 0))
	}
	if !m.metric.Last() || !m.model.Sizes().Causal || m.model.Sizes().Layers == 0 {
		at.position = 0
	}
	if len(set) == 0 {
		at.position = 0
	}
	return at
}

// most returns how many sequences of n tokens run at the same time.
func (l *Lens) most(n int) int {
	z := l.model.Sizes().Output()
	// A block keeps its input and makes queries, keys, values, outputs and the inner vectors of its network.
	each := 4 * n * (8*z.Width + 3*max(z.Hidden, 4*z.Width))
	return max(1, cmp.Or(l.Memory, 256<<20)/each)
}

// restart measures sets from a block on, over the whole text.
func (m *measurement) restart(block int, sets []int) {
	for some := range slices.Chunk(sets, m.most(len(m.x.IDs[0])+output(m.x))) {
		t, e := m.tape, edits{}
		for i, set := range some {
			e.add(i, m.sets[set])
		}
		x := repeated(m.x, len(some), 0)
		r := models.Run{From: block}
		if m.states != nil {
			r.Input = copies(t, m.states[block], len(some), 0)
		}
		e.set(&r, 0)
		m.add(some, m.values(t, m.model.Hidden(t, x, r), x))
		t.Reset()
	}
}

// copies returns n copies of a state [1 L D] without its first tokens: [n L−from D].
func copies(t *tensor.Tape, x *tensor.Tensor, n, from int) *tensor.Tensor {
	d := x.Dim(2)
	y := t.Make(n, x.Dim(1)-from, d)
	for i := range n {
		copy(y.Data()[i*y.Len()/n:], x.Data()[from*d:])
	}
	return y
}

// add stores the metrics of some sets.
func (m *measurement) add(some []int, metrics []float64) {
	for i, set := range some {
		m.metrics[set] = metrics[i]
	}
	if m.done += len(some); m.Progress != nil {
		m.Progress(m.done, len(m.sets))
	}
}

// sweep measures sets that begin at a position: it runs the tokens from there on through the blocks once, as a batch which
// sets join at their block, each with a fork of the cache of the tokens before.
func (m *measurement) sweep(position int, starts []start, groups map[start][]int) {
	var all []start // one for each set
	var sets []int
	for _, at := range starts {
		for _, set := range groups[at] {
			all, sets = append(all, at), append(sets, set)
		}
	}
	cache, err := models.NewCache(m.model, 1, attn.CacheConfig{})
	if err != nil {
		panic(err)
	}
	prefix := models.Batch{IDs: [][]int{m.x.IDs[0][:position]}}
	m.model.Hidden(m.tape, prefix, models.Run{State: cache})
	m.tape.Reset()
	most := m.most(2 * (len(m.x.IDs[0]) - position))
	for len(sets) > 0 {
		n := min(most, len(sets))
		m.sweepSome(position, all[:n], sets[:n], cache)
		all, sets = all[n:], sets[n:]
	}
}

// sweepSome is sweep for some sets, in the order of their blocks.
func (m *measurement) sweepSome(position int, starts []start, sets []int, cache *models.Cache) {
	t, layers := m.tape, m.model.Sizes().Layers
	var x *tensor.Tensor
	joined := 0
	for block := starts[0].block; block < layers; block++ {
		n := joined
		for n < len(starts) && starts[n].block <= block {
			n++
		}
		if n > joined {
			more := copies(t, m.states[block], n-joined, position)
			if joined > 0 {
				more = tensor.Concat(t, 0, x, more)
			}
			x, joined = more, n
		}
		e := edits{}
		for i, set := range sets[:n] {
			e.add(i, m.sets[set])
		}
		kept := &models.Cache{Layers: make([]models.LayerCache, layers)}
		kept.Layers[block] = cache.Layers[block].Select(make([]int, n))
		r := models.Run{From: block, Input: x, State: kept}
		if r.To = block + 1; r.To == layers {
			r.To = 0
		}
		e.set(&r, position)
		x = m.model.Hidden(t, repeated(m.x, n, position), r)
	}
	m.add(sets, m.values(t, x, repeated(m.x, len(sets), position)))
	t.Reset()
}

// Effect is what a change does to the metric.
type Effect struct {
	Site
	What   string // zero, mean, patch or attribution
	Metric float64
	Effect float64 // Metric minus the metric without the change
}

// Effects measures the effect of putting a source's values in each of the sites, one after another.
func (l *Lens) Effects(ctx context.Context, x models.Batch, what string, from Source, sites []Site) (base float64, all []Effect, err error) {
	sets := make([][]Change, len(sites))
	for i, s := range sites {
		c, err := from.Change(s)
		if err != nil {
			return 0, nil, err
		}
		sets[i] = []Change{c}
	}
	base, metrics, err := l.Measure(ctx, x, sets)
	for i, m := range metrics {
		all = append(all, Effect{sites[i], what, m, m - base})
	}
	return base, all, err
}

// Text returns the batch of a text's tokens.
func Text(ids ...int) models.Batch { return models.Batch{IDs: [][]int{ids}} }
