package viz

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// The extension chooses the format. Another one is an error that lists the known ones, and leaves no file.
func TestWriteFile(t *testing.T) {
	figure := Figure{Panels: []Panel{{Rows: []string{"a"}, Columns: []string{"b"}, Values: []float32{0.5}}}}
	chart := Chart{Lines: []Line{{X: []float64{0, 1}, Y: []float64{0, 1}}}}
	for _, c := range []struct {
		name string
		p    Picture
		want func(io.Writer) error
	}{
		{"a.svg", figure, figure.SVG}, {"a.PNG", figure, func(w io.Writer) error { return figure.PNG(w, 2) }},
		{"a.html", figure, figure.HTML}, {"a.csv", figure, figure.CSV}, {"a.json", figure, figure.JSON},
		{"a.npy", figure, figure.NPY}, {"b.svg", chart, chart.SVG}, {"c.svg", Multiples{Charts: []Chart{chart}}, chart.SVG},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := WriteFile(path, c.p); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := c.want(&want); err != nil {
			t.Fatal(err)
		}
		if c.name != "c.svg" && !bytes.Equal(got, want.Bytes()) || !bytes.HasPrefix(got, want.Bytes()[:4]) {
			t.Errorf("%s has %.60q…, want %.60q…", c.name, got, want.Bytes())
		}
	}
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		p          Picture
		path, want string
	}{
		{figure, "a.bmp", `viz: "a.bmp" has no known extension, want one of .csv, .html, .json, .npy, .png, .svg`},
		{chart, "a.csv", `viz: "a.csv" has no known extension, want one of .png, .svg`},
		{chart, "svg", `viz: "svg" has no known extension, want one of .png, .svg`},
		{Chart{}, "a.svg", "write a.svg: viz: a chart without lines"},
	} {
		if err := WriteFile(c.path, c.p); err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", c.path, err, c.want)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("files %v (%v), want none", left, err)
	}
}
