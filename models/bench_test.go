package models

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// llamaShape is SmolLM2-135M.
const llamaShape = `{"model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
	"num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152, "max_position_embeddings": 8192,
	"rope_theta": 100000, "tie_word_embeddings": true}`

// randomFile is a file of tensors of type BF16 whose numbers are random, without the
// numbers being anywhere.
type randomFile struct {
	header []byte
	size   int64
}

func newRandomFile(tensors map[string][]int) *randomFile {
	type entry struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	entries, at := map[string]entry{}, int64(0)
	for name, shape := range tensors {
		n := int64(2)
		for _, d := range shape {
			n *= int64(d)
		}
		entries[name] = entry{"BF16", shape, [2]int64{at, at + n}}
		at += n
	}
	text, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	for len(text)%8 > 0 {
		text = append(text, ' ')
	}
	header := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	header = append(header, text...)
	return &randomFile{header, int64(len(header)) + at}
}

// ReadAt gives numbers of about ±0.03.
func (f *randomFile) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		switch at := off + int64(i) - int64(len(f.header)); {
		case at < 0:
			p[i] = f.header[off+int64(i)]
		case at%2 == 0:
			p[i] = byte(at * 2654435761 >> 13)
		default:
			p[i] = 0x3c | byte(at*2654435761>>17)&0x80
		}
	}
	return len(p), nil
}

// rotaryTensors are the shapes of the tensors of a Llama.
func rotaryTensors(z Sizes) map[string][]int {
	q, kv := z.Heads*z.HeadSize, z.KVHeads*z.HeadSize
	all := map[string][]int{"model.embed_tokens.weight": {z.Vocabulary, z.Width}, "model.norm.weight": {z.Width}}
	for i := range z.Layers {
		for name, shape := range map[string][]int{
			"input_layernorm": {z.Width}, "post_attention_layernorm": {z.Width},
			"self_attn.q_proj": {q, z.Width}, "self_attn.k_proj": {kv, z.Width}, "self_attn.v_proj": {kv, z.Width}, "self_attn.o_proj": {z.Width, q},
			"mlp.gate_proj": {z.Hidden, z.Width}, "mlp.up_proj": {z.Hidden, z.Width}, "mlp.down_proj": {z.Width, z.Hidden},
		} {
			all[fmt.Sprintf("model.layers.%d.%s.weight", i, name)] = shape
		}
	}
	return all
}

// randomLlama returns a model of random weights, and how many bytes they take.
func randomLlama(b *testing.B, o Options) (Network, int) {
	b.Helper()
	s, err := readSettings([]byte(llamaShape))
	if err != nil {
		b.Fatal(err)
	}
	s.Ignore(harmless...)
	file := newRandomFile(rotaryTensors(Sizes{Layers: 30, Heads: 9, KVHeads: 3, HeadSize: 64, Width: 576, Hidden: 1536, Vocabulary: 49152}))
	r, err := safetensors.NewReader(file, file.size)
	if err != nil {
		b.Fatal(err)
	}
	numbers, err := numbersOf(o.Weights)
	if err != nil {
		b.Fatal(err)
	}
	n, builder, err := build(&source{config: configFile, settings: s, r: r, packed: o.Weights != nil, numbers: numbers}, newLlama)
	if err != nil {
		b.Fatal(err)
	}
	bytes := 0
	for _, p := range builder.params {
		bytes += 4 * p.Tensor.Len()
	}
	for _, m := range builder.matrices {
		for _, p := range m.parts {
			bytes += p.Bytes()
		}
	}
	return n, bytes
}

func eachStorage(b *testing.B, f func(*testing.B, Options)) {
	b.Run("parameters", func(b *testing.B) { f(b, Options{}) })
	for _, s := range []attn.Storage{attn.Float32{}, attn.BFloat16{}, attn.Int8{}} {
		b.Run(fmt.Sprintf("%T", s)[len("attn."):], func(b *testing.B) { f(b, Options{Weights: s}) })
	}
}

// BenchmarkStep measures a token of a Llama of 135M parameters with 128 tokens before it:
// the bytes a second are those of all weights, each of which a step reads once.
func BenchmarkStep(b *testing.B) {
	eachStorage(b, benchmarkStep)
}

func benchmarkStep(b *testing.B, o Options) {
	n, bytes := randomLlama(b, o)
	cache, err := NewCache(n, 1, attn.CacheConfig{})
	if err != nil {
		b.Fatal(err)
	}
	prompt := make([]int, 128)
	for i := range prompt {
		prompt[i] = i * 37 % 49152
	}
	tape := tensor.NewTape(tensor.Infer)
	n.Hidden(tape, Batch{IDs: [][]int{prompt}}, Run{Cache: cache})
	b.SetBytes(int64(bytes))
	for i := 0; b.Loop(); i++ {
		tape.Reset()
		logits := n.Head().Logits(tape, n.Hidden(tape, Batch{IDs: [][]int{{i % 49152}}}, Run{Cache: cache}))
		if v := logits.Data()[0]; v != v || math.IsInf(float64(v), 0) {
			b.Fatalf("logit %v", v)
		}
		for _, layer := range cache.Layers {
			layer.Truncate(128)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}

// BenchmarkPrompt measures the reading of 512 tokens.
func BenchmarkPrompt(b *testing.B) {
	eachStorage(b, benchmarkPrompt)
}

func benchmarkPrompt(b *testing.B, o Options) {
	n, _ := randomLlama(b, o)
	prompt := slices.Repeat([]int{5, 77, 1234, 40000}, 128)
	tape := tensor.NewTape(tensor.Infer)
	for b.Loop() {
		tape.Reset()
		n.Hidden(tape, Batch{IDs: [][]int{prompt}}, Run{})
	}
	b.ReportMetric(float64(b.N*len(prompt))/b.Elapsed().Seconds(), "tokens/s")
}
