//go:build !js

package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/bench/history"
	"github.com/attn-go/attn/internal/quote"
)

// document is the file with the figures.
const document = "docs/webassembly.md"

// kernels is the instruction set in the records of this command.
const kernels = "wasm"

// The section of the document that is rendered.
const (
	sectionBegin = "## Speed\n"
	sectionEnd   = "`go run ./bench/wasm`"
)

// renderDocument writes the figures of the newest record in a directory into a file.
func renderDocument(dir, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if text, err = rendered(dir, text); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// rendered returns a document with the figures of the newest record in a directory.
func rendered(dir string, text []byte) ([]byte, error) {
	records, err := history.Read(dir)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(records, func(r *history.Record) bool { return r.Kernels == kernels })
	if at < 0 {
		return nil, fmt.Errorf("%s contains no measurement of WebAssembly; --save makes one", dir)
	}
	before, rest, begins := bytes.Cut(text, []byte(sectionBegin))
	_, after, ends := bytes.Cut(rest, []byte(sectionEnd))
	if !begins || !ends {
		return nil, fmt.Errorf("%s lacks the heading Speed, or %s after it", document, sectionEnd)
	}
	return slices.Concat(before, []byte(sectionBegin+section(records[at])+sectionEnd), after), nil
}

// section returns the paragraphs and tables of a record.
func section(r *history.Record) string {
	var all strings.Builder
	for _, t := range r.Tables {
		all.WriteString("\n" + history.Wrap(fmt.Sprintf("On one core of %s, %s, with attn's `reverse` example and the settings of "+
			"`attn train` for dates. %s", r.Processor(), r.Date, t.How)) + "\n" + markdown(t) + "\n")
		if t.Note != "" {
			all.WriteString(history.Wrap(t.Note) + "\n")
		}
	}
	return all.String()
}

// markdown returns a table. A ratio follows each program that is compared with another.
func markdown(t *history.Table) string {
	lines := []string{"| |", "|---|"}
	for p, name := range t.Programs {
		lines[0], lines[1] = lines[0]+" "+name+" |", lines[1]+"---|"
		if compared(t, p) {
			lines[0], lines[1] = lines[0]+" ratio |", lines[1]+"---|"
		}
	}
	for _, s := range t.Speeds {
		line := "| " + s.Work + " |"
		for p, v := range s.Values {
			line += " " + figure(v.Value, s.Unit) + " |"
			if compared(t, p) {
				line += " " + figure(v.Ratio, "×") + " |"
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}

// compared reports whether a program has ratios.
func compared(t *history.Table, program int) bool {
	return slices.ContainsFunc(t.Speeds, func(s history.Speed) bool { return s.Values[program].Ratio > 0 })
}

// figure formats a number with two or three significant digits: 2.5, 35, 15,800.
func figure(x float64, unit string) string {
	if x == 0 {
		return "–"
	}
	digits := 3
	if x < 100 {
		digits = 2
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits-1, 64), 64)
	if err != nil {
		panic(err) // a number that was just formatted
	}
	if rounded >= 100 { // and so a whole number
		return quote.Count(int(rounded)) + " " + unit
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64) + " " + unit
}
