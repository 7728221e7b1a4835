package film

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"math"
	"strings"
	"testing"

	"golang.org/x/image/webp"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/viz"
)

// shown is a frame of an animation: the picture that is on the screen, and its duration.
type shown struct {
	img      *image.NRGBA
	duration int
}

// play decodes an animation.
func play(t *testing.T, data []byte) (all []shown) {
	t.Helper()
	number := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
	if string(data[:4]) != "RIFF" || int(binary.LittleEndian.Uint32(data[4:])) != len(data)-8 || string(data[8:16]) != "WEBPVP8X" {
		t.Fatalf("the file begins with %q", data[:16])
	}
	canvas := image.NewNRGBA(image.Rect(0, 0, number(data[24:])+1, number(data[27:])+1))
	for at := 12; at < len(data); {
		size := int(binary.LittleEndian.Uint32(data[at+4:]))
		chunk := data[at+8 : at+8+size]
		switch name := string(data[at : at+4]); name {
		case "ANIM":
			if loops := binary.LittleEndian.Uint16(chunk[4:]); loops != 0 {
				t.Errorf("it repeats %d times", loops)
			}
		case "ANMF":
			still := append([]byte("RIFF\x00\x00\x00\x00WEBP"), chunk[16:]...)
			binary.LittleEndian.PutUint32(still[4:], uint32(len(still)-8))
			img, err := webp.Decode(bytes.NewReader(still))
			if err != nil {
				t.Fatal(err)
			}
			corner := image.Pt(2*number(chunk), 2*number(chunk[3:]))
			draw.Draw(canvas, img.Bounds().Add(corner), img, image.Point{}, draw.Over)
			now := image.NewNRGBA(canvas.Rect)
			copy(now.Pix, canvas.Pix)
			all = append(all, shown{now, number(chunk[12:])})
		}
		at += 8 + size
	}
	return all
}

// figure draws the record of a frame, without the title.
func figure(r *heads.Record) (viz.Figure, error) {
	l := r.Layers[0]
	return viz.Figure{Panels: []viz.Panel{{Rows: l.Queries, Columns: l.Keys, Values: l.Weights}}}, nil
}

// filmOf returns a film with a head of two tokens; its weights are those given.
func filmOf(t *testing.T, weights ...float32) *heads.Film {
	t.Helper()
	f := &heads.Film{}
	for i, w := range weights {
		loss := math.NaN()
		if i > 0 {
			loss = 1 / float64(i)
		}
		l := heads.Layer{Name: "encoder.0", Heads: 1, Queries: []string{"a", "b"}, Keys: []string{"a", "b"}, Weights: []float32{w, 1 - w, 1 - w, w}}
		if err := f.Add(heads.Frame{Step: 1000 * i, Loss: loss, Record: &heads.Record{Layers: []heads.Layer{l}}}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// Each frame of the animation is the picture of its step, and the last stays.
func TestWrite(t *testing.T) {
	f := filmOf(t, 0.5, 0.625, 0.75, 1)
	for _, on := range []viz.Ground{viz.OnLight, viz.OnDark} {
		var b bytes.Buffer
		if err := Write(t.Context(), &b, f, figure, on); err != nil {
			t.Fatal(err)
		}
		frames := play(t, b.Bytes())
		if len(frames) != 4 {
			t.Fatalf("%d frames, want 4", len(frames))
		}
		for i, got := range frames {
			drawn, _ := figure(f.Frames[i].Record)
			drawn.Title = Title(f.Frames[i])
			want, err := drawn.Image(2, on)
			if err != nil {
				t.Fatal(err)
			}
			if d := difference(got.img, want); d > 6 {
				t.Errorf("frame %d differs from its picture by %d of 255", i, d)
			}
			if ms := map[bool]int{false: duration, true: lastDuration}[i == 3]; got.duration != ms {
				t.Errorf("frame %d takes %d ms, want %d", i, got.duration, ms)
			}
		}
	}
}

// difference returns the largest difference of two pictures in a colour, 0 to 255.
func difference(a *image.NRGBA, b *image.RGBA) (most int) {
	if a.Rect != b.Rect {
		return 255
	}
	for i := range a.Pix {
		most = max(most, int(a.Pix[i])-int(b.Pix[i]), int(b.Pix[i])-int(a.Pix[i]))
	}
	return most
}

// Labels of any length, and with any number of marks, take a bounded part of the picture.
func TestWriteLabels(t *testing.T) {
	for _, label := range []string{
		"e" + strings.Repeat("\u0301", 200), strings.Repeat("e"+strings.Repeat("\u0301", 200), 30),
		strings.Repeat("e\u0301\u0302\u0303", 30), strings.Repeat("👩\u200d", 300), strings.Repeat("漢", 300),
		strings.Repeat("\u202e", 300), strings.Repeat("\U000e0100", 300), strings.Repeat("W", 1<<20),
	} {
		f := filmOf(t, 0.5)
		for i := range f.Frames[0].Record.Layers {
			l := &f.Frames[0].Record.Layers[i]
			l.Queries, l.Keys = []string{label, "b"}, []string{label, "b"}
		}
		var b bytes.Buffer
		if err := Write(t.Context(), &b, f, figure, viz.OnLight); err != nil {
			t.Errorf("%.20q of %d bytes: %v", label, len(label), err)
		} else if size := play(t, b.Bytes())[0].img.Rect.Size(); max(size.X, size.Y) > 2400 {
			t.Errorf("%.20q of %d bytes: %v pixels", label, len(label), size)
		}
	}
}

func TestWriteFails(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Write(ended, new(bytes.Buffer), filmOf(t, 1), figure, viz.OnLight); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context, Write returns %v", err)
	}
	if err := Write(t.Context(), new(bytes.Buffer), &heads.Film{}, figure, viz.OnLight); err == nil {
		t.Error("a film without frames is written")
	}
	broken := errors.New("broken")
	fails := func(*heads.Record) (viz.Figure, error) { return viz.Figure{}, broken }
	if err := Write(t.Context(), new(bytes.Buffer), filmOf(t, 1), fails, viz.OnLight); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	many := func(r *heads.Record) (viz.Figure, error) {
		f, _ := figure(r)
		f.Columns = 1
		for len(f.Panels) < 400 {
			f.Panels = append(f.Panels, f.Panels[0])
		}
		return f, nil
	}
	if err := Write(t.Context(), new(bytes.Buffer), filmOf(t, 1), many, viz.OnLight); err == nil || !strings.Contains(err.Error(), "want at most 4194304 pixels, 16384 on a side") {
		t.Errorf("error %v", err)
	}
}

func TestTitle(t *testing.T) {
	for want, x := range map[string]heads.Frame{
		"step 0":                        {Loss: math.NaN()},
		"step 999, loss 0.2500":         {Step: 999, Loss: 0.25},
		"step 1,000, loss 0.0000":       {Step: 1000, Loss: 0},
		"step 12,345,678, loss 10.0000": {Step: 12345678, Loss: 10},
	} {
		if got := Title(x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// More colours than a palette has: the rarest become their neighbours.
func TestPainter(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 300, 2))
	for x := range 300 {
		img.SetRGBA(x, 0, color.RGBA{uint8(x), uint8(x / 2), 0, 0xff})
		img.SetRGBA(x, 1, color.RGBA{0, 0, 0, 0xff})
	}
	counts := map[color.RGBA]int{}
	runs(img, func(c color.RGBA, from, to int) { counts[c] += to - from })
	painted := newPainter(counts).paint(img)
	if n := len(painted.Palette); n > 256 {
		t.Errorf("%d colours in the palette, want at most 256", n)
	}
	for x := range 300 {
		got, want := painted.At(x, 0).(color.RGBA), img.RGBAAt(x, 0)
		if got.A != 0xff || max(int(got.R)-int(want.R), int(want.R)-int(got.R)) > 2 {
			t.Errorf("pixel %d is %v, want %v", x, got, want)
		}
	}
}

// The page draws a signed layer on a scale with two sides.
func TestSignedLayer(t *testing.T) {
	tokens := []string{"a", "b"}
	r := &heads.Record{Layers: []heads.Layer{{
		Name: "decoder.0", Kind: heads.Decoder, Heads: 1, Queries: tokens, Keys: tokens, Weights: []float32{1, 0, -1, 0.5}, Signed: true,
	}}}
	_, svg, err := Layer(r, 0)
	if err != nil || !strings.Contains(svg, `class="d1"`) || !strings.Contains(svg, `class="d255"`) {
		t.Errorf("%v: %s", err, svg)
	}
}
