package heads_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

// A model of one's own: every layer is given the recorder's method as observer,
// and a name that says what it is.
func ExampleRecorder() {
	rng := rand.New(rand.NewPCG(1, 2))
	tokens := strings.Fields("▁the ▁gi raf fe ▁eats .")
	recorder := heads.NewRecorder(heads.RecorderOptions{})

	x := tensor.Randn(rng, 1, len(tokens), 8) // in earnest, the embedded tokens
	for i := range 2 {
		layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 8, Heads: 2}, rng)
		if err != nil {
			log.Fatal(err)
		}
		x = layer.Forward(nil, x, x, x, attn.Options{
			Mask: mask.Causal(), Observe: recorder.Observe, Layer: fmt.Sprintf("decoder.%d.self", i),
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

// corpus is one attention layer and two sentences, of which it is to copy the
// first of two features. It is all that scoring and pruning ask of a model.
type corpus struct{ layer *attn.MultiHead }

func (c corpus) Layers() []*attn.MultiHead { return []*attn.MultiHead{c.layer} }
func (c corpus) Batches() []int            { return []int{2} } // one batch of two

func (c corpus) Run(t *tensor.Tape, _ int, p heads.Pass) heads.Outcome {
	x := tensor.New([]float32{
		1, 5, 1, 3,
		2, 1, 2, 0,
	}, 2, 2, 2) // [B L D]
	want := tensor.New([]float32{
		1, 0, 1, 0,
		2, 0, 2, 0,
	}, 2, 2, 2)
	o := attn.Options{Observe: p.Observe}
	if p.Gates != nil {
		o.Gates = p.Gates(c.layer.Config().Name)
	}
	got := c.layer.Forward(t, x, x, x, o).Out
	loss := tensor.Sum(t, tensor.Square(t, tensor.Sub(t, got, want)))
	return heads.Outcome{Loss: loss, Terms: 4}
}

func (c corpus) Without(remove []heads.Head) (corpus, error) {
	var keep []int
	for h := range c.layer.Config().Heads {
		if !slices.Contains(remove, heads.Head{Layer: "only", Number: h}) {
			keep = append(keep, h)
		}
	}
	layer, err := c.layer.Keep(keep)
	return corpus{layer}, err
}

// A layer whose head 0 copies the first feature, as it should, and whose head 1
// adds a tenth of the second one. The gradient sees no slope where head 0 is
// perfect, and would throw it away.
func ExamplePrune() {
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Name: "only", Width: 2, Heads: 2}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		log.Fatal(err)
	}
	copy(layer.V.Weight.Data(), []float32{1, 0, 0, 1})
	copy(layer.Out.Weight.Data(), []float32{1, 0, 0, 0.1})
	clear(layer.Q.Weight.Data()) // both heads weigh all keys alike

	model := corpus{layer}
	scores, err := heads.Importance(context.Background(), model, heads.ImportanceOptions{
		Methods: []heads.Method{heads.LeaveOneOut, heads.Gradient, heads.Confidence},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range scores {
		fmt.Printf("%-14s%6.3f  %v passes\n", s.Method, s.Values["only"], s.Passes)
	}
	pruned, err := heads.Prune(context.Background(), model, heads.PruneOptions[corpus]{Method: heads.LeaveOneOut, Keep: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("removed", pruned.Removed, "and kept", pruned.Subject.layer.Config().Heads)
	// Output:
	// leave-one-out [ 2.500 -0.081]  3 passes
	// gradient      [ 0.000  0.163]  3 passes
	// confidence    [ 0.500  0.500]  1 passes
	// removed [{only 1}] and kept 1
}
