package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// Expressions are in the dialect of Oniguruma, with Unicode classes. The expressions of GPT-2, Llama 3,
// Qwen and Trained have handwritten scanners. Other expressions are compiled by package regexp/syntax, if they have the
// same meaning there: see expression.

// scanners are the expressions with handwritten scanners.
func scanners() map[string]pattern {
	return map[string]pattern{
		`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`: gpt2,
		cl100k(`\p{N}{1,3}`):  wordsAndDigits{3},
		cl100k(`\p{N}`):       wordsAndDigits{1},
		anySpaces:             spaceRun,
		wordParts:             wordPart,
		wordExpression(false): wordCutter{false},
		wordExpression(true):  wordCutter{true},
		blanks:                blankRun,
	}
}

// cl100k is the expression of Llama 3 and Qwen, which differ in how they split numbers.
func cl100k(numbers string) string {
	return `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|` + numbers + `| ?[^\s\p{L}\p{N}]+[\r\n]*|` + lastSpaces
}

const lastSpaces = `\s*[\r\n]+|\s+(?!\S)|\s+`

// readExpression returns the pattern of a regular expression.
func readExpression(expr string) (pattern, error) {
	if p, ok := scanners()[expr]; ok {
		return p, nil
	}
	// The dialect of Go selects the first alternative that matches, as Oniguruma does, but has no look-ahead and no
	// references. This look-ahead leaves one white space to the next word. At the end of an expression it is easy to
	// implement.
	rest, ends := strings.CutSuffix(expr, `|\s+(?!\S)|\s+`)
	translated, err := translate(rest)
	if err == nil && ends {
		translated += "|([" + goRanges(spaces) + "]+)"
	}
	var e *expression
	if err == nil {
		e, err = newExpression(translated)
	}
	if err != nil {
		return nil, fmt.Errorf("expression %s cannot be run exactly: %s", quote.Text(expr), quote.Message(err.Error()))
	}
	return e, nil
}

// leaveOne returns the end of \s+(?!\S)|\s+ for white space in a range: the last space belongs to the
// following word, unless it is the only one.
func leaveOne(s string, start, end int) int {
	if end == len(s) {
		return end
	}
	_, n := utf8.DecodeLastRuneInString(s[start:end])
	if start+n == end {
		return end
	}
	return end - n
}

// gpt2 splits like GPT-2.
var gpt2 = &scanner{utf8.UTFMax, func(s string, from int) (start, end int, ok bool) {
	if from == len(s) {
		return 0, 0, false
	}
	if n := contraction(s[from:], false); n > 0 {
		return from, from + n, true
	}
	table := classes()
	if end := run(table, s, afterSpace(s, from)); end > 0 {
		return from, end, true
	}
	return from, leaveOne(s, from, runOf(table, s, from, space)), true
}}

// wordsAndDigits splits like Llama 3 and Qwen: numbers have a maximum length, and a word may begin with one sign.
type wordsAndDigits struct{ digits int }

func (w wordsAndDigits) next(s string, from int) (start, end int, ok bool) {
	if from == len(s) {
		return 0, 0, false
	}
	if n := contraction(s[from:], true); n > 0 {
		return from, from + n, true
	}
	table := classes()
	r, n := utf8.DecodeRuneInString(s[from:])
	switch {
	case table.has(r, letter):
		return from, runOf(table, s, from+n, letter), true
	case table.has(r, number):
		end := from + n
		for range w.digits - 1 {
			r, n := utf8.DecodeRuneInString(s[end:])
			if n == 0 || !table.has(r, number) {
				break
			}
			end += n
		}
		return from, end, true
	}
	if r != '\r' && r != '\n' {
		if end := runOf(table, s, from+n, letter); end > from+n {
			return from, end, true
		}
	}
	first := from
	if r == ' ' {
		first++
	}
	if end := runOfSigns(table, s, first); end > first {
		for end < len(s) && (s[end] == '\r' || s[end] == '\n') {
			end++
		}
		return from, end, true
	}
	end = runOf(table, s, from, space)
	if i := strings.LastIndexAny(s[from:end], "\r\n"); i >= 0 {
		return from, from + i + 1, true
	}
	return from, leaveOne(s, from, end), true
}

func (w wordsAndDigits) in(p *piece) search { return searchIn(w, p) }

// open considers that white space up to the end may have a line break further on, which the match then includes.
func (w wordsAndDigits) open(s string, from int) (start, end int, whole bool) {
	start, end, whole = scanner{utf8.UTFMax, w.next}.open(s, from)
	return start, end, whole && strings.TrimLeftFunc(s[end:], isSpace) != ""
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the beginning of s; 0 if there is none.
func contraction(s string, anyCase bool) int {
	if !strings.HasPrefix(s, "'") {
		return 0
	}
	for _, ending := range [...]string{"s", "t", "re", "ve", "m", "ll", "d"} {
		end := 1 + len(ending)
		if strings.HasPrefix(s[1:], ending) || anyCase && len(s) >= end && strings.EqualFold(s[1:end], ending) {
			return end
		}
	}
	if anyCase && strings.HasPrefix(s[1:], "ſ") { // long s, another lower-case form of S
		return 1 + len("ſ")
	}
	return 0
}

// afterSpace returns the position after an optional space at from.
func afterSpace(s string, from int) int {
	if s[from] == ' ' {
		return from + 1
	}
	return from
}

// run returns the end of the letters, of the numbers, or of the signs at from; 0 if there are none.
func run(table *classTable, s string, from int) int {
	if from == len(s) {
		return 0
	}
	switch r, n := utf8.DecodeRuneInString(s[from:]); {
	case table.has(r, letter):
		return runOf(table, s, from+n, letter)
	case table.has(r, number):
		return runOf(table, s, from+n, number)
	case !table.has(r, space):
		return runOfSigns(table, s, from+n)
	}
	return 0
}

// runOf returns the end of the characters of a class.
func runOf(table *classTable, s string, from int, c class) int {
	return runWhile(table, s, from, c, true)
}

// runOfSigns returns the end of the characters that are not letters, numbers or spaces.
func runOfSigns(table *classTable, s string, from int) int {
	return runWhile(table, s, from, letter|number|space, false)
}

// runWhile returns the end of the characters that have, or do not have, one of the classes.
func runWhile(table *classTable, s string, from int, c class, have bool) int {
	for i, r := range s[from:] {
		if table.has(r, c) != have {
			return from + i
		}
	}
	return len(s)
}
