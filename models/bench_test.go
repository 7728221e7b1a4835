package models

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// llamaShape is SmolLM2-135M.
const llamaShape = `{"model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
	"num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152, "max_position_embeddings": 8192,
	"rope_theta": 100000, "tie_word_embeddings": true}`

// qwen35Shape is the text model of Qwen3.5-0.8B.
const qwen35Shape = `{"model_type": "qwen3_5_text", "hidden_size": 1024, "intermediate_size": 3584, "num_hidden_layers": 24,
	"num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 248320, "max_position_embeddings": 262144,
	"linear_num_value_heads": 16, "tie_word_embeddings": true}`

// randomFile is a file of random BF16 tensors that are generated when they are read, not stored.
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

// ReadAt returns numbers of about ±0.03.
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

// qwen35Tensors are the shapes of the tensors of Qwen3.5-0.8B.
func qwen35Tensors() map[string][]int {
	const width, heads = 1024, 16 * 128
	z := Sizes{Layers: 24, Heads: 8, KVHeads: 2, HeadSize: 256, Width: width, Hidden: 3584, Vocabulary: 248320}
	all := rotaryTensors(z)
	for i := range z.Layers {
		at := fmt.Sprintf("model.layers.%d.", i)
		if (i+1)%4 == 0 {
			all[at+"self_attn.q_proj.weight"] = []int{2 * z.Heads * z.HeadSize, width}
			all[at+"self_attn.q_norm.weight"], all[at+"self_attn.k_norm.weight"] = []int{z.HeadSize}, []int{z.HeadSize}
			continue
		}
		maps.DeleteFunc(all, func(name string, _ []int) bool { return strings.HasPrefix(name, at+"self_attn.") })
		for name, shape := range map[string][]int{
			"in_proj_qkv.weight": {3 * heads, width}, "in_proj_z.weight": {heads, width}, "in_proj_a.weight": {16, width}, "in_proj_b.weight": {16, width},
			"conv1d.weight": {3 * heads, 1, 4}, "A_log": {16}, "dt_bias": {16}, "norm.weight": {128}, "out_proj.weight": {width, heads},
		} {
			all[at+"linear_attn."+name] = shape
		}
	}
	return all
}

// bertTensors are the shapes of the tensors of a BERT.
func bertTensors(z Sizes) map[string][]int {
	all := map[string][]int{
		"embeddings.word_embeddings.weight":       {z.Vocabulary, z.Width},
		"embeddings.position_embeddings.weight":   {z.Positions, z.Width},
		"embeddings.token_type_embeddings.weight": {2, z.Width},
	}
	vector := func(name string, n int) { all[name+".bias"] = []int{n} }
	matrix := func(name string, out, in int) {
		all[name+".weight"] = []int{out, in}
		vector(name, out)
	}
	norm := func(name string) {
		all[name+".weight"] = []int{z.Width}
		vector(name, z.Width)
	}
	norm("embeddings.LayerNorm")
	for i := range z.Layers {
		at := fmt.Sprintf("encoder.layer.%d.", i)
		for _, name := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"} {
			matrix(at+name, z.Width, z.Width)
		}
		matrix(at+"intermediate.dense", z.Hidden, z.Width)
		matrix(at+"output.dense", z.Width, z.Hidden)
		norm(at + "attention.output.LayerNorm")
		norm(at + "output.LayerNorm")
	}
	return all
}

// randomLlama returns a model with random weights, and their size in bytes.
func randomLlama(b *testing.B, o Options) (Network, int) {
	b.Helper()
	z := Sizes{Layers: 30, Heads: 9, KVHeads: 3, HeadSize: 64, Width: 576, Hidden: 1536, Vocabulary: 49152}
	return randomModel(b, newLlama, llamaShape, rotaryTensors(z), o)
}

// randomModel returns a model with random weights, and their size in bytes.
func randomModel(b *testing.B, family func(*Builder) Network, config string, tensors map[string][]int, o Options) (Network, int) {
	b.Helper()
	s := &Settings{path: configFile, wrong: new([]error)}
	if err := s.parse([]byte(config)); err != nil {
		b.Fatal(err)
	}
	s.Ignore(harmless...)
	file := newRandomFile(tensors)
	r, err := safetensors.NewReader(file, file.size)
	if err != nil {
		b.Fatal(err)
	}
	n, builder, err := build(&directory{settings: s, r: r, format: o.Format}, family)
	if err != nil {
		b.Fatal(err)
	}
	bytes := 0
	for _, p := range builder.params {
		bytes += 4 * p.Tensor.Len()
	}
	for _, e := range builder.dict {
		for _, p := range e.Packed {
			bytes += p.Bytes()
		}
	}
	return n, bytes
}

func eachFormat(b *testing.B, f func(*testing.B, Options)) {
	b.Run("parameters", func(b *testing.B) { f(b, Options{}) })
	for _, s := range tensor.Formats() {
		b.Run(s.String(), func(b *testing.B) { f(b, Options{Format: s}) })
	}
}

// BenchmarkStep measures one token of a Llama with 135M parameters after 128 tokens. Bytes per second count
// all weights, each of which a step reads once.
func BenchmarkStep(b *testing.B) {
	eachFormat(b, benchmarkStep)
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
	n.Hidden(tape, Batch{IDs: [][]int{prompt}}, Run{State: cache})
	b.SetBytes(int64(bytes))
	least := time.Duration(math.MaxInt64)
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		tape.Reset()
		logits := n.Head().Logits(tape, n.Hidden(tape, Batch{IDs: [][]int{{i % 49152}}}, Run{State: cache}))
		if v := logits.Data()[0]; v != v || math.IsInf(float64(v), 0) {
			b.Fatalf("logit %v", v)
		}
		for _, layer := range cache.Layers {
			layer.Truncate(128)
		}
		least = min(least, time.Since(start))
	}
	b.ReportMetric(least.Seconds()*1e3, "least-ms")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}

// BenchmarkTogether measures texts that are generated at the same time.
func BenchmarkTogether(b *testing.B) {
	eachFormat(b, func(b *testing.B, o Options) {
		n, _ := randomLlama(b, o)
		m := &Model{Network: n, Family: llamaFamily, Settings: &Settings{path: configFile}}
		for _, texts := range []int{1, 2, 4, 8, 16, 32} {
			b.Run(fmt.Sprint(texts), func(b *testing.B) {
				written := 0
				together, err := m.NewBatcher(attn.CacheConfig{})
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					var all sync.WaitGroup
					var count atomic.Int64
					for i := range texts {
						all.Go(func() {
							tokens, err := together.Generate(b.Context(), []int{i, 77, 1234}, Generation{Tokens: 64, Ends: []int{}})
							if err != nil {
								b.Error(err)
								return
							}
							for range tokens {
								count.Add(1)
							}
						})
					}
					all.Wait()
					written += int(count.Load())
				}
				b.ReportMetric(float64(written)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	})
}

// BenchmarkPrompt measures a prompt of 512 tokens.
func BenchmarkPrompt(b *testing.B) {
	eachFormat(b, benchmarkPrompt)
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

// BenchmarkHybrid measures a prompt of 624 tokens of the shape of Qwen3.5-0.8B, and the tokens after it.
func BenchmarkHybrid(b *testing.B) {
	eachFormat(b, func(b *testing.B, o Options) {
		n, _ := randomModel(b, newQwen35, qwen35Shape, qwen35Tensors(), o)
		prompt := Batch{IDs: [][]int{slices.Repeat([]int{5, 77, 1234, 40000}, 156)}}
		tape := tensor.NewTape(tensor.Infer)
		var state State
		b.Run("prompt", func(b *testing.B) {
			for b.Loop() {
				var err error
				if state, err = NewCache(n, 1, attn.CacheConfig{}); err != nil {
					b.Fatal(err)
				}
				tape.Reset()
				n.Hidden(tape, prompt, Run{State: state})
			}
		})
		b.Run("step", func(b *testing.B) {
			for b.Loop() {
				tape.Reset()
				n.Head().Logits(tape, n.Hidden(tape, Batch{IDs: [][]int{{77}}}, Run{State: state}))
			}
		})
	})
}

// BenchmarkEncode measures the hidden states of batches of texts of equal lengths.
func BenchmarkEncode(b *testing.B) {
	for _, s := range []struct {
		name string
		z    Sizes
	}{
		{"MiniLM", Sizes{Layers: 6, Heads: 12, Width: 384, Hidden: 1536, Vocabulary: 30522, Positions: 512}},
		{"BERT", Sizes{Layers: 12, Heads: 12, Width: 768, Hidden: 3072, Vocabulary: 30522, Positions: 512}},
	} {
		b.Run(s.name, func(b *testing.B) {
			z := s.z
			config := fmt.Sprintf(`{"model_type": "bert", "hidden_size": %d, "intermediate_size": %d, "num_hidden_layers": %d,
				"num_attention_heads": %d, "vocab_size": %d, "max_position_embeddings": %d}`,
				z.Width, z.Hidden, z.Layers, z.Heads, z.Vocabulary, z.Positions)
			for _, p := range []tensor.Format{tensor.Float32, tensor.BFloat16, tensor.Int8} {
				n, _ := randomModel(b, newBERT, config, bertTensors(z), Options{Format: p})
				for _, batch := range []int{1, 32} {
					for _, length := range []int{16, 64, 128, 512} {
						b.Run(fmt.Sprintf("%v/B%d/L%d", p, batch, length), func(b *testing.B) { benchmarkEncode(b, n, batch, length) })
					}
				}
			}
		})
	}
}

func benchmarkEncode(b *testing.B, n Network, batch, length int) {
	z, ids := n.Sizes(), make([][]int, batch)
	for i := range ids {
		for j := range length {
			ids[i] = append(ids[i], (i*length+j)*7919%z.Vocabulary)
		}
	}
	tape := tensor.NewTape(tensor.Infer)
	least := time.Duration(math.MaxInt64) // others use the machine as well
	for b.Loop() {
		start := time.Now()
		tape.Reset()
		n.Hidden(tape, Batch{IDs: ids}, Run{})
		least = min(least, time.Since(start))
	}
	each := z.Width * (4*z.Width + 2*z.Hidden)
	flops := 2 * float64(batch*length*z.Layers) * float64(each+2*length*z.Width)
	b.ReportMetric(flops/float64(least), "GFLOPS")
	b.ReportMetric(least.Seconds()*1e3, "least-ms")
}
