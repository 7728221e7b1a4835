package heads

import (
	"math"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/attn-go/attn/internal/stats"
)

// Measures describes a head by numbers, each a mean over the queries. docs/heads.md has the formulas and
// sources.
//
// Queries whose weights are all zero do not count. The weight of certain keys is the mean over the queries
// that can attend to such a key: a head that always attends to the previous token has Previous = 1,
// although the first token has no previous token. A measure that applies to no query is NaN.
type Measures struct {
	Entropy     float64 // in nats
	Bound       float64 // the entropy of equal weights on all keys
	Distance    float64 // Σ_j w_ij·|i-j|, in tokens
	Confidence  float64 // the largest weight
	Previous    float64 // weight of the previous token
	Same        float64 // weight of the query's own token
	Next        float64 // weight of the next token
	First       float64 // weight of the first token
	Last        float64 // weight of the last token
	Special     float64 // weight of special tokens
	Punctuation float64 // weight of punctuation
	Induction   float64 // weight of the tokens that followed earlier occurrences of the query's token
	Duplicate   float64 // weight of earlier occurrences of the query's token
	// Retrieval is the share of queries whose largest weight is that of the next token, in an earlier occurrence of both
	// tokens: of the queries of a causal layer that have one.
	Retrieval float64
}

// Named is a measure with its name.
type Named struct {
	Name  string // the field's name in lower case
	Value float64
}

// List returns the measures in the order of the fields.
func (m Measures) List() []Named {
	return []Named{
		{"entropy", m.Entropy}, {"bound", m.Bound}, {"distance", m.Distance}, {"confidence", m.Confidence},
		{"previous", m.Previous}, {"same", m.Same}, {"next", m.Next}, {"first", m.First}, {"last", m.Last},
		{"special", m.Special}, {"punctuation", m.Punctuation}, {"induction", m.Induction},
		{"duplicate", m.Duplicate}, {"retrieval", m.Retrieval},
	}
}

// Measure returns the measures of a head. special lists the special tokens.
//
// A query of a Decoder can attend to keys up to its own position, a query of other kinds to all keys.
// Previous, Same, Next, Induction, Duplicate and Retrieval require that both axes are the same text, as in a Decoder and in an
// Encoder with equally many queries and keys; otherwise they are NaN. Between different texts, Distance is
// measured from the diagonal, in tokens of the keys.
//
// A NaN weight makes every measure that uses it NaN. A negative weight makes Entropy NaN. The measures of a signed layer
// are those of its Shares, so that each is a share of a row or a distance; it has no Entropy and no Bound.
func (l *Layer) Measure(h int, special []string) Measures {
	lq, lk := len(l.Queries), len(l.Keys)
	weights := l.Shares(h)
	s := l.scale()
	isSpecial, isPunctuation := make([]bool, lk), make([]bool, lk)
	for j, token := range l.Keys {
		isSpecial[j] = slices.Contains(special, token)
		isPunctuation[j] = punctuation(token)
	}
	firstSpecial, firstPunctuation := slices.Index(isSpecial, true), slices.Index(isPunctuation, true)
	earlier := l.earlier(s)

	var entropy, bound, distance, confidence, previous, same, next, first, last, marks, points, induction, duplicate, retrieval mean
	for i := range lq {
		row := weights[i*lk : (i+1)*lk]
		if !slices.ContainsFunc(row, func(w float32) bool { return w != 0 }) {
			continue
		}
		var h, d, most, m, p float64
		for j, w32 := range row {
			if w32 == 0 {
				continue // common: keys after a decoder's query
			}
			w := float64(w32)
			if !l.Signed {
				h -= float64(w * math.Log(w))
			}
			d += float64(w * s.distance(i, j))
			most = max(most, w)
			if isSpecial[j] {
				m += w
			}
			if isPunctuation[j] {
				p += w
			}
		}
		distance.add(d)
		confidence.add(most)
		visible := s.visible(i)
		if !l.Signed {
			entropy.add(h)
		}
		if visible > 0 && !l.Signed {
			bound.add(math.Log(float64(visible)))
		}
		if visible > 0 {
			first.add(float64(row[0]))
		}
		if visible == lk {
			last.add(float64(row[lk-1]))
		}
		if firstSpecial >= 0 && firstSpecial < visible {
			marks.add(m)
		}
		if firstPunctuation >= 0 && firstPunctuation < visible {
			points.add(p)
		}
		if !s.sameText {
			continue
		}
		for _, at := range []struct {
			offset int
			to     *mean
		}{{-1, &previous}, {0, &same}, {1, &next}} {
			if j, ok := s.keyAt(s.queries[i] + at.offset); ok && j < visible {
				at.to.add(float64(row[j]))
			}
		}
		j, ok := s.keyAt(s.queries[i])
		if !ok {
			continue
		}
		next, read := s.keyAt(s.queries[i] + 1)
		var again, after float64
		var followed, copied, found bool
		all := earlier(j)
		for _, k := range all {
			again += float64(row[k])
			if !s.adjacent(k) {
				continue
			}
			after, followed = after+float64(row[k+1]), true
			if read && s.causal && l.Keys[k+1] == l.Keys[next] {
				copied, found = true, found || float64(row[k+1]) == most
			}
		}
		if len(all) > 0 {
			duplicate.add(again)
		}
		if followed {
			induction.add(after)
		}
		switch {
		case copied && most != most:
			retrieval.add(most)
		case copied && found:
			retrieval.add(1)
		case copied:
			retrieval.add(0)
		}
	}
	return Measures{
		Entropy: entropy.value(), Bound: bound.value(), Distance: distance.value(), Confidence: confidence.value(),
		Previous: previous.value(), Same: same.value(), Next: next.value(), First: first.value(), Last: last.value(),
		Special: marks.value(), Punctuation: points.value(), Induction: induction.value(),
		Duplicate: duplicate.value(), Retrieval: retrieval.value(),
	}
}

// mean accumulates a sum and a count.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

// value returns the mean; NaN if nothing was added.
func (m *mean) value() float64 { return m.sum / float64(m.n) }

// scale has the positions of the tokens on both axes.
type scale struct {
	sameText      bool // both axes are positions in one text
	causal        bool
	queries, keys []int // positions, ascending
}

func (l *Layer) scale() scale {
	lq, lk := len(l.Queries), len(l.Keys)
	s := scale{queries: l.QueryPlaces, keys: l.KeyPlaces, causal: l.Kind.Causal()}
	s.sameText = s.causal || l.Kind == Encoder && (lq == lk || s.queries != nil)
	if s.keys == nil {
		s.keys = stats.Numbers(lk)
	}
	if s.queries == nil {
		s.queries = stats.Numbers(lq)
		for i := range s.queries { // texts end together: with a cache there are keys before the first query
			s.queries[i] += lk - lq
		}
	}
	return s
}

// visible returns the number of keys that query i can attend to: the first n keys.
func (s *scale) visible(i int) int {
	if !s.causal {
		return len(s.keys)
	}
	return sort.SearchInts(s.keys, s.queries[i]+1)
}

// Visible returns for each query the number n of keys that it can attend to: the first n keys. In a causal
// kind these are the keys up to the query's own position, in others all Lk. A record does not
// contain other masks.
func (l *Layer) Visible() []int {
	s := l.scale()
	list := make([]int, len(l.Queries))
	for i := range list {
		list[i] = s.visible(i)
	}
	return list
}

// keyAt returns the index of the key at a position, if there is one.
func (s *scale) keyAt(place int) (int, bool) { return slices.BinarySearch(s.keys, place) }

// distance is in tokens. Between different texts, the midpoint of the query is mapped to the same relative
// position on the key axis. The distance is measured from there to the midpoint of the key.
func (s *scale) distance(i, j int) float64 {
	if s.sameText {
		return math.Abs(float64(s.queries[i] - s.keys[j]))
	}
	lq, lk := float64(len(s.queries)), float64(len(s.keys))
	return math.Abs((float64(i)+0.5)*lk/lq - (float64(j) + 0.5))
}

// adjacent reports whether the key after k is at the next position. k is not the last.
func (s *scale) adjacent(k int) bool { return s.keys[k+1] == s.keys[k]+1 }

// earlier returns a function that lists the earlier occurrences of key j's token.
func (l *Layer) earlier(s scale) func(j int) []int {
	places := map[string][]int{}
	for k, token := range l.Keys {
		places[token] = append(places[token], k)
	}
	return func(j int) []int {
		list := places[l.Keys[j]]
		return list[:sort.SearchInts(list, j)]
	}
}

// punctuation reports whether a token, without its word marks, is only punctuation.
func punctuation(token string) bool {
	body := bare(token)
	return body != "" && strings.IndexFunc(body, func(r rune) bool { return !unicode.IsPunct(r) }) < 0
}
