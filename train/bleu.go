package train

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// bleuOrder is the longest n-gram that BLEU counts.
const bleuOrder = 4

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

// bleu returns the BLEU of the sentences over the whole corpus at once, 0 to 100:
//
//	BLEU = BP · exp( ¼ Σₙ log pₙ ),  BP = exp(1 − r/h) if h < r, else 1
//
// where pₙ is the fraction of the hypotheses' n-grams that occur in a reference (each counted at most as often as it
// occurs in any single reference), h the length of the hypotheses, and r the length of the closest references (the shorter
// one on a tie). The k-th order without a match counts as 1/2ᵏ match; without any match at all the score is 0. Texts are
// plain, not tokenised, and case counts. Sentences may have different numbers of references.
//
// The number equals that of sacrebleu with its defaults, signature nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp.
//
// Source: Papineni et al. 2002; the smoothing is method 3 of Chen and Cherry 2014; Post 2018 for the tokens.
func (c tally) bleu() float64 {
	if c.correct == [bleuOrder]int{} {
		return 0
	}
	smooth, logs := 1.0, 0.0
	for n := range bleuOrder {
		if c.total[n] == 0 {
			return 0 // no text is long enough for this order: its precision is 0, and so is the mean
		}
		matches := float64(c.correct[n])
		if matches == 0 {
			smooth *= 2
			matches = 1 / smooth
		}
		logs += math.Log(100 * matches / float64(c.total[n]))
	}
	brevity := 1.0
	if c.hypothesis < c.reference {
		brevity = math.Exp(1 - float64(c.reference)/float64(c.hypothesis))
	}
	return min(brevity*math.Exp(logs/bleuOrder), 100) // logarithms are rounded
}

// unescape has the replacements of the 13a tokeniser in their order: "&amp;lt;" becomes "<".
var unescape = [][2]string{
	{"<skipped>", ""}, {"-\n", ""}, {"\n", " "}, {"&quot;", `"`}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"},
}

// rules13a are the expressions of the 13a tokeniser, and what replaces their matches.
var rules13a = sync.OnceValue(func() []rule13a {
	return []rule13a{
		{regexp.MustCompile(`[ -&(-+/:-@\[-\x60{-~]`), " $0 "},
		{regexp.MustCompile(`([^0-9])([.,])`), "$1 $2 "},
		{regexp.MustCompile(`([.,])([^0-9])`), " $1 $2"},
		{regexp.MustCompile(`([0-9])(-)`), "$1 $2 "},
	}
})

type rule13a struct {
	from *regexp.Regexp
	to   string
}

// tokens13a splits a text into words like mteval-v13a, the tokeniser of most published BLEU scores. ASCII symbols are
// separate words, except apostrophes. Full stops and commas are separate unless they are between digits, and a hyphen is
// separate after a digit.
func tokens13a(text string) []string {
	text = strings.TrimRightFunc(text, isSpace13a)
	for _, u := range unescape {
		text = strings.ReplaceAll(text, u[0], u[1])
	}
	text = " " + text + " "
	for _, r := range rules13a() {
		text = r.from.ReplaceAllString(text, r.to)
	}
	return strings.FieldsFunc(text, isSpace13a)
}

// isSpace13a also treats the separators U+001C to U+001F as space, as Python does.
func isSpace13a(r rune) bool {
	return unicode.IsSpace(r) || '\x1c' <= r && r <= '\x1f'
}
