package figures

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"slices"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/viz"
)

// A special token at the end of a text is shortened, unless there are other special tokens.
func TestLabelled(t *testing.T) {
	special := []string{"[CLS]", "[SEP]", "<eos>"}
	rows, columns := []string{"a", "Ġb", "<eos>"}, []string{"[CLS]", "a", "[SEP]"}
	r := &heads.Record{Special: special, Layers: []heads.Layer{{Queries: rows, Keys: columns}}}
	f := Labelled(viz.Figure{Panels: []viz.Panel{{Rows: rows, Columns: columns}}}, r)
	if got, want := f.Panels[0].Rows, []string{"a", "▁b", "∎"}; !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	if got, want := f.Panels[0].Columns, []string{"[CLS]", "a", "[SEP]"}; !slices.Equal(got, want) {
		t.Errorf("columns %q, want %q", got, want)
	}
}

// Weights that are computed on request are limited when all heads are drawn.
func TestAffordable(t *testing.T) {
	c := Choice{Most: 512 << 20}
	all := heads.Layer{Heads: 16, Queries: make([]string, 2048), Keys: make([]string, 2048)}
	if err := c.affordable([]*heads.Layer{&all, &all}); err != nil {
		t.Errorf("512 MB: %v", err)
	}
	if err := c.affordable([]*heads.Layer{&all, &all, &all}); err == nil || err.Error() != "48 heads of this text have 768 MB of weights, want at most 512 MB; --layer and --head draw fewer, and attn view shows all" {
		t.Errorf("768 MB: %v", err)
	}
}

// An alignment is the mean of the last layer; the record keeps its tokens.
func TestAlignment(t *testing.T) {
	tokens := []string{"a", "<eos>"}
	r := &heads.Record{Special: tokens[1:], Layers: []heads.Layer{
		{Name: "cross.0", Kind: heads.Cross, Heads: 1, Queries: tokens, Keys: tokens, Weights: []float32{1, 0, 0, 1}},
		{Name: "cross.1", Kind: heads.Cross, Index: 1, Heads: 2, Queries: tokens, Keys: tokens, Weights: []float32{1, 0, 0, 1, 0, 1, 0, 1}},
	}}
	f := Alignment(r)
	if p := f.Panels[0]; len(f.Panels) != 1 || p.Layer != 1 || p.Head != viz.Mean ||
		!slices.Equal(p.Values, []float32{0.5, 0.5, 0, 1}) || !slices.Equal(p.Rows, []string{"a", "∎"}) || !slices.Equal(p.Columns, p.Rows) {
		t.Errorf("the figure is %+v", f)
	}
	if tokens[1] != "<eos>" {
		t.Errorf("the record has the tokens %q", tokens)
	}
}

// A picture on a dark ground has other colours, and the same size.
func TestPNG(t *testing.T) {
	f := viz.Figure{Panels: []viz.Panel{{Rows: []string{"a"}, Columns: []string{"b"}, Values: []float32{1}}}}
	corner := map[viz.Ground]color.Color{}
	var size []image.Point
	for _, on := range []viz.Ground{viz.OnLight, viz.OnDark} {
		var b bytes.Buffer
		if err := PNG(&b, f, on); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		corner[on], size = img.At(0, 0), append(size, img.Bounds().Size())
	}
	if corner[viz.OnLight] == corner[viz.OnDark] || size[0] != size[1] {
		t.Errorf("corners %v of pictures of %v", corner, size)
	}
}

// A figure of a signed layer has a scale with two sides. A divergence and a rollout have none.
func TestSigned(t *testing.T) {
	tokens := []string{"a", "b"}
	r := &heads.Record{Layers: []heads.Layer{
		{Name: "decoder.0", Kind: heads.Decoder, Heads: 2, Queries: tokens, Keys: tokens, Weights: []float32{1, 0, 1, 0, 1, 0, 0, 1}},
		{Name: "decoder.1", Kind: heads.Decoder, Index: 1, Heads: 2, Queries: tokens, Keys: tokens, Signed: true, Weights: []float32{-1, 0, -1, 3, 2, 0, 0, -2}},
	}}
	first := 0
	for _, c := range []struct {
		choice Choice
		signed bool
	}{
		{Choice{}, true}, {Choice{Layer: &first}, false}, {Choice{All: true, Largest: true}, true}, {Choice{MeanOfLayers: true}, true},
		{Choice{Divergence: true}, false}, {Choice{Rollout: true}, false},
	} {
		f, err := c.choice.Figure(r)
		if err != nil || f.Signed != c.signed {
			t.Errorf("%+v: signed %v, %v, want %v", c.choice, f.Signed, err, c.signed)
		}
	}
	second := 1
	if f, err := (Choice{Divergence: true, Layer: &second}).Figure(r); err != nil || !(f.Panels[0].Values[1] > 0 && f.Panels[0].Values[1] < 0.7) {
		t.Errorf("the divergence of signed heads is %v, %v", f.Panels, err)
	}
}
