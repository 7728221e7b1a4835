// Package film draws the recording of a training run: as an animated WebP picture, and frame by frame for the page of
// attn follow.
package film

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/HugoSmits86/nativewebp"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/figures"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/viz"
)

// Durations in milliseconds.
const (
	duration     = 100
	lastDuration = 2000
)

// Limits in pixels: that of WebP on a side, and one on the area, because the frames are in memory.
const (
	mostSide = 1 << 14
	mostArea = 4 << 20
)

// Write writes the frames of a film as a WebP animation that repeats. The last frame stays for two
// seconds. figure returns the picture of a record; its title becomes the step and the loss. A CSS pixel
// is two pixels, or one if the picture would be too large.
//
// Errors: those of figure, of viz.Figure.Image and of w; that of ctx if it ends; a picture that is too large for WebP.
func Write(ctx context.Context, w io.Writer, f *heads.Film, figure func(*heads.Record) (viz.Figure, error), on viz.Ground) error {
	if len(f.Frames) == 0 {
		return errors.New("film: no frames")
	}
	scale := 2.
	draw := func(x heads.Frame) (*image.RGBA, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		drawn, err := figure(x.Record)
		if err != nil {
			return nil, err
		}
		drawn.Title = Title(x)
		return drawn.Image(scale, on)
	}
	for ; ; scale /= 2 {
		img, err := draw(f.Frames[0])
		if err != nil {
			return err
		}
		size := img.Rect.Size()
		if max(size.X, size.Y) <= mostSide && size.X*size.Y <= mostArea {
			break
		} else if scale == 1 {
			return fmt.Errorf("a film of %d×%d pixels, want at most %d pixels, %d on a side; choose fewer heads",
				size.X, size.Y, mostArea, mostSide)
		}
	}
	// Every frame is drawn twice, first for the palette, because all of them would need much memory.
	counts := map[color.RGBA]int{}
	for _, x := range f.Frames {
		img, err := draw(x)
		if err != nil {
			return err
		}
		runs(img, func(c color.RGBA, from, to int) { counts[c] += to - from })
	}
	p := newPainter(counts)
	var a nativewebp.Animation
	var before *image.Paletted
	for _, x := range f.Frames {
		img, err := draw(x)
		if err != nil {
			return err
		}
		whole := p.paint(img)
		part := whole
		if before != nil && before.Rect == whole.Rect {
			part = changed(before, whole)
		}
		if before = whole; part == nil { // the same picture for longer
			a.Durations[len(a.Durations)-1] += duration
			continue
		}
		a.Images, a.Durations, a.Disposals = append(a.Images, part), append(a.Durations, duration), append(a.Disposals, 0)
	}
	a.Durations[len(a.Durations)-1] = lastDuration
	return nativewebp.EncodeAll(w, &a, nil)
}

// CheckName returns a usage error unless path is the name of a film, "-" or empty.
func CheckName(path string) error {
	if path == "" || path == "-" || strings.EqualFold(filepath.Ext(path), ".webp") {
		return nil
	}
	return flags.Errorf("--film %s, want a name that ends in .webp", quote.Shell(path))
}

// File returns the file in which Write draws the chosen heads. All frames have one scale. font is the path
// of a font for characters that the built-in font lacks; "" is a system font.
//
// Errors: a choice that the first frame does not have, and an unusable font.
func File(
	ctx context.Context, path string, f *heads.Film, choice figures.Choice, font string, on viz.Ground,
) (file atomicfile.File, err error) {
	choice.Largest = false
	var have []*viz.Font
	figure := func(r *heads.Record) (viz.Figure, error) {
		drawn, err := choice.Figure(r)
		drawn.Fonts = have
		return figures.Labelled(drawn, r), err
	}
	first, err := figure(f.Frames[0].Record)
	if err != nil {
		return file, err
	}
	if have, err = figures.Fonts(font, first.Lacking()); err != nil {
		return file, err
	}
	return atomicfile.File{Path: path, Write: func(w io.Writer) error { return Write(ctx, w, f, figure, on) }}, nil
}

// Title returns the title of a frame.
func Title(x heads.Frame) string {
	text := "step " + quote.Count(x.Step)
	if x.Loss == x.Loss {
		text += fmt.Sprintf(", loss %.4f", x.Loss)
	}
	return text
}

// painter converts pictures to a palette: a transparent colour and at most mostColors others.
type painter struct {
	colors  color.Palette
	nearest map[color.RGBA]uint8
}

const mostColors = 255

// newPainter returns a painter for pictures with these numbers of pixels of each colour. It keeps
// frequent colours exactly. The others differ from one of the palette as little as its size allows.
func newPainter(counts map[color.RGBA]int) painter {
	order := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(-cmp.Compare(counts[a], counts[b]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	kept := order
	for apart := 1; len(kept) > mostColors; apart++ {
		kept = nil
		for _, c := range order {
			if !slices.ContainsFunc(kept, func(k color.RGBA) bool { return distance(c, k) <= apart }) {
				kept = append(kept, c)
			}
		}
	}
	p := painter{color.Palette{color.RGBA{}}, map[color.RGBA]uint8{}}
	for _, c := range kept {
		p.colors = append(p.colors, c)
	}
	for c := range counts {
		p.nearest[c] = uint8(1 + p.colors[1:].Index(c))
	}
	return p
}

// distance returns the largest difference of red, green or blue.
func distance(a, b color.RGBA) int {
	of := func(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }
	return max(of(a.R, b.R), of(a.G, b.G), of(a.B, b.B))
}

// runs calls add for runs of pixels [from, to) of one colour.
func runs(img *image.RGBA, add func(c color.RGBA, from, to int)) {
	at := func(i int) color.RGBA { return color.RGBA{img.Pix[4*i], img.Pix[4*i+1], img.Pix[4*i+2], 0xff} }
	from, n := 0, len(img.Pix)/4
	for i := 1; i <= n; i++ {
		if i == n || at(i) != at(from) {
			add(at(from), from, i)
			from = i
		}
	}
}

func (p painter) paint(img *image.RGBA) *image.Paletted {
	out := image.NewPaletted(img.Rect, p.colors)
	runs(img, func(c color.RGBA, from, to int) {
		at := p.nearest[c]
		for i := from; i < to; i++ {
			out.Pix[i] = at
		}
	})
	return out
}

// changed returns the part of a picture that differs from the one before, with equal pixels
// transparent, or nil if there is none.
func changed(before, after *image.Paletted) *image.Paletted {
	var box image.Rectangle
	for i, c := range after.Pix {
		if c != before.Pix[i] {
			x, y := i%after.Stride, i/after.Stride
			box = box.Union(image.Rect(x&^1, y&^1, x+1, y+1)) // WebP counts offsets in pairs of pixels
		}
	}
	if box.Empty() {
		return nil
	}
	part := image.NewPaletted(box, after.Palette)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			if at := y*after.Stride + x; before.Pix[at] != after.Pix[at] {
				part.Pix[part.PixOffset(x, y)] = after.Pix[at]
			}
		}
	}
	return part
}
