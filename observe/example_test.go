package observe_test

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// threeKeys returns a query and three keys, with weights of 0.25, 0.5 and 0.25.
func threeKeys() (q, k, v *tensor.Tensor) {
	q = tensor.New([]float32{1}, 1, 1, 1, 1)
	k = tensor.New([]float32{0, float32(math.Ln2), 0}, 1, 1, 3, 1)
	return q, k, tensor.New([]float32{1, 2, 5}, 1, 1, 3, 1)
}

// The keys with the largest weights, without an array of all weights.
func ExampleTopKeys() {
	q, k, v := threeKeys()
	top := &observe.TopKeys{K: 2}
	attn.Attend(nil, q, k, v, attn.Options{Score: score.Dot(), Observers: []attn.Observer{top}})
	fmt.Println(top.Of(0, 0, 0))
	// Output:
	// [1 0] [0.5 0.25]
}

// The total weight of each key, for example for a cache that evicts the least used keys.
func ExampleReceived() {
	x := tensor.Zeros(1, 1, 3, 2)
	received := new(observe.Received)
	attn.Attend(nil, x, x, x, attn.Options{Mask: mask.Causal(), Observers: []attn.Observer{received}})
	fmt.Println(received.Totals()) // 1 + 1/2 + 1/3, 1/2 + 1/3, 1/3
	// Output:
	// [[[1.833 0.8333 0.3333]]]
}

// Entropy measures how widely each query spreads its attention.
func ExampleEntropy() {
	x := tensor.Zeros(1, 1, 4, 2)
	entropy := new(observe.Entropy)
	attn.Attend(nil, x, x, x, attn.Options{Mask: mask.Causal(), Observers: []attn.Observer{entropy}})
	fmt.Println(entropy.Values()) // the logarithms of 1, 2, 3 and 4 keys
	// Output:
	// [[[0 0.6931 1.099 1.386]]]
}

// The weights of one head and one query of a layer.
func ExampleChosenWeights() {
	x := tensor.Zeros(1, 8, 100, 2)
	chosen := &observe.ChosenWeights{Heads: []int{5}, Queries: []int{3, 1}}
	attn.Attend(nil, x, x, x, attn.Options{Mask: mask.Causal(), Observers: []attn.Observer{chosen}})
	w := chosen.Weights()
	fmt.Println(w.Shape())
	fmt.Println(w.At(0, 0, 0, 3), w.At(0, 0, 1, 1), w.At(0, 0, 1, 2))
	// Output:
	// [1 1 2 100]
	// 0.25 0.5 0
}

// All weights of every layer that the observer is passed to.
func ExampleWeights() {
	rng := rand.New(rand.NewPCG(1, 2))
	weights := observe.Weights(func(layer string, w *tensor.Tensor) { fmt.Println(layer, w.Shape()) })
	x := tensor.Randn(rng, 1, 5, 16)
	for _, name := range []string{"encoder.0", "encoder.1"} {
		layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Name: name, Width: 16, Heads: 4}, rng)
		if err != nil {
			log.Fatal(err)
		}
		x = layer.Forward(nil, x, x, x, attn.Options{Observers: []attn.Observer{weights}}).Out
	}
	// Output:
	// encoder.0 [1 4 5 5]
	// encoder.1 [1 4 5 5]
}
