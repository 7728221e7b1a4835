package attn

import (
	"cmp"
	"strings"

	"github.com/attn-go/attn/internal/flash"
)

// Mask selects the keys that each query attends to. The zero value hides no key. And combines
// masks. A mask does not know the shapes it will be applied to: its lengths are checked at the
// call. Mask.Draw returns a picture of it. Package mask has the usual masks: padding, causal,
// sliding window.
//
// A query that attends to no key has weights 0 and output 0. Some textbooks instead add −10¹⁰ to
// hidden scores, or set them to −10⁶; such a query then gets uniform weights over all keys,
// hidden ones included. Every other query gets the same weights either way. To reproduce the
// numbers of such a textbook, use no Mask and pass a Bias of −10¹⁰ for hidden keys; the example
// shows how.
type Mask struct {
	rules []flash.MaskRule
}

// MaskRule is one condition on the keys that a query attends to. All methods except Check are
// called concurrently, and only for sizes that Check has accepted.
//
// A rule with holes that stores its booleans in memory can implement one more method, so that
// they are not copied:
//
//	Rows(s Sizes, at Row) (attended []bool, step int)
//
// attended[j] reports whether the query at attends to key j, for all Lk keys. The booleans of the
// next query of the head begin step elements further, and so on up to the head's last query. A
// step of 0 means that all queries attend to the same keys. Rows returns nil if the booleans are
// not in memory in this order.
type MaskRule interface {
	// Check returns an error unless the rule fits the sizes of a call. Attend panics with that
	// error. A *tensor.ShapeError may omit the operation; Attend adds it.
	Check(s Sizes) error
	// Keys returns an interval [lo, hi) of keys outside which the query of row at attends to no
	// key. The interval may extend beyond the existing keys.
	Keys(s Sizes, at Row) (lo, hi int)
	// Holes reports whether the rule hides keys inside its intervals. If so, Hide sets
	// attended[j] to false for each key j in [lo, hi) that the rule hides.
	Holes() bool
	Hide(s Sizes, at Row, lo, hi int, attended []bool)
}

// Intervals can be embedded in a MaskRule without holes.
type Intervals struct{}

// Holes returns false.
func (Intervals) Holes() bool { return false }

// Hide does nothing.
func (Intervals) Hide(Sizes, Row, int, int, []bool) {}

// NewMask returns a mask with one rule.
func NewMask(r MaskRule) Mask {
	if r == nil {
		badValue("attn: NewMask", "rule", "nil", "a MaskRule")
	}
	return Mask{[]flash.MaskRule{r}}
}

// And returns a mask that hides every key that at least one of the masks hides.
func And(masks ...Mask) Mask {
	var all Mask
	for _, m := range masks {
		all.rules = append(all.rules, m.rules...)
	}
	return all
}

// Draw returns a picture of the mask for each sequence and head. A row is a query: 1 marks a key
// that it attends to, · a hidden key. Draw helps to check how a mask is aligned. B = 0 or H = 0
// means 1, so Sizes{Lq: 3, Lk: 5} is enough.
//
// Draw panics with a *tensor.ShapeError if the mask does not fit the sizes.
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

// Array returns the mask as booleans [B H Lq Lk]: true where a query attends to a key. The array
// takes one byte per pair of query and key. Array is for inspection and for other programs;
// Attend never builds such an array.
//
// Array panics with a *tensor.ShapeError if the mask does not fit the sizes.
func (m Mask) Array(s Sizes) []bool {
	m.check("attn: Array", s)
	return m.array(s)
}

// array is Array without its checks.
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
