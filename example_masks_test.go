package attn_test

import (
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

func ExampleAnd() {
	m := attn.And(mask.Causal(), mask.Lengths(3), mask.Window(2, 0))
	fmt.Print(m.Draw(attn.Sizes{B: 1, Lq: 4, Lk: 4}))
	// Output:
	// 1 · · ·
	// 1 1 · ·
	// 1 1 1 ·
	// · 1 1 ·
}

func ExampleMask_Draw() {
	// Five queries and two keys: the first three queries are before all keys.
	fmt.Print(mask.Causal().Draw(attn.Sizes{Lq: 5, Lk: 2}))
	// Output:
	// · ·
	// · ·
	// · ·
	// 1 ·
	// 1 1
}

// after lets the queries of a sequence attend only to keys after a given key. It is a
// user-defined rule with intervals only, so keys outside the intervals cost nothing.
type after struct {
	attn.Intervals
	key []int // one per sequence
}

func (r after) Check(s attn.Sizes) error {
	if len(r.key) != s.B {
		return &tensor.ShapeError{Arg: "mask", What: "number of keys", Got: []int{len(r.key)}, Want: fmt.Sprintf("one for each of B=%d sequences", s.B)}
	}
	return nil
}

func (r after) Keys(s attn.Sizes, at attn.Row) (lo, hi int) { return r.key[at.Batch] + 1, s.Lk }

func ExampleMaskRule() {
	m := attn.And(attn.NewMask(after{key: []int{0, 2}}), mask.Causal())
	fmt.Print(m.Draw(attn.Sizes{B: 2, Lq: 2, Lk: 4}))

	q, k := tensor.Zeros(2, 2, 3), tensor.Zeros(2, 4, 3)
	fmt.Println(attn.Attend(nil, q, k, k, attn.Options{Mask: m, Weights: true}).Weights)
	fmt.Println(tensor.Catch(func() { attn.Attend(nil, q, k, k, attn.Options{Mask: attn.NewMask(after{key: []int{1}})}) }))
	// Output:
	// · 1 1 ·
	// · 1 1 1
	//
	// · · · ·
	// · · · 1
	// [[[0 0.5 0.5 0] [0 0.3333 0.3333 0.3333]] [[0 0 0 0] [0 0 0 1]]]
	// attn: Attend: mask has 1 keys, want one for each of B=2 sequences
}
