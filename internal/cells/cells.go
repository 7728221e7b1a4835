// Package cells measures text in the columns of a terminal.
package cells

import "github.com/clipperhouse/displaywidth"

// Width returns the columns that a text takes.
func Width(text string) (columns int) {
	for g := displaywidth.StringGraphemes(text); g.Next(); {
		columns += cluster(g)
	}
	return columns
}

// Clusters returns the characters as people see them.
func Clusters(text string) (list []string) {
	for g := displaywidth.StringGraphemes(text); g.Next(); {
		list = append(list, g.Value())
	}
	return list
}

// Cut returns a text that takes at most the given columns; an ellipsis shows where it ends.
func Cut(text string, most int) string {
	if Width(text) <= most {
		return text
	}
	if most < 1 {
		return ""
	}
	kept, columns := 0, 0
	for g := displaywidth.StringGraphemes(text); g.Next(); kept += len(g.Value()) {
		if columns += cluster(g); columns >= most {
			break
		}
	}
	return text[:kept] + "…"
}

// Lines joins parts, with a text between them, to lines of at most the given columns. A part
// that takes more has a line to itself.
func Lines(parts []string, between string, most int) (list []string) {
	line := ""
	for i, part := range parts {
		switch {
		case i == 0:
			line = part
		case Width(line)+Width(between)+Width(part) > most:
			list, line = append(list, line), part
		default:
			line += between + part
		}
	}
	return append(list, line)
}

// cluster returns the columns of the current cluster. displaywidth measures the first
// character only; terminals draw Thai กำ and स्ते of Devanagari in two columns.
func cluster(g displaywidth.Graphemes[string]) int {
	sum := 0
	for _, r := range g.Value() {
		sum += displaywidth.Rune(r)
	}
	return max(g.Width(), min(sum, 2))
}
