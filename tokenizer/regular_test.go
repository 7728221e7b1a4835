package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// drawExpression returns a random expression with some operators.
func drawExpression(rng *rand.Rand, depth int) string {
	part := func() string { return drawExpression(rng, depth-1) }
	switch n := rng.IntN(10); {
	case depth == 0 || n < 3:
		return []string{"a", "b", "é", "[ab]", "[^a]", `\p{L}`, " ", "[a-z字]", ".", `\s`}[rng.IntN(10)]
	case n < 5:
		return part() + part()
	case n < 7:
		return "(?:" + part() + "|" + part() + ")"
	default:
		return "(?:" + part() + ")" + []string{"*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}"}[rng.IntN(9)]
	}
}

// matchesOf returns all matches of a search, and the position from which nothing is known; −1 if all is.
func matchesOf(find search, size int) (all []Span, open int) {
	for from := 0; ; {
		start, end, whole := find(from)
		if !whole {
			if start == end && end == size {
				return all, none
			}
			return append(all, Span{start, end}), len(all)
		}
		all = append(all, Span{start, end})
		from = end
	}
}

// Expressions have the matches of package regexp, which tries one position after the other. Of a text whose end is not
// known, the first matches are those of each longer text.
func TestExpressions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", "b", "c", "é", "字", " ", "\n", "aaa", "ab", "  "}
	tried := 0
	for range 4000 {
		expr := drawExpression(rng, 4)
		if rng.IntN(3) == 0 {
			expr += `|([\s]+)` // as the last white space before a word is read
		}
		e, err := newExpression(expr)
		if err != nil {
			continue
		}
		tried++
		re := regexp.MustCompile(expr)
		var b strings.Builder
		for range rng.IntN(20) {
			b.WriteString(letters[rng.IntN(len(letters))])
		}
		text := b.String()
		var want []Span
		for from := 0; ; {
			at := re.FindStringSubmatchIndex(text[from:])
			if at == nil {
				break
			}
			start, end := from+at[0], from+at[1]
			if len(at) > 2 && at[2] >= 0 {
				end = leaveOne(text, start, end)
			}
			want = append(want, Span{start, end})
			from = end
		}
		p := newPiece(text)
		if got, open := matchesOf(e.in(&p), len(text)); !slices.Equal(got, want) || open != none {
			t.Fatalf("%s in %q: %v, want %v", expr, text, got, want)
		}
		for n := range len(text) {
			p := newPiece(text[:beginning(text, n)])
			p.open = true
			got, open := matchesOf(e.in(&p), len(p.s))
			if open == none {
				open = len(got)
			}
			if open > len(want) || !slices.Equal(got[:open], want[:open]) {
				t.Fatalf("%s in the first %d bytes of %q: %v, want the first of %v", expr, n, text, got, want)
			}
			if open == len(got) {
				continue
			}
			last := got[open] // the next match begins there, or further on if nothing is known of it
			switch {
			case last.Start == last.End && (open == len(want) || want[open].Start >= last.Start):
			case last.Start < last.End && open < len(want) && want[open].Start == last.Start && want[open].End >= last.End:
			default:
				t.Fatalf("%s in the first %d bytes of %q: %v, want the beginning of %v", expr, n, text, got, want)
			}
		}
	}
	if tried < 2000 {
		t.Errorf("%d expressions were tried, want most", tried)
	}
}

// Sets are kept for a part of a text only: matches across parts, and searches that go back, are as in one part. An
// automaton that has too many states begins anew.
func TestExpressionParts(t *testing.T) {
	e, err := newExpression("[a-y]+z|[a-y字]")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text  string
		first Span
		n     int
	}{
		{strings.Repeat("字", 5000) + "z", Span{0, 3}, 5000},
		{strings.Repeat("a", 3*backPart) + "z" + strings.Repeat("a", backPart), Span{0, 3*backPart + 1}, 1 + backPart},
		{strings.Repeat("a", 3*backPart), Span{0, 1}, 3 * backPart},
		{strings.Repeat("é", 3*backPart) + "a", Span{6 * backPart, 6*backPart + 1}, 1},
	} {
		p := newPiece(c.text)
		find := e.in(&p)
		for range 2 {
			if all, _ := matchesOf(find, len(c.text)); len(all) != c.n || all[0] != c.first {
				t.Errorf("%.9q: %d matches, the first at %v, want %d and %v", c.text, len(all), all[0], c.n, c.first)
			}
		}
	}
	any, err := newExpression(`(?:.b|.).`)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for r := rune(0x4e00); b.Len() < 12*mostSteps; r++ {
		b.WriteRune(r % utf8.MaxRune)
	}
	p := newPiece(strings.ToValidUTF8(b.String(), "x"))
	all, _ := matchesOf(any.in(&p), len(p.s))
	if n := utf8.RuneCountInString(p.s); len(all) != n/2 {
		t.Errorf("%d matches in %d characters", len(all), n)
	}
	if back, ok := any.pool.Get().(*backward); ok && back.steps > mostSteps { // a pool may have dropped it
		t.Errorf("%d steps are kept, want at most %d", back.steps, mostSteps)
	}
}

// An expression that looks for a long match from each position takes linear time, with truncation and without.
func TestExpressionTime(t *testing.T) {
	tok := readGolden().load(t, "kana")
	text := strings.Repeat("a", 1<<20)
	e, err := tok.Encode(text, Options{NoSpecial: true})
	if err != nil || len(e.IDs) != len(text) { // [A-Za-z]+?e does not match, \S does
		t.Errorf("%d tokens, error %v, want %d", len(e.IDs), err, len(text))
	}
	if e, err = tok.Encode(text+"e", Options{NoSpecial: true, MaxLength: 100}); err != nil || len(e.IDs) != 1 || e.Truncated {
		t.Errorf("%d tokens, error %v, want 1", len(e.IDs), err)
	}
	open := newPiece(text)
	open.open = true
	words, err := newExpression(`[a-z]+|([\s]+)`)
	if err != nil {
		t.Fatal(err)
	}
	if start, end, whole := words.in(&open)(5); start != 5 || end != len(text) || whole {
		t.Errorf("a run up to the open end is %d to %d, whole %t, want all of it", start, end, whole)
	}
}

func TestLargeExpression(t *testing.T) {
	want := fmt.Sprintf("instructions, want at most %d", mostInstructions)
	if _, err := readExpression("(?:a{1000}){3}"); err == nil || !strings.Contains(err.Error(), "invalid repeat") {
		t.Errorf("error %v", err)
	}
	if _, err := readExpression("a{1000}b{999}c{2}"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	for _, expr := range []string{"a*", "(?:a|b*)", "(?:a?){2}", ""} {
		if _, err := readExpression(expr); err == nil || !strings.Contains(err.Error(), "matches the empty text") {
			t.Errorf("%s: error %v", expr, err)
		}
	}
}
