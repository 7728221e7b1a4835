package heads_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/attn-go/attn/heads"
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
