package viz

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/cells"
)

func TestSVG(t *testing.T) {
	for name, f := range figures() {
		var b strings.Builder
		if err := f.SVG(&b); err != nil {
			t.Fatal(err)
		}
		if name != "dense" && name != "wider" { // the bytes of an image depend on the version of Go
			golden(t, "figure_"+name+".svg", b.String())
		}
		checkXML(t, name, b.String())
	}
}

// checkXML checks that a picture is XML in which tokens are text, and that it loads nothing.
func checkXML(t *testing.T, name, text string) {
	t.Helper()
	allowed := map[string]bool{"svg": true, "style": true, "title": true, "defs": true, "linearGradient": true, "stop": true, "pattern": true, "path": true, "g": true, "text": true, "image": true}
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e, ok := token.(xml.StartElement); ok {
			if !allowed[e.Name.Local] {
				t.Errorf("%s has an element %s", name, e.Name.Local)
			}
			for _, a := range e.Attr {
				if a.Name.Local == "href" && !strings.HasPrefix(a.Value, "data:") || strings.HasPrefix(a.Name.Local, "on") {
					t.Errorf("%s: %s has %s=%q", name, e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
}

func TestSVGTokensStayText(t *testing.T) {
	var b strings.Builder
	if err := figures()["odd"].SVG(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">&lt;/script&gt;</text>", ">&amp;&lt;&gt;&#34;&#39;</text>", ">日本語</text>", `>\n</text>`, `>\u202eevil</text>`, ">\u25cc\u0301</text>", `>\xff</text>`, `>\ufffe</text>`} {
		if strings.Count(b.String(), want) != 2 { // a row and a column
			t.Errorf("%d of %s, want 2", strings.Count(b.String(), want), want)
		}
	}
}

// A panel with many tokens is an image with the colours of its values.
func TestSVGImage(t *testing.T) {
	f := Figure{Panels: []Panel{panel(0, tokens(131), tokens(257), 0.1)}, Scale: Largest}
	f.Panels[0].Values[5*257+200] = nan
	var b strings.Builder
	if err := f.SVG(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 100e3 {
		t.Errorf("%d bytes", b.Len())
	}
	m := regexp.MustCompile(`base64,([^"]*)"`).FindStringSubmatch(b.String())
	if m == nil {
		t.Fatal("there is no image")
	}
	img, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(m[1])))
	if err != nil {
		t.Fatal(err)
	}
	e, _ := f.check()
	n := img.Bounds().Dx() / 257
	if img.Bounds() != image.Rect(0, 0, 257*n, 131*n) {
		t.Fatalf("the image is %v", img.Bounds())
	}
	for i := range 131 {
		for j := range 257 {
			shade := e.shade(f.Panels[0].Values[i*257+j])
			if shade == 254 {
				continue // replaced by holes
			}
			if got, want := color.RGBAModel.Convert(img.At(j*n, i*n+n-1)), shadeColor(shade); got != want {
				t.Fatalf("cell %d, %d is %v, want %v", i, j, got, want)
			}
		}
	}
}

func TestHTML(t *testing.T) {
	for name, f := range figures() {
		var b strings.Builder
		if err := f.HTML(&b); err != nil {
			t.Fatal(err)
		}
		page := b.String()
		if name == "words" || name == "odd" {
			golden(t, "figure_"+name+".html", page)
		}
		picture := page[strings.Index(page, "<svg"):][:strings.Index(page, "</svg>")+len("</svg>")-strings.Index(page, "<svg")]
		checkXML(t, name, picture)
		if strings.Contains(page, "<script") || regexp.MustCompile(`(src|href)="[^d]`).MatchString(page) {
			t.Errorf("%s has a script or asks for something", name)
		}
		if strings.Contains(strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""), "://") {
			t.Errorf("%s names an address", name)
		}
	}
}

func TestHTMLHover(t *testing.T) {
	var b strings.Builder
	f := figures()["odd"]
	if err := f.HTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>&lt;/script&gt; → &lt;/script&gt;: 0.6321</title>", `<title>日本語 → a\x1bb: -1</title>`, `<title>&lt;/script&gt; → \n: NaN</title>`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is missing", want)
		}
	}
	if got, want := strings.Count(b.String(), "→"), len(f.Panels[0].Values)+1; got != want {
		t.Errorf("%d cells tell their weights, want %d", got-1, want-1)
	}
	b.Reset()
	if err := figures()["dense"].HTML(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), " → ") || !strings.Contains(b.String(), "Too many cells") {
		t.Error("a page with many cells does not say that it omits their values")
	}
}

// Everything is inside the picture at every size.
func TestLayout(t *testing.T) {
	for name, f := range figures() {
		s, err := f.layout()
		if err != nil {
			t.Fatal(err)
		}
		inside := func(what string, x, y, w, h float64) {
			if x < 0 || y < 0 || x+w > s.width+0.01 || y+h > s.height+0.01 || math.IsNaN(x+y+w+h) {
				t.Errorf("%s: %s at %.1f, %.1f of %.1f×%.1f is not within %.1f×%.1f", name, what, x, y, w, h, s.width, s.height)
			}
		}
		for i, p := range s.panels {
			inside(p.Title, p.x, p.y, p.width(), p.height())
			for _, q := range s.panels[:i] {
				if p.x < q.x+q.width() && q.x < p.x+p.width() && p.y < q.y+q.height() && q.y < p.y+p.height() {
					t.Errorf("%s: panels %s and %s lie on each other", name, p.Title, q.Title)
				}
			}
		}
		for _, c := range s.texts {
			w := textWidth(c.text, c.size)
			from := [...]float64{0, -w / 2, -w}[c.anchor]
			if c.up {
				inside(c.text, c.x-0.8*c.size, c.y-from-w, c.size, w)
			} else {
				inside(c.text, c.x+from, c.y-0.8*c.size, w, c.size)
			}
		}
	}
}

func TestPNG(t *testing.T) {
	for name, f := range figures() {
		s, err := f.layout()
		if err != nil {
			t.Fatal(err)
		}
		scales := []float64{2.5, 1, 2}
		if testing.Short() {
			scales = scales[:1]
		}
		for _, scale := range scales {
			var b bytes.Buffer
			if err := f.PNG(&b, scale); err != nil {
				t.Fatal(err)
			}
			img, err := png.Decode(&b)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := img.Bounds().Size(), image.Pt(int(math.Ceil(s.width*scale)), int(math.Ceil(s.height*scale))); got != want {
				t.Errorf("%s: the picture is %v, want %v", name, got, want)
			}
			for _, p := range s.panels {
				for i := range p.Rows {
					for j := range p.Columns {
						shade := s.shadeOf(p.Panel, i*len(p.Columns)+j)
						if shade == veil {
							continue // hatched
						}
						at := p.cell(i, j)
						x, y := int((at.x+at.w/2)*scale), int((at.y+at.h/2)*scale)
						if got := color.RGBAModel.Convert(img.At(x, y)); got != shadeColor(shade) {
							t.Fatalf("%s: cell %d, %d is %v, want %v", name, i, j, got, shadeColor(shade))
						}
					}
				}
			}
		}
	}
}

func TestPNGRefuses(t *testing.T) {
	for _, scale := range []float64{0, -1, math.NaN(), math.Inf(1), 1e9} {
		var b bytes.Buffer
		if err := figures()["cross"].PNG(&b, scale); err == nil || !strings.Contains(err.Error(), "viz: a picture of ") || b.Len() > 0 {
			t.Errorf("scale %v: error %v", scale, err)
		}
	}
}

// With any bytes in a token, pictures stay well-formed and terminals safe.
func FuzzToken(f *testing.F) {
	for _, p := range figures()["odd"].Panels {
		for _, token := range p.Columns {
			f.Add(token)
		}
	}
	f.Add("⸻\u0600\u0301\x00]]>&#0;")
	f.Fuzz(func(t *testing.T, token string) {
		fig := Figure{Title: token, Panels: []Panel{{Title: token, Rows: []string{token}, Columns: []string{token, "b"}, Values: []float32{0.3, 0.7}}}}
		var b strings.Builder
		if err := fig.HTML(&b); err != nil {
			t.Fatal(err)
		}
		page := b.String()
		from, to := strings.Index(page, "<svg"), strings.Index(page, "</svg>")
		checkXML(t, "the picture", page[from:to+len("</svg>")])
		if strings.Count(page, "<") != strings.Count(page, ">") {
			t.Error("a token is a tag")
		}
		for line := range strings.Lines(drawn(t, fig, Terminal{Width: 40})) {
			line = strings.TrimSuffix(line, "\n")
			if i := strings.IndexFunc(line, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x2028 && r <= 0x202e }); i >= 0 {
				t.Errorf("%q moves the cursor", line[i:])
			}
			if n := cells.Width(line); n > 40 {
				t.Errorf("%q is %d wide", line, n)
			}
		}
		if err := fig.PNG(io.Discard, 1); err != nil {
			t.Fatal(err)
		}
	})
}

// shadeColor returns the colour of a shade on white.
func shadeColor(shade int) color.RGBA {
	if shade == hole {
		return holeTint.light
	}
	return colormap()[shade]
}

// The sign of a space is drawn lighter than the letters of its token, and the text is still the token.
func TestSpaceSign(t *testing.T) {
	f := Figure{Panels: []Panel{{Rows: []string{"▁<s>"}, Columns: []string{"a▁▁b"}, Values: []float32{0.5}}}}
	var b bytes.Buffer
	if err := f.SVG(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`><tspan fill-opacity="0.4">▁</tspan>&lt;s&gt;</text>`, `>a<tspan fill-opacity="0.4">▁▁</tspan>b</text>`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is missing in\n%s", want, b.String())
		}
	}
}
