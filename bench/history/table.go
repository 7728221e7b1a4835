package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/cells"
)

// Hardware returns the processor and the instruction set, such as "Intel Xeon, AVX-512 and AMX".
func (r *Record) Hardware() string {
	set := map[string]string{"avx2": "AVX2", "avx512": "AVX-512", "neon": "NEON"}[r.Kernels]
	name := r.Processor() + ", " + cmp.Or(set, r.Kernels)
	if r.hasTiles() {
		name += " and AMX"
	}
	return name
}

// Head returns the conditions of the measurement of a table, followed by the header of the table.
func (r *Record) Head(t *Table) string {
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
	return wrap(text) + "\n"
}

// Cells returns the row in Markdown. The ratio is the peer's time divided by attn's.
func (r *Row) Cells() string {
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

// Notes lists the rows in which attn is slower, the forms that the peers ran, and the reasons for missing figures.
func (t *Table) Notes() string {
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
		if slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Unsteady }) {
			text += " In rows with an asterisk, rounds of one side differed by more than a quarter: " +
				"something else ran on this machine."
		}
		all.WriteString("\n" + wrap(text))
	}
	if t.Note != "" {
		all.WriteString("\n" + wrap(t.Note))
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
			ran.WriteString(wrap(fmt.Sprintf("- %s, %s: %s", p.Name, what, strings.Join(work[what], "; "))))
		}
	}
	if ran.Len() > 0 {
		all.WriteString("\nWhat the others ran:\n\n" + ran.String())
	}
	return all.String()
}

// Markdown returns the whole table.
func (r *Record) Markdown(t *Table) string {
	text := r.Head(t)
	for i := range t.Rows {
		text += t.Rows[i].Cells()
	}
	for _, list := range t.Cells {
		text += "| " + strings.Join(list, " | ") + " |\n"
	}
	return text + t.Notes()
}

// wrap returns a text in lines of at most 120 columns. The second and later lines of a list item are indented.
func wrap(text string) string {
	text, item := strings.CutPrefix(text, "- ")
	if item {
		return "- " + strings.Join(cells.Lines(strings.Fields(text), " ", 118), "\n  ") + "\n"
	}
	return strings.Join(cells.Lines(strings.Fields(text), " ", 120), "\n") + "\n"
}
