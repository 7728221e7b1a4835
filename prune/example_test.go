package prune_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// corpus is one attention layer and two sentences. The layer's task is to copy the first of two features.
// These are all the methods that scoring and pruning require.
type corpus struct{ layer *attn.MultiHead }

func (c corpus) Layers() []attn.LayerHeads { return []attn.LayerHeads{c.layer.Heads()} }
func (c corpus) Batches() []int            { return []int{2} } // one batch of two

func (c corpus) Run(t *tensor.Tape, _ int, p prune.Pass) prune.Outcome {
	x := tensor.New([]float32{
		1, 5, 1, 3,
		2, 1, 2, 0,
	}, 2, 2, 2) // [B L D]
	want := tensor.New([]float32{
		1, 0, 1, 0,
		2, 0, 2, 0,
	}, 2, 2, 2)
	o := attn.Options{}
	if p.Observe != nil {
		o.Observers = []attn.Observer{observe.Weights(p.Observe)}
	}
	if p.Gates != nil {
		o.Gates = p.Gates(c.layer.Config().Name)
	}
	got := c.layer.Forward(t, x, x, x, o).Out
	loss := tensor.Sum(t, tensor.Square(t, tensor.Sub(t, got, want)))
	return prune.Outcome{Loss: loss, Terms: 4}
}

func (c corpus) Without(remove []prune.Head) (corpus, error) {
	var keep []int
	for h := range c.layer.Config().Heads {
		if !slices.Contains(remove, prune.Head{Layer: "only", Number: h}) {
			keep = append(keep, h)
		}
	}
	layer, err := c.layer.Keep(keep)
	return corpus{layer}, err
}

// Head 0 copies the first feature, as it should. Head 1 adds a tenth of the second feature. Because head 0
// is perfect, its gradient is zero, and Gradient would remove it.
func ExampleHeads() {
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Name: "only", Width: 2, Heads: 2}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		log.Fatal(err)
	}
	copy(layer.V.Weight.Data(), []float32{1, 0, 0, 1})
	copy(layer.Out.Weight.Data(), []float32{1, 0, 0, 0.1})
	clear(layer.Q.Weight.Data()) // both heads give all keys equal weights

	model := corpus{layer}
	scores, err := prune.Importance(context.Background(), model, prune.ImportanceOptions{
		Methods: []prune.Method{prune.LeaveOneOut, prune.Gradient, prune.Confidence},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range scores {
		fmt.Printf("%-14s%6.3f  %v passes\n", s.Method, s.Values["only"], s.Passes)
	}
	pruned, err := prune.Heads(context.Background(), model, prune.Options[corpus]{Method: prune.LeaveOneOut, Keep: 1})
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

// Two methods agree on the order of all heads except one pair.
func ExampleSpearman() {
	fmt.Printf("%.1f\n", prune.Spearman([]float64{1, 2, 3, 4}, []float64{10, 30, 20, 40}))
	// Output: 0.8
}
