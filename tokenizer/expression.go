package tokenizer

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// Expressions are in the dialect of Oniguruma, with Unicode classes. The expressions of GPT-2, Llama 3,
// Qwen and Trained have handwritten scanners. Other expressions are translated for package regexp, which
// takes linear time, if they have the same meaning there.

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
	// Only of a handwritten scanner it is known how far it looks ahead. Anything else is run by package regexp if it
	// is certain to match the same texts there: it selects the first alternative that matches, as Oniguruma does, but
	// has no look-ahead and no references.
	// This look-ahead leaves one white space to the next word. Package regexp does not have it, but at the
	// end of an expression it is easy to implement.
	rest, ends := strings.CutSuffix(expr, `|\s+(?!\S)|\s+`)
	translated, err := translate(rest)
	if err == nil && ends {
		translated += "|([" + goRanges(spaces) + "]+)"
	}
	var re *regexp.Regexp
	if err == nil {
		re, err = regexp.Compile(translated)
	}
	if err == nil && re.MatchString("") {
		err = fmt.Errorf("it matches the empty text")
	}
	if err != nil {
		return nil, fmt.Errorf("expression %s cannot be run exactly: %s", quote.Text(expr), quote.Message(err.Error()))
	}
	here := func() *regexp.Regexp { return regexp.MustCompile(`\A(?:` + translated + `)`) }
	return expression{re, sync.OnceValue(here)}, nil
}

// expression is a regular expression of package regexp. Its only group, if any, matches white space, of which one is
// left to the next word.
type expression struct {
	*regexp.Regexp
	here func() *regexp.Regexp // matches at the beginning of a text only
}

func (e expression) next(s string, from int) (start, end int, ok bool) {
	if at := e.FindStringSubmatchIndex(s[from:]); at != nil {
		start, end = matched(s, from, at)
		return start, end, true
	}
	return 0, 0, false
}

// matched returns the range of a match in s[from:].
func matched(s string, from int, at []int) (start, end int) {
	start, end = from+at[0], from+at[1]
	if len(at) > 2 && at[2] >= 0 {
		end = leaveOne(s, start, end)
	}
	return start, end
}

// open tries each position, because a match that package regexp finds without reading the end of the text does not
// depend on what follows, and neither does the failure to match at a position.
// An alternative that ends in + has always read the end of the text if its match reaches it, so a run at the end
// gives no match, and all of it is read: how long its match is at least cannot be seen from the expression.
func (e expression) open(s string, from int) (start, end int, whole bool) {
	for i := range s[from:] {
		text := endReader{Reader: strings.NewReader(s[from+i:])}
		at := e.here().FindReaderSubmatchIndex(&text)
		switch {
		case text.ended:
			return from + i, from + i, false
		case at != nil:
			start, end = matched(s, from+i, at)
			return start, end, true
		}
	}
	return len(s), len(s), false
}

// endReader records whether its end was read.
type endReader struct {
	*strings.Reader
	ended bool
}

func (r *endReader) ReadRune() (ch rune, size int, err error) {
	ch, size, err = r.Reader.ReadRune()
	r.ended = r.ended || err != nil
	return ch, size, err
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
