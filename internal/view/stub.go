package view

// Stand-ins, this whole file, for what package heads will have: to be replaced
// by (*heads.Layer).Measure, heads.Words and the check of a record.

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/attn-go/attn/heads"
)

// measure stands for (*heads.Layer).Measure.
func measure(l *heads.Layer, h int, special []string) heads.Measures {
	var m heads.Measures
	w, n := l.Head(h), len(l.Keys)
	rows := float64(len(l.Queries))
	if rows == 0 || n == 0 {
		nan := math.NaN()
		return heads.Measures{Entropy: nan, Bound: nan, Distance: nan, Confidence: nan, Previous: nan, Same: nan,
			Next: nan, First: nan, Last: nan, Special: nan, Punctuation: nan, Induction: nan}
	}
	isSpecial, isPunct := make([]bool, n), make([]bool, n)
	for j, k := range l.Keys {
		isSpecial[j] = slices.Contains(special, k)
		text := strings.TrimLeft(k, " ▁Ġ")
		isPunct[j] = !isSpecial[j] && text != "" && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPunct(r) }) < 0
	}
	self := l.Kind != heads.Cross
	for i := range l.Queries {
		var largest float64
		for j := range n {
			x := float64(w[i*n+j])
			if x > 0 || x != x {
				m.Entropy -= x * math.Log(x)
			}
			largest = max(largest, x)
			if self {
				m.Distance += x * math.Abs(float64(i-j))
				switch j - i {
				case -1:
					m.Previous += x
				case 0:
					m.Same += x
				case 1:
					m.Next += x
				}
				if j > 0 && j <= i && l.Keys[j-1] == l.Queries[i] {
					m.Induction += x
				}
			}
			if isSpecial[j] {
				m.Special += x
			}
			if isPunct[j] {
				m.Punctuation += x
			}
		}
		m.Confidence += largest
		m.First += float64(w[i*n])
		m.Last += float64(w[i*n+n-1])
	}
	for _, x := range []*float64{&m.Entropy, &m.Distance, &m.Confidence, &m.Previous, &m.Same, &m.Next, &m.First, &m.Last,
		&m.Special, &m.Punctuation, &m.Induction} {
		*x /= rows
	}
	m.Bound = math.Log(float64(n))
	if !self {
		nan := math.NaN()
		m.Distance, m.Previous, m.Same, m.Next, m.Induction = nan, nan, nan, nan, nan
	}
	return m
}

// words stands for heads.Words: the ranges of tokens that are one word.
func words(tokens, special []string) []span {
	starts := func(i int) bool {
		t := tokens[i]
		if i == 0 || slices.Contains(special, t) || slices.Contains(special, tokens[i-1]) {
			return true
		}
		return strings.HasPrefix(t, " ") || strings.HasPrefix(t, "▁") || strings.HasPrefix(t, "Ġ")
	}
	// WordPiece marks what continues, the others what begins; without any marks
	// each token is a word.
	var marked, pieces bool
	for _, t := range tokens {
		if !slices.Contains(special, t) {
			pieces = pieces || strings.HasPrefix(t, "##")
			marked = marked || strings.HasPrefix(t, " ") || strings.HasPrefix(t, "▁") || strings.HasPrefix(t, "Ġ")
		}
	}
	var all []span
	for i, t := range tokens {
		begins := pieces && !strings.HasPrefix(t, "##") || !pieces && (!marked || starts(i)) || i == 0
		if begins {
			all = append(all, span{i, i})
		}
		all[len(all)-1].to = i + 1
	}
	return all
}

// warnings stands for the check of a record: rows that are no weights.
func warnings(r *heads.Record) []string {
	var list []string
	for i := range r.Layers {
		l := &r.Layers[i]
		n := len(l.Keys)
		var off, broken int
		for row := range slices.Chunk(l.Weights, max(n, 1)) {
			var sum float64
			for _, x := range row {
				sum += float64(x)
			}
			switch {
			case math.IsNaN(sum) || math.IsInf(sum, 0):
				broken++
			case sum != 0 && math.Abs(sum-1) > 1e-3:
				off++
			}
		}
		if broken > 0 {
			list = append(list, fmt.Sprintf("%s: %d of %d rows have numbers that are not finite", l.Name, broken, l.Heads*len(l.Queries)))
		}
		if off > 0 {
			list = append(list, fmt.Sprintf("%s: %d of %d rows do not sum to 1", l.Name, off, l.Heads*len(l.Queries)))
		}
	}
	const most = 5
	if len(list) > most {
		list = append(list[:most], fmt.Sprintf("and %d more layers", len(list)-most))
	}
	return list
}
