package mask_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

func TestMain(m *testing.M) {
	partest.OneThread()
	m.Run()
}

// seer reports whether query i of head h in sequence b attends to key j: a straightforward
// definition of a mask.
type seer func(b, h, i, j int) bool

// maskRule draws a mask for the sizes s, and returns its definition.
type maskRule struct {
	name string
	draw func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer)
}

// maskRules are all rules.
var maskRules = []maskRule{
	{"causal", func(_ *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		return mask.Causal(), func(_, _, i, j int) bool { return j <= i+s.Lk-s.Lq }
	}},
	{"causal at", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		o := drawOffsets(rng, s)
		return mask.CausalAt(o...), func(b, _, i, j int) bool { return j <= i+ofSequence(o, b) }
	}},
	{"window", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		left, right := drawSide(rng), drawSide(rng)
		return mask.Window(left, right), func(_, _, i, j int) bool { return inWindow(left, right, i+s.Lk-s.Lq, j) }
	}},
	{"window at", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		left, right, o := drawSide(rng), drawSide(rng), drawOffsets(rng, s)
		return mask.WindowAt(left, right, o...), func(b, _, i, j int) bool { return inWindow(left, right, i+ofSequence(o, b), j) }
	}},
	{"window with sinks", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		left, right, first := drawSide(rng), drawSide(rng), rng.IntN(4)
		return mask.WindowWithSinks(left, right, first), func(_, _, i, j int) bool {
			return inWindow(left, right, i+s.Lk-s.Lq, j) || j < first && inWindow(-1, right, i+s.Lk-s.Lq, j)
		}
	}},
	{"prefix", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		lens := drawLengths(rng, []int{1, s.B}[rng.IntN(2)], s.Lk)
		return mask.Prefix(lens...), func(b, _, i, j int) bool { return j < ofSequence(lens, b) || j <= i+s.Lk-s.Lq }
	}},
	{"valid lengths", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		lens := drawLengths(rng, s.B, s.Lk)
		return mask.Lengths(lens...), func(b, _, _, j int) bool { return j < lens[b] }
	}},
	{"valid lengths by row", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		lens := make([][]int, s.B)
		for b := range lens {
			lens[b] = drawLengths(rng, s.Lq, s.Lk)
		}
		return mask.LengthsOfQueries(lens), func(b, _, i, j int) bool { return j < lens[b][i] }
	}},
	{"valid queries", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		lens := drawLengths(rng, s.B, s.Lq)
		return mask.QueryLengths(lens...), func(b, _, i, _ int) bool { return i < lens[b] }
	}},
	{"documents", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		ends := make([][]int, []int{1, s.B}[rng.IntN(2)])
		for b := range ends {
			ends[b] = drawLengths(rng, rng.IntN(4), s.Lk)
			slices.Sort(ends[b])
		}
		document := func(b, at int) int { // −1 before the first document and after the last
			n, _ := slices.BinarySearch(ends[min(b, len(ends)-1)], at+1)
			if at < 0 || n == len(ends[min(b, len(ends)-1)]) {
				return -1
			}
			return n
		}
		return mask.Documents(ends...), func(b, _, i, j int) bool {
			own := document(b, i+s.Lk-s.Lq)
			return own >= 0 && document(b, j) == own
		}
	}},
	{"blocks", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		size, before, after := 1+rng.IntN(5), rng.IntN(3), rng.IntN(3)
		return mask.Blocks(size, before, after), func(_, _, i, j int) bool {
			at := i + s.Lk - s.Lq
			return at >= 0 && j/size >= at/size-before && j/size <= at/size+after
		}
	}},
	{"strided", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		stride := 1 + rng.IntN(5)
		return mask.Strided(stride), func(_, _, i, j int) bool {
			d := i + s.Lk - s.Lq - j
			return d >= 0 && (d < stride || d%stride == 0)
		}
	}},
	{"booleans", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		// Any shape that broadcasts: with axes of size 1, and without leading axes.
		shape := []int{s.B, s.H, s.Lq, s.Lk}
		stride, n := make([]int, 4), 1
		for a := 3; a >= 0; a-- {
			if rng.IntN(2) == 0 {
				shape[a] = 1
			} else {
				stride[a] = n
			}
			n *= shape[a]
		}
		first := 0
		for first < 4 && shape[first] == 1 && rng.IntN(2) == 0 {
			first++
		}
		seen := drawBools(rng, n)
		m := mask.Allow(seen, shape[first:]...)
		if rng.IntN(2) == 0 {
			m = mask.AllowTensor(asNumbers(seen, shape[first:]...))
		}
		return m, func(b, h, i, j int) bool {
			return seen[b*stride[0]+h*stride[1]+i*stride[2]+j*stride[3]]
		}
	}},
	{"booleans, sequence first", func(rng *rand.Rand, s attn.Sizes) (attn.Mask, seer) {
		lq, batch := []int{1, s.Lq}[rng.IntN(2)], []int{1, s.B}[rng.IntN(2)]
		seen := drawBools(rng, lq*s.Lk*batch)
		m := mask.AllowSequenceFirst(seen, lq, s.Lk, batch)
		return m, func(b, _, i, j int) bool {
			return seen[(min(i, lq-1)*s.Lk+j)*batch+min(b, batch-1)]
		}
	}},
	{"function", func(rng *rand.Rand, _ attn.Sizes) (attn.Mask, seer) {
		k := 1 + rng.IntN(3)
		f := func(b, h, i, j int) bool { return (b+2*h+3*i+5*j)%4 != k }
		return mask.AllowFunc(f), f
	}},
}

// drawOffsets draws one offset for all sequences or one per sequence, close to the offset that
// aligns the ends.
func drawOffsets(rng *rand.Rand, s attn.Sizes) []int {
	o := make([]int, []int{1, s.B}[rng.IntN(2)])
	for i := range o {
		o[i] = s.Lk - s.Lq + rng.IntN(7) - 3
	}
	return o
}

// ofSequence returns the number for sequence b; x has one number per sequence or one for all.
func ofSequence(x []int, b int) int { return x[min(b, len(x)-1)] }

// drawSide draws a side of a window; −1 means unbounded.
func drawSide(rng *rand.Rand) int { return rng.IntN(6) - 1 }

// inWindow reports whether key j is in the window of a query at a position.
func inWindow(left, right, at, j int) bool {
	return (left < 0 || j >= at-left) && (right < 0 || j <= at+right)
}

// drawLengths draws n lengths up to most.
func drawLengths(rng *rand.Rand, n, most int) []int {
	lens := make([]int, n)
	for i := range lens {
		lens[i] = rng.IntN(most + 1)
	}
	return lens
}

func drawBools(rng *rand.Rand, n int) []bool {
	seen := make([]bool, n)
	for i := range seen {
		seen[i] = rng.IntN(4) > 0
	}
	return seen
}

// asNumbers returns booleans as numbers.
func asNumbers(seen []bool, shape ...int) *tensor.Tensor {
	x := tensor.Zeros(shape...)
	for i, s := range seen {
		if s {
			x.Data()[i] = 1
		}
	}
	return x
}

// seenBy returns the weights of queries of zeros: all keys that a query attends to have equal
// weights.
func seenBy(m attn.Mask, s attn.Sizes, v *tensor.Tensor) *tensor.Tensor {
	q, k := tensor.Zeros(s.B, s.H, s.Lq, 1), tensor.Zeros(s.B, s.H, s.Lk, 1)
	return attn.Attend(nil, q, k, v, attn.Options{Mask: m, Weights: true}).Weights
}

// each calls f with the indices of every element of a tensor [B H Lq Lk].
func each(x *tensor.Tensor, f func(b, h, i, j int, v *float32)) {
	h, lq, lk := x.Dim(1), x.Dim(2), x.Dim(3)
	for n := range x.Data() {
		f(n/lk/lq/h, n/lk/lq%h, n/lk%lq, n%lk, &x.Data()[n])
	}
}

// Random masks and combinations of masks match their definitions.
func TestMasksAgainstDefinitions(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 0))
	for range 3000 {
		// Lengths above a vector length; more keys than queries, and fewer.
		s := attn.Sizes{B: 1 + rng.IntN(3), H: 1 + rng.IntN(3), Lq: 1 + rng.IntN(7), Lk: 1 + rng.IntN(19)}
		var masks []attn.Mask
		var all []seer
		for range rng.IntN(4) {
			m, f := maskRules[rng.IntN(len(maskRules))].draw(rng, s)
			masks, all = append(masks, m), append(all, f)
		}
		mask := attn.And(masks...)
		weights := seenBy(mask, s, tensor.Zeros(s.B, s.H, s.Lk, 1))
		softmax := attn.MaskedSoftmax(nil, tensor.Zeros(s.B, s.H, s.Lq, s.Lk), mask)
		want := tensor.Zeros(weights.Shape()...)
		counts := map[[3]int]int{}
		each(want, func(b, h, i, j int, v *float32) {
			*v = 1
			for _, f := range all {
				if !f(b, h, i, j) {
					*v = 0
				}
			}
			counts[[3]int{b, h, i}] += int(*v)
		})
		each(want, func(b, h, i, _ int, v *float32) {
			if *v != 0 {
				*v /= float32(counts[[3]int{b, h, i}])
			}
		})
		for what, got := range map[string]*tensor.Tensor{"weights": weights, "softmax": softmax} {
			tensortest.Near(t, what, got, want)
			for i, w := range got.Data() {
				if (w == 0) != (want.Data()[i] == 0) {
					t.Fatalf("%+v: %s: element %d is %v, want %v", s, what, i, w, want.Data()[i])
				}
			}
		}
	}
}

// And is associative: the grouping of masks does not matter.
func TestAndIsAssociative(t *testing.T) {
	s := attn.Sizes{B: 2, H: 6, Lq: 5, Lk: 7}
	a, b, c := mask.Causal(), mask.Lengths(3, 6), mask.Allow([]bool{true, true, false, true, true, true, true}, s.Lk)
	v := tensor.Zeros(s.B, s.H, s.Lk, 1)
	want := seenBy(attn.And(a, b, c), s, v)
	for _, m := range []attn.Mask{attn.And(attn.And(a, b), c), attn.And(attn.Mask{}, a, attn.And(b, attn.And(c)), attn.And())} {
		tensortest.Same(t, "other brackets", seenBy(m, s, v).Data(), want.Data())
	}
}

// The pictures in the package documentation.
func TestCausalIsAlignedAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		lq, lk int
		want   []float32
	}{
		{2, 5, []float32{1, 1, 1, 1, 0, 1, 1, 1, 1, 1}},
		{5, 2, []float32{0, 0, 0, 0, 0, 0, 1, 0, 1, 1}},
	} {
		s := attn.Sizes{B: 1, H: 1, Lq: c.lq, Lk: c.lk}
		got := seenBy(mask.Causal(), s, tensor.Zeros(1, 1, s.Lk, 1))
		explicit := seenBy(mask.CausalAt(s.Lk-s.Lq), s, tensor.Zeros(1, 1, s.Lk, 1))
		tensortest.Same(t, "offset given", explicit.Data(), got.Data())
		for i, w := range got.Data() {
			if (w != 0) != (c.want[i] != 0) {
				t.Errorf("Lq=%d Lk=%d: element %d is %v, want %v", c.lq, c.lk, i, w, c.want[i])
			}
		}
	}
}

// Masks are correct at the limits of int, where sums overflow.
func TestMasksOfExtremeOffsets(t *testing.T) {
	places := []int{math.MinInt, math.MinInt + 1, math.MinInt + 3, math.MinInt / 2, -7, -1, 0, 1, 2, 7, math.MaxInt / 2, math.MaxInt - 6, math.MaxInt - 1, math.MaxInt}
	s := attn.Sizes{B: 1, H: 1, Lq: 5, Lk: 7}
	v := tensor.Zeros(1, 1, s.Lk, 1)
	at := func(i, offset, side int) *big.Int { // i + offset + side
		x := big.NewInt(int64(i))
		x.Add(x, big.NewInt(int64(offset)))
		return x.Add(x, big.NewInt(int64(side)))
	}
	check := func(what string, m attn.Mask, sees seer) {
		t.Helper()
		each(seenBy(m, s, v), func(b, h, i, j int, w *float32) {
			if (*w != 0) != sees(b, h, i, j) {
				t.Errorf("%s: query %d has weight %v for key %d", what, i, *w, j)
			}
		})
	}
	for _, offset := range places {
		check(fmt.Sprintf("CausalAt(%d)", offset), mask.CausalAt(offset), func(_, _, i, j int) bool {
			return at(i, offset, 0).Cmp(big.NewInt(int64(j))) >= 0
		})
		for _, left := range places {
			for _, right := range places {
				check(fmt.Sprintf("WindowAt(%d, %d, %d)", left, right, offset), mask.WindowAt(left, right, offset), func(_, _, i, j int) bool {
					key, low := big.NewInt(int64(j)), at(i, offset, 0)
					return (left < 0 || key.Cmp(low.Sub(low, big.NewInt(int64(left)))) >= 0) && (right < 0 || key.Cmp(at(i, offset, right)) <= 0)
				})
			}
		}
	}
}

// A side of a window is unbounded if it is negative, and effectively unbounded if it is longer
// than any sequence.
func TestWideWindows(t *testing.T) {
	for _, s := range []attn.Sizes{{B: 1, H: 1, Lq: 3, Lk: 7}, {B: 1, H: 1, Lq: 7, Lk: 3}} {
		v := tensor.Zeros(1, 1, s.Lk, 1)
		check := func(name string, got, want attn.Mask) {
			t.Helper()
			tensortest.Same(t, name, seenBy(got, s, v).Data(), seenBy(want, s, v).Data())
		}
		const most = math.MaxInt
		check("open", mask.Window(-1, -1), attn.Mask{})
		check("both wide", mask.Window(most, most), attn.Mask{})
		check("wide to the left", mask.Window(most, 0), mask.Causal())
		check("wide to the right", mask.Window(0, most), mask.Window(0, -1))
		check("wide, far away", mask.WindowAt(most, most, -1000), attn.Mask{})
		check("far away", mask.WindowAt(2, 2, 1000), mask.Lengths(0))
	}
}
