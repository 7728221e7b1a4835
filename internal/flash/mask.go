package flash

import (
	"math"
	"math/bits"

	"github.com/attn-go/attn/internal/simd"
)

// Span is the set of keys that a query attends to: the keys of [Lo, Hi) or, if Seen is not nil,
// the keys of [Lo, Hi) for which Seen is true.
type Span struct {
	Lo, Hi int
	Seen   []bool // indexed by key

	bits []uint64 // Seen as bits, if there is a Seen; bits outside [Lo, Hi) are 0 in the words of its keys
}

// MaskRule is attn.MaskRule, which documents it.
type MaskRule interface {
	Check(s Sizes) error
	Keys(s Sizes, at Row) (lo, hi int)
	Holes() bool
	Hide(s Sizes, at Row, lo, hi int, attended []bool)
}

// maskArray is the optional method Rows of attn.MaskRule.
type maskArray interface {
	Rows(s Sizes, at Row) (attended []bool, step int)
}

// Attended sets attended [B H Lq Lk] to whether each query attends to each key.
func Attended(s Sizes, rules []MaskRule, attended []bool) {
	a := &Attention{Sizes: s, Mask: rules}
	scratch := make([]bool, s.Lk)
	for r := range s.B * s.H * s.Lq {
		var span [1]Span
		a.spans(r, 0, s.Lk, span[:], scratch)
		for j := span[0].Lo; j < span[0].Hi; j++ {
			attended[r*s.Lk+j] = span[0].Seen == nil || span[0].Seen[j]
		}
	}
}

// spans sets spans[i] to the keys of k0 to k1 that row first+i attends to. Row (b·H + h)·Lq + l
// is query l of head h of sequence b. scratch has an element for each key of a row; spans may refer to it.
func (a *Attention) spans(first, k0, k1 int, spans []Span, scratch []bool) {
	all := a.keys()
	at := a.rowAt(first, k0)
	holes := 0
	for _, r := range a.Mask {
		if r.Holes() {
			holes++
		}
	}
	for len(spans) > 0 { // one head at a time
		n := min(len(spans), a.Lq-at.Query)
		live := min(n, max(a.Queries(at.Batch)-at.Query, 0))
		a.headSpans(at, min(k1-a.Extra, a.Keys(at.Batch)), holes, spans[:live], scratch)
		if a.Extra > 0 {
			for r := range live {
				spans[r] = spans[r].afterExtra(a.Extra, k0, k1, scratch[r*all:][:all])
			}
		}
		clear(spans[live:n])
		spans, scratch = spans[n:], scratch[n*all:]
		at.Query, at.Position = at.Query+n-1, at.Position+n-1
		a.next(&at)
	}
}

// headSpans sets spans[r] to the keys in [at.Key, end) that query at.Query+r attends to.
func (a *Attention) headSpans(at Row, end, holes int, spans []Span, scratch []bool) {
	for r := range spans {
		x := &spans[r]
		x.Lo, x.Hi = at.Key, end
		if x.Seen != nil { // writing pointers is slow while the garbage collector runs
			x.Seen = nil
		}
		if x.bits != nil {
			x.bits = nil
		}
	}
	for _, rule := range a.Mask {
		for r, at := 0, at; r < len(spans); r++ {
			lo, hi := rule.Keys(a.Sizes, at)
			spans[r].Lo, spans[r].Hi = max(spans[r].Lo, lo), min(spans[r].Hi, hi)
			at.Query, at.Position = at.Query+1, at.Position+1
		}
	}
	for r := range spans {
		if spans[r].Lo >= spans[r].Hi {
			spans[r] = Span{}
		}
	}
	if holes > 0 {
		a.hideHoles(at, holes, spans, scratch)
	}
}

// hideHoles removes the keys that some rule hides from the intervals of queries.
func (a *Attention) hideHoles(at Row, holes int, spans []Span, scratch []bool) {
	array := a.maskArray(at, spans)
	if array >= 0 && holes == 1 {
		return
	}
	for r, at := 0, at; r < len(spans); r++ {
		if x := &spans[r]; x.Lo < x.Hi {
			attended := scratch[r*a.keys()+a.Extra:]
			for j := x.Lo; j < x.Hi; j++ {
				attended[j] = x.Seen == nil || x.Seen[j]
			}
			x.Seen = attended
			for i, rule := range a.Mask {
				if i != array && rule.Holes() {
					rule.Hide(a.Sizes, at, x.Lo, x.Hi, attended)
				}
			}
		}
		at.Query, at.Position = at.Query+1, at.Position+1
	}
}

// maskArray sets Seen of spans to the booleans of the first rule that has them in memory. It
// returns the number of this rule, or -1 if there is none.
func (a *Attention) maskArray(at Row, spans []Span) int {
	for i, rule := range a.Mask {
		array, ok := rule.(maskArray)
		if !ok {
			continue
		}
		attended, step := array.Rows(a.Sizes, at)
		if attended == nil {
			continue
		}
		for r := range spans {
			if spans[r].Lo < spans[r].Hi {
				spans[r].Seen = attended[r*step:][:a.Lk]
			}
		}
		return i
	}
	return -1
}

// afterExtra converts x, which does not count extra keys, to a span that does. It returns the keys
// of k0 to k1 that the query attends to, including extra keys. row is memory for all keys; Seen of
// x may be the part of row after the extra keys.
func (x Span) afterExtra(extra, k0, k1 int, row []bool) Span {
	empty := x.Lo >= x.Hi
	y := Span{Lo: x.Lo + extra, Hi: x.Hi + extra}
	switch {
	case k0 >= extra && empty:
		return Span{}
	case k0 >= extra:
	case empty:
		return Span{Lo: k0, Hi: min(extra, k1)}
	case x.Lo == 0 && x.Seen == nil:
		return Span{Lo: k0, Hi: y.Hi}
	}
	if x.Seen == nil && k0 >= extra {
		return y
	}
	y.Seen = row
	if x.Seen != nil {
		copy(row[y.Lo:y.Hi], x.Seen[x.Lo:x.Hi])
	} else {
		fill(row[y.Lo:y.Hi], true)
	}
	if k0 < extra {
		fill(row[k0:extra], true)
		fill(row[extra:y.Lo], false)
		y.Lo = k0
	}
	return y
}

func fill[T any](x []T, v T) {
	for i := range x {
		x[i] = v
	}
}

// look sets the spans of rows first to first+n, limited to keys k0 to k1. It returns an interval
// that contains all keys that these rows attend to. Without a mask, look does not set the spans;
// use span to read them.
func (w *worker) look(a *Attention, first, n, k0, k1 int) (lo, hi int) {
	if !a.masked() {
		return k0, k1
	}
	spans := w.spans[:n]
	a.spans(first, k0, k1, spans, w.seen)
	lo, hi = k1, k0
	words := (a.keys() + 63) / 64
	for i := range spans {
		s := &spans[i]
		if s.Seen != nil && s.Lo < s.Hi {
			w.bits = grow(w.bits, n*words)
			s.pack(w.bits[i*words:][:words])
		}
		if s.Lo < s.Hi {
			lo, hi = min(lo, s.Lo), max(hi, s.Hi)
		}
	}
	return lo, hi
}

// span returns number i of the spans that look has set. Without a mask, it is the span of all
// keys.
func (a *Attention) span(spans []Span, i int) Span {
	if !a.masked() {
		return Span{Hi: a.keys()}
	}
	return spans[i]
}

// sameInterval reports whether all rows attend to the same interval of keys.
func sameInterval(spans []Span) bool {
	for _, s := range spans {
		if s.Seen != nil || s.Lo != spans[0].Lo || s.Hi != spans[0].Hi {
			return false
		}
	}
	return true
}

// pack converts the booleans of a span into bits, so that 64 keys are tested at a time, and
// removes hidden keys at both ends. If no key between the ends is hidden, it removes the
// booleans.
func (x *Span) pack(words []uint64) {
	from, to := x.Lo/64, (x.Hi+63)/64
	simd.Bits(words[from:to], x.Seen[64*from:min(64*to, len(x.Seen))])
	words[from] &= ^uint64(0) << (x.Lo % 64)
	words[to-1] &= ^uint64(0) >> (-x.Hi & 63)
	for from < to && words[from] == 0 {
		from++
	}
	if from == to {
		*x = Span{}
		return
	}
	for words[to-1] == 0 {
		to--
	}
	x.Lo, x.Hi = 64*from+bits.TrailingZeros64(words[from]), 64*to-bits.LeadingZeros64(words[to-1])
	count := 0
	for _, word := range words[from:to] {
		count += bits.OnesCount64(word)
	}
	if x.bits = words; count == x.Hi-x.Lo {
		x.Seen, x.bits = nil, nil
	}
}

// attends reports whether the query attends to a key.
func (x Span) attends(j int) bool { return j >= x.Lo && j < x.Hi && (x.Seen == nil || x.Seen[j]) }

// panelSet is a set of panels of 64 keys of a block. Bit p is set if some query attends to a key
// of panel p.
type panelSet uint64

// livePanels returns the panels before hi that contain an attended key, in the block of key lo.
func livePanels(spans []Span, lo, hi int) (live panelSet) {
	first := lo / blockKeys * (blockKeys / 64)
	all := panelSet(1)<<((hi+63)/64-first) - 1<<(lo/64-first)
	for i := 0; i < len(spans) && live != all; i++ {
		s := &spans[i]
		from, to := max(s.Lo, lo), min(s.Hi, hi)
		if from >= to {
			continue
		}
		from, to = from/64-first, (to+63)/64-first
		if s.bits == nil {
			live |= 1<<to - 1<<from
			continue
		}
		for p := from; p < to; p++ {
			if s.bits[first+p] != 0 {
				live |= 1 << p
			}
		}
	}
	return live
}

// reach returns the part of keys lo to hi that contains all keys that some query attends to. It
// starts at the beginning of a panel. lo and hi are in one block, and lo is at the beginning of a
// panel.
func (live panelSet) reach(spans []Span, lo, hi int) (int, int) {
	if live == 0 {
		return hi, hi
	}
	last := 0
	for _, s := range spans {
		last = max(last, s.Hi)
	}
	block := lo / blockKeys * blockKeys
	lo = block + 64*bits.TrailingZeros64(uint64(live))
	return lo, min(hi, last, block+64*bits.Len64(uint64(live)))
}

// next returns the first run of consecutive panels from j0 on that contain attended keys, up to
// hi. The first panel may be partial.
func (live panelSet) next(j0, hi int) (from, to int) {
	block := j0 / blockKeys * blockKeys
	p := (j0 - block) / 64
	if skip := bits.TrailingZeros64(uint64(live >> p)); skip > 0 {
		p += skip
		j0 = block + 64*p
	}
	p += bits.TrailingZeros64(^uint64(live >> p))
	return j0, min(block+64*p, hi)
}

// hide sets to −Inf the scores of keys j0, j0+1, … that the query does not attend to. j0 is a
// multiple of the vector length.
func (x Span) hide(s []float32, j0 int) {
	lo, hi := min(max(x.Lo-j0, 0), len(s)), min(max(x.Hi-j0, 0), len(s))
	if lo >= hi {
		hide(s)
		return
	}
	if x.Seen != nil {
		// Process whole vectors; keys outside the span are hidden below.
		from, to := lo&^15, min((hi+15)&^15, len(s), len(x.Seen)-j0)
		simd.Hide(s[from:to], x.Seen[j0+from:j0+to])
	}
	hide(s[:lo])
	hide(s[hi:])
}

// hidden is a block of scores of hidden keys.
var hidden = func() (x [blockKeys]float32) {
	for j := range x {
		x[j] = negInf
	}
	return x
}()

// hide sets at most a block of scores to −Inf.
func hide(s []float32) {
	if len(s) > 8 {
		copy(s, hidden[:len(s)])
		return
	}
	for j := range s { // faster for few scores, as at the ends of most rows of booleans
		s[j] = negInf
	}
}

// grain is the alignment of the first key of a strip, in keys: a vector, or a panel if the
// kernels need one.
func (w *worker) grain(a *Attention) int {
	if a.Additive != nil || a.Pages != nil && w.keys.Whole() {
		return 64
	}
	return 16
}

// cut returns the largest lo + n·grain such that no query attends to a key before it.
func cut(spans []Span, lo, hi, grain int) int {
	first := hi
	for _, s := range spans {
		if s.Lo < s.Hi && s.Hi > lo {
			first = min(first, max(s.Lo, lo))
		}
	}
	return max(lo, first/grain*grain)
}

// setNonFinite sets the weights of keys j0, j0+1, … of a row that is not finite: NaN for keys
// that the query attends to, 0 for others.
func (x Span) setNonFinite(weights []float32, j0 int) {
	for i := range weights {
		weights[i] = 0
		if x.attends(j0 + i) {
			weights[i] = float32(math.NaN())
		}
	}
}
