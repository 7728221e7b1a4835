package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/bench"
)

// A tableColumn is one of a table that is written row by row. A negative width is that of
// text, which stands at the left.
type tableColumn struct {
	name  string
	width int
}

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
}

func newTable(out io.Writer, format tableFormat, machine bench.Machine, threads int, columns []tableColumn) *table {
	if format.wide {
		for _, name := range []string{"threads", "kernels", "processor", "system", "go", "attn"} {
			columns = append(columns, tableColumn{name: name})
		}
	}
	return &table{out: out, format: format, machine: machine, threads: threads, columns: columns}
}

// begin writes the head, before the first measurement: that may take long.
func (t *table) begin() error {
	m := t.machine
	line := fmt.Sprintf("attn %s, %s, %s kernels, %s, %s, %d threads", m.Attn, m.Go, m.Kernels, m.CPU, m.OS, t.threads)
	if t.threads == 1 {
		line = strings.TrimSuffix(line, "s")
	}
	return t.format.head(t.out, line, t.columns)
}

// row writes a row as soon as it is there.
func (t *table) row(cells []string) error {
	m := t.machine
	if t.format.wide {
		cells = append(cells, fmt.Sprint(t.threads), m.Kernels, m.CPU, m.OS, m.Go, m.Attn)
	}
	return t.format.row(t.out, t.columns, cells)
}

func names(columns []tableColumn) []string {
	var list []string
	for _, c := range columns {
		list = append(list, c.name)
	}
	return list
}

// writeAligned writes cells below one another, without spaces at the end.
func writeAligned(out io.Writer, columns []tableColumn, cells []string) error {
	var line strings.Builder
	for i, cell := range cells {
		if i > 0 {
			line.WriteString("  ")
		}
		gap := strings.Repeat(" ", max(0, max(columns[i].width, -columns[i].width)-utf8.RuneCountInString(cell)))
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
