package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/viz"
)

// figure returns the heads that were asked for. Layers keep the numbers that
// they have in the model, whichever of them the record holds.
func (cmd *mapCommand) figure(r *heads.Record) (viz.Figure, error) {
	if cmd.Rollout {
		return cmd.rollout(r)
	}
	layers, err := cmd.layers(r)
	if err != nil {
		return viz.Figure{}, err
	}
	if cmd.Differ || cmd.All {
		if err := drawnAtOnce(layers); err != nil {
			return viz.Figure{}, err
		}
	}
	switch {
	case cmd.Differ:
		return cmd.divergence(r, layers)
	case cmd.Mean != nil && *cmd.Mean == "layers":
		return cmd.meanOverLayers(r, layers)
	}
	f := cmd.finish(viz.Figure{Title: cmd.title(r)})
	if !cmd.All {
		l := layers[0]
		p, err := cmd.panel(l)
		if err != nil {
			return viz.Figure{}, err
		}
		p.Title = fmt.Sprintf("%s layer %d, %s", l.Kind, l.Index, p.Title)
		f.Panels = []viz.Panel{p}
		return f, nil
	}
	if f.Title != "" {
		f.Title = fmt.Sprintf("%s attention: %s", layers[0].Kind, f.Title)
	}
	for _, l := range layers {
		for h := range l.Heads {
			p := newPanel(l, h, l.Head(h))
			p.Title = fmt.Sprintf("layer %d, head %d", l.Index, l.Number(h))
			p.NewLine = h == 0 // a line for each layer, though one may have fewer heads
			f.Panels = append(f.Panels, p)
		}
		if len(layers) > 1 {
			f.Columns = max(f.Columns, l.Heads)
		}
	}
	return f, nil
}

// drawnAtOnce returns an error if the heads of the layers, whose weights are computed on request,
// are too many to have all of them.
func drawnAtOnce(layers []*heads.Layer) error {
	bytes, count := int64(0), 0
	for _, l := range layers {
		if l.Weights == nil {
			bytes, count = bytes+4*int64(l.Heads)*int64(len(l.Queries))*int64(len(l.Keys)), count+l.Heads
		}
	}
	if bytes > mostPretrained {
		return usage("%d heads of this text have %d MB of weights, want at most %d MB; --layer and --head draw fewer, and attn view shows all", count, bytes>>20, mostPretrained>>20)
	}
	return nil
}

// valueWeighted returns the record with weights times the norms of values.
func (cmd *mapCommand) valueWeighted(r *heads.Record) (*heads.Record, error) {
	weighted := *r
	weighted.Layers = slices.Clone(r.Layers)
	for i := range weighted.Layers {
		l := &weighted.Layers[i]
		if l.ValueNorms == nil {
			return nil, &safetensors.FormatError{Path: cmd.Weights, Err: fmt.Errorf("layer %.100q has no norms of values, which --value-weighted needs; docs/heads.md tells how a file holds them", l.Name)}
		}
		l.Weights = nil
		for h := range l.Heads {
			l.Weights = append(l.Weights, heads.ValueWeighted(r.Layers[i].Head(h), l.Norms(h))...)
		}
	}
	return &weighted, nil
}

// finish gives a figure of weights its scale and unit.
func (cmd *mapCommand) finish(f viz.Figure) viz.Figure {
	if cmd.Scale == "largest" || cmd.Values { // norms may be of any size
		f.Scale = viz.Largest
	}
	if cmd.Values {
		f.Unit = "weight × norm"
	}
	return f
}

// rollout returns the rollout of the encoder, or the decoder.
func (cmd *mapCommand) rollout(r *heads.Record) (viz.Figure, error) {
	kind := cmd.rolloutKind(r)
	layers := ofKind(r, kind)
	values, err := heads.Rollout(layers)
	if err != nil {
		return viz.Figure{}, err
	}
	f := viz.Figure{Title: cmd.title(r), Unit: "share", RowTitle: "output", ColumnTitle: "input"}
	if cmd.Scale == "largest" {
		f.Scale = viz.Largest
	}
	p := newPanel(&layers[0], viz.Mean, values)
	p.Title = fmt.Sprintf("rollout of the %s, %d layers", kind, len(layers))
	f.Panels = []viz.Panel{p}
	return f, nil
}

// meanOverLayers returns the mean over the heads of each layer, and of that the mean
// over the layers.
func (cmd *mapCommand) meanOverLayers(r *heads.Record, layers []*heads.Layer) (viz.Figure, error) {
	if err := sameTokens(layers); err != nil {
		return viz.Figure{}, err
	}
	mean, err := heads.MeanOf(len(layers), func(i int) ([]float32, error) { return layers[i].Mean(), nil })
	if err != nil {
		return viz.Figure{}, err
	}
	p := newPanel(layers[0], viz.Mean, mean)
	p.Layer, p.Title = viz.Mean, fmt.Sprintf("%s, mean of %d layers", layers[0].Kind, len(layers))
	return cmd.finish(viz.Figure{Title: cmd.title(r), Panels: []viz.Panel{p}}), nil
}

// divergence returns how much each two heads of the layers differ.
func (cmd *mapCommand) divergence(r *heads.Record, layers []*heads.Layer) (viz.Figure, error) {
	if err := sameTokens(layers); err != nil {
		return viz.Figure{}, err
	}
	var names []string
	var maps [][]float32
	for _, l := range layers {
		for h := range l.Heads {
			names, maps = append(names, fmt.Sprintf("%d.%d", l.Index, l.Number(h))), append(maps, l.Head(h))
		}
	}
	n := len(maps)
	values := make([]float32, n*n)
	var wait sync.WaitGroup
	for part := range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := part; i < n; i += runtime.GOMAXPROCS(0) {
				for j := range maps[:i] {
					d := float32(heads.Divergence(maps[i], maps[j], len(layers[0].Queries)))
					values[i*n+j], values[j*n+i] = d, d
				}
			}
		})
	}
	wait.Wait()
	f := viz.Figure{Title: cmd.title(r), Unit: "divergence in nats", RowTitle: "head", ColumnTitle: "head", Panels: []viz.Panel{{
		Title: fmt.Sprintf("%s, divergence of %d heads", layers[0].Kind, n), Kind: layers[0].Kind.String(), Layer: viz.Several, Head: viz.Several,
		Rows: names, Columns: names, Values: values,
	}}}
	if cmd.Scale == "largest" {
		f.Scale = viz.Largest
	}
	return f, nil
}

// sameTokens returns an error unless layers can be compared, or added up.
func sameTokens(layers []*heads.Layer) error {
	for _, l := range layers[1:] {
		if !slices.Equal(l.Queries, layers[0].Queries) || !slices.Equal(l.Keys, layers[0].Keys) {
			return usage("%s layers %d and %d have different tokens; --layer names one of them", l.Kind, layers[0].Index, l.Index)
		}
	}
	return nil
}

// rolloutKind returns the kind of layers whose rollout was asked for.
func (cmd *mapCommand) rolloutKind(r *heads.Record) heads.Kind {
	if cmd.Kind != nil && *cmd.Kind == heads.Decoder.String() || cmd.Kind == nil && r.Layer(heads.Encoder, 0) == nil {
		return heads.Decoder
	}
	return heads.Encoder
}

// ofKind returns the layers of a kind, by index.
func ofKind(r *heads.Record, kind heads.Kind) []heads.Layer {
	var layers []heads.Layer
	for _, l := range r.Layers {
		if l.Kind == kind {
			layers = append(layers, l)
		}
	}
	slices.SortStableFunc(layers, func(a, b heads.Layer) int { return cmp.Compare(a.Index, b.Index) })
	return layers
}

// layers returns the layers that were asked for, in the model's order; one, if
// not all.
func (cmd *mapCommand) layers(r *heads.Record) ([]*heads.Layer, error) {
	byKind := map[heads.Kind][]*heads.Layer{}
	for i := range r.Layers {
		l := &r.Layers[i]
		byKind[l.Kind] = append(byKind[l.Kind], l)
	}
	kind, err := cmd.kind(byKind)
	if err != nil {
		return nil, err
	}
	layers := byKind[kind]
	slices.SortStableFunc(layers, func(a, b *heads.Layer) int { return cmp.Compare(a.Index, b.Index) })
	if cmd.Layer == nil {
		if cmd.All || cmd.Differ || cmd.Mean != nil && *cmd.Mean == "layers" {
			return layers, nil
		}
		return layers[len(layers)-1:], nil
	}
	at := -1
	if *cmd.Layer < 0 {
		at = len(layers) + *cmd.Layer
	} else {
		at = slices.IndexFunc(layers, func(l *heads.Layer) bool { return l.Index == *cmd.Layer })
	}
	if at < 0 {
		var there []string
		for _, l := range layers {
			there = append(there, fmt.Sprint(l.Index))
		}
		return nil, usage("no %s layer %d, want %s", kind, *cmd.Layer, listed(there, "or"))
	}
	return layers[at : at+1], nil
}

// kind returns the kind that was asked for: without a wish cross, or else what
// there is.
func (cmd *mapCommand) kind(byKind map[heads.Kind][]*heads.Layer) (heads.Kind, error) {
	var there []string
	for _, k := range []heads.Kind{heads.Cross, heads.Encoder, heads.Decoder} {
		if byKind[k] == nil {
			continue
		}
		if cmd.Kind == nil || *cmd.Kind == k.String() {
			return k, nil
		}
		there = append(there, k.String())
	}
	if there == nil {
		return 0, usage("there is no attention to draw")
	}
	return 0, usage("no %s attention, want --kind %s", *cmd.Kind, listed(there, "or"))
}

// panel returns the head that was asked for, or the mean over all.
func (cmd *mapCommand) panel(l *heads.Layer) (viz.Panel, error) {
	if cmd.Head == nil && l.Heads > 1 {
		p := newPanel(l, viz.Mean, l.Mean())
		p.Title = fmt.Sprintf("mean of %d heads", l.Heads)
		return p, nil
	}
	h := 0
	if cmd.Head != nil {
		if h = headAt(l, *cmd.Head); h < 0 {
			want := fmt.Sprintf("0 to %d", l.Heads-1)
			if l.Chosen != nil {
				want = "one of " + strings.Trim(fmt.Sprint(l.Chosen), "[]")
			}
			return viz.Panel{}, usage("no head %d in %s layer %d, want %s", *cmd.Head, l.Kind, l.Index, want)
		}
	}
	p := newPanel(l, h, l.Head(h))
	p.Title = fmt.Sprintf("head %d", l.Number(h))
	return p, nil
}

// headAt returns the place of a head in a layer, by its number in the model or, below 0,
// counted from the last; −1 if there is none.
func headAt(l *heads.Layer, number int) int {
	if number < 0 {
		return max(-1, number+l.Heads)
	}
	for h := range l.Heads {
		if l.Number(h) == number {
			return h
		}
	}
	return -1
}

// newPanel returns a panel of a head, by its place in the layer, or of what viz has a number
// for.
func newPanel(l *heads.Layer, head int, weights []float32) viz.Panel {
	if head >= 0 {
		head = l.Number(head)
	}
	p := viz.Panel{Kind: l.Kind.String(), Layer: l.Index, Head: head, Rows: l.Queries, Columns: l.Keys, Values: weights}
	for i, n := range l.Visible() {
		for j := n; j < len(l.Keys); j++ {
			at := i*len(l.Keys) + j
			if weights[at] != 0 { // not to be hidden
				continue
			}
			if p.Masked == nil {
				p.Masked = make([]bool, len(weights))
			}
			p.Masked[at] = true
		}
	}
	return p
}
