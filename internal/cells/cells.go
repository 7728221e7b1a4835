// Package cells measures text in the columns of a terminal, and makes foreign text fit to be shown.
package cells

import "github.com/clipperhouse/displaywidth"

// Width returns the number of columns that a text takes.
func Width(text string) (columns int) {
	for g := displaywidth.StringGraphemes(text); g.Next(); {
		columns += cluster(g)
	}
	return columns
}

// Clusters returns the grapheme clusters of a text.
func Clusters(text string) (list []string) {
	for g := displaywidth.StringGraphemes(text); g.Next(); {
		list = append(list, g.Value())
	}
	return list
}

// Cut shortens a text to at most the given number of columns and marks the cut with an ellipsis.
func Cut(text string, most int) string {
	at, kept, columns := 0, 0, 0 // text[:kept] leaves room for the ellipsis
	for g := displaywidth.StringGraphemes(text); g.Next(); {
		columns += cluster(g)
		switch at += len(g.Value()); {
		case columns < most:
			kept = at
		case columns > most && most < 1:
			return ""
		case columns > most:
			return text[:kept] + "…"
		}
	}
	return text
}

// Lines joins parts, separated by between, into lines of at most the given number of columns. A
// part that is wider gets its own line.
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

// cluster returns the columns of the current cluster. displaywidth measures only its first
// character, but terminals draw Thai กำ and Devanagari स्ते in two columns.
func cluster(g displaywidth.Graphemes[string]) int {
	sum := 0
	for _, r := range g.Value() {
		sum += displaywidth.Rune(r)
	}
	return max(g.Width(), min(sum, 2))
}
