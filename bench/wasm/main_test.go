//go:build !js

package main

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/bench/history"
)

// The ratios in the documentation are those of the newest measurement.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/webassembly.md")
	if err != nil {
		t.Fatal(err)
	}
	document := strings.Join(strings.Fields(string(text)), " ")
	records, err := history.Read("../history")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ title, work, sentence string }{
		{"WebAssembly in Node", rows[0].name, "%.2[1]g times as fast as in portable Go %[2]s"},
		{"WebAssembly in a browser", rows[0].name, "%.2[1]g times %[2]s"},
		{"WebAssembly in Node", rows[2].name, "%.2[1]g times as fast in Node"},
		{"WebAssembly in a browser", rows[2].name, "%.2[1]g times in Chromium."},
	} {
		at := slices.IndexFunc(records, func(r *history.Record) bool { return r.Find(c.title) != nil })
		if at < 0 {
			t.Fatalf("%s is not in the history", c.title)
		}
		table := records[at].Find(c.title)
		row := slices.IndexFunc(table.Rows, func(r history.Row) bool { return r.Work == c.work })
		if row < 0 {
			t.Fatalf("%s has no row %s", c.title, c.work)
		}
		want := fmt.Sprintf(c.sentence, table.Rows[row].Peers[0].Ratio, table.Peers[0].Version)
		if !strings.Contains(document, want) {
			t.Errorf("docs/webassembly.md lacks %q", want)
		}
	}
}

// Measurements are saved, and read again with the ratio of their medians.
func TestMeasured(t *testing.T) {
	table := tableOf([]map[string][]float64{
		{rows[0].name: {15, 14.9, 99}, rows[2].name: {180}, rows[4].name: {4e6}},
		{rows[0].name: {1}, rows[2].name: {20}, rows[4].name: {5e4}},
	}, "WebAssembly in Node", "Node v20.19.5", 3)
	dir := t.TempDir()
	r := history.New()
	r.Kernels, r.Tables = "wasm", []*history.Table{table}
	if err := r.Save(dir); err != nil {
		t.Fatal(err)
	}
	all, err := history.Read(dir)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d records, %v", len(all), err)
	}
	got := all[0].Find("WebAssembly in Node")
	if !reflect.DeepEqual(got, table) {
		t.Errorf("read %+v, want %+v", got, table)
	}
	markdown := r.Markdown(table)
	for _, want := range []string{
		", portable Go in Node v20.19.5. Medians of 3 runs in turns.",
		"| product 256×256×256 | 1.00 | 33.6 GFLOP/s | 15.0 | 15.00× |",
		"| training dates, width 64, 1,000 tokens | 20.0 | 50.0 k tokens/s | 180 | 9.00× |",
		"| training until 97% of the dates are exact | 50000 |  | 4000000 | 80.00× |",
	} {
		if !strings.Contains(strings.ReplaceAll(markdown, "\n", " "), want) {
			t.Errorf("no %s in %s", want, markdown)
		}
	}
}
