package heads

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/tensor"
)

// Criterion rates the rows of a layer, to find those that best show something. It is called with the axes of a
// layer, without weights, and with the special tokens, and returns a function that rates a query by its weights
// [Lk], or shares of a signed layer: the larger the score, the better the example. key is the key to show. NaN means
// no example. Several goroutines may call the function at once; it must not keep weights.
//
// Sharp and To return criteria. You can write your own in the same way.
type Criterion func(l *Layer, special []string) func(query int, weights []float32) (score float64, key int)

// Sharp rates how much a row differs from uniform weights, in nats: over its n visible keys j,
//
//	Σ_j w_j·ln(n·w_j) = ln n − entropy
//
// Without sinks, special tokens and the first key of a causal layer contribute nothing: many heads attend to them when
// they have nothing to contribute. The key is the one with the largest weight of those that contribute.
//
// Source: Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2023,
// https://arxiv.org/abs/2309.17453, section 3.1, for sinks.
func Sharp(sinks bool) Criterion {
	return func(l *Layer, special []string) func(query int, weights []float32) (float64, int) {
		s := l.scale()
		var without []int
		for j, token := range l.Keys {
			if !sinks && (slices.Contains(special, token) || j == 0 && s.causal) {
				without = append(without, j)
			}
		}
		return func(query int, weights []float32) (float64, int) {
			n := s.visible(query)
			score, sum, largest := -float64(simd.Entropy(weights[:n])), 0., -1
			for j, skip := 0, without; j < n; j++ {
				w := float64(weights[j])
				if len(skip) > 0 && skip[0] == j {
					if skip = skip[1:]; w > 0 {
						score -= float64(w * math.Log(w))
					}
					continue
				}
				if sum += w; largest < 0 || weights[j] > weights[largest] {
					largest = j
				}
			}
			if largest < 0 {
				return math.NaN(), 0
			}
			return score + float64(sum*math.Log(float64(n))), largest
		}
	}
}

// Class selects keys of a layer. It is called like a Criterion, and returns a function that lists the keys of a query
// in ascending order.
type Class func(l *Layer, special []string) func(query int) []int

// To rates the weight of the keys of a class, from 0 to 1. The key is the one with the largest weight.
func To(c Class) Criterion {
	return func(l *Layer, special []string) func(query int, weights []float32) (float64, int) {
		keys := c(l, special)
		return func(query int, weights []float32) (float64, int) {
			sum, largest := math.NaN(), 0
			for i, j := range keys(query) {
				if i == 0 {
					sum, largest = 0, j
				}
				if sum += float64(weights[j]); weights[j] > weights[largest] {
					largest = j
				}
			}
			return sum, largest
		}
	}
}

// Where is the class of the keys whose token satisfies a condition. The first key of a causal layer is not in it,
// because many heads attend to it whatever it is.
func Where(is func(token string, special bool) bool) Class {
	return func(l *Layer, special []string) func(int) []int {
		var list []int
		for j, token := range l.Keys {
			if !(j == 0 && l.Kind.Causal()) && is(token, slices.Contains(special, token)) {
				list = append(list, j)
			}
		}
		return func(int) []int { return list }
	}
}

// Token is Where for a text, with or without the marks of words: "the" is also "Ġthe" and "##the". A text that begins
// with a space is a token that does not continue a word, as far as the vocabulary marks it.
func Token(text string) Class {
	word, begins := strings.CutPrefix(text, " ")
	return func(l *Layer, special []string) func(int) []int {
		m := markingOf(l.Keys)
		return Where(func(token string, _ bool) bool {
			inside := m == starts && !startMark(token) || m == continues && strings.HasPrefix(token, "##")
			return token == text || bare(token) == word && !(begins && inside)
		})(l, special)
	}
}

// Offset is the class of the key at a distance from the query's position, such as −1 for the previous token. It is
// empty between two texts, and without the first key of a causal layer, as in Where.
func Offset(n int) Class {
	return func(l *Layer, _ []string) func(int) []int {
		s, keys := l.scale(), stats.Numbers(len(l.Keys))
		return func(query int) []int {
			j, ok := s.keyAt(s.queries[query] + n)
			if !ok || !s.sameText || j == 0 && s.causal {
				return nil
			}
			return keys[j : j+1]
		}
	}
}

// Followers is the class of the keys that follow an earlier occurrence of the query's token, as in
// Measures.Induction.
func Followers() Class {
	return func(l *Layer, _ []string) func(int) []int {
		s := l.scale()
		earlier := l.earlier(s)
		return func(query int) []int {
			j, ok := s.keyAt(s.queries[query])
			if !ok || !s.sameText {
				return nil
			}
			var list []int
			for _, k := range earlier(j) {
				if s.adjacent(k) {
					list = append(list, k+1)
				}
			}
			return list
		}
	}
}

// classes are the classes with a name. Those of words are without special tokens.
var classes = map[string]Class{
	"special": func(l *Layer, special []string) func(int) []int {
		list := slices.DeleteFunc(stats.Numbers(len(l.Keys)), func(j int) bool { return !slices.Contains(special, l.Keys[j]) })
		return func(int) []int { return list }
	},
	"punctuation": Where(func(token string, special bool) bool { return !special && punctuation(token) }),
	"number": Where(func(token string, special bool) bool {
		return !special && token != "" && strings.IndexFunc(bare(token), func(r rune) bool { return !unicode.IsNumber(r) }) < 0
	}),
	"capital": Where(func(token string, special bool) bool {
		return !special && strings.IndexFunc(bare(token), unicode.IsUpper) == 0
	}),
	"induction": Followers(),
}

// ParseCriterion returns a criterion by its name: "sharp", or "sharp:all" with sinks; "token:TEXT"; "offset:N"; or
// "special", "punctuation", "number", "capital" or "induction", the weight of such keys.
func ParseCriterion(name string) (Criterion, error) {
	kind, value, given := strings.Cut(name, ":")
	class := classes[name]
	switch n, err := strconv.Atoi(value); {
	case name == "sharp", name == "sharp:all":
		return Sharp(given), nil
	case kind == "token" && value != "":
		class = Token(value)
	case kind == "offset" && err == nil:
		class = Offset(n)
	case class == nil:
		return nil, fmt.Errorf("unknown criterion %s, want sharp, sharp:all, token:TEXT, offset:N, special, punctuation, "+
			"number, capital or induction", quote.Text(name))
	}
	return To(class), nil
}

// Example is a query of a head in a text, with its weights.
type Example struct {
	Score float64 // by the Criterion
	// Number is the number of the text, such as its line, and Texts are its tokens.
	Number int
	Texts  Texts
	// Query and Key are indices in Queries and Keys, the axes of the layer.
	Query, Key    int
	Queries, Keys []string
	// Weights are those of the query [Lk], or their shares in a signed layer.
	Weights []float32
}

// before orders examples: by score, the largest first, then in the order of the texts.
func (x *Example) before(y *Example) bool {
	return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(x.Number, y.Number), cmp.Compare(x.Query, y.Query)) < 0
}

// Examples finds for each head of a model the texts in which a query has the highest scores by a Criterion. It is an
// attn.Observer, which sees rows while they are computed: the texts of a corpus can be read one batch after the other, in
// memory for the examples of each head.
//
//	examples := heads.NewExamples(heads.Sharp(false), 10, nil)
//	for n, text := range corpus {
//		examples.Read([]int{n}, text)
//		model.Forward(…, attn.Options{Observers: []attn.Observer{examples}})
//	}
//	best := examples.Of("encoder.0.self", 3)
//
// Each text has one example per head, its query with the highest score, and equal texts have one together. The result
// does not depend on the order of the texts, on their batches, or on threads.
//
// The kind of a layer follows from its name, as in a Recorder; without one it is Cross if the numbers of queries and
// keys differ, and otherwise Encoder. Examples is for one call at a time.
type Examples struct {
	criterion Criterion
	most      int
	chosen    func(layer string, head int) bool
	found     map[string][][]*Example // by layer and head, the best first

	numbers []int
	texts   []Texts
	now     []rating // of the sequences in a call
	best    []query  // [B H]
	call    attn.Sizes
	shares  sync.Pool // rows of signed layers
}

// rating rates the rows of one sequence.
type rating struct {
	queries, keys []string
	rate          func(query int, weights []float32) (float64, int)
}

// query is the best query so far of a head in a sequence.
type query struct {
	sync.Mutex
	example *Example // nil if there is none
	least   float64  // a lower score is not among the examples of the head
	off     bool     // the head is not chosen
}

// NewExamples returns an observer that finds the best examples of each head, at most the given number. chosen reports
// whether to find those of a head; nil means all heads.
func NewExamples(c Criterion, most int, chosen func(layer string, head int) bool) *Examples {
	return &Examples{criterion: c, most: most, chosen: chosen, found: map[string][][]*Example{}}
}

// Read sets the texts of the next batch that a model reads: one for each sequence, with its number in Example.
// A layer panics with a *tensor.ShapeError if it has another number of sequences, or fewer queries or keys
// than a text has tokens: a text is read in one call, not step by step.
//
// Aliasing: examples keep the tokens of the texts.
func (e *Examples) Read(numbers []int, texts ...Texts) { e.numbers, e.texts = numbers, texts }

// Begin begins a call of a layer.
func (e *Examples) Begin(s attn.Sizes) {
	if s.B != len(e.texts) || s.B != len(e.numbers) {
		panic(&tensor.ShapeError{Op: "heads: Examples", Arg: "layer " + quote.Text(s.Layer), What: "number of sequences", Got: []int{s.B}, Want: fmt.Sprintf("that of the texts, %d, and of their numbers, %d", len(e.texts), len(e.numbers))})
	}
	l := Layer{Name: s.Layer, Heads: s.H, Signed: s.Signed}
	var said bool
	if l.Kind, said = kindOf(s.Layer); !said && s.Lq != s.Lk {
		l.Kind = Cross
	}
	l.Index, _ = indexOf(s.Layer)
	if e.found[s.Layer] == nil {
		e.found[s.Layer] = make([][]*Example, s.H)
	}
	e.call, e.now, e.best = s, make([]rating, s.B), make([]query, s.B*s.H)
	for b := range e.now {
		l.Queries, l.Keys = e.texts[b].axes(l.Kind)
		if len(l.Queries) > s.Lq || len(l.Keys) > s.Lk {
			panic(&tensor.ShapeError{Op: "heads: Examples", Arg: "layer " + quote.Text(s.Layer), What: "queries and keys", Got: []int{s.Lq, s.Lk}, Want: fmt.Sprintf("at least the tokens of the text, %d and %d", len(l.Queries), len(l.Keys))})
		}
		of := l
		e.now[b] = rating{l.Queries, l.Keys, e.criterion(&of, e.texts[b].Special)}
		for h, list := range e.found[s.Layer] {
			q := &e.best[b*s.H+h]
			q.off = e.most < 1 || e.chosen != nil && !e.chosen(s.Layer, h)
			if q.least = math.Inf(-1); len(list) == e.most && !q.off {
				q.least = list[e.most-1].Score
			}
		}
	}
}

// Row rates a query.
func (e *Examples) Row(at attn.Row, weights []float32) {
	r, best := &e.now[at.Batch], &e.best[at.Batch*e.call.H+at.Head]
	if best.off || at.Query >= len(r.queries) {
		return
	}
	weights = weights[:len(r.keys)]
	if e.call.Signed {
		buffer, _ := e.shares.Get().(*[]float32)
		if buffer == nil {
			buffer = new([]float32)
		}
		defer e.shares.Put(buffer)
		*buffer = append((*buffer)[:0], weights...)
		weights = *buffer
		ToShares(weights)
	}
	score, key := r.rate(at.Query, weights)
	if !(score >= best.least) || !slices.ContainsFunc(weights, func(w float32) bool { return w != 0 }) {
		return
	}
	x := Example{Score: score, Number: e.numbers[at.Batch], Texts: e.texts[at.Batch], Query: at.Query, Key: key, Queries: r.queries, Keys: r.keys}
	best.Lock()
	defer best.Unlock()
	if best.example == nil {
		best.example = &Example{}
	} else if !x.before(best.example) {
		return
	}
	x.Weights = append(best.example.Weights[:0], weights...)
	*best.example = x
}

// End adds the best query of each sequence to the examples of its head.
func (e *Examples) End() {
	for i := range e.best {
		x, list := e.best[i].example, &e.found[e.call.Layer][i%e.call.H]
		if x == nil {
			continue
		}
		same := func(y *Example) bool { return y.Texts.Source == x.Texts.Source && y.Texts.Target == x.Texts.Target }
		if at := slices.IndexFunc(*list, same); at >= 0 {
			if !x.before((*list)[at]) {
				continue
			}
			*list = slices.Delete(*list, at, at+1)
		}
		at := slices.IndexFunc(*list, x.before)
		if at < 0 {
			at = len(*list)
		}
		*list = slices.Insert(*list, at, x)
		*list = (*list)[:min(len(*list), e.most)]
	}
	e.best = nil
}

// Of returns the examples of a head, the best first; none if the layer was not observed.
func (e *Examples) Of(layer string, head int) []*Example {
	if list := e.found[layer]; head < len(list) {
		return list[head]
	}
	return nil
}
