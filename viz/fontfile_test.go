package viz

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"slices"
	"testing"

	"golang.org/x/image/font/gofont/goregular"
)

// fontWith returns the Go font with a single character, r, that looks like A.
func fontWith(t *testing.T, r rune) *Font {
	t.Helper()
	p := newPen(regular(), 10)
	glyph, err := p.font.GlyphIndex(nil, 'A')
	if err != nil {
		t.Fatal(err)
	}
	be := binary.BigEndian
	cmap := []byte{0, 0, 0, 1, 0, 3, 0, 10, 0, 0, 0, 12, 0, 12, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 1}
	for _, n := range []uint32{uint32(r), uint32(r), uint32(glyph)} {
		cmap = be.AppendUint32(cmap, n)
	}
	// The table directory is copied, followed by the tables.
	n := int(be.Uint16(goregular.TTF[4:]))
	out := bytes.Clone(goregular.TTF[:12+16*n])
	for i := range n {
		entry := out[12+16*i:][:16]
		table := goregular.TTF[be.Uint32(entry[8:]):][:be.Uint32(entry[12:])]
		if string(entry[:4]) == "cmap" {
			table = cmap
		}
		be.PutUint32(entry[8:], uint32(len(out)))
		be.PutUint32(entry[12:], uint32(len(table)))
		out = append(out, table...)
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
	}
	f, err := ParseFont(out)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A character that the Go fonts lack is drawn with another font and no longer as a box.
func TestOtherFonts(t *testing.T) {
	figure := func(token string, fonts ...*Font) Figure {
		return Figure{Panels: []Panel{{Rows: []string{token}, Columns: []string{"b", "▁c"}, Values: []float32{0.5, 0.25}}}, Fonts: fonts}
	}
	if got := figure("日a日本").Lacking(); !slices.Equal(got, []rune("日本")) {
		t.Errorf("lacking are %q", string(got))
	}
	font := fontWith(t, '日')
	if got := figure("日a日本", font).Lacking(); !slices.Equal(got, []rune("本")) || !font.Has('日') || font.Has('A') {
		t.Errorf("with the font, lacking are %q", string(got))
	}
	ink := func(f Figure) []byte {
		var b bytes.Buffer
		if err := f.PNG(&b, 2); err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		var gray []byte // of the row label
		for y := picture.Bounds().Dy() / 4; y < picture.Bounds().Dy()/2; y++ {
			for x := range 110 {
				r, _, _, _ := picture.At(x, y).RGBA()
				gray = append(gray, byte(r>>8))
			}
		}
		return gray
	}
	without, with := ink(figure("日")), ink(figure("日", font))
	if bytes.Equal(without, with) {
		t.Error("the font draws nothing")
	}
	for name, data := range map[string][]byte{"nothing": nil, "text": []byte("not a font"), "a collection": []byte("ttcf")} {
		if _, err := ParseFont(data); err == nil {
			t.Errorf("%s is taken for a font", name)
		}
	}
}
