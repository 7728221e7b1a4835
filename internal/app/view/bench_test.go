package view

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

// BenchmarkLongText measures the requests of the page for a causal layer of 16 heads that share
// two key/value heads, with 2,048 tokens and weights computed on request.
func BenchmarkLongText(b *testing.B) {
	const n = 2048
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 128, Heads: 16, KVHeads: 2, HeadSize: 64, Name: "decoder.0"}, rng)
	if err != nil {
		b.Fatal(err)
	}
	recorder := heads.NewRecorder(heads.RecorderOptions{OnRequest: true, ValueNorms: true})
	observers, inspect := recorder.Callbacks()
	x := tensor.Randn(rng, 1, n, 128)
	layer.Forward(nil, x, x, x, attn.Options{Mask: mask.Causal(), Observers: observers, Inspect: inspect})
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("t%d", i%500)
	}
	r, err := recorder.Record(heads.Texts{SourceTokens: tokens})
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{"head?head=3&", "head?head=3&rows=5-6&exact=1&", "head?head=mean&", "thumbs?", "thumbs?summaries=1&", "measures?", "divergence?from=0.3&of=r0&", "check?", "thumbs?words=1&"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := New(Options{Records: []*heads.Record{r}}) // with empty caches
				b.StartTimer()
				if w := ask(s, "GET", "/api/"+path+"record=r0&layer=0", "", nil); w.Code != 200 {
					b.Fatalf("status %d: %s", w.Code, w.Body)
				}
			}
		})
	}
}
