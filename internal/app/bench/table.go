package bench

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Column is a column of a table that is written row by row. A negative width is for text, which is
// left-aligned. If there is no room for all columns, those with the largest rank are omitted first;
// columns of rank 0 are never omitted.
type Column struct {
	Name  string
	Width int
	Rank  int
}

func (c Column) width() int { return max(c.Width, -c.Width) }

// Row is a measurement in a table: a Result or a Comparison.
type Row interface {
	cells() []string
	// object returns the row as an object for JSON.
	object(m Machine) any
}

// Formats of tables; JSON writes an object per row.
const (
	Aligned  = "table"
	Markdown = "markdown"
	CSV      = "csv"
	JSON     = "json"
)

// Table writes measurements one by one.
type Table struct {
	Out     io.Writer
	Format  string
	Width   int // of the terminal in characters, for Aligned; 0 is unlimited
	Machine Machine
	Threads int
	columns []Column
	hidden  []bool
}

// Begin writes the head of the table. It is called before the first measurement, which may take long.
func (t *Table) Begin(columns []Column) error {
	t.columns, t.hidden = columns, make([]bool, len(columns))
	switch t.Format {
	case JSON:
		return nil
	case CSV: // the machine is in separate columns
		return t.write(append(names(columns), "threads", "kernels", "processor", "system", "go", "attn"))
	}
	m := t.Machine
	line := fmt.Sprintf("attn %s, %s, %s kernels, %s, %s, %d threads", m.Attn, m.Go, m.Kernels, m.CPU, m.OS, t.Threads)
	if t.Threads == 1 {
		line = strings.TrimSuffix(line, "s")
	}
	rule := "\n|"
	if t.Format == Markdown {
		line += "\n"
		for _, c := range columns {
			if c.Width < 0 {
				rule += "---|"
			} else {
				rule += "---:|"
			}
		}
	} else {
		rule = ""
		if t.Width > 0 {
			t.hidden = hidden(columns, t.Width)
		}
		var missing []string
		for i, c := range columns {
			if t.hidden[i] && c.Name != "" {
				missing = append(missing, c.Name)
			}
		}
		if missing != nil {
			line += "\nno room for: " + strings.Join(missing, ", ") + "; --as csv has them"
		}
	}
	if _, err := fmt.Fprintln(t.Out, line); err != nil {
		return err
	}
	if err := t.write(names(columns)); err != nil || rule == "" {
		return err
	}
	_, err := fmt.Fprintln(t.Out, rule[1:])
	return err
}

// Rows writes a table with a row for each item of a list, as soon as run has measured it. If ctx ends, Rows returns
// immediately.
func Rows[W any, R Row](ctx context.Context, t *Table, list []W, columns []Column, run func(W) (R, error)) error {
	if err := t.Begin(columns); err != nil {
		return err
	}
	for _, w := range list {
		r, err := orInterrupted(ctx, func() (R, error) { return run(w) })
		if err == nil {
			err = t.Add(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Add writes a row.
func (t *Table) Add(r Row) error {
	m := t.Machine
	switch t.Format {
	case JSON:
		return json.NewEncoder(t.Out).Encode(r.object(m))
	case CSV:
		return t.write(append(r.cells(), fmt.Sprint(t.Threads), m.Kernels, m.CPU, m.OS, m.Go, m.Attn))
	}
	return t.write(r.cells())
}

func (t *Table) write(cells []string) error {
	switch t.Format {
	case CSV:
		return csv.NewWriter(t.Out).WriteAll([][]string{cells})
	case Markdown:
		_, err := fmt.Fprintf(t.Out, "| %s |\n", strings.Join(cells, " | "))
		return err
	}
	var parts []string
	for i, cell := range cells {
		if !t.hidden[i] {
			parts = append(parts, fmt.Sprintf("%*s", t.columns[i].Width, cell)) // a negative width is left-aligned
		}
	}
	_, err := fmt.Fprintln(t.Out, strings.TrimRight(strings.Join(parts, strings.Repeat(" ", gapBetween)), " "))
	return err
}

// gapBetween is the number of spaces between columns.
const gapBetween = 2

func names(columns []Column) []string {
	return list(columns, func(c Column) string { return c.Name })
}

// hidden returns which columns are omitted so that the others fit into a width: all from the first
// rank that does not fit.
func hidden(columns []Column, width int) []bool {
	most := 0 // largest rank that is shown
	for _, c := range columns {
		most = max(most, c.Rank)
	}
	for ; most > 0; most-- {
		used := -gapBetween
		for _, c := range columns {
			if c.Rank <= most {
				used += gapBetween + c.width()
			}
		}
		if used <= width {
			break
		}
	}
	return list(columns, func(c Column) bool { return c.Rank > most })
}
