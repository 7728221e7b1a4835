package train

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// bleuOrder is the longest n-gram that BLEU counts.
const bleuOrder = 4

// BLEU is a corpus score with its parts. Score and Precisions are percentages.
type BLEU struct {
	Score            float64
	Precisions       [bleuOrder]float64 // of 1-grams to 4-grams, after smoothing
	BrevityPenalty   float64            // 1 when the hypotheses are not shorter than the references
	Ratio            float64            // HypothesisLength / ReferenceLength
	HypothesisLength int                // in tokens
	ReferenceLength  int                // in tokens, of the reference closest in length to each hypothesis
}

// String returns the line that sacrebleu prints, without the signature.
func (b BLEU) String() string {
	p := b.Precisions
	return fmt.Sprintf("BLEU = %.2f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %d ref_len = %d)",
		b.Score, p[0], p[1], p[2], p[3], b.BrevityPenalty, b.Ratio, b.HypothesisLength, b.ReferenceLength)
}

// CorpusBLEU scores hypotheses[i] against all of references[i], over the whole corpus at once:
//
//	BLEU = BP · exp( ¼ Σₙ log pₙ ),  BP = exp(1 − r/h) if h < r, else 1
//
// where pₙ is the fraction of the hypotheses' n-grams that occur in a reference (each counted at most as often as it
// occurs in any single reference), h the length of the hypotheses, and r the length of the closest references (the shorter
// one on a tie). The k-th order without a match counts as 1/2ᵏ match; without any match at all the score is 0. Texts are
// plain, not tokenised, and case counts. Sentences may have different numbers of references.
//
// The numbers equal those of sacrebleu with its defaults, signature nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp.
//
// Errors: no hypothesis, a different number of hypotheses and of reference lists, a sentence without a reference.
//
// Source: Papineni et al. 2002; the smoothing is method 3 of Chen and Cherry 2014; Post 2018 for the tokens.
func CorpusBLEU(hypotheses []string, references [][]string) (BLEU, error) {
	j, err := judge("CorpusBLEU", hypotheses, references)
	if err != nil {
		return BLEU{}, err
	}
	return j.all().score(), nil
}

// tally has the counts of some sentences that their metrics are computed from.
type tally struct {
	sentences, exact      int            // exact ones equal one of their references
	correct, total        [bleuOrder]int // n-grams
	hypothesis, reference int            // words
}

// ngram is up to four words as indexes into the sentence's list of words, from 1; 0 where there is no word.
type ngram [bleuOrder]int32

func (g ngram) order() int {
	n := bleuOrder
	for n > 0 && g[n-1] == 0 {
		n--
	}
	return n
}

func (c *tally) add(hypothesis string, references []string) {
	c.sentences++
	if slices.Contains(references, hypothesis) {
		c.exact++
	}
	numbers := map[string]int32{}
	counts := func(text string) (map[ngram]int, int) {
		words := tokens13a(text)
		grams := make(map[ngram]int, bleuOrder*len(words))
		for i := range words {
			var g ngram
			for n := 0; n < bleuOrder && i+n < len(words); n++ {
				id, seen := numbers[words[i+n]]
				if !seen {
					id = int32(len(numbers) + 1)
					numbers[words[i+n]] = id
				}
				g[n] = id
				grams[g]++
			}
		}
		return grams, len(words)
	}

	have, length := counts(hypothesis)
	allowed, closest := counts(references[0])
	for _, reference := range references[1:] {
		grams, n := counts(reference)
		for g, count := range grams {
			allowed[g] = max(allowed[g], count)
		}
		if d, best := abs(n-length), abs(closest-length); d < best || d == best && n < closest {
			closest = n
		}
	}
	for g, count := range have {
		n := g.order() - 1
		c.total[n] += count
		c.correct[n] += min(count, allowed[g])
	}
	c.hypothesis += length
	c.reference += closest
}

// plus adds the counts of other sentences.
func (c *tally) plus(o *tally) {
	for n := range bleuOrder {
		c.correct[n] += o.correct[n]
		c.total[n] += o.total[n]
	}
	c.sentences += o.sentences
	c.exact += o.exact
	c.hypothesis += o.hypothesis
	c.reference += o.reference
}

func abs(n int) int { return max(n, -n) }

func (c tally) score() BLEU {
	b := BLEU{BrevityPenalty: 1, HypothesisLength: c.hypothesis, ReferenceLength: c.reference}
	if c.reference > 0 {
		b.Ratio = float64(c.hypothesis) / float64(c.reference)
	}
	switch {
	case c.hypothesis == 0 && c.reference > 0:
		b.BrevityPenalty = 0
	case c.hypothesis < c.reference:
		b.BrevityPenalty = math.Exp(1 - float64(c.reference)/float64(c.hypothesis))
	}
	if c.correct == [bleuOrder]int{} {
		return b
	}
	smooth, logs := 1.0, 0.0
	for n := range bleuOrder {
		if c.total[n] == 0 {
			return b // no text is long enough for this order: its precision is 0, and so is the mean
		}
		matches := float64(c.correct[n])
		if matches == 0 {
			smooth *= 2
			matches = 1 / smooth
		}
		b.Precisions[n] = 100 * matches / float64(c.total[n])
		logs += math.Log(b.Precisions[n])
	}
	b.Score = min(b.BrevityPenalty*math.Exp(logs/bleuOrder), 100) // logarithms are rounded
	return b
}

// unescape has the replacements of the 13a tokeniser in their order: "&amp;lt;" becomes "<".
var unescape = [][2]string{
	{"<skipped>", ""}, {"-\n", ""}, {"\n", " "}, {"&quot;", `"`}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"},
}

// tokens13a splits a text into words like mteval-v13a, the tokeniser of most published BLEU scores. ASCII symbols are
// separate words, except apostrophes. Full stops and commas are separate unless they are between digits, and a hyphen is
// separate after a digit.
//
// The rules are substitutions that run one after the other, each from left to right without overlap. Overlaps matter
// (in "a.,b" and "1.,2"), so the rules are implemented as substitutions too.
func tokens13a(text string) []string {
	text = strings.TrimRightFunc(text, isSpace13a)
	for _, u := range unescape {
		text = strings.ReplaceAll(text, u[0], u[1])
	}
	text = " " + text + " "
	text = apart(text, isSymbol13a)
	text = between(text, isNotDigit, isPoint, "", " ")
	text = between(text, isPoint, isNotDigit, " ", "")
	text = between(text, isDigit, func(r rune) bool { return r == '-' }, "", " ")
	return strings.FieldsFunc(text, isSpace13a)
}

// apart puts spaces around each character of a kind.
func apart(text string, kind func(r rune) bool) string {
	var b strings.Builder
	for i, r := range text {
		_, n := utf8.DecodeRuneInString(text[i:])
		if char := text[i : i+n]; kind(r) {
			b.WriteString(" " + char + " ")
		} else {
			b.WriteString(char)
		}
	}
	return b.String()
}

// between puts a space between two characters of given kinds, and other text before and after them.
func between(text string, first, second func(r rune) bool, before, after string) string {
	var b strings.Builder
	for text != "" {
		r, n := utf8.DecodeRuneInString(text)
		q, m := utf8.DecodeRuneInString(text[n:])
		if m > 0 && first(r) && second(q) {
			b.WriteString(before + text[:n] + " " + text[n:n+m] + after)
			n += m
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

// isSymbol13a reports whether a character is printable ASCII, but no letter, no digit, and none of ' , - .
func isSymbol13a(r rune) bool {
	return ' ' <= r && r <= '&' || '(' <= r && r <= '+' || r == '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' ||
		'{' <= r && r <= '~'
}

func isPoint(r rune) bool    { return r == '.' || r == ',' }
func isDigit(r rune) bool    { return '0' <= r && r <= '9' }
func isNotDigit(r rune) bool { return !isDigit(r) }

// isSpace13a also treats the separators U+001C to U+001F as space, as Python does.
func isSpace13a(r rune) bool {
	return unicode.IsSpace(r) || '\x1c' <= r && r <= '\x1f'
}
