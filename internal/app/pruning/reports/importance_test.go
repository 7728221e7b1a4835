package reports

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/viz"
)

// If no head has a positive importance, no head is marked.
func TestImportanceOfNothing(t *testing.T) {
	r := Importance{
		Layers: []Layer{{Kind: "encoder", Heads: 2}},
		Scores: []Scores{{Method: "leave-one-out", Values: [][]Number{{0, -1}}}},
	}
	for _, v := range r.Figure().Panels[0].Values {
		if v != 0 {
			t.Errorf("drawn as %v, want 0", v)
		}
	}
}

// On a terminal, lines fit the width, tables split into pieces with about the same number of
// columns, and words are not broken. Other programs get whole tables with a column for each value.
func TestImportanceOnTerminals(t *testing.T) {
	r := Importance{Data: "dates", Task: "translation", Items: "pairs", Texts: 20}
	for _, kind := range []string{"encoder", "decoder", "cross"} {
		l := Layer{Kind: kind, Name: kind, Heads: 8, Measures: map[string][]Number{}}
		for _, m := range (heads.Measures{}).List() {
			l.Measures[m.Name] = []Number{1, 0.5, 0.5, 0.5, 0.25, 0.5, 0.5, 12.5}
		}
		r.Layers = append(r.Layers, l)
	}
	for _, method := range []string{"leave-one-out", "gradient", "taylor", "fisher", "weight-norm", "confidence"} {
		values := []Number{0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08}
		r.Scores = append(r.Scores, Scores{Method: method, Values: [][]Number{values, values, values}, Rank: -0.5, Seconds: 12.3})
	}
	heads := regexp.MustCompile(`(?m)^head  .*`)
	for width, pieces := range map[int][]int{40: {2, 2, 2, 3, 3, 2, 2, 2, 2}, 60: {3, 3, 5, 5, 4}, 80: {6, 7, 7}, 120: {6, 7, 7}} {
		for _, colors := range []viz.Colors{viz.NoColors, viz.TrueColor} {
			var b strings.Builder
			if err := r.Write(&b, viz.Terminal{Width: width, Colors: colors}, "", 0); err != nil {
				t.Fatal(err)
			}
			text := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(b.String(), "")
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%d: %q is %d wide", width, line, n)
				}
			}
			var got []int
			for _, head := range heads.FindAllString(text, -1) {
				got = append(got, len(strings.Fields(head))-1)
			}
			if !slices.Equal(got, pieces) {
				t.Errorf("%d: tables of %v columns, want %v:\n%s", width, got, pieces, text)
			}
		}
	}
	var b strings.Builder
	if err := r.Write(&b, viz.Terminal{}, "", 0); err != nil || strings.Count(b.String(), "\nkind     layer head ") != 2 {
		t.Errorf("whole tables: %v\n%s", err, b.String())
	}
}

// The table of measures is sorted, with unknown values last, and cut after its best rows.
func TestRowsOfMeasures(t *testing.T) {
	r := Importance{Items: "texts", Layers: []Layer{
		{Kind: "decoder", Heads: 3, Measures: map[string][]Number{}}, {Kind: "decoder", Index: 1, Heads: 2, Measures: map[string][]Number{}},
	}}
	for _, m := range (heads.Measures{}).List() {
		r.Layers[0].Measures[m.Name], r.Layers[1].Measures[m.Name] = []Number{1, 1, 1}, []Number{1, 1}
	}
	r.Layers[0].Measures["induction"], r.Layers[1].Measures["induction"] = []Number{0.25, NaN, -1}, []Number{0.5, 0.25}
	for _, c := range []struct {
		measure string
		most    int
		want    string
	}{
		{"", 0, "0 0, 0 1, 0 2, 1 0, 1 1"},
		{"induction", 0, "1 0, 0 0, 1 1, 0 2, 0 1"},
		{"induction", 2, "1 0, 0 0"},
		{"entropy", 9, "0 0, 0 1, 0 2, 1 0, 1 1"},
	} {
		var b strings.Builder
		if err := r.Write(&b, viz.Terminal{}, c.measure, c.most); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range regexp.MustCompile(`(?m)^decoder .*`).FindAllString(b.String(), -1) {
			fields := strings.Fields(line)
			if got = append(got, fields[1]+" "+fields[2]); (got[len(got)-1] == "0 1") != slices.Contains(fields, "-") {
				t.Errorf("%q: want a dash for a value that is unknown, and no other", line)
			}
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%d by %q: heads %s, want %s", c.most, c.measure, text, c.want)
		}
	}
}

// A kind without heads is omitted from the figure, which cannot draw a panel without
// columns.
func TestImportanceWithoutHeads(t *testing.T) {
	f := Importance{
		Layers: []Layer{{Kind: "encoder", Heads: 2}, {Kind: "cross"}, {Kind: "encoder", Index: 1, Heads: 1}},
		Scores: []Scores{{Method: "leave-one-out", Values: [][]Number{{1, 2}, nil, {NaN}}}},
	}.Figure()
	// The second layer has one head less; that the score of the other is unknown stays visible.
	if got := f.Panels[0].Masked; !slices.Equal(got, []bool{false, false, false, true}) || f.Hatched != "absent" {
		t.Errorf("the cells %v are %s", got, f.Hatched)
	}
	if len(f.Panels) != 1 || f.Columns != 1 {
		t.Errorf("%d panels in %d columns, want 1 in 1", len(f.Panels), f.Columns)
	}
	if err := f.SVG(io.Discard); err != nil {
		t.Error(err)
	}
}
