package attn

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/tensor"
)

// Mask says which keys a query may see. The zero value hides nothing; And
// combines masks. A mask is made for shapes that it meets later: whether its
// lengths fit is checked where it is used.
//
// A query that may attend to no key has weights 0 and out 0. Lessons that add
// −10¹⁰ to hidden scores, or set them to −10⁶, give such a query uniform weights
// over all keys, the hidden ones included. Every other query has the same
// weights in both ways. To get the numbers of such a lesson, pass −10¹⁰ as a Bias
// where a key is hidden, and no Mask; the example shows it.
type Mask struct {
	rules []rule
}

// rule is one condition on what query i of head h in sequence b may see.
type rule interface {
	// check panics with a *tensor.ShapeError unless the rule fits.
	check(op string, d dims)
	// span returns the interval [lo, hi) of keys outside of which the query
	// sees nothing. It may reach beyond the keys there are.
	span(d dims, b, h, i int) (lo, hi int)
	// holes reports whether the rule hides keys inside of its spans. Then show
	// sets seen[j] to whether key j of [lo, hi) is seen, and hide sets it to
	// false where it is not. If the rule has that in memory, view returns it.
	holes() bool
	view(d dims, b, h, i int) []bool
	show(d dims, b, h, i, lo, hi int, seen []bool)
	hide(d dims, b, h, i, lo, hi int, seen []bool)
}

// intervals is part of the rules without holes.
type intervals struct{}

func (intervals) holes() bool                              { return false }
func (intervals) view(_ dims, _, _, _ int) []bool          { return nil }
func (intervals) show(_ dims, _, _, _, _, _ int, _ []bool) {}
func (intervals) hide(_ dims, _, _, _, _, _ int, _ []bool) {}

// And returns the mask that hides what any of the masks hides.
func And(masks ...Mask) Mask {
	var all Mask
	for _, m := range masks {
		all.rules = append(all.rules, m.rules...)
	}
	return all
}

// Causal lets query i see key j when j ≤ i + Lk − Lq: the last query sees every
// key.
func Causal() Mask { return Mask{[]rule{window{left: -1, right: 0, end: true}}} }

// CausalAt lets query i see key j when j ≤ i + offset. It takes one offset for
// all sequences or one for each.
func CausalAt(offset ...int) Mask {
	return Mask{[]rule{window{left: -1, right: 0, offsets: slices.Clone(offset)}}}
}

// Window lets query i see the keys from left before to right after its own
// position, which is i + Lk − Lq and is always in the window. A negative left or
// right leaves that side open.
func Window(left, right int) Mask {
	return Mask{[]rule{window{left: left, right: right, end: true}}}
}

// WindowAt is Window with query i at position i + offset. It takes one offset
// for all sequences or one for each.
func WindowAt(left, right int, offset ...int) Mask {
	return Mask{[]rule{window{left: left, right: right, offsets: slices.Clone(offset)}}}
}

// window is a band of keys around the position of the query.
type window struct {
	intervals
	left, right int   // negative: open
	end         bool  // the offset is Lk − Lq
	offsets     []int // else one for all, or one for each sequence
}

func (w window) check(op string, d dims) {
	if !w.end && len(w.offsets) != 1 && len(w.offsets) != d.B {
		badMask(op, "number of offsets", []int{len(w.offsets)}, "one, or one for each of B=%d sequences", d.B)
	}
}

func (w window) span(d dims, b, _, i int) (lo, hi int) {
	at := i + d.Lk - d.Lq
	if !w.end {
		at = i + w.offsets[min(b, len(w.offsets)-1)]
	}
	lo, hi = 0, d.Lk
	// Compared before they are added up, so that the largest int is as good
	// as a negative number.
	if w.left >= 0 && w.left < at {
		lo = at - w.left
	}
	if w.right >= 0 && w.right < hi-at {
		hi = at + w.right + 1
	}
	return lo, hi
}

// ValidLens lets every query of sequence b see its first lens[b] keys.
func ValidLens(lens ...int) Mask { return Mask{[]rule{validLens{lens: slices.Clone(lens)}}} }

// validLens is a number of keys for each sequence.
type validLens struct {
	intervals
	lens []int
}

func (v validLens) check(op string, d dims) {
	if len(v.lens) != d.B {
		badMask(op, "number of valid lengths", []int{len(v.lens)}, "one for each of B=%d sequences", d.B)
	}
	wantLengths(op, v.lens, d)
}

func (v validLens) span(_ dims, b, _, _ int) (lo, hi int) { return 0, v.lens[b] }

// ValidLensRows lets query i of sequence b see the first lens[b][i] keys.
func ValidLensRows(lens [][]int) Mask {
	rows := make([][]int, len(lens))
	for b := range lens {
		rows[b] = slices.Clone(lens[b])
	}
	return Mask{[]rule{validLensRows{lens: rows}}}
}

// validLensRows is a number of keys for each query of each sequence.
type validLensRows struct {
	intervals
	lens [][]int
}

func (v validLensRows) check(op string, d dims) {
	if len(v.lens) != d.B {
		badMask(op, "number of rows of valid lengths", []int{len(v.lens)}, "one for each of B=%d sequences", d.B)
	}
	for b := range v.lens {
		if len(v.lens[b]) != d.Lq {
			badMask(op, "number of valid lengths", []int{len(v.lens[b])}, "one for each of Lq=%d queries", d.Lq)
		}
		wantLengths(op, v.lens[b], d)
	}
}

func (v validLensRows) span(_ dims, b, _, i int) (lo, hi int) { return 0, v.lens[b][i] }

// wantLengths panics unless every length is one of a number of keys.
func wantLengths(op string, lens []int, d dims) {
	for _, n := range lens {
		if n < 0 || n > d.Lk {
			badMask(op, "valid length", []int{n}, "0 to Lk=%d", d.Lk)
		}
	}
}

// Allow lets a query see the keys where seen is true. The shape broadcasts to
// that of the scores, [B H Lq Lk], or [B Lq Lk] where the query has three axes;
// its axes are aligned at the end. Allow shares seen. It panics with a
// *tensor.ShapeError if the shape does not hold len(seen) elements.
func Allow(seen []bool, shape ...int) Mask {
	return Mask{[]rule{newAllow("attn: Allow", seen, shape)}}
}

// AllowSequenceFirst is Allow for a mask laid out as [Lq Lk B], of which the
// first and the last axis may be 1.
func AllowSequenceFirst(seen []bool, lq, lk, b int) Mask {
	a := newAllow("attn: AllowSequenceFirst", seen, []int{lq, lk, b})
	a.sequenceFirst = true
	return Mask{[]rule{a}}
}

func newAllow(op string, seen []bool, shape []int) allow {
	n := 1
	for _, d := range shape {
		if d < 0 {
			badMask(op, "", shape, "no negative axis")
		}
		n *= d
	}
	if n != len(seen) {
		badMask(op, "number of elements", []int{len(seen)}, "%d for shape %v", n, shape)
	}
	return allow{seen: seen, shape: slices.Clone(shape)}
}

// allow is a boolean array.
type allow struct {
	seen          []bool
	shape         []int
	sequenceFirst bool // [Lq Lk B]
}

func (a allow) check(op string, d dims) {
	if a.sequenceFirst {
		if (a.shape[0] != 1 && a.shape[0] != d.Lq) || a.shape[1] != d.Lk || (a.shape[2] != 1 && a.shape[2] != d.B) {
			badMask(op, "", a.shape, "[Lq=%d Lk=%d B=%d], where Lq and B may be 1", d.Lq, d.Lk, d.B)
		}
		return
	}
	if !d.broadcasts(a.shape) {
		_, letters := d.shape()
		badMask(op, "", a.shape, "a shape that broadcasts to %s", letters)
	}
}

func (allow) span(d dims, _, _, _ int) (lo, hi int) { return 0, d.Lk }
func (allow) holes() bool                           { return true }

func (a allow) view(d dims, b, h, i int) []bool {
	if at, step := a.row(d, b, h, i); step == 1 {
		return a.seen[at:][:d.Lk]
	}
	return nil
}

func (a allow) show(d dims, b, h, i, lo, hi int, seen []bool) {
	at, step := a.row(d, b, h, i)
	for j := lo; j < hi; j++ {
		seen[j] = a.seen[at+j*step]
	}
}

func (a allow) hide(d dims, b, h, i, lo, hi int, seen []bool) {
	at, step := a.row(d, b, h, i)
	for j := lo; j < hi; j++ {
		if !a.seen[at+j*step] {
			seen[j] = false
		}
	}
}

// row returns the place of element (b, h, i, 0) and the step from key to key.
// Axes that are missing or 1 do not advance.
func (a allow) row(d dims, b, h, i int) (at, step int) {
	if a.sequenceFirst {
		if a.shape[0] > 1 {
			at = i * a.shape[1] * a.shape[2]
		}
		if a.shape[2] > 1 {
			at += b
		}
		return at, a.shape[2]
	}
	index := [4]int{b, h, i, 0}
	if d.flat {
		index = [4]int{0, b, i, 0}
	}
	stride := 1
	for axis := len(a.shape) - 1; axis >= 0; axis-- {
		place := axis + len(index) - len(a.shape)
		if n := a.shape[axis]; n > 1 {
			at += index[place] * stride
			if place == len(index)-1 {
				step = 1
			}
		}
		stride *= a.shape[axis]
	}
	return at, step
}

// AllowFunc lets query i of head h in sequence b see key j where f says so. f is
// called concurrently.
func AllowFunc(f func(b, h, i, j int) bool) Mask { return Mask{[]rule{allowFunc(f)}} }

type allowFunc func(b, h, i, j int) bool

func (allowFunc) check(string, dims)                    {}
func (allowFunc) span(d dims, _, _, _ int) (lo, hi int) { return 0, d.Lk }
func (allowFunc) holes() bool                           { return true }

func (allowFunc) view(dims, int, int, int) []bool { return nil }

func (f allowFunc) show(_ dims, b, h, i, lo, hi int, seen []bool) {
	for j := lo; j < hi; j++ {
		seen[j] = f(b, h, i, j)
	}
}

func (f allowFunc) hide(_ dims, b, h, i, lo, hi int, seen []bool) {
	for j := lo; j < hi; j++ {
		if seen[j] && !f(b, h, i, j) {
			seen[j] = false
		}
	}
}

// check panics with a *tensor.ShapeError unless every rule fits.
func (m Mask) check(op string, d dims) {
	for _, r := range m.rules {
		r.check(op, d)
	}
}

// rows returns m for scores of the sizes d, which it has been checked against.
func (m Mask) rows(d dims) tensor.Mask { return maskRows{m, d} }

// maskRows is a mask put to the rows of scores [B H Lq Lk].
type maskRows struct {
	Mask
	d dims
}

func (m maskRows) Row(r int, seen []bool) (lo, hi int, holes bool) {
	var spans [1]flash.Span
	m.Rows(r, 0, m.d.Lk, spans[:], seen)
	s := spans[0]
	if s.Seen != nil {
		copy(seen[s.Lo:s.Hi], s.Seen[s.Lo:s.Hi]) // if it is not there already
	}
	return s.Lo, s.Hi, s.Seen != nil
}

// Rows is Row for several rows of one sequence and some of the keys.
func (m maskRows) Rows(first, k0, k1 int, spans []flash.Span, scratch []bool) {
	i, h, b := first%m.d.Lq, first/m.d.Lq%m.d.H, first/m.d.Lq/m.d.H
	for r := range spans {
		spans[r] = m.look(b, h, i, k0, k1, scratch[r*m.d.Lk:][:m.d.Lk])
		if i++; i == m.d.Lq {
			i, h = 0, h+1
		}
	}
}

// look returns what query i of head h of sequence b sees of keys k0 to k1.
func (m maskRows) look(b, h, i, k0, k1 int, scratch []bool) flash.Span {
	s := flash.Span{Lo: k0, Hi: k1}
	for _, rule := range m.rules {
		from, to := rule.span(m.d, b, h, i)
		s.Lo, s.Hi = max(s.Lo, from), min(s.Hi, to)
	}
	if s.Lo >= s.Hi {
		return flash.Span{}
	}
	mine := false // whether s.Seen is not the rule's
	for _, rule := range m.rules {
		switch {
		case !rule.holes():
			continue
		case s.Seen == nil:
			if s.Seen = rule.view(m.d, b, h, i); s.Seen != nil {
				continue
			}
			rule.show(m.d, b, h, i, s.Lo, s.Hi, scratch)
		default:
			if !mine {
				copy(scratch[s.Lo:s.Hi], s.Seen[s.Lo:s.Hi])
			}
			rule.hide(m.d, b, h, i, s.Lo, s.Hi, scratch)
		}
		s.Seen, mine = scratch, true
	}
	return s
}

// badMask panics with a *tensor.ShapeError about the mask.
func badMask(op, what string, got []int, want string, args ...any) {
	panic(&tensor.ShapeError{Op: op, Arg: "mask", What: what, Got: slices.Clone(got), Want: fmt.Sprintf(want, args...)})
}
