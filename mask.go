package attn

import (
	"cmp"
	"strings"

	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/tensor"
)

// Mask says to which keys a query may attend. The zero value hides nothing; And
// combines masks. A mask is made for shapes that it meets later: whether its
// lengths fit is checked where it is used. Draw shows one as a picture.
//
// A query that may attend to no key has weights 0 and out 0. Lessons that add
// −10¹⁰ to hidden scores, or set them to −10⁶, give such a query uniform weights
// over all keys, the hidden ones included. Every other query has the same
// weights in both ways. To get the numbers of such a lesson, pass −10¹⁰ as a Bias
// where a key is hidden, and no Mask; the example shows it.
type Mask struct {
	rules []MaskRule
}

// MaskRule is one condition on the keys to which a query may attend. Its methods but
// Check are called concurrently, and only for sizes that Check has passed.
type MaskRule interface {
	// Check returns an error unless the rule fits the sizes of a call. Attend panics with
	// it; a *tensor.ShapeError need not name the operation.
	Check(s Sizes) error
	// Keys returns the interval [lo, hi) of keys outside of which the query at attends to
	// none. It may reach beyond the keys there are.
	Keys(s Sizes, at Row) (lo, hi int)
	// Holes reports whether the rule hides keys inside of its intervals. Then Hide sets
	// attended[j] to false for each key j of [lo, hi) that it hides.
	Holes() bool
	Hide(s Sizes, at Row, lo, hi int, attended []bool)
}

// MaskArray is a MaskRule with holes that may have the booleans of queries in memory: then
// they are not copied.
type MaskArray interface {
	MaskRule
	// Rows returns whether the query at attends to each key: Lk booleans, step elements behind
	// which those of the next query of its head begin, and so on to the head's last query. A
	// step of 0 means that all queries attend alike. It returns nil if the booleans do not lie
	// in memory in this order.
	Rows(s Sizes, at Row) (attended []bool, step int)
}

// Intervals is for embedding in a MaskRule without holes.
type Intervals struct{}

// Holes returns false.
func (Intervals) Holes() bool { return false }

// Hide does nothing.
func (Intervals) Hide(Sizes, Row, int, int, []bool) {}

// NewMask returns the mask of a rule.
func NewMask(r MaskRule) Mask {
	if r == nil {
		panic(&tensor.ValueError{Op: "attn: NewMask", Arg: "rule", Got: "nil", Want: "a MaskRule"})
	}
	return Mask{[]MaskRule{r}}
}

// And returns the mask that hides what any of the masks hides.
func And(masks ...Mask) Mask {
	var all Mask
	for _, m := range masks {
		all.rules = append(all.rules, m.rules...)
	}
	return all
}

// Draw returns a picture of the mask for the queries and keys of each sequence and head,
// a row for each query: 1 where it attends to a key and · where it does not. It shows
// where a mask is aligned. A B or an H of 0 means 1, so that Sizes{Lq: 3, Lk: 5} will do.
//
// It panics with a *tensor.ShapeError if the mask does not fit the sizes.
func (m Mask) Draw(s Sizes) string {
	s.B, s.H = max(s.B, 1), max(s.H, 1)
	s.G = cmp.Or(s.G, s.H)
	if s.Lq < 0 || s.Lk < 0 {
		panic(&tensor.ShapeError{Op: "attn: Draw", Arg: "sizes", Got: []int{s.B, s.H, s.Lq, s.Lk}, Want: "[B H Lq Lk]"})
	}
	m.check("attn: Draw", s)
	var b strings.Builder
	attended := m.array(s)
	for r := range s.B * s.H * s.Lq {
		if r > 0 && r%s.Lq == 0 {
			b.WriteByte('\n')
		}
		for j, yes := range attended[r*s.Lk:][:s.Lk] {
			if j > 0 {
				b.WriteByte(' ')
			}
			if yes {
				b.WriteByte('1')
			} else {
				b.WriteString("·")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Array returns the mask as booleans [B H Lq Lk]: true where a query attends to a key. An
// array of them takes a byte for each pair, which Attend never makes: it is for inspection
// and for other programs.
//
// It panics with a *tensor.ShapeError if the mask does not fit the sizes.
func (m Mask) Array(s Sizes) []bool {
	m.check("attn: Array", s)
	return m.array(s)
}

// array is Array of sizes that have been checked.
func (m Mask) array(s Sizes) []bool {
	rows := newMaskRows(m, s, 0)
	all := make([]bool, s.B*s.H*s.Lq*s.Lk)
	scratch := make([]bool, s.Lk)
	for r := range s.B * s.H * s.Lq {
		var span [1]flash.Span
		rows.Rows(r, 0, s.Lk, span[:], scratch)
		for j := span[0].Lo; j < span[0].Hi; j++ {
			all[r*s.Lk+j] = span[0].Seen == nil || span[0].Seen[j]
		}
	}
	return all
}

// check panics with a *tensor.ShapeError unless every rule fits.
func (m Mask) check(op string, s Sizes) {
	for _, r := range m.rules {
		raise(op, "mask", r.Check(s))
	}
}

// maskRows is a mask put to the rows of scores [B H Lq Lk].
type maskRows struct {
	Mask
	s     Sizes
	extra int // keys in front of those of s, to which every query attends
	holes int // how many rules have any
}

func newMaskRows(m Mask, s Sizes, extra int) *maskRows {
	holes := 0
	for _, r := range m.rules {
		if r.Holes() {
			holes++
		}
	}
	return &maskRows{m, s, extra, holes}
}

// Rows implements flash.Mask.
func (m *maskRows) Rows(first, k0, k1 int, spans []flash.Span, scratch []bool) {
	all := m.extra + m.s.Lk
	at := m.s.row(flash.Place{
		Batch: first / m.s.Lq / m.s.H, Head: first / m.s.Lq % m.s.H, Query: first % m.s.Lq, Key: max(k0-m.extra, 0),
	})
	queries, end := m.s.Queries(at.Batch), min(k1-m.extra, m.s.Keys(at.Batch))
	for len(spans) > 0 { // a head at a time
		n := min(len(spans), m.s.Lq-at.Query)
		live := min(n, max(queries-at.Query, 0))
		m.spans(at, end, spans[:live], scratch)
		if m.extra > 0 {
			for r := range live {
				spans[r] = attended(spans[r], m.extra, k0, k1, scratch[r*all:][:all])
			}
		}
		clear(spans[live:n])
		spans, scratch = spans[n:], scratch[n*all:]
		at.Head, at.Query, at.Position = at.Head+1, 0, at.Position-at.Query
	}
}

// spans sets spans[r] to which of the keys at.Key to end the query r after at attends.
func (m *maskRows) spans(at Row, end int, spans []flash.Span, scratch []bool) {
	for r := range spans {
		spans[r] = flash.Span{Lo: at.Key, Hi: end}
	}
	for _, rule := range m.rules {
		for r, at := 0, at; r < len(spans); r++ {
			lo, hi := rule.Keys(m.s, at)
			spans[r].Lo, spans[r].Hi = max(spans[r].Lo, lo), min(spans[r].Hi, hi)
			at.Query, at.Position = at.Query+1, at.Position+1
		}
	}
	for r := range spans {
		if spans[r].Lo >= spans[r].Hi {
			spans[r] = flash.Span{}
		}
	}
	if m.holes > 0 {
		m.hide(at, spans, scratch)
	}
}

// hide takes from the intervals of queries the keys that some rule hides.
func (m *maskRows) hide(at Row, spans []flash.Span, scratch []bool) {
	array := m.array(at, spans)
	if array >= 0 && m.holes == 1 {
		return
	}
	for r, at := 0, at; r < len(spans); r++ {
		if x := &spans[r]; x.Lo < x.Hi {
			attended := scratch[r*(m.extra+m.s.Lk)+m.extra:]
			for j := x.Lo; j < x.Hi; j++ {
				attended[j] = x.Seen == nil || x.Seen[j]
			}
			x.Seen = attended
			for i, rule := range m.rules {
				if i != array && rule.Holes() {
					rule.Hide(m.s, at, x.Lo, x.Hi, attended)
				}
			}
		}
		at.Query, at.Position = at.Query+1, at.Position+1
	}
}

// array gives spans the booleans of the first rule that has them in memory, and returns the
// number of this rule, -1 if there is none.
func (m *maskRows) array(at Row, spans []flash.Span) int {
	for i, rule := range m.rules {
		array, ok := rule.(MaskArray)
		if !ok {
			continue
		}
		attended, step := array.Rows(m.s, at)
		if attended == nil {
			continue
		}
		for r := range spans {
			if spans[r].Lo < spans[r].Hi {
				spans[r].Seen = attended[r*step:][:m.s.Lk]
			}
		}
		return i
	}
	return -1
}
