package models_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Builder.MultiHead reads gates from a separate map, and from a query map of twice the width.
func TestOutputGateFiles(t *testing.T) {
	const width, heads, size = 6, 3, 4
	rng := rand.New(rand.NewPCG(54, 1))
	draw := func(shape ...int) *tensor.Tensor { return tensor.Randn(rng, shape...) }
	doubled, bias := draw(heads*2*size, width), draw(heads*2*size)
	half := func(x *tensor.Tensor, which int) *tensor.Tensor { // as torch.chunk of [H 2E …] along its second axis
		x = tensor.Reshape(nil, x, heads, 2*size, x.Len()/x.Dim(0))
		return tensor.Reshape(nil, tensor.Slice(nil, x, 1, which*size, (which+1)*size), heads*size, -1)
	}
	kv, out := draw(heads*size, width), draw(width, heads*size)
	words := draw(5, width)
	flat := func(x *tensor.Tensor) *tensor.Tensor { return tensor.Reshape(nil, x, heads*size) }
	query := &nn.Linear{Weight: half(doubled, 0), Bias: flat(half(bias, 0))}
	gate := &nn.Linear{Weight: half(doubled, 1), Bias: flat(half(bias, 1))}
	h := tensor.Reshape(nil, tensor.Gather(nil, words, []int{3, 1, 4}), 1, 3, width)
	split := func(x *tensor.Tensor) *tensor.Tensor {
		return tensor.Transpose(nil, tensor.Reshape(nil, x, 1, 3, heads, size), 0, 2, 1, 3)
	}
	k := tensor.Linear(nil, h, kv, nil)
	y := attn.Attend(nil, split(query.Forward(nil, h)), split(k), split(k), attn.Options{}).Out
	y = tensor.Reshape(nil, tensor.Transpose(nil, y, 0, 2, 1, 3), 1, 3, heads*size)
	y = tensor.Mul(nil, y, tensor.Sigmoid(nil, gate.Forward(nil, h)))
	want := tensor.Linear(nil, y, out, nil)

	for _, c := range []struct {
		name  string
		maps  models.Maps
		files nn.Vars
		err   string
	}{
		{"doubled", models.Maps{Q: "q", K: "k", V: "v", Out: "o"}, nn.Vars{{Name: "q.weight", Tensor: doubled}, {Name: "q.bias", Tensor: bias}}, ""},
		{"a map", models.Maps{Q: "q", K: "k", V: "v", Gate: "g", Out: "o"}, nn.Vars{
			{Name: "q.weight", Tensor: query.Weight}, {Name: "q.bias", Tensor: query.Bias}, {Name: "g.weight", Tensor: gate.Weight}, {Name: "g.bias", Tensor: gate.Bias},
		}, ""},
		{"one map", models.Maps{QKV: "q", Out: "o"}, nn.Vars{{Name: "q.weight", Tensor: doubled}}, "an output gate of a layer with one map of q, k and v, want the name of its map"},
		{"too small", models.Maps{Q: "q", K: "k", V: "v", Out: "o"}, nn.Vars{{Name: "q.weight", Tensor: query.Weight}, {Name: "q.bias", Tensor: query.Bias}}, `"q.weight" has shape [12 6], want [24 6]`},
	} {
		for _, trainable := range []bool{true, false} {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type": "gated"}`), 0o644); err != nil {
				t.Fatal(err)
			}
			files := append(nn.Vars{{Name: "words.weight", Tensor: words}, {Name: "k.weight", Tensor: kv}, {Name: "v.weight", Tensor: kv}, {Name: "o.weight", Tensor: out}}, c.files...)
			if err := statedict.Save(filepath.Join(dir, "model.safetensors"), files, statedict.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			family := models.Family{Type: "gated", Name: "gated attention", New: func(b *models.Builder) models.Network {
				n := &bare{words: b.Embedding("words", 5, width), sizes: models.Sizes{Layers: 1, Heads: heads, Width: width, Vocabulary: 5}}
				n.self = b.MultiHead(attn.MultiHeadConfig{
					Name: "encoder.0.self", Width: width, Heads: heads, HeadSize: size, Bias: attn.Query | attn.Gate,
					OutputGate: attn.OutputGate{Activation: tensor.Sigmoid},
				}, c.maps)
				return n
			}}
			m, err := models.Load(dir, models.Options{Families: []models.Family{family}, Trainable: trainable})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%s: error %v, want %s", c.name, err, c.err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			got := m.Hidden(nil, models.Batch{IDs: [][]int{{3, 1, 4}}}, models.Run{})
			tensortest.Close(t, c.name, got.Data(), want.Float64s(), 1e-5)
		}
	}
}
