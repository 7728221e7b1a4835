package browsertest

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// pixels returns screenshots of the elements that match a selector, which must be in
// the window.
func (b *tab) pixels(selector string) []image.Image {
	b.Helper()
	boxes := js[[][]float64](b, fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => { const r = e.getBoundingClientRect(), d = devicePixelRatio;
		return [r.left * d, r.top * d, r.right * d, r.bottom * d]; })`, selector))
	data, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.Fatal(err)
	}
	screen, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		b.Fatal(err)
	}
	var list []image.Image
	for _, box := range boxes {
		at := image.Rect(int(box[0]+0.5), int(box[1]+0.5), int(box[2]+0.5), int(box[3]+0.5))
		if !at.In(screen.Bounds()) {
			b.Fatalf("%s: %v is not on the screen of %v", selector, at, screen.Bounds())
		}
		list = append(list, screen.(interface {
			SubImage(image.Rectangle) image.Image
		}).SubImage(at))
	}
	return list
}

// dark returns the share of dark pixels.
func dark(picture image.Image) float64 {
	n, all := 0, picture.Bounds()
	for y := all.Min.Y; y < all.Max.Y; y++ {
		for x := all.Min.X; x < all.Max.X; x++ {
			if color.GrayModel.Convert(picture.At(x, y)).(color.Gray).Y < 110 {
				n++
			}
		}
	}
	return float64(n) / float64(all.Dx()*all.Dy())
}

// patterns returns a record of heads with all weight on one column or on the diagonal,
// which would disappear if pixels skipped cells.
func patterns(layers, n, tokens int) *heads.Record {
	names := numbered(tokens)
	r := &heads.Record{Source: fmt.Sprintf("%d × %d × %d", layers, n, tokens)}
	for i := range layers {
		l := heads.Layer{Name: fmt.Sprintf("encoder.%d", i), Index: i, Heads: n, Queries: names, Keys: names, Weights: make([]float32, n*tokens*tokens)}
		for h := range n {
			for q := range tokens {
				k := q // a diagonal
				if (i+h)%2 == 0 {
					k = (i*n + h) * (tokens - 1) / (layers*n - 1) // a sink
				}
				l.Weights[(h*tokens+q)*tokens+k] = 1
			}
		}
		r.Layers = append(r.Layers, l)
	}
	return r
}

// No weight disappears where cells are smaller than pixels.
func TestEveryHeadIsSeen(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 1400)
	wide := &heads.Record{Source: "800 tokens, all weight on token 401"}
	names := numbered(800)
	l := heads.Layer{Name: "encoder.0", Heads: 1, Queries: names, Keys: names, Weights: make([]float32, 800*800)}
	for i := range 800 {
		l.Weights[i*800+401] = 1
	}
	wide.Layers = []heads.Layer{l}
	address := serve(t, view.Options{Records: []*heads.Record{patterns(12, 12, 128), wide}})
	b.visit(address + "#theme=light")
	b.wait("[...document.querySelectorAll('.thumb canvas')].every((c) => c.width > 1)")
	b.shoot("patterns")
	for i, picture := range b.pixels(".thumb:not(.summary) canvas") {
		side := float64(picture.Bounds().Dx())
		// A line across a picture of n × n pixels covers at least 1/n of it.
		if share := dark(picture); share < 0.85/side || share > 4.5/side {
			t.Fatalf("layer %d, head %d: %.3f of %v is dark, want a line of a pixel or a few", i/12, i%12, share, picture.Bounds())
		}
	}
	for _, ratio := range []float64{1, 1.5} {
		b.do(chromedp.EmulateViewport(1280, 1400, chromedp.EmulateScale(ratio)))
		b.visit(address + "#r=1&theme=light")
		b.wait(`document.querySelector(".field canvas")`)
		picture := b.pixels(".field canvas")[0]
		if share, side := dark(picture), float64(picture.Bounds().Dx()); share < 0.5/side {
			t.Errorf("ratio %g: %.5f of the map of %v is dark: a column is lost", ratio, share, picture.Bounds())
		}
		if note := b.text(".pooling"); (ratio == 1) != strings.Contains(note, "each pixel shows the largest weight") {
			t.Errorf("ratio %g: the legend says %q", ratio, note)
		}
		b.shoot(fmt.Sprintf("column-401-%g", ratio))
	}
}
