package models_test

import (
	"math"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/tensor"
)

// A mask of a run hides a token from all queries of all layers, whatever the family: its weights are 0, and the others are
// those without it, divided by what is left. A network that mixes tokens by other means refuses masks.
func TestMasks(t *testing.T) {
	const refused, signed = "want attention with a softmax in each layer", "signed"
	for dir, what := range map[string]string{
		"bert": "", "modernbert": "", "deberta": "", "jina": "", "seq2seq/t5": "", "seq2seq/marian": "", "decoders/gpt2": "", "decoders/llama3": "",
		"decoders/gemma2": "", "decoders/gemma3n": "", "decoders/gemma4": "", "decoders/deepseek_v2": "", "decoders/mixtral": "",
		"decoders/diffllama": signed, "decoders/lfm2": refused, "decoders/mamba2": refused, "decoders/falcon_h1": refused, "decoders/qwen3_5": refused,
	} {
		m, err := models.Load("testdata/"+dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		const hidden, tokens = 2, 6
		x := models.Batch{IDs: [][]int{{3, 9, 5, 7, 4, 8}}}
		if m.Sizes().Decoder != nil {
			x.Targets = [][]int{{0, 6, 9, 5, 4, 3}}
		}
		seen := make([]bool, tokens)
		for i := range seen {
			seen[i] = i != hidden
		}
		weights, layers := map[string]*tensor.Tensor{}, 0
		masked := models.Run{Masks: func(string) attn.Mask { return mask.Allow(seen, tokens) }, Observers: []attn.Observer{
			observe.Weights(func(layer string, w *tensor.Tensor) { weights[layer], layers = w.Clone(), layers+1 }),
		}}
		var got *tensor.Tensor
		err = tensor.Catch(func() { got = m.Hidden(nil, x, masked) })
		if what == refused {
			if err == nil || !strings.Contains(err.Error(), refused) {
				t.Errorf("%s: %v, want a refusal", dir, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(dir, err)
		}
		if layers == 0 || layers != len(m.HeadLayers()) {
			t.Errorf("%s: weights of %d layers of %d", dir, layers, len(m.HeadLayers()))
		}
		for layer, w := range weights {
			for i, v := range w.Data() {
				if i%tokens == hidden && v != 0 {
					t.Fatalf("%s: %s: query %d attends to the masked token with %v", dir, layer, i/tokens%tokens, v)
				}
			}
		}
		if what == signed { // the edit below would not be of one softmax
			continue
		}
		want := m.Hidden(nil, x, models.Run{Edits: func(string) attn.Edits {
			return attn.Edits{Weights: func(_ *tensor.Tape, w *tensor.Tensor) *tensor.Tensor {
				y := w.Clone()
				for i := 0; i < y.Len(); i += tokens {
					row := y.Data()[i:][:tokens]
					row[hidden] = 0
					left := float32(0)
					for _, v := range row {
						left += v
					}
					for j := range row {
						row[j] /= left
					}
				}
				return y
			}}
		}})
		plain, moved := m.Hidden(nil, x, models.Run{}), false
		for i, v := range want.Data() {
			moved = moved || v != plain.Data()[i]
			if d := math.Abs(float64(v - got.Data()[i])); !(d <= 2e-4*(1+math.Abs(float64(v)))) {
				t.Fatalf("%s: element %d is %v, want %v", dir, i, got.Data()[i], v)
			}
		}
		if !moved {
			t.Errorf("%s: the mask changes nothing", dir)
		}
	}
}
