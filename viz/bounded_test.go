package viz

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
)

// Texts may have any length. The time and memory of a picture, and its size, depend on what it shows of them.
func TestLongTextsAreCutBeforeTheyAreDrawn(t *testing.T) {
	type drawer interface {
		SVG(io.Writer) error
		PNG(io.Writer, float64) error
		Text(io.Writer, Terminal) error
	}
	pieces := []string{"x", "\u0301", "日", "i", "\u200d", "👩\u200d👩\u200d👧", "\n", "\xff", "-"}
	if testing.Short() {
		pieces = pieces[:2]
	}
	for _, piece := range pieces {
		draw := func(length int) (pictures map[string]string, allocated uint64) {
			long := strings.Repeat(piece, length)
			p := panel(3, []string{long + "a", long, "c"}, []string{long, "b", long + "c"}, 1)
			p.Title = long
			small := p
			small.Kind, small.Head = "cross", 1
			one := Figure{Title: long, Unit: long, RowTitle: long, ColumnTitle: long, Axes: long, Panels: []Panel{p}}
			several := one
			several.Panels, several.RowTitle = []Panel{p, small}, ""
			chart := Chart{
				Title: long, X: long, Y: long, Lines: []Line{{Name: long, X: []float64{0, 1}, Y: []float64{1, 2}}},
				Levels: []Level{{Name: long, Y: 1}}, Bands: []Band{{Name: long, X: []float64{0, 1}, Low: []float64{0, 1}, High: []float64{2, 3}}},
			}
			pictures = map[string]string{}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			add := func(name string, write func(io.Writer) error) {
				var b bytes.Buffer
				if err := write(&b); err != nil {
					t.Fatal(err)
				}
				pictures[name] = b.String()
			}
			for name, d := range map[string]drawer{"one panel": one, "two panels": several, "chart": chart} {
				add(name+" as SVG", d.SVG)
				add(name+" as PNG", func(w io.Writer) error { return d.PNG(w, 1) })
				add(name+" as text", func(w io.Writer) error { return d.Text(w, Terminal{Width: 100}) })
				add(name+" as text of any width", func(w io.Writer) error { return d.Text(w, Terminal{}) })
			}
			add("page", one.HTML)
			one.Lacking()
			runtime.ReadMemStats(&after)
			return pictures, after.TotalAlloc - before.TotalAlloc
		}
		draw(1) // fonts and tables are made once
		want, few := draw(40_000)
		got, many := draw(140_000)
		for name, picture := range got {
			if picture != want[name] {
				t.Errorf("%q: %s has %d bytes when they are long, want the %d bytes when they are shorter", piece, name, len(picture), len(want[name]))
			}
		}
		if copies := 20 * 100_000 * uint64(len(piece)); many > few+copies { // not of each cell or line
			t.Errorf("%q: drawing allocates %d bytes when they are long, want at most a few copies more than the %d when they are shorter", piece, many, few)
		}
	}
}
