// Package figures makes figures of recorded attention: of a head, of all heads of one kind, of means, of
// the rollout, and of the divergence between heads. attn map uses it; its errors name the flags of that
// command.
package figures

import (
	"cmp"
	"fmt"
	"image/png"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/viz"
)

// Choice selects the part of a record that a figure shows.
type Choice struct {
	Path          string // of the record's file, "" if there is none
	Kind          string // of attention; "" for cross if the record has it, otherwise the kind that it has
	Layer         *int   // by number, negative from the end; nil: the last, or every layer with All and so on
	Head          *int   // likewise; nil for the mean
	All           bool   // every head
	MeanOfLayers  bool   // the mean over the heads of all layers
	Rollout       bool
	Divergence    bool  // between each two heads
	ValueWeighted bool  // weights times the norms of values
	Largest       bool  // the last colour is for the largest value instead of 1
	Most          int64 // the limit on bytes of weights that All and Divergence may compute
}

// Figure returns the chosen heads. Layers keep their numbers in the model, even if the record
// contains only some of them.
//
// Errors: *flags.Error if the record lacks what was chosen, *input.Error for a file without norms
// of values.
func (c Choice) Figure(r *heads.Record) (viz.Figure, error) {
	f := viz.Figure{Title: c.Title(r)}
	if c.Largest || c.ValueWeighted { // norms have no upper limit
		f.Scale = viz.Largest
	}
	if c.Rollout {
		return c.rollout(f, r)
	}
	layers, err := c.layers(r)
	if err != nil {
		return f, err
	}
	f.Signed = !c.Divergence && slices.ContainsFunc(layers, func(l *heads.Layer) bool { return l.Signed })
	if c.ValueWeighted {
		f.Unit = "weight × norm"
		if layers, err = c.weighted(layers); err != nil {
			return f, err
		}
	}
	if c.Divergence || c.All {
		if err := c.affordable(layers); err != nil {
			return f, err
		}
	}
	if c.Divergence || c.MeanOfLayers {
		if err := sameTokens(layers); err != nil {
			return f, err
		}
	}
	var p viz.Panel
	switch first := layers[0]; {
	case c.Divergence:
		return divergence(f, layers), nil
	case c.MeanOfLayers:
		mean, _ := heads.MeanOf(len(layers), func(i int) ([]float32, error) { return layers[i].Mean(), nil })
		p = New(first, viz.Mean, mean)
		p.Layer, p.Title = viz.Mean, fmt.Sprintf("%s, mean of %s", kindName(first), quote.Counted(len(layers), "layer", "layers"))
	case c.All:
		return all(f, layers), nil
	default:
		p, err = c.one(first)
		p.Title = LayerName(first) + ", " + p.Title
	}
	f.Panels = []viz.Panel{p}
	return f, err
}

func kindName(l *heads.Layer) string { return viz.KindName(l.Kind.String()) }

// LayerName returns the name of a layer in titles.
func LayerName(l *heads.Layer) string { return viz.LayerName(l.Kind.String(), l.Index) }

// Title returns the title for a figure of the record.
func (c Choice) Title(r *heads.Record) string {
	switch {
	case r.Source == "" && r.Target == "" && c.Path != "":
		return filepath.Base(c.Path)
	case r.Source == "" || r.Target == "":
		return r.Source + r.Target
	case r.Layer(heads.Cross, 0) == nil && r.Layer(heads.Alignment, 0) == nil: // two texts that an encoder reads together
		return r.Source + " | " + r.Target
	}
	return r.Source + " → " + r.Target
}

// one returns the chosen head, or the mean over all heads of a layer.
func (c Choice) one(l *heads.Layer) (viz.Panel, error) {
	if c.Head == nil && l.Heads > 1 {
		p := New(l, viz.Mean, l.Mean())
		p.Title = fmt.Sprintf("mean of %d heads", l.Heads)
		return p, nil
	}
	h := 0
	if c.Head != nil {
		if h = headAt(l, *c.Head); h < 0 {
			want := fmt.Sprintf("0 to %d", l.Heads-1)
			if l.Chosen != nil {
				want = "one of " + strings.Trim(fmt.Sprint(l.Chosen), "[]")
			}
			return viz.Panel{}, flags.Errorf("no head %d in %s, want %s", *c.Head, LayerName(l), want)
		}
	}
	p := New(l, h, l.Head(h))
	p.Title = fmt.Sprintf("head %d", l.Number(h))
	return p, nil
}

// all shows every head, with a line of panels for each layer if there are several.
func all(f viz.Figure, layers []*heads.Layer) viz.Figure {
	if f.Title != "" {
		f.Title = kindName(layers[0]) + ": " + f.Title
	}
	for _, l := range layers {
		for h := range l.Heads {
			p := New(l, h, l.Head(h))
			p.Title = fmt.Sprintf("layer %d, head %d", l.Index, l.Number(h))
			p.NewLine = h == 0 // because a layer may have fewer heads
			f.Panels = append(f.Panels, p)
		}
		if len(layers) > 1 {
			f.Columns = max(f.Columns, l.Heads)
		}
	}
	return f
}

// affordable returns an error if the layers have more heads, with weights computed on request, than
// the limit allows.
func (c Choice) affordable(layers []*heads.Layer) error {
	bytes, count := int64(0), 0
	for _, l := range layers {
		if l.Weights == nil {
			bytes, count = bytes+4*int64(l.Heads)*int64(len(l.Queries))*int64(len(l.Keys)), count+l.Heads
		}
	}
	if bytes > c.Most {
		return flags.Errorf("%d heads of this text have %d MB of weights, want at most %d MB; "+
			"--layer and --head draw fewer, and attn view shows all", count, bytes>>20, c.Most>>20)
	}
	return nil
}

// weighted returns the layers with weights times the norms of values.
func (c Choice) weighted(layers []*heads.Layer) ([]*heads.Layer, error) {
	list := make([]*heads.Layer, len(layers))
	for i, l := range layers {
		if l.ValueNorms == nil {
			return nil, input.Errorf(c.Path, "layer %.100q has no norms of values, which --value-weighted needs; "+
				"docs/heads.md describes how to store them", l.Name)
		}
		weighted := *l
		weighted.Weights = nil
		for h := range l.Heads {
			weighted.Weights = append(weighted.Weights, heads.ValueWeighted(l.Head(h), l.Norms(h))...)
		}
		list[i] = &weighted
	}
	return list, nil
}

// rollout shows the rollout of the encoder or decoder.
func (c Choice) rollout(f viz.Figure, r *heads.Record) (viz.Figure, error) {
	if ofKind(r, heads.Mamba) != nil {
		return f, flags.Errorf("--rollout cannot be used with Mamba beside attention: both mix the tokens")
	}
	layers := c.rolled(r)
	if layers == nil {
		return f, flags.Errorf("--rollout requires the attention of an encoder or a decoder: omit --kind, or --pair in a model of late interaction")
	}
	values, err := heads.Rollout(layers)
	if err != nil {
		return f, flags.Errorf("%w", err)
	}
	f.Unit, f.RowTitle, f.ColumnTitle = "share", "output", "input"
	p := New(&layers[0], viz.Mean, values)
	p.Title = kindName(&layers[0]) + ", rollout of layer 0"
	if last := len(layers) - 1; last > 0 {
		p.Title = fmt.Sprintf("%s, rollout of layers 0 to %d", kindName(&layers[0]), last)
	}
	f.Panels = []viz.Panel{p}
	return f, nil
}

// rolled returns the layers whose rollout was chosen.
func (c Choice) rolled(r *heads.Record) (layers []heads.Layer) {
	kind := heads.Encoder
	if c.Kind == heads.Decoder.String() || c.Kind == "" && r.Layer(heads.Encoder, 0) == nil {
		kind = heads.Decoder
	}
	for _, l := range ofKind(r, kind) {
		layers = append(layers, *l)
	}
	return layers
}

// divergence shows how much each two heads of the layers differ.
func divergence(f viz.Figure, layers []*heads.Layer) viz.Figure {
	var names []string
	var maps [][]float32
	for _, l := range layers {
		for h := range l.Heads {
			names, maps = append(names, viz.ShortHeadName(l.Index, l.Number(h))), append(maps, l.Shares(h))
		}
	}
	n := len(maps)
	values := make([]float32, n*n)
	par.For(n, 1, func(i, _ int) {
		for j := range maps[:i] {
			d := float32(heads.Divergence(maps[i], maps[j], len(layers[0].Queries)))
			values[i*n+j], values[j*n+i] = d, d
		}
	})
	f.Unit, f.RowTitle, f.ColumnTitle = "divergence in nats", "head", "head"
	f.Panels = []viz.Panel{{
		Title: fmt.Sprintf("%s, divergence of %s", kindName(layers[0]), quote.Counted(n, "head", "heads")), Kind: layers[0].Kind.String(), Layer: viz.Several, Head: viz.Several,
		Rows: names, Columns: names, Values: values,
	}}
	return f
}

// sameTokens returns an error unless all layers have the same tokens, so that they can be compared
// or added.
func sameTokens(layers []*heads.Layer) error {
	for _, l := range layers[1:] {
		if !slices.Equal(l.Queries, layers[0].Queries) || !slices.Equal(l.Keys, layers[0].Keys) {
			return flags.Errorf("layers %d and %d of the %s have different tokens; choose one with --layer",
				layers[0].Index, l.Index, kindName(l))
		}
	}
	return nil
}

// ofKind returns the layers of a kind, by index.
func ofKind(r *heads.Record, kind heads.Kind) (layers []*heads.Layer) {
	for i := range r.Layers {
		if r.Layers[i].Kind == kind {
			layers = append(layers, &r.Layers[i])
		}
	}
	slices.SortStableFunc(layers, func(a, b *heads.Layer) int { return cmp.Compare(a.Index, b.Index) })
	return layers
}

// layers returns the chosen layers in the model's order: one, or all of them.
func (c Choice) layers(r *heads.Record) ([]*heads.Layer, error) {
	layers, err := c.ofKind(r)
	if err != nil {
		return nil, err
	}
	if c.Layer == nil {
		if c.All || c.Divergence || c.MeanOfLayers {
			return layers, nil
		}
		return layers[len(layers)-1:], nil
	}
	at := len(layers) + *c.Layer
	if *c.Layer >= 0 {
		at = slices.IndexFunc(layers, func(l *heads.Layer) bool { return l.Index == *c.Layer })
	}
	if at < 0 {
		var there []string
		for _, l := range layers {
			there = append(there, strconv.Itoa(l.Index))
		}
		return nil, flags.Errorf("no layer %d in the %s, want %s", *c.Layer, kindName(layers[0]), flags.Listed(there, "or"))
	}
	return layers[at : at+1], nil
}

// ofKind returns the layers of the chosen kind. Without a choice it is cross if the record has it,
// otherwise the kind that it has.
func (c Choice) ofKind(r *heads.Record) ([]*heads.Layer, error) {
	var there []string
	for _, kind := range []heads.Kind{heads.Cross, heads.Encoder, heads.Decoder, heads.Mamba, heads.Alignment} {
		layers := ofKind(r, kind)
		if layers == nil {
			continue
		}
		if c.Kind == "" || c.Kind == kind.String() {
			return layers, nil
		}
		there = append(there, kind.String())
	}
	switch {
	case there == nil:
		return nil, flags.Errorf("there is no attention to draw")
	case c.Kind == heads.Alignment.String():
		return nil, flags.Errorf("no alignment: only a model of late interaction has one, with --pair; want --kind %s", flags.Listed(there, "or"))
	}
	return nil, flags.Errorf("no %s attention, want --kind %s", c.Kind, flags.Listed(there, "or"))
}

// headAt returns the index of a head in a layer. number is its number in the model, or negative to
// count from the last. The result is −1 if there is no such head.
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

// New returns a panel of a head, by its index in the layer, or with one of viz's special values.
func New(l *heads.Layer, head int, weights []float32) viz.Panel {
	if head >= 0 {
		head = l.Number(head)
	}
	p := viz.Panel{Kind: l.Kind.String(), Layer: l.Index, Head: head, Rows: l.Queries, Columns: l.Keys, Values: weights}
	for i, n := range l.Visible() {
		for j := n; j < len(l.Keys); j++ {
			at := i*len(l.Keys) + j
			if weights[at] != 0 { // keep visible
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

// Labelled returns the figure with the labels of the record's tokens.
func Labelled(f viz.Figure, r *heads.Record) viz.Figure {
	f.Panels = slices.Clone(f.Panels)
	for i := range f.Panels {
		p := &f.Panels[i]
		p.Rows, p.Columns = r.Labels(p.Rows), r.Labels(p.Columns)
	}
	return f
}

// Alignment returns a figure of the last layer of a record, averaged over its heads.
func Alignment(r *heads.Record) viz.Figure {
	l := r.Layers[len(r.Layers)-1]
	l.Queries, l.Keys = r.Labels(l.Queries), r.Labels(l.Keys)
	return viz.Figure{Signed: l.Signed, Panels: []viz.Panel{New(&l, viz.Mean, l.Mean())}}
}

// PNG writes a figure as an image of two pixels for each CSS pixel.
func PNG(w io.Writer, f viz.Figure, on viz.Ground) error {
	img, err := f.Image(2, on)
	if err != nil {
		return err
	}
	return png.Encode(w, img)
}

// State returns the parameters with which the page of attn view shows the chosen part of the record,
// for view.Page. The caller must have called Figure before, which checks the choice.
func (c Choice) State(r *heads.Record, mean bool) (url.Values, error) {
	layers, err := c.layers(r)
	if err != nil {
		return nil, err
	}
	state := url.Values{}
	if c.ValueWeighted {
		state.Set("vw", "1")
	}
	layer, head := layers[len(layers)-1], ""
	switch {
	case c.Rollout:
		all := c.rolled(r)
		layer, head = &all[len(all)-1], "rollout"
	case c.MeanOfLayers && len(layers) > 1:
		head = "all"
	case (mean || c.MeanOfLayers) && layer.Heads > 1:
		head = "mean"
	case c.Head != nil:
		layer, head = layers[0], strconv.Itoa(headAt(layers[0], *c.Head))
	case c.Kind != "" || c.Layer != nil:
		layer, head = layers[0], "0"
	}
	if head != "" {
		at := slices.IndexFunc(r.Layers, func(l heads.Layer) bool { return l.Name == layer.Name })
		state.Set("a", fmt.Sprintf("%d.%s", at, head))
	}
	return state, nil
}
