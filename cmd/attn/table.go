package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/bench"
)

// A tableColumn is one of a table that is written row by row. A negative width is that of
// text, which stands at the left. On a terminal that is too narrow for all, those of a
// larger rank are left out first.
type tableColumn struct {
	name  string
	width int
	rank  int
}

// room returns how wide a column is.
func (c tableColumn) room() int { return max(c.width, -c.width) }

// A tableFormat is a way to write tables.
type tableFormat struct {
	name string
	// head writes what the figures were made on and the head.
	head func(out io.Writer, machine string, columns []tableColumn) error
	row  func(out io.Writer, columns []tableColumn, cells []string) error
	// wide says that the machine is in columns of its own.
	wide bool
}

// tableFormats lists the ways, the usual one first.
var tableFormats = []tableFormat{
	{
		name: "table",
		head: func(out io.Writer, machine string, columns []tableColumn) error {
			if _, err := fmt.Fprintln(out, machine); err != nil {
				return err
			}
			return writeAligned(out, columns, names(columns))
		},
		row: writeAligned,
	},
	{
		name: "markdown",
		head: func(out io.Writer, machine string, columns []tableColumn) error {
			rule := "|"
			for _, c := range columns {
				if c.width < 0 {
					rule += "---|"
				} else {
					rule += "---:|"
				}
			}
			_, err := fmt.Fprintf(out, "%s\n\n| %s |\n%s\n", machine, strings.Join(names(columns), " | "), rule)
			return err
		},
		row: func(out io.Writer, _ []tableColumn, cells []string) error {
			_, err := fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
			return err
		},
	},
	{
		name: "csv",
		head: func(out io.Writer, _ string, columns []tableColumn) error { return writeCSV(out, names(columns)) },
		row:  func(out io.Writer, _ []tableColumn, cells []string) error { return writeCSV(out, cells) },
		wide: true,
	},
}

// table writes a table.
type table struct {
	out     io.Writer
	format  tableFormat
	machine bench.Machine
	threads int
	columns []tableColumn
	hidden  []bool // columns that the terminal has no room for
}

func newTable(out io.Writer, format tableFormat, machine bench.Machine, threads int, columns []tableColumn) *table {
	t := &table{out: out, format: format, machine: machine, threads: threads}
	if format.name == "table" && isTerminal(out) {
		t.hidden = hiddenColumns(columns, terminalOf(out, "none", nil, false).Width)
	}
	if format.wide {
		for _, name := range []string{"threads", "kernels", "processor", "system", "go", "attn"} {
			columns = append(columns, tableColumn{name: name})
		}
	}
	t.columns = columns
	return t
}

// hiddenColumns returns which columns are left out so that the others fit into a width: all
// from the first rank on that has no room, but not those of rank 0.
func hiddenColumns(columns []tableColumn, width int) []bool {
	most := 0 // rank that stays
	for {
		used, next := -gapBetween, math.MaxInt
		for _, c := range columns {
			if c.rank > most {
				next = min(next, c.rank)
			}
		}
		for _, c := range columns {
			if c.rank <= next {
				used += gapBetween + c.room()
			}
		}
		if next == math.MaxInt || used > width {
			break
		}
		most = next
	}
	hidden := make([]bool, len(columns))
	for i, c := range columns {
		hidden[i] = c.rank > most
	}
	return hidden
}

// shown returns the items of the columns that are not left out.
func shown[T any](t *table, items []T) []T {
	if t.hidden == nil {
		return items
	}
	var list []T
	for i, item := range items {
		if !t.hidden[i] {
			list = append(list, item)
		}
	}
	return list
}

// begin writes the head, before the first measurement: that may take long.
func (t *table) begin() error {
	m := t.machine
	line := fmt.Sprintf("attn %s, %s, %s kernels, %s, %s, %d threads", m.Attn, m.Go, m.Kernels, m.CPU, m.OS, t.threads)
	if t.threads == 1 {
		line = strings.TrimSuffix(line, "s")
	}
	var missing []string
	for i, hidden := range t.hidden {
		if hidden && t.columns[i].name != "" {
			missing = append(missing, t.columns[i].name)
		}
	}
	if missing != nil {
		line += "\nno room for: " + strings.Join(missing, ", ") + "; --format csv has them"
	}
	return t.format.head(t.out, line, shown(t, t.columns))
}

// row writes a row as soon as it is there.
func (t *table) row(cells []string) error {
	m := t.machine
	if t.format.wide {
		cells = append(cells, fmt.Sprint(t.threads), m.Kernels, m.CPU, m.OS, m.Go, m.Attn)
	}
	return t.format.row(t.out, shown(t, t.columns), shown(t, cells))
}

func names(columns []tableColumn) []string {
	var list []string
	for _, c := range columns {
		list = append(list, c.name)
	}
	return list
}

// gapBetween is the room between columns.
const gapBetween = 2

// writeAligned writes cells below one another, without spaces at the end.
func writeAligned(out io.Writer, columns []tableColumn, cells []string) error {
	var line strings.Builder
	for i, cell := range cells {
		if i > 0 {
			line.WriteString(strings.Repeat(" ", gapBetween))
		}
		gap := strings.Repeat(" ", max(0, columns[i].room()-utf8.RuneCountInString(cell)))
		if columns[i].width < 0 {
			line.WriteString(cell + gap)
		} else {
			line.WriteString(gap + cell)
		}
	}
	_, err := fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	return err
}

func writeCSV(out io.Writer, cells []string) error {
	w := csv.NewWriter(out)
	if err := w.Write(cells); err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}
