package attn_test

import (
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// The last two of five positions ask: the last query attends to every key.
func ExampleCausal() {
	fmt.Print(attn.Causal().Draw(attn.Sizes{Lq: 2, Lk: 5}))
	// Output:
	// 1 1 1 1 ·
	// 1 1 1 1 1
}

// Queries that stand elsewhere than at the end: here they are the first ones.
func ExampleCausalAt() {
	fmt.Print(attn.CausalAt(0).Draw(attn.Sizes{Lq: 2, Lk: 5}))
	// Output:
	// 1 · · · ·
	// 1 1 · · ·
}

// A causal sliding window of three positions.
func ExampleWindow() {
	fmt.Print(attn.Window(2, 0).Draw(attn.Sizes{Lq: 5, Lk: 5}))
	// Output:
	// 1 · · · ·
	// 1 1 · · ·
	// 1 1 1 · ·
	// · 1 1 1 ·
	// · · 1 1 1
}

// Two sequences whose queries stand at different positions.
func ExampleWindowAt() {
	fmt.Print(attn.WindowAt(1, 1, 0, 3).Draw(attn.Sizes{B: 2, Lq: 2, Lk: 6}))
	// Output:
	// 1 1 · · · ·
	// 1 1 1 · · ·
	//
	// · · 1 1 1 ·
	// · · · 1 1 1
}

func ExampleWindowWithSinks() {
	fmt.Print(attn.WindowWithSinks(1, 0, 2).Draw(attn.Sizes{Lq: 6, Lk: 6}))
	// Output:
	// 1 · · · · ·
	// 1 1 · · · ·
	// 1 1 1 · · ·
	// 1 1 1 1 · ·
	// 1 1 · 1 1 ·
	// 1 1 · · 1 1
}

// A prompt of three tokens is read as a whole, what is written after it causally.
func ExamplePrefix() {
	fmt.Print(attn.Prefix(3).Draw(attn.Sizes{Lq: 5, Lk: 5}))
	// Output:
	// 1 1 1 · ·
	// 1 1 1 · ·
	// 1 1 1 · ·
	// 1 1 1 1 ·
	// 1 1 1 1 1
}

func ExampleValidLens() {
	fmt.Print(attn.ValidLens(2, 4).Draw(attn.Sizes{B: 2, Lq: 1, Lk: 4}))
	// Output:
	// 1 1 · ·
	//
	// 1 1 1 1
}

func ExampleValidLensRows() {
	fmt.Print(attn.ValidLensRows([][]int{{1, 3, 2}}).Draw(attn.Sizes{Lq: 3, Lk: 4}))
	// Output:
	// 1 · · ·
	// 1 1 1 ·
	// 1 1 · ·
}

// Queries that are padding attend to nothing and get zeros.
func ExampleValidQueries() {
	fmt.Print(attn.And(attn.ValidQueries(2), attn.ValidLens(3)).Draw(attn.Sizes{Lq: 3, Lk: 4}))
	// Output:
	// 1 1 1 ·
	// 1 1 1 ·
	// · · · ·
}

// Documents of two and three tokens are packed into a row of six, and each is causal.
func ExampleDocuments() {
	packed := attn.And(attn.Documents([]int{2, 5}), attn.Causal())
	fmt.Print(packed.Draw(attn.Sizes{Lq: 6, Lk: 6}))
	// Output:
	// 1 · · · · ·
	// 1 1 · · · ·
	// · · 1 · · ·
	// · · 1 1 · ·
	// · · 1 1 1 ·
	// · · · · · ·
}

func ExampleBlocks() {
	fmt.Print(attn.Blocks(2, 1, 0).Draw(attn.Sizes{Lq: 6, Lk: 6}))
	// Output:
	// 1 1 · · · ·
	// 1 1 · · · ·
	// 1 1 1 1 · ·
	// 1 1 1 1 · ·
	// · · 1 1 1 1
	// · · 1 1 1 1
}

func ExampleStrided() {
	fmt.Print(attn.Strided(3).Draw(attn.Sizes{Lq: 3, Lk: 8}))
	// Output:
	// · · 1 1 1 1 · ·
	// 1 · · 1 1 1 1 ·
	// · 1 · · 1 1 1 1
}

// A mask of one row serves all sequences, heads and queries.
func ExampleAllow() {
	fmt.Print(attn.Allow([]bool{true, false, true}, 3).Draw(attn.Sizes{Lq: 2, Lk: 3}))
	// Output:
	// 1 · 1
	// 1 · 1
}

// Sequence-first code has masks [Lq Lk B].
func ExampleAllowSequenceFirst() {
	seen := []bool{true, true, true, false, false, true} // keys 0, 1 and 2, of two sequences each
	fmt.Print(attn.AllowSequenceFirst(seen, 1, 3, 2).Draw(attn.Sizes{B: 2, Lq: 1, Lk: 3}))
	// Output:
	// 1 1 ·
	//
	// 1 · 1
}

func ExampleAllowFunc() {
	diagonal := attn.AllowFunc(func(_, _, i, j int) bool { return i != j })
	fmt.Print(diagonal.Draw(attn.Sizes{Lq: 3, Lk: 3}))
	// Output:
	// · 1 1
	// 1 · 1
	// 1 1 ·
}

func ExampleAnd() {
	m := attn.And(attn.Causal(), attn.ValidLens(3), attn.Window(2, 0))
	fmt.Print(m.Draw(attn.Sizes{B: 1, Lq: 4, Lk: 4}))
	// Output:
	// 1 · · ·
	// 1 1 · ·
	// 1 1 1 ·
	// · 1 1 ·
}

func ExampleMask_Draw() {
	// Five queries and two keys: the first three queries are before all keys.
	fmt.Print(attn.Causal().Draw(attn.Sizes{Lq: 5, Lk: 2}))
	// Output:
	// · ·
	// · ·
	// · ·
	// 1 ·
	// 1 1
}

// after lets a query attend to the keys that stand behind a key of its own: a rule of a
// user's, with intervals only, so that what is outside costs nothing.
type after struct {
	attn.Intervals
	key []int // one for each sequence
}

func (r after) Check(s attn.Sizes) error {
	if len(r.key) != s.B {
		return &tensor.ShapeError{Arg: "mask", What: "number of keys", Got: []int{len(r.key)}, Want: fmt.Sprintf("one for each of B=%d sequences", s.B)}
	}
	return nil
}

func (r after) Keys(s attn.Sizes, at attn.Row) (lo, hi int) { return r.key[at.Batch] + 1, s.Lk }

func ExampleMaskRule() {
	m := attn.And(attn.NewMask(after{key: []int{0, 2}}), attn.Causal())
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
	// attn: Attend: mask has number of keys [1], want one for each of B=2 sequences
}
