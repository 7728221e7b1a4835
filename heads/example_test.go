package heads_test

import (
	"fmt"
	"log"
	"math/rand/v2"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

// A custom model has the recorder as an observer of every layer, with a name that contains the layer's
// kind.
func ExampleRecorder() {
	rng := rand.New(rand.NewPCG(1, 2))
	tokens := strings.Fields("▁the ▁gi raf fe ▁eats .")
	recorder := heads.NewRecorder(heads.RecorderOptions{})

	x := tensor.Randn(rng, 1, len(tokens), 8) // in a real model, the embedded tokens
	for i := range 2 {
		layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 8, Heads: 2}, rng)
		if err != nil {
			log.Fatal(err)
		}
		x = layer.Forward(nil, x, x, x, attn.Options{
			Mask: mask.Causal(), Observers: []attn.Observer{recorder}, Layer: fmt.Sprintf("decoder.%d.self", i),
		}).Out
	}

	record, err := recorder.Record(heads.Texts{SourceTokens: tokens})
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range record.MergeWords().Layers {
		fmt.Println(l.Name, l.Kind, l.Index, l.Keys)
		for h := range l.Heads {
			m := l.Measure(h, record.Special)
			fmt.Printf("  head %d: entropy %.2f of %.2f, word before %.2f\n", l.Number(h), m.Entropy, m.Bound, m.Previous)
		}
	}
	// Output:
	// decoder.0.self decoder 0 [the giraffe eats .]
	//   head 0: entropy 0.64 of 0.79, word before 0.33
	//   head 1: entropy 0.58 of 0.79, word before 0.43
	// decoder.1.self decoder 1 [the giraffe eats .]
	//   head 0: entropy 0.72 of 0.79, word before 0.38
	//   head 1: entropy 0.69 of 0.79, word before 0.35
}

func ExampleWords() {
	for _, w := range heads.Words([]string{"[CLS]", "gi", "##raf", "##fe", "[SEP]"}, "[CLS]", "[SEP]") {
		fmt.Println(w.Text, w.From, w.To)
	}
	// Output:
	// [CLS] 0 1
	// giraffe 1 4
	// [SEP] 4 5
}
