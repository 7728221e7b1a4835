// Package quote makes text from files, flags and servers safe for a message: one line of limited length, without
// characters that control a terminal or change the direction of text.
package quote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	mostText    = 100  // characters of a string or a JSON value
	mostName    = 1000 // characters of a path
	mostMessage = 1500 // characters of a message, which may contain several texts and a path
)

// Text returns s in double quotes, in Go syntax: non-printable characters are escaped. After 100 characters it is cut
// off with an ellipsis.
func Text(s string) string {
	short, rest := cut(s, mostText)
	if rest == "" {
		return strconv.Quote(s)
	}
	return strconv.Quote(short) + "…"
}

// Texts returns Text of the first three strings of a list, and the number of the others.
func Texts(list []string) string {
	const most = 3
	var texts []string
	for _, s := range list[:min(most, len(list))] {
		texts = append(texts, Text(s))
	}
	all := strings.Join(texts, ", ")
	if more := len(list) - most; more > 0 {
		all += " and " + strconv.Itoa(more) + " more"
	}
	return all
}

// Name returns s unchanged if it is safe for a message and has at most 1,000 characters, and Text otherwise. It is
// for paths and keys, which are easier to read without quotes.
func Name(s string) string {
	if !Fit(s) {
		return Text(s)
	}
	return s
}

// A returns a name behind its article: "a BERT", "an ALBERT", "an LFM2". The first letter is spelled if the second is no
// small one.
func A(name string) string {
	spelled := len(name) > 1 && !(name[1] >= 'a' && name[1] <= 'z') && strings.Contains("FHLMNRSXm", name[:1])
	if spelled || name != "" && strings.Contains("AEIOaeio", name[:1]) && !strings.HasPrefix(name, "Eu") {
		return "an " + name
	}
	return "a " + name
}

// Fit reports whether Name returns s unchanged. No legitimate file of a model has any other name.
func Fit(s string) bool {
	_, rest := cut(s, mostName)
	return s != "" && rest == "" && escape(s) == s
}

// JSON returns a JSON value on one line, without spaces between its parts, cut off after 100 characters. Invalid JSON
// is returned as by Text.
func JSON(value []byte) string {
	var b bytes.Buffer
	if err := json.Compact(&b, value); err != nil {
		return Text(string(value))
	}
	short, rest := cut(b.String(), mostText)
	if rest != "" {
		rest = "…"
	}
	return escape(short) + rest
}

// Message returns a message as one line. The message may contain unquoted foreign text, such as the path in an error
// of the operating system. A long message is shortened in the middle, because the reason is at the end.
func Message(s string) string {
	const tail = mostMessage / 3
	if short, rest := cut(s, mostMessage-tail); utf8.RuneCountInString(rest) > tail {
		i := len(rest)
		for range tail {
			_, size := utf8.DecodeLastRuneInString(rest[:i])
			i -= size
		}
		s = short + "…" + rest[i:]
	}
	return escape(s)
}

// Lines returns a text of several lines, each escaped like a message. Line feeds stay.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = escape(line)
	}
	return strings.Join(lines, "\n")
}

// escape returns s with non-printable characters escaped as in Go: control characters, characters that change the
// direction of text, other invisible characters, and bytes that are not UTF-8.
func escape(s string) string {
	var b strings.Builder
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(s[i:])
		if one := s[i : i+size]; strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(one)
		} else {
			quoted := strconv.Quote(one)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// cut splits s after its first n characters.
func cut(s string, n int) (string, string) {
	for i := range s {
		if n == 0 {
			return s[:i], s[i:]
		}
		n--
	}
	return s, ""
}

// Shell quotes a file name so that it can be pasted into a shell.
func Shell(path string) string {
	if !Fit(path) { // the syntax of bash, zsh and ksh
		escaped := strconv.Quote(path)
		return "$'" + strings.ReplaceAll(escaped[1:len(escaped)-1], "'", `\'`) + "'"
	}
	plain := func(r rune) bool {
		return r >= 0x80 || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' ||
			strings.ContainsRune(`/\:._-+,@%=`, r)
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// Count formats a whole number in groups of three digits.
func Count(n int) string {
	return Grouped(strconv.Itoa(n))
}

// Grouped separates groups of three digits of a whole number.
func Grouped(text string) string {
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Counted returns a number with a noun in the singular or plural.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Bytes formats a number of bytes with three digits and a unit.
func Bytes[N int | int64](n N) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB"}
	x, u := float64(n), 0
	for x >= 999.5 && u < len(units)-1 {
		x, u = x/1000, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.3g %s", x, units[u])
}
