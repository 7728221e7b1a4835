// Package mask has the usual masks of attention: causal, sliding window, padding by valid
// lengths, packed documents, prefix, blocks, strides, and arrays of booleans. attn.And combines
// them. A mask does not know the shapes it will be applied to: lengths are checked at the call.
//
//	out := attn.Attend(tape, q, k, v, attn.Options{Mask: attn.And(mask.Causal(), mask.Lengths(3, 2))})
//
// Each mask is an attn.MaskRule. You can write your own rules in the same way.
package mask

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Causal is the look-ahead mask of an autoregressive decoder: query i attends to key j if
// j ≤ i + Lk − Lq. The last query attends to every key.
func Causal() attn.Mask { return attn.NewMask(&window{left: -1, right: 0, end: true}) }

// CausalAt lets query i attend to key j if j ≤ i + offset. It takes one offset for all sequences,
// or one per sequence.
func CausalAt(offset ...int) attn.Mask {
	return attn.NewMask(&window{left: -1, right: 0, offsets: slices.Clone(offset)})
}

// Window is a sliding window: a query at position i + Lk − Lq attends to the key at its position,
// to left keys before it and to right keys after it. A negative left or right leaves that side
// unbounded: Window(n, -1) hides no later key, Window(n, 0) is a causal sliding window.
//
// Source: Beltagy, Peters and Cohan, "Longformer: The Long-Document Transformer", 2020,
// https://arxiv.org/abs/2004.05150, section 3.1.
func Window(left, right int) attn.Mask {
	return attn.NewMask(&window{left: left, right: right, end: true})
}

// WindowAt is Window with query i at position i + offset. It takes one offset for all sequences,
// or one per sequence.
func WindowAt(left, right int, offset ...int) attn.Mask {
	return attn.NewMask(&window{left: left, right: right, offsets: slices.Clone(offset)})
}

// WindowWithSinks is Window, but every query also attends to the first keys (attention sinks)
// unless right hides them. It is the mask of a rolling cache. It panics with a *tensor.ValueError
// if first is negative.
//
// Source: Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2024,
// https://arxiv.org/abs/2309.17453.
func WindowWithSinks(left, right, first int) attn.Mask {
	if first < 0 {
		panic(&tensor.ValueError{Op: "mask: WindowWithSinks", Arg: "first", Got: fmt.Sprint(first), Want: "a number of keys"})
	}
	return attn.NewMask(&window{left: left, right: right, end: true, first: first})
}

// window is a band of keys around the position of the query, and the first keys.
type window struct {
	left, right int   // negative: unbounded
	end         bool  // the last query is at the last key
	offsets     []int // if not end: one for all sequences, or one per sequence
	first       int
}

func (w *window) Check(s attn.Sizes) error {
	if w.end {
		return nil
	}
	return oneOrEach("number of offsets", len(w.offsets), s.B)
}

func (w *window) Keys(s attn.Sizes, at attn.Row) (lo, hi int) {
	if lo, hi = w.band(s, at); w.first > 0 {
		lo = 0
	}
	return lo, hi
}

func (w *window) Holes() bool { return w.first > 0 && w.left >= 0 }

func (w *window) Hide(s attn.Sizes, at attn.Row, lo, hi int, attended []bool) {
	from, _ := w.band(s, at)
	for j := max(lo, w.first); j < min(hi, from); j++ {
		attended[j] = false
	}
}

// band returns the keys around the position of the query.
func (w *window) band(s attn.Sizes, at attn.Row) (lo, hi int) {
	offset := at.Position - at.Query
	if !w.end {
		offset = w.offsets[min(at.Batch, len(w.offsets)-1)]
	}
	// Sums saturate at the limits of int, which are far from every key. The query's position is
	// small and added last, so the result is exact.
	lo, hi = 0, s.Lk
	if w.left >= 0 {
		lo = plus(plus(offset, -w.left), at.Query)
	}
	if w.right >= 0 {
		hi = plus(plus(offset, w.right), at.Query+1)
	}
	return lo, hi
}

// plus returns a + b, saturated to the range of int.
func plus(a, b int) int {
	switch {
	case b > 0 && a > math.MaxInt-b:
		return math.MaxInt
	case b < 0 && a < math.MinInt-b:
		return math.MinInt
	}
	return a + b
}

// intervals is a rule without holes: a check of the sizes of a call, and an interval of keys for each query.
type intervals struct {
	attn.Intervals
	check func(s attn.Sizes) error
	keys  func(s attn.Sizes, at attn.Row) (lo, hi int)
}

func (r intervals) Check(s attn.Sizes) error                    { return r.check(s) }
func (r intervals) Keys(s attn.Sizes, at attn.Row) (lo, hi int) { return r.keys(s, at) }

// Prefix lets every query attend to the first lens[b] keys of its sequence, and to the keys up to
// its own position i + Lk − Lq: a bidirectional prefix followed by a causal rest, the mask
// of a prefix language model (prefix LM). It takes one length for all sequences, or one per sequence.
//
// Source: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified
// Text-to-Text Transformer", 2020, https://arxiv.org/abs/1910.10683, section 3.2.1.
func Prefix(lens ...int) attn.Mask {
	lens = slices.Clone(lens)
	return attn.NewMask(intervals{
		check: func(s attn.Sizes) error {
			return cmp.Or(oneOrEach("number of prefixes", len(lens), s.B), wantLengths("length of a prefix", lens, "Lk", s.Lk))
		},
		keys: func(_ attn.Sizes, at attn.Row) (lo, hi int) {
			return 0, max(lens[min(at.Batch, len(lens)-1)], at.Position+1)
		},
	})
}

// Lengths lets every query of sequence b attend to its first lens[b] keys. The other keys are
// padding: other libraries call this a key padding mask.
func Lengths(lens ...int) attn.Mask {
	lens = slices.Clone(lens)
	return attn.NewMask(intervals{
		check: func(s attn.Sizes) error {
			return cmp.Or(each("number of valid lengths", len(lens), s.B), wantLengths("valid length", lens, "Lk", s.Lk))
		},
		keys: func(_ attn.Sizes, at attn.Row) (lo, hi int) { return 0, lens[at.Batch] },
	})
}

// LengthsOfQueries lets query i of sequence b attend to the first lens[b][i] keys.
func LengthsOfQueries(lens [][]int) attn.Mask {
	rows := make([][]int, len(lens))
	for b := range lens {
		rows[b] = slices.Clone(lens[b])
	}
	return attn.NewMask(intervals{
		check: func(s attn.Sizes) error {
			err := each("number of rows of valid lengths", len(rows), s.B)
			for _, row := range rows {
				if err == nil && len(row) != s.Lq {
					err = badMask("number of valid lengths", []int{len(row)}, "one for each of Lq=%d queries", s.Lq)
				}
				err = cmp.Or(err, wantLengths("valid length", row, "Lk", s.Lk))
			}
			return err
		},
		keys: func(_ attn.Sizes, at attn.Row) (lo, hi int) { return 0, rows[at.Batch][at.Query] },
	})
}

// QueryLengths lets only the first lens[b] queries of sequence b attend. The other queries are
// padding: their outputs are zeros.
func QueryLengths(lens ...int) attn.Mask {
	lens = slices.Clone(lens)
	return attn.NewMask(intervals{
		check: func(s attn.Sizes) error {
			return cmp.Or(each("number of valid query lengths", len(lens), s.B), wantLengths("valid query length", lens, "Lq", s.Lq))
		},
		keys: func(s attn.Sizes, at attn.Row) (lo, hi int) {
			if at.Query < lens[at.Batch] {
				return 0, s.Lk
			}
			return 0, 0
		},
	})
}

// Documents is the mask for several documents packed into a sequence: a query attends only to
// keys of the same document. Document n has the positions from ends[n−1], or 0 for n = 0, up to
// but not including ends[n]; ends are the cumulative lengths (cu_seqlens without
// its 0). A query is at position i + Lk − Lq.
// Positions after the last document are padding. Each sequence has a list, or all sequences share
// one.
func Documents(ends ...[]int) attn.Mask {
	lists := make([][]int, len(ends))
	for b := range ends {
		lists[b] = slices.Clone(ends[b])
	}
	return attn.NewMask(intervals{
		check: func(s attn.Sizes) error {
			err := oneOrEach("number of lists of documents", len(lists), s.B)
			for _, list := range lists {
				err = cmp.Or(err, wantLengths("end of a document", list, "Lk", s.Lk))
				if err == nil && !slices.IsSorted(list) {
					err = badMask("ends of documents", list, "cumulative lengths in ascending order")
				}
			}
			return err
		},
		keys: func(_ attn.Sizes, at attn.Row) (lo, hi int) {
			list := lists[min(at.Batch, len(lists)-1)]
			n, _ := slices.BinarySearch(list, at.Position+1) // the first document that ends after the query
			if at.Position < 0 || n == len(list) {
				return 0, 0
			}
			if n > 0 {
				lo = list[n-1]
			}
			return lo, list[n]
		},
	})
}

// Blocks divides the positions into blocks of size positions: chunked, or block-local, attention.
// A query attends to the keys of its block and of some neighbouring blocks; before is the number of
// blocks before its block, after the number of blocks after it. A query is at position i + Lk − Lq.
// Blocks panics with a *tensor.ValueError if size is not positive, or if before or after is negative.
func Blocks(size, before, after int) attn.Mask {
	if size < 1 || before < 0 || after < 0 {
		panic(&tensor.ValueError{Op: "mask: Blocks", Arg: "size, before and after", Got: fmt.Sprint(size, before, after), Want: "a positive size and no negative number"})
	}
	return attn.NewMask(intervals{
		check: func(attn.Sizes) error { return nil },
		keys: func(s attn.Sizes, at attn.Row) (lo, hi int) {
			if at.Position < 0 {
				return 0, 0
			}
			// Limit the number of blocks to avoid overflow.
			n, most := at.Position/size, s.Lk/size+1
			return max(0, n-min(before, most)) * size, min(n+min(after, most)+1, most) * size
		},
	})
}

// Strided lets a query attend to the stride keys up to its own position, and to earlier keys at a
// distance that is a multiple of stride. A query is at position i + Lk − Lq. It panics with a
// *tensor.ValueError if stride is not positive.
//
// Source: Child et al., "Generating Long Sequences with Sparse Transformers", 2019,
// https://arxiv.org/abs/1904.10509, section 4.3.
func Strided(stride int) attn.Mask {
	if stride < 1 {
		panic(&tensor.ValueError{Op: "mask: Strided", Arg: "stride", Got: fmt.Sprint(stride), Want: "a positive number"})
	}
	return attn.NewMask(strided(stride))
}

type strided int

func (strided) Check(attn.Sizes) error                      { return nil }
func (strided) Keys(_ attn.Sizes, at attn.Row) (lo, hi int) { return 0, at.Position + 1 }
func (m strided) Holes() bool                               { return m > 1 }

func (m strided) Hide(_ attn.Sizes, at attn.Row, lo, hi int, attended []bool) {
	for j := lo; j < hi; j++ {
		if d := at.Position - j; d/int(m) > 0 && d%int(m) != 0 {
			attended[j] = false
		}
	}
}

// each returns an error unless n is the number of sequences.
func each(what string, n, batch int) error {
	if n != batch {
		return badMask(what, []int{n}, "one for each of B=%d sequences", batch)
	}
	return nil
}

// oneOrEach returns an error unless n is 1 or the number of sequences.
func oneOrEach(what string, n, batch int) error {
	if n != 1 && n != batch {
		return badMask(what, []int{n}, "one, or one for each of B=%d sequences", batch)
	}
	return nil
}

// wantLengths returns an error unless every length is from 0 to most, a number of keys or
// queries.
func wantLengths(what string, lens []int, letter string, most int) error {
	for _, n := range lens {
		if n < 0 || n > most {
			return badMask(what, []int{n}, "0 to %s=%d", letter, most)
		}
	}
	return nil
}

// badMask returns a *tensor.ShapeError about the mask.
func badMask(what string, got []int, want string, args ...any) error {
	return &tensor.ShapeError{Arg: "mask", What: what, Got: slices.Clone(got), Want: fmt.Sprintf(want, args...)}
}
