package models_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// shapes are the shapes of a model's tensors.
type shapes map[string][]int

// linear adds a linear map with a bias.
func (s shapes) linear(name string, in, out int) {
	s[name+".weight"], s[name+".bias"] = []int{out, in}, []int{out}
}

// load returns a model with the given settings whose weights are small numbers.
func (s shapes) load(t *testing.T, config map[string]any) *models.Model {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	var f safetensors.File
	for name, shape := range s {
		var data []byte
		for i := range tensor.Zeros(shape...).Len() {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i%13-6)/100))
		}
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: shape, Data: data})
	}
	if err := f.WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// loopsOf returns the number of loops outside of attention that are cut into chunks for 16 threads.
func loopsOf(f func()) int {
	s := par.Trace(16, 1, f)
	return len(slices.DeleteFunc(s.Loops, func(l par.Loop) bool { return len(l.Chunks) == 1 || strings.Contains(l.Caller, "flash") }))
}

// A layer of an encoder has 7 loops outside of attention: the products of q, k and v, of the output and of the
// feed-forward network, the activation, and two sums with their norms. The sum of the embeddings and its norm are two.
func TestLoopsOfAnEncoder(t *testing.T) {
	const layers, width, hidden = 2, 384, 1536
	s := shapes{
		"embeddings.word_embeddings.weight": {50, width}, "embeddings.position_embeddings.weight": {128, width},
		"embeddings.token_type_embeddings.weight": {2, width},
		"embeddings.LayerNorm.weight":             {width}, "embeddings.LayerNorm.bias": {width},
	}
	for i := range layers {
		at := fmt.Sprintf("encoder.layer.%d.", i)
		for _, name := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"} {
			s.linear(at+name, width, width)
		}
		s.linear(at+"intermediate.dense", width, hidden)
		s.linear(at+"output.dense", hidden, width)
		for _, name := range []string{"attention.output.LayerNorm", "output.LayerNorm"} {
			s[at+name+".weight"], s[at+name+".bias"] = []int{width}, []int{width}
		}
	}
	m := s.load(t, map[string]any{
		"model_type": "bert", "architectures": []string{"BertModel"}, "hidden_size": width, "intermediate_size": hidden,
		"num_hidden_layers": layers, "num_attention_heads": 12, "vocab_size": 50, "max_position_embeddings": 128,
	})
	tape := tensor.NewTape(tensor.Infer)
	for _, length := range []int{14, 128} {
		ids := make([]int, length)
		got := loopsOf(func() {
			tape.Reset()
			m.Hidden(tape, models.Batch{IDs: [][]int{ids}}, models.Run{})
		})
		if most := 7*layers + 2; got > most {
			t.Errorf("%d tokens: %d loops, want at most %d", length, got, most)
		}
	}
}

// A step of a decoder has 4 loops in each layer outside of attention, all of them products, and one for the logits.
func TestLoopsOfADecoder(t *testing.T) {
	const layers, width, hidden = 2, 576, 1536
	s := shapes{"model.embed_tokens.weight": {500, width}, "model.norm.weight": {width}}
	for i := range layers {
		at := fmt.Sprintf("model.layers.%d.", i)
		for name, shape := range (shapes{
			"input_layernorm": {width}, "post_attention_layernorm": {width},
			"self_attn.q_proj": {width, width}, "self_attn.k_proj": {192, width}, "self_attn.v_proj": {192, width},
			"self_attn.o_proj": {width, width},
			"mlp.gate_proj":    {hidden, width}, "mlp.up_proj": {hidden, width}, "mlp.down_proj": {width, hidden},
		}) {
			s[at+name+".weight"] = shape
		}
	}
	m := s.load(t, map[string]any{
		"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}, "hidden_size": width, "intermediate_size": hidden,
		"num_hidden_layers": layers, "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 500,
		"max_position_embeddings": 64, "tie_word_embeddings": true,
	})
	cache, err := models.NewCache(m, 1, attn.CacheConfig{})
	if err != nil {
		t.Fatal(err)
	}
	tape := tensor.NewTape(tensor.Infer)
	got := loopsOf(func() {
		tape.Reset()
		m.Head().Logits(tape, m.Hidden(tape, models.Batch{IDs: [][]int{{7}}}, models.Run{State: cache}))
	})
	if most := 4*layers + 1; got > most {
		t.Errorf("%d loops, want at most %d", got, most)
	}
}
