package mask_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

// sameMask fails the test unless each query of two sequences attends exactly to the keys for
// which sees is true. position is the query's position among the keys.
func sameMask(t *testing.T, what string, m attn.Mask, lq, lk int, sees func(b, position, j int) bool) {
	t.Helper()
	const batch = 2
	for n, got := range m.Array(attn.Sizes{B: batch, H: 1, G: 1, Lq: lq, Lk: lk}) {
		r, j := n/lk, n%lk
		if want := sees(r/lq, r%lq+lk-lq, j); got != want {
			t.Fatalf("%s, Lq=%d, Lk=%d: sequence %d, query %d, key %d: attends: %v, want %v", what, lq, lk, r/lq, r%lq, j, got, want)
		}
	}
}

// far are arguments that are effectively infinite.
var far = []int{13, math.MaxInt / 2, math.MaxInt - 1, math.MaxInt}

// upTo returns the numbers from lo to hi and the numbers in far.
func upTo(lo, hi int) []int {
	var all []int
	for n := lo; n <= hi; n++ {
		all = append(all, n)
	}
	return append(all, far...)
}

// Every rule matches its definition, for all sizes and arguments.
func TestMaskRules(t *testing.T) {
	within := func(distance, size int) bool { return distance < size } // for non-negative numbers
	step := 1
	if testing.Short() {
		step = 3
	}
	for lq := 1; lq <= 12; lq += step {
		for lk := 0; lk <= 12; lk += step {
			lens := func(most int, f func(a, b int)) {
				for a := range most + 1 {
					f(a, most-a)
					f(a, a/2)
				}
			}
			lens(lk, func(a, b int) {
				n := [2]int{a, b}
				sameMask(t, fmt.Sprintf("Prefix(%d, %d)", a, b), mask.Prefix(a, b), lq, lk, func(s, p, j int) bool { return j < n[s] || j <= p })
				sameMask(t, fmt.Sprintf("Prefix(%d)", a), mask.Prefix(a), lq, lk, func(_, p, j int) bool { return j < a || j <= p })
			})
			lens(lq, func(a, b int) {
				n := [2]int{a, b}
				sameMask(t, fmt.Sprintf("ValidQueries(%d, %d)", a, b), mask.QueryLengths(a, b), lq, lk, func(s, p, _ int) bool { return p-lk+lq < n[s] })
			})
			lens(lk, func(a, b int) {
				// Includes a document of length 0, and padding after the last document.
				one, two := []int{min(a, b), min(a, b), max(a, b)}, []int{lk}
				document := func(ends []int, p int) int {
					return slices.IndexFunc(ends, func(end int) bool { return p < end })
				}
				same := func(ends []int, p, j int) bool {
					return p >= 0 && document(ends, p) >= 0 && document(ends, p) == document(ends, j)
				}
				sameMask(t, fmt.Sprint("Documents ", one), mask.Documents(one), lq, lk, func(_, p, j int) bool { return same(one, p, j) })
				sameMask(t, fmt.Sprint("Documents ", one, two), mask.Documents(one, two), lq, lk, func(s, p, j int) bool {
					return same([][]int{one, two}[s], p, j)
				})
			})
			for _, left := range upTo(-1, 5) {
				for _, right := range upTo(-1, 3) {
					for _, first := range upTo(0, 4) {
						if left > 5 && right > 3 && first > 4 && lq != 7 {
							continue // enough of these
						}
						m := mask.WindowWithSinks(left, right, first)
						sameMask(t, fmt.Sprintf("WindowWithSinks(%d, %d, %d)", left, right, first), m, lq, lk, func(_, p, j int) bool {
							return (right < 0 || j-p <= right) && (left < 0 || p-j <= left || j < first)
						})
					}
				}
			}
			for _, size := range upTo(1, 5) {
				for _, before := range upTo(0, 3) {
					for _, after := range upTo(0, 3) {
						sameMask(t, fmt.Sprintf("Blocks(%d, %d, %d)", size, before, after), mask.Blocks(size, before, after), lq, lk, func(_, p, j int) bool {
							return p >= 0 && p/size-j/size <= before && j/size-p/size <= after
						})
					}
				}
			}
			for _, stride := range upTo(1, 6) {
				sameMask(t, fmt.Sprintf("Strided(%d)", stride), mask.Strided(stride), lq, lk, func(_, p, j int) bool {
					return j <= p && (within(p-j, stride) || (p-j)%stride == 0)
				})
			}
		}
	}
}

// Invalid arguments are rejected by the function that creates the mask; arguments that do not fit
// a call are rejected by the call.
func TestMaskRulesRefuse(t *testing.T) {
	for want, f := range map[string]func(){
		"mask: WindowWithSinks: first is -1, want a number of keys":                                                             func() { mask.WindowWithSinks(1, 1, -1) },
		"mask: Blocks: size, before and after is 0 1 1, want a positive size and no negative number":                            func() { mask.Blocks(0, 1, 1) },
		"mask: Blocks: size, before and after is 1 -1 1, want a positive size and no negative number":                           func() { mask.Blocks(1, -1, 1) },
		fmt.Sprintf("mask: Blocks: size, before and after is 1 1 %d, want a positive size and no negative number", math.MinInt): func() { mask.Blocks(1, 1, math.MinInt) },
		"mask: Strided: stride is 0, want a positive number":                                                                    func() { mask.Strided(0) },
		"attn: NewMask: rule is nil, want a MaskRule":                                                                           func() { attn.NewMask(nil) },
	} {
		err := tensor.Catch(f)
		var value *tensor.ValueError
		if !errors.As(err, &value) || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	draw := func(m attn.Mask) func() {
		return func() { m.Draw(attn.Sizes{B: 2, H: 1, Lq: 5, Lk: 7}) }
	}
	for want, f := range map[string]func(){
		"attn: Draw: mask has 3 prefixes, want one, or one for each of B=2 sequences":              draw(mask.Prefix(1, 2, 3)),
		"attn: Draw: mask has 0 prefixes, want one, or one for each of B=2 sequences":              draw(mask.Prefix()),
		"attn: Draw: mask has length of a prefix -1, want 0 to Lk=7":                               draw(mask.Prefix(-1)),
		"attn: Draw: mask has length of a prefix 8, want 0 to Lk=7":                                draw(mask.Prefix(3, 8)),
		"attn: Draw: mask has 1 valid query lengths, want one for each of B=2 sequences":           draw(mask.QueryLengths(3)),
		"attn: Draw: mask has valid query length 6, want 0 to Lq=5":                                draw(mask.QueryLengths(3, 6)),
		"attn: Draw: mask has 0 lists of documents, want one, or one for each of B=2 sequences":    draw(mask.Documents()),
		"attn: Draw: mask has end of a document 8, want 0 to Lk=7":                                 draw(mask.Documents([]int{3, 8})),
		"attn: Draw: mask has end of a document -1, want 0 to Lk=7":                                draw(mask.Documents([]int{-1, 3})),
		"attn: Draw: mask has ends of documents [5 3], want cumulative lengths in ascending order": draw(mask.Documents([]int{5, 3})),
		"attn: Draw: sizes has shape [1 1 -1 7], want [B H Lq Lk]":                                 func() { mask.Causal().Draw(attn.Sizes{Lq: -1, Lk: 7}) },
	} {
		err := tensor.Catch(f)
		var shape *tensor.ShapeError
		if !errors.As(err, &shape) || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Pictures of masks whose alignment is often misunderstood.
func TestDraw(t *testing.T) {
	for _, c := range []struct {
		name string
		m    attn.Mask
		s    attn.Sizes
		want string
	}{
		{"no mask", attn.Mask{}, attn.Sizes{Lq: 2, Lk: 3}, "1 1 1\n1 1 1\n"},
		{"causal, more keys", mask.Causal(), attn.Sizes{Lq: 2, Lk: 5}, "1 1 1 1 ·\n1 1 1 1 1\n"},
		{"causal, more queries", mask.Causal(), attn.Sizes{Lq: 4, Lk: 2}, "· ·\n· ·\n1 ·\n1 1\n"},
		{"prefix", mask.Prefix(2), attn.Sizes{Lq: 4, Lk: 4}, "1 1 · ·\n1 1 · ·\n1 1 1 ·\n1 1 1 1\n"},
		{"window with sinks", mask.WindowWithSinks(1, 0, 2), attn.Sizes{Lq: 3, Lk: 7}, "1 1 · 1 1 · ·\n1 1 · · 1 1 ·\n1 1 · · · 1 1\n"},
		{"documents", attn.And(mask.Documents([]int{2, 5}), mask.Causal()), attn.Sizes{Lq: 6, Lk: 6},
			"1 · · · · ·\n1 1 · · · ·\n· · 1 · · ·\n· · 1 1 · ·\n· · 1 1 1 ·\n· · · · · ·\n"},
		{"blocks", mask.Blocks(2, 1, 0), attn.Sizes{Lq: 3, Lk: 6}, "1 1 1 1 · ·\n· · 1 1 1 1\n· · 1 1 1 1\n"},
		{"strided", mask.Strided(3), attn.Sizes{Lq: 2, Lk: 8}, "1 · · 1 1 1 1 ·\n· 1 · · 1 1 1 1\n"},
		{"two sequences", mask.Lengths(1, 3), attn.Sizes{B: 2, Lq: 2, Lk: 3}, "1 · ·\n1 · ·\n\n1 1 1\n1 1 1\n"},
		{"two heads", mask.AllowFunc(func(_, h, _, j int) bool { return h == j }), attn.Sizes{B: 1, H: 2, Lq: 1, Lk: 2}, "1 ·\n\n· 1\n"},
		{"no keys", mask.Causal(), attn.Sizes{Lq: 2}, "\n\n"},
		{"no queries", mask.Causal(), attn.Sizes{Lk: 3}, ""},
	} {
		if got := c.m.Draw(c.s); got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
}
