package induction_test

import (
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/examples/induction"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// trained returns the model of lesson 9, trained with seed 1.
var trained = sync.OnceValue(func() *induction.Model {
	m := induction.New(1)
	for range m.Train(400, 1) {
	}
	return m
})

// known returns the mean loss of the tokens that can be known: those that follow one of 12 tokens for the second time.
func known(losses []float32) (mean float32) {
	for _, x := range losses[12:] {
		mean += x / float32(len(losses[12:]))
	}
	return mean
}

// Two layers of attention, and an edit that sees what their heads return.
func Example_model() {
	rng := rand.New(rand.NewPCG(1, 2))
	token, position := nn.NewEmbedding(24, 48, 1, rng), nn.NewEmbedding(24, 48, 1, rng)
	x := token.Forward(nil, rng.Perm(24), 1, 24) // [B L D]
	for i := range 2 {
		layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 48, Heads: 4}, rng)
		if err != nil {
			log.Fatal(err)
		}
		o := attn.Options{Mask: mask.Causal()}
		o.Edits.Outputs = func(t *tensor.Tape, heads *tensor.Tensor) *tensor.Tensor { // [B H L V]
			fmt.Println("layer", i, heads.Shape())
			return heads // or something else in its place
		}
		placed := tensor.Add(nil, x, tensor.Reshape(nil, position.Weight, 1, 24, 48))
		y := layer.Forward(nil, placed, placed, x, o) // values have no positions
		x = tensor.Add(nil, x, y.Out)
	}
	logits := nn.NewLinear(48, 24, false, rng).Forward(nil, x)
	fmt.Println("logits", logits.Shape())
	// Output:
	// layer 0 [1 4 24 12]
	// layer 1 [1 4 24 12]
	// logits [1 24 24]
}

// How much the loss grows without each head.
func Example_silence() {
	m, ids := trained(), induction.Draw(rand.New(rand.NewPCG(1, 3)), 64, 12)
	whole := known(m.Losses(ids, induction.Edits{}))
	for layer := range 2 {
		for head := range 4 {
			keep := tensor.Full(1, 1, 4, 1, 1) // [1 H 1 1]
			keep.Data()[head] = 0
			var edits induction.Edits
			edits[layer] = func(t *tensor.Tape, heads *tensor.Tensor) *tensor.Tensor { // [B H L V]
				return tensor.Mul(t, heads, tensor.BroadcastTo(t, keep, heads.Shape()...))
			}
			effect := known(m.Losses(ids, edits)) - whole // in nats
			fmt.Printf("without head %d.%d, more than 1 nat: %v\n", layer, head, effect > 1)
		}
	}
	// Output:
	// without head 0.0, more than 1 nat: false
	// without head 0.1, more than 1 nat: false
	// without head 0.2, more than 1 nat: true
	// without head 0.3, more than 1 nat: false
	// without head 1.0, more than 1 nat: false
	// without head 1.1, more than 1 nat: false
	// without head 1.2, more than 1 nat: false
	// without head 1.3, more than 1 nat: false
}

// One vector of one head, from another sequence, makes known what comes next.
func Example_patch() {
	m := trained()
	a := induction.Draw(rand.New(rand.NewPCG(1, 3)), 1, 12) // equal at 6 and 18, and at 7 and 19
	b := slices.Clone(a)
	for b[6] = 0; slices.Contains(a, b[6]); b[6]++ { // a token that a does not have
	}
	from := m.Run(nil, a, induction.Edits{})
	edits := induction.Edits{func(t *tensor.Tape, heads *tensor.Tensor) *tensor.Tensor { // [1 H L V]
		patched := heads.Clone()
		at := (2*24 + 7) * 12 // head 2, position 7
		copy(patched.Data()[at:at+12], from.Outputs[0].Data()[at:at+12])
		return patched
	}}
	before, after := m.Losses(b, induction.Edits{})[18], m.Losses(b, edits)[18] // of the token at 19
	fmt.Printf("the loss falls by more than 2 nats: %v\n", before-after > 2)
	// Output:
	// the loss falls by more than 2 nats: true
}

// A pair of heads, cut out of the model.
func Example_keep() {
	m, ids := trained(), induction.Draw(rand.New(rand.NewPCG(1, 3)), 64, 12)
	small, err := m.Keep([2][]int{{2}, {2}}) // the heads of each layer
	if err != nil {
		log.Fatal(err)
	}
	cut := known(small.Losses(ids, induction.Edits{}))
	for range small.Train(100, 1) {
	}
	more := known(small.Losses(ids, induction.Edits{}))
	fmt.Println("parameters:", nn.Count(m), "and", nn.Count(small))
	fmt.Printf("the loss is above 1: %v, after 100 steps: %v\n", cut > 1, more > 1)
	// Output:
	// parameters: 21888 and 8064
	// the loss is above 1: true, after 100 steps: false
}
