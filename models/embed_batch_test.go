package models_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// counted is a network that counts the tokens that it runs on, padding included.
type counted struct {
	models.Network
	tokens, longest atomic.Int64 // longest is that of a batch
}

func (n *counted) Hidden(t *tensor.Tape, x models.Batch, r models.Run) *tensor.Tensor {
	padded := int64(slices.Max(x.Lens()) * len(x.IDs))
	n.tokens.Add(padded)
	for old := n.longest.Load(); padded > old && !n.longest.CompareAndSwap(old, padded); old = n.longest.Load() {
	}
	return n.Network.Hidden(t, x, r)
}

// TestMixedLengths: one long text does not pad 500 short ones, whatever the order, and each vector has the bits of the
// text alone, on any number of processors.
func TestMixedLengths(t *testing.T) {
	e, err := models.LoadEmbedder("testdata/sentence_mean", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the cat sat on mat who sleeps in sun")
	text := func(n int) string {
		var list []string
		for range n {
			list = append(list, words[rng.IntN(len(words))])
		}
		return strings.Join(list, " ")
	}
	texts := []string{text(30), "", text(1)}
	for range 500 {
		texts = append(texts, text(3+rng.IntN(3)))
	}
	rng.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
	alone, tokens := make([][]float32, len(texts)), int64(0)
	for i, s := range texts {
		y, err := e.Embed(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		x, _, err := e.Encode(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		alone[i], tokens = y.Data(), tokens+int64(len(x.IDs))
	}
	for _, procs := range []int{1, 2, 7} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		n := &counted{Network: e.Model.Network}
		e.Model.Network = n
		all, err := e.Embed(t.Context(), texts...)
		e.Model.Network = n.Network
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range alone {
			if !slices.Equal(all.Data()[i*e.Width():(i+1)*e.Width()], want) {
				t.Fatalf("%d processors: the vector of %q differs from the text alone", procs, texts[i])
			}
		}
		if most := tokens * 11 / 10; n.tokens.Load() > most {
			t.Errorf("%d processors: %d tokens with padding, of %d, want at most %d", procs, n.tokens.Load(), tokens, most)
		}
		if n.longest.Load() > 128 { // of a part, whose states bound the memory
			t.Errorf("%d processors: a batch of %d tokens, want at most 128", procs, n.longest.Load())
		}
	}
	if y, err := e.Embed(t.Context()); err != nil || !slices.Equal(y.Shape(), []int{0, e.Width()}) {
		t.Errorf("no texts: %v, %v", y, err)
	}
}
