package attn

import (
	"cmp"
	"strings"

	"github.com/attn-go/attn/internal/flash"
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
	rules []flash.MaskRule
}

// MaskRule is one condition on the keys to which a query may attend. Its methods but
// Check are called concurrently, and only for sizes that Check has passed.
//
// A rule with holes that has the booleans of queries in memory may have one more method, so that
// they are not copied:
//
//	Rows(s Sizes, at Row) (attended []bool, step int)
//
// It returns whether the query at attends to each key: Lk booleans, step elements behind which
// those of the next query of its head begin, and so on to the head's last query; a step of 0
// means that all queries attend alike. It returns nil if the booleans are not in memory in this
// order.
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

// Intervals is for embedding in a MaskRule without holes.
type Intervals struct{}

// Holes returns false.
func (Intervals) Holes() bool { return false }

// Hide does nothing.
func (Intervals) Hide(Sizes, Row, int, int, []bool) {}

// NewMask returns the mask of a rule.
func NewMask(r MaskRule) Mask {
	if r == nil {
		badValue("attn: NewMask", "rule", "nil", "a MaskRule")
	}
	return Mask{[]flash.MaskRule{r}}
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
		badShape("attn: Draw", "sizes", "", []int{s.B, s.H, s.Lq, s.Lk}, "[B H Lq Lk]")
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
	attended := make([]bool, s.B*s.H*s.Lq*s.Lk)
	flash.Attended(s, m.rules, attended)
	return attended
}

// check panics with a *tensor.ShapeError unless every rule fits.
func (m Mask) check(op string, s Sizes) {
	for _, r := range m.rules {
		panicAs(op, "mask", r.Check(s))
	}
}
