package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/bench/history"
)

// results is the file that is rendered from the history; the other constant is its beginning.
const (
	results = "bench/RESULTS.md"
	preface = `# Results

` + "`go run ./bench/compare --render`" + ` writes this file from [history](history): the newest tables of each machine.
[README.md](README.md) tells how it is measured, and what was tried.
`
)

// renderResults returns the newest table of each title and kind of machine in Markdown.
func renderResults(records []*history.Record) []byte {
	type part struct{ kind, title, text string }
	var parts []part
	for _, r := range records {
		for _, t := range r.Tables {
			if !slices.ContainsFunc(parts, func(p part) bool { return p.kind == r.Kind() && p.title == t.Title }) {
				text := fmt.Sprintf("\n## %s on %s\n\n%s", t.Title, r.Hardware(), r.Markdown(t))
				parts = append(parts, part{r.Kind(), t.Title, text})
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.kind, b.kind) })
	text := bytes.NewBufferString(preface)
	for _, p := range parts {
		text.WriteString(p.text)
	}
	return text.Bytes()
}

// render writes the file.
func render(dir string, messages io.Writer) error {
	records, err := history.Read(dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(messages, "compare: writing", results, "and", picture)
	if err := os.WriteFile(filepath.FromSlash(results), renderResults(records), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.FromSlash(picture), chart(pictured(records)), 0o644)
}
