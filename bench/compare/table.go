package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/bench/history"
)

// machine returns the processor and the instruction set of a record, such as "Intel Xeon, AVX-512".
func machine(r *history.Record) string {
	set := map[string]string{"avx2": "AVX2", "avx512": "AVX-512", "amx": "AMX", "neon": "NEON"}[r.Kernels]
	return r.Processor() + ", " + cmp.Or(set, r.Kernels)
}

// head returns the conditions of the measurement, followed by the header of the table.
func head(r *history.Record, t *history.Table) string {
	columns := t.Columns
	var versions []string
	if columns == nil {
		columns = []string{"work", "attn ms", "share of peak"}
	}
	for _, p := range t.Peers {
		versions = append(versions, ", "+p.Name+" "+p.Version)
		columns = append(columns, p.Name+" ms", "ratio")
	}
	how := fmt.Sprintf("%s, %s, %s with %s kernels, %d of %d processors. %s%s. %s",
		r.Date, r.CPU, r.OS, r.Kernels, t.Threads, r.Processors,
		strings.Replace(r.Go, "go", "Go ", 1), strings.Join(versions, ""), t.How)
	return paragraph(t.About) + paragraph(how) +
		fmt.Sprintf("| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

// paragraph returns a text in lines of at most 120 columns, followed by an empty line.
func paragraph(text string) string {
	if text == "" {
		return ""
	}
	return history.Wrap(text) + "\n"
}

// cells returns the row in Markdown. The ratio is the peer's time divided by attn's.
func cells(r *history.Row) string {
	list := []string{r.Work, ms(r.Median), r.Share}
	if r.Unsteady {
		list[0] += " *"
	}
	for _, p := range r.Peers {
		if p.Median == 0 {
			list = append(list, "–", "–")
			continue
		}
		list = append(list, ms(p.Median), fmt.Sprintf("%.2f×", p.Ratio))
	}
	return "| " + strings.Join(list, " | ") + " |\n"
}

// ms formats milliseconds with about three significant digits.
func ms(t float64) string {
	switch {
	case t >= 100:
		return fmt.Sprintf("%.0f", t)
	case t >= 10:
		return fmt.Sprintf("%.1f", t)
	case t >= 1:
		return fmt.Sprintf("%.2f", t)
	}
	return fmt.Sprintf("%.3f", t)
}

// notes lists the rows in which attn is slower, the forms that the peers ran, and the reasons for missing figures.
func notes(t *history.Table) string {
	var all strings.Builder
	if t.Rows != nil {
		text := "A ratio above 1 means that attn takes less time."
		for i, p := range t.Peers {
			var behind []string
			none := "not measured"
			for _, r := range t.Rows {
				if r.Peers[i].Ratio > 0 {
					none = "nothing"
				}
				if x := r.Peers[i].Ratio; x > 0 && x < 1 {
					behind = append(behind, fmt.Sprintf("%s (%.2f×)", r.Work, x))
				}
			}
			text += fmt.Sprintf(" Behind %s: %s.", p.Name, cmp.Or(strings.Join(behind, "; "), none))
		}
		if slices.ContainsFunc(t.Rows, func(r history.Row) bool { return r.Unsteady }) {
			text += " In rows with an asterisk, rounds of one side differed by more than a quarter: " +
				"something else ran on this machine."
		}
		all.WriteString("\n" + history.Wrap(text))
	}
	if t.Note != "" {
		all.WriteString("\n" + history.Wrap(t.Note))
	}
	var ran strings.Builder
	for i, p := range t.Peers {
		work := map[string][]string{}
		var order []string
		for _, r := range t.Rows {
			what := r.Peers[i].Ran
			if missing := r.Peers[i].Missing; missing != "" {
				what = "nothing (" + missing + ")"
			}
			if what != "" && work[what] == nil {
				order = append(order, what)
			}
			work[what] = append(work[what], r.Work)
		}
		for _, what := range order {
			ran.WriteString(history.Wrap(fmt.Sprintf("- %s, %s: %s", p.Name, what, strings.Join(work[what], "; "))))
		}
	}
	if ran.Len() > 0 {
		all.WriteString("\nWhat the others ran:\n\n" + ran.String())
	}
	return all.String()
}

// markdown returns the whole table.
func markdown(r *history.Record, t *history.Table) string {
	text := head(r, t)
	for i := range t.Rows {
		text += cells(&t.Rows[i])
	}
	for _, list := range t.Cells {
		text += "| " + strings.Join(list, " | ") + " |\n"
	}
	return text + notes(t)
}

// results is the file that is rendered from the history; the other constant is its beginning.
const (
	results = "bench/RESULTS.md"
	preface = `# Results

` + "`go run ./bench/compare --render`" + ` writes this file from [history](history): the newest tables of each machine.
[README.md](README.md) tells how it is measured, and what was tried.
`
)

// renderResults returns the newest table of each title and kind of machine in Markdown.
// Tables of bench/wasm are in docs/webassembly.md.
func renderResults(records []*history.Record) []byte {
	type part struct{ kind, title, text string }
	var parts []part
	for _, r := range records {
		for _, t := range r.Tables {
			if t.Speeds == nil && !slices.ContainsFunc(parts, func(p part) bool { return p.kind == r.Kind() && p.title == t.Title }) {
				text := fmt.Sprintf("\n## %s on %s\n\n%s", t.Title, machine(r), markdown(r, t))
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
