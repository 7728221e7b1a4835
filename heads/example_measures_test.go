package heads_test

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

// previousAndUniform is a decoder layer with two heads: the first attends to the previous token, if there
// is one, and the second attends equally to all tokens up to the query.
var previousAndUniform = heads.Layer{
	Name: "decoder.0.self", Kind: heads.Decoder, Heads: 2,
	Queries: []string{"a", "b", "c"}, Keys: []string{"a", "b", "c"},
	Weights: []float32{
		1, 0, 0, 1, 0, 0, 0, 1, 0,
		1, 0, 0, 0.5, 0.5, 0, 0.25, 0.5, 0.25,
	},
}

func ExampleLayer_Measure() {
	for h := range 2 {
		m := previousAndUniform.Measure(h, nil)
		fmt.Printf("previous %.2f, same %.2f, entropy %.2f of %.2f\n", m.Previous, m.Same, m.Entropy, m.Bound)
	}
	// Output:
	// previous 1.00, same 0.33, entropy 0.00 of 0.60
	// previous 0.50, same 0.58, entropy 0.58 of 0.60
}

// A record is saved in a safetensors file, which Python can read and write too.
func ExampleRead() {
	dir, err := os.MkdirTemp("", "heads")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "heads.safetensors")
	record := heads.Record{Source: "a b c", Layers: []heads.Layer{previousAndUniform}}
	if err := record.WriteFile(path); err != nil {
		log.Fatal(err)
	}
	r, err := heads.Read(path)
	if err != nil {
		log.Fatal(err)
	}
	l := r.Layer(heads.Decoder, 0)
	fmt.Println(l.Name, l.Queries, l.Head(1)[3:6])
	// Output: decoder.0.self [a b c] [0.5 0.5 0]
}

// The rollout is the share of each input token in each vector after the layers.
func ExampleRollout() {
	flow, err := heads.Rollout([]heads.Layer{previousAndUniform})
	fmt.Printf("%.2f %v\n", flow, err)
	// Output: [1.00 0.00 0.00 0.38 0.62 0.00 0.06 0.38 0.56] <nil>
}

// The Jensen–Shannon divergence of two heads is 0 for equal heads and at most ln 2.
func ExampleDivergence() {
	l := previousAndUniform
	fmt.Printf("%.2f %.2f\n", heads.Divergence(l.Head(0), l.Head(0), 3), heads.Divergence(l.Head(0), l.Head(1), 3))
	// Output: 0.00 0.14
}

// A criterion of your own: how far away a query attends, in tokens. Each text is read by one head here.
func ExampleExamples() {
	far := func(l *heads.Layer, special []string) func(query int, weights []float32) (float64, int) {
		return func(query int, weights []float32) (distance float64, key int) {
			for j, w := range weights {
				distance += float64(w) * math.Abs(float64(query-j))
			}
			return distance, slices.Index(weights, slices.Max(weights))
		}
	}
	examples := heads.NewExamples(far, 2, nil)
	for n, text := range []string{"▁a ▁b ▁c ▁d", "▁e ▁f", "▁g ▁h ▁i"} {
		tokens := strings.Fields(text)
		examples.Read([]int{n}, heads.Texts{Source: text, SourceTokens: tokens})
		same := tensor.Full(0, 1, 1, len(tokens), 1) // equal scores, so uniform weights
		attn.Attend(nil, same, same, same, attn.Options{
			Mask: mask.Causal(), Observers: []attn.Observer{examples}, Layer: "decoder.0.self",
		})
	}
	for _, x := range examples.Of("decoder.0.self", 0) {
		fmt.Printf("text %d: query %s attends to %s … %.2f tokens away\n", x.Number, x.Queries[x.Query], x.Keys[x.Key], x.Score)
	}
	// Output:
	// text 0: query ▁d attends to ▁a … 1.50 tokens away
	// text 2: query ▁i attends to ▁g … 1.00 tokens away
}

// A layer that writes what it reads: its head copies, and reads all that an equal layer before it has written.
func ExampleCircuits() {
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 2, Heads: 1}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range []*tensor.Tensor{layer.Q.Weight, layer.K.Weight, layer.V.Weight, layer.Out.Weight} {
		copy(w.Data(), []float32{1, 0, 0, 1})
	}
	c := heads.NewCircuits(layer, nil, false)
	q, k, v := c.Composition(c)
	fmt.Printf("copying %.2f, composition %.2f %.2f %.2f\n", c.Copying(nil), q[0], k[0], v[0])
	// Output: copying [1.00], composition [0.71] [0.71] [0.71]
}
