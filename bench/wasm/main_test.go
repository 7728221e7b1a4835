//go:build !js

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/bench/history"
)

// The table in the documentation is the newest measurement.
func TestDocument(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	want, err := rendered("bench/history", text)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("%s is not what bench/history says: go run ./bench/wasm --render", document)
	}
	if strings.Count(string(text), "\n| ") < 1+len(rows) {
		t.Errorf("%s has fewer lines than there is work to measure", document)
	}
}

// Measurements are saved, read again, and rendered in the units of their rows.
func TestMeasuredToDocument(t *testing.T) {
	table := tableOf([]map[string][]float64{
		{rows[0].name: {2.5, 2.46, 9}, rows[3].name: {5607.4}, rows[4].name: {4.71}},
		{rows[0].name: {35.04}, rows[3].name: {43251}, rows[4].name: {1.9}},
	}, "Node 20", 3)
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "x.md")
	r := history.New()
	r.CPU, r.Date, r.Kernels, r.Tables = "AMD EPYC", "2026-11-23", kernels, []*history.Table{table}
	if err := os.WriteFile(path, []byte("before\n"+sectionBegin+"old\n"+sectionEnd+" after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := renderDocument(dir, path); err == nil {
		t.Error("rendered without a history")
	}
	if err := r.Save(dir); err != nil {
		t.Fatal(err)
	}
	if err := renderDocument(dir, path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `before
## Speed

On one core of AMD EPYC, 2026-11-23, with attn's ` + "`reverse` example and the settings of `attn train`" + ` for dates. Medians
of 3 runs in turns.

| | portable Go, Node 20 | vectors, Node 20 | ratio |
|---|---|---|---|
| product 256×256×256 | 2.5 GFLOP/s | 35 GFLOP/s | 14 × |
| training dates, width 64 | 5,610 tokens/s | 43,300 tokens/s | 7.7 × |
| a date translated, all heads recorded | 4.7 ms | 1.9 ms | 2.5 × |

` + sectionEnd + " after\n"
	if string(got) != want {
		t.Errorf("rendered %s, want %s", got, want)
	}
	if _, err := rendered(dir, []byte("no section")); err == nil {
		t.Error("a document without the section is rendered")
	}
}

func TestEngineName(t *testing.T) {
	for text, want := range map[string]string{
		"v20.19.5\n": "Node 20", "Chromium 156.0.7.1 built on Debian\n": "Chromium 156", "Google Chrome 156.0.1": "Google Chrome 156",
		"unknown": "", "": "",
	} {
		if got, err := engineName("x", text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v, want %q", text, got, err, want)
		}
	}
}
