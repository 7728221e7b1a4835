package heads

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/tensor"
)

// Word is a word and the range of its tokens: from From up to but not including To.
type Word struct {
	Text     string
	From, To int
}

// marking is the way in which a vocabulary marks where words begin and end.
type marking uint8

const (
	unmarked  marking = iota // every token is a word
	starts                   // "▁a", "Ġa" begin a word
	continues                // "##a" continues a word
	ends                     // "a</w>" ends a word
	goesOn                   // the word continues after "a@@"
)

// startMarks begin a word: SentencePiece's mark, and the space and the line feed of byte-level
// vocabularies.
var startMarks = []string{"▁", "Ġ", "Ċ"}

func startMark(token string) bool {
	return slices.ContainsFunc(startMarks, func(mark string) bool { return strings.HasPrefix(token, mark) })
}

// markingOf returns the marking that the tokens use.
func markingOf(lists ...[]string) marking {
	for _, m := range []struct {
		is  marking
		has func(string) bool
	}{
		{starts, startMark},
		{continues, func(t string) bool { return strings.HasPrefix(t, "##") && len(t) > 2 }},
		{ends, func(t string) bool { return strings.HasSuffix(t, "</w>") }},
		{goesOn, func(t string) bool { return strings.HasSuffix(t, "@@") && len(t) > 2 }},
	} {
		if slices.ContainsFunc(lists, func(tokens []string) bool { return slices.ContainsFunc(tokens, m.has) }) {
			return m.is
		}
	}
	return unmarked
}

// bare returns a token without its word marks.
func bare(token string) string {
	for _, mark := range [...]string{"▁", "Ġ", "Ċ", "##"} {
		if body, cut := strings.CutPrefix(token, mark); cut && body != "" {
			token = body
			break
		}
	}
	for _, mark := range []string{"</w>", "@@"} {
		if body, cut := strings.CutSuffix(token, mark); cut && body != "" {
			return body
		}
	}
	return token
}

// Words groups tokens into words by the marks of their vocabulary: "▁" and "Ġ" begin a word, "##" continues
// a word, "</w>" ends a word, and after "@@" the word continues. If no token has a mark, each token is a
// word. A special token is always a word, and so is punctuation where marks are at the beginning of words.
func Words(tokens []string, special ...string) []Word {
	return markingOf(tokens).words(tokens, special)
}

func (m marking) words(tokens, special []string) []Word {
	var words []Word
	apart := true // the next token begins a word
	for i, token := range tokens {
		isSpecial := slices.Contains(special, token)
		alone := isSpecial || m == starts && punctuation(token)
		begins := apart || alone
		switch m {
		case unmarked:
			begins = true
		case starts:
			begins = begins || startMark(token)
		case continues:
			begins = begins || !strings.HasPrefix(token, "##")
		}
		text := token
		if !isSpecial {
			text = bare(token)
		}
		if begins {
			words = append(words, Word{text, i, i + 1})
		} else {
			w := &words[len(words)-1]
			if slices.Contains(startMarks, w.Text) { // the word so far is only a space
				w.Text = ""
			}
			w.Text, w.To = w.Text+text, i+1
		}
		apart = alone || m == ends && strings.HasSuffix(token, "</w>") || m == goesOn && !strings.HasSuffix(token, "@@")
	}
	// A word of the text may read like a special token. It keeps the marks of its pieces, which tell them apart.
	for i := range words {
		if w := &words[i]; slices.Contains(special, w.Text) && !slices.Contains(special, tokens[w.From]) {
			w.Text = strings.Join(tokens[w.From:w.To], "")
		}
	}
	return words
}

// MergeWords returns the weights of words [len(rows) len(columns)], given the weights of tokens [Lq Lk].
// The weight to a word is the sum over its tokens, the weight from a word is the mean over its tokens. A
// row that sums to 1 still sums to 1.
//
// It panics with a *tensor.ShapeError if the numbers of tokens in rows and columns do not match the
// weights.
//
// Source: Clark et al., "What Does BERT Look At?", 2019, section 4.1,
// https://arxiv.org/abs/1906.04341.
func MergeWords(weights []float32, rows, columns []Word) []float32 {
	lq, lk := end(rows), end(columns)
	if len(weights) != lq*lk {
		panic(&tensor.ShapeError{Op: "heads: MergeWords", Arg: "weights", What: "number of values", Got: []int{len(weights)}, Want: fmt.Sprintf("%d·%d for the words", lq, lk)})
	}
	merged := make([]float32, 0, len(rows)*len(columns))
	for _, r := range rows {
		for _, c := range columns {
			sum := 0.
			for i := r.From; i < r.To; i++ {
				for _, w := range weights[i*lk+c.From : i*lk+c.To] {
					sum += float64(w)
				}
			}
			merged = append(merged, float32(sum/float64(r.To-r.From)))
		}
	}
	return merged
}

// end returns the number of tokens in words.
func end(words []Word) int {
	if len(words) == 0 {
		return 0
	}
	return words[len(words)-1].To
}

// MergeWords returns the record with words in place of tokens, see Words. The kind of marks is determined
// from all tokens of the record, so that a text of a single word is merged as well.
//
// The position of a decoder's word is the index of the word that the decoder was reading when it wrote the
// last token of the word.
func (r *Record) MergeWords() *Record {
	marks := r.marking()
	merged := *r
	merged.Layers = make([]Layer, len(r.Layers))
	for i := range r.Layers {
		l := &r.Layers[i]
		merged.Layers[i] = l.merge(marks.words(l.Queries, r.Special), marks.words(l.Keys, r.Special))
	}
	return &merged
}

// Words groups tokens into words in the same way as MergeWords: by the marks that the tokens of the record
// use.
func (r *Record) Words(tokens []string) []Word { return r.marking().words(tokens, r.Special) }

// Labels returns the text of each token, to show it: "▁" is a space, also for "Ġa", "Ċ" is a line feed, and
// marks of pieces, such as "##", are cut. The marks are those of Words. "∎" is a special token that ends the text, whose
// name would be a tall label; beside other special tokens, as [SEP] with [CLS], it keeps its name.
func (r *Record) Labels(tokens []string) []string {
	labels, m := slices.Clone(tokens), r.marking()
	special := func(token string) bool { return slices.Contains(r.Special, token) }
	for i, token := range tokens {
		switch {
		case m == starts:
			body := strings.TrimLeft(token, "ĠĊ")
			labels[i] = strings.NewReplacer("Ġ", "▁", "Ċ", "\n").Replace(token[:len(token)-len(body)]) + body
		case m != unmarked && !special(token):
			labels[i] = bare(token)
		}
	}
	if last := len(tokens) - 1; last >= 0 && slices.IndexFunc(tokens, special) == last {
		labels[last] = "∎"
	}
	return labels
}

// marking returns the marking that the record's tokens use.
func (r *Record) marking() marking {
	var lists [][]string
	for i := range r.Layers {
		lists = append(lists, r.Layers[i].Queries, r.Layers[i].Keys)
	}
	return markingOf(lists...)
}

func (l *Layer) merge(rows, columns []Word) Layer {
	m := *l
	m.Queries, m.Keys, m.Weights = texts(rows), texts(columns), nil
	m.ValueNorms, m.QueryVectors, m.KeyVectors = nil, nil, nil // norms and vectors cannot be merged
	for h := range l.Heads {
		m.Weights = append(m.Weights, MergeWords(l.Head(h), rows, columns)...)
	}
	m.QueryPlaces, m.KeyPlaces = nil, nil
	s := l.scale()
	if !s.sameText {
		return m
	}
	wordOf := make([]int, 0, len(l.Keys)) // by key
	for w, c := range columns {
		wordOf = append(wordOf, slices.Repeat([]int{w}, c.To-c.From)...)
	}
	m.QueryPlaces = make([]int, len(rows))
	for i, r := range rows {
		place := s.queries[r.To-1]
		at, found := s.keyAt(place)
		if !found {
			at-- // the last key before it
		}
		m.QueryPlaces[i] = -1
		if at >= 0 {
			m.QueryPlaces[i] = wordOf[at]
		}
	}
	return m
}

func texts(words []Word) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.Text
	}
	return list
}

// WithoutSpecial returns the record without its special tokens, neither as queries nor as keys. If
// renormalise, the remaining weights of each row are scaled to sum to 1 again, unless all are zero or the layer is signed;
// otherwise rows sum to the weight of the remaining tokens. A layer that has only special tokens has no
// tokens left.
func (r *Record) WithoutSpecial(renormalise bool) *Record {
	rest := *r
	rest.Layers = make([]Layer, len(r.Layers))
	for i := range r.Layers {
		rest.Layers[i] = r.Layers[i].without(r.Special, renormalise)
	}
	return &rest
}

func (l *Layer) without(special []string, renormalise bool) Layer {
	rest, s := *l, l.scale()
	kept := func(tokens []string, places []int) (at []int, names []string, standing []int) {
		for i, token := range tokens {
			if !slices.Contains(special, token) {
				at, names, standing = append(at, i), append(names, token), append(standing, places[i])
			}
		}
		return at, names, standing
	}
	rows, queries, queryPlaces := kept(l.Queries, s.queries)
	columns, keys, keyPlaces := kept(l.Keys, s.keys)
	rest.Queries, rest.Keys = queries, keys
	if s.sameText {
		rest.QueryPlaces, rest.KeyPlaces = queryPlaces, keyPlaces
	}
	rest.ValueNorms = chosen(l.ValueNorms, l.Heads, len(l.Keys), columns)
	rest.QueryVectors, rest.KeyVectors = chosen(l.QueryVectors, l.Heads, len(l.Queries), rows), chosen(l.KeyVectors, l.Heads, len(l.Keys), columns)
	rest.Weights = make([]float32, 0, l.Heads*len(rows)*len(columns))
	for h := range l.Heads {
		all := l.Head(h)
		for _, i := range rows {
			sum, from := 0., len(rest.Weights)
			for _, j := range columns {
				w := all[i*len(l.Keys)+j]
				sum += float64(w)
				rest.Weights = append(rest.Weights, w)
			}
			if !renormalise || sum == 0 || l.Signed {
				continue
			}
			for at := range rest.Weights[from:] {
				rest.Weights[from+at] = float32(float64(rest.Weights[from+at]) / sum)
			}
		}
	}
	return rest
}

// chosen returns the given rows of each head's n rows; nil if x is nil.
func chosen(x []float32, heads, n int, rows []int) []float32 {
	if x == nil {
		return nil
	}
	size := len(x) / max(1, heads*n)
	out := make([]float32, 0, heads*len(rows)*size)
	for h := range heads {
		for _, i := range rows {
			out = append(out, x[(h*n+i)*size:(h*n+i+1)*size]...)
		}
	}
	return out
}
