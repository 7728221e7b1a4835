package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// shape contains the properties of a pretrained model that determine its speed. The weights are random.
type shape struct {
	name                                  string
	layers, heads, kvHeads, width, hidden int
	vocabulary                            int
	bias                                  bool // of q, k and v, in a decoder
	positions                             int  // learned, 0 in a decoder
}

var encoders = []shape{
	{name: "MiniLM-L6", layers: 6, heads: 12, kvHeads: 12, width: 384, hidden: 1536, vocabulary: 30522, positions: 512},
	{name: "BERT-base", layers: 12, heads: 12, kvHeads: 12, width: 768, hidden: 3072, vocabulary: 30522, positions: 512},
}

var decoders = []shape{
	{name: "Llama 135M", layers: 30, heads: 9, kvHeads: 3, width: 576, hidden: 1536, vocabulary: 49152},
	{name: "Qwen2 0.5B", layers: 24, heads: 14, kvHeads: 2, width: 896, hidden: 4864, vocabulary: 151936, bias: true},
}

// formats are the number formats of products that are compared.
var formats = []tensor.Format{tensor.Float32, tensor.BFloat16, tensor.Int8}

// prompts are the numbers of tokens of prompts.
var prompts = []int{64, 512, 2048}

// read is the number of tokens that a decoder has processed before the measured step.
const read = 128

// encodeTasks returns the rows for pretrained encoders.
func encodeTasks(threads int) []task {
	var tasks []task
	for _, s := range encoders {
		for _, batch := range []int{1, 32} {
			for _, length := range []int{16, 64, 128, 512} {
				tasks = append(tasks, s.encode(threads, batch, length, tensor.Float32))
			}
		}
	}
	for _, s := range encoders {
		for _, x := range [][2]int{{1, 16}, {1, 128}, {1, 512}, {32, 16}, {32, 128}} {
			for _, format := range formats[1:] {
				tasks = append(tasks, s.encode(threads, x[0], x[1], format))
			}
		}
	}
	return tasks
}

// goTasks returns the rows for an encoder beside other libraries in Go, which read its directory.
func goTasks(threads int) []task {
	var tasks []task
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("attn-compare-%d-go", os.Getpid()))
	for _, x := range [][2]int{{1, 16}, {1, 128}, {32, 128}} {
		t := encoders[0].encode(threads, x[0], x[1], tensor.Float32)
		t.table, t.name = "Encoding in Go", strings.Replace(t.name, "encode", "encode in Go", 1)
		t.libraries, t.request.File = []string{"hugot", "cybertron"}, dir
		start := t.start
		t.start = func() (bench.Measurer, error) {
			if err := os.Mkdir(dir, 0o777); err != nil {
				return bench.Measurer{}, err
			}
			if err := encoders[0].write(dir, safetensors.F32, randomWeights); err != nil {
				return bench.Measurer{}, err
			}
			return start()
		}
		t.end = func() error { return os.RemoveAll(dir) }
		tasks = append(tasks, t)
	}
	return tasks
}

// promptTasks returns the rows for decoders that read a prompt.
func promptTasks(threads int) []task {
	var tasks []task
	for _, s := range decoders {
		for _, length := range prompts {
			for _, format := range formats {
				tasks = append(tasks, s.prompt(threads, length, format))
			}
		}
	}
	return tasks
}

// generateTasks returns the rows for pretrained decoders.
func generateTasks(threads int) []task {
	var tasks []task
	for _, s := range decoders {
		for _, format := range []tensor.Format{tensor.Float32, tensor.BFloat16Weights, tensor.BFloat16, tensor.Int8} {
			tasks = append(tasks, s.generate(threads, format))
		}
	}
	return tasks
}

// encode is a task that computes the hidden states of texts of equal length.
func (s shape) encode(threads, batch, length int, format tensor.Format) task {
	name := fmt.Sprintf("encode %s B%d L%d", s.name, batch, length)
	table := "Encoding"
	if format != tensor.Float32 {
		name, table = name+" "+format.String(), "Encoding in lower precision"
	}
	return task{
		table: table, name: name, libraries: []string{"torch", "onnxruntime", "openvino"},
		request: request{
			Work:   bench.Work{Op: "encode", B: batch, H: s.heads, Lq: length, Width: s.width},
			Hidden: s.hidden, Layers: s.layers, Vocab: s.vocabulary, Storage: format.String(),
		},
		start: func() (bench.Measurer, error) {
			m, err := s.load(models.Options{Format: format})
			if err != nil {
				return bench.Measurer{}, err
			}
			ids := make([][]int, batch)
			for i := range ids {
				for range length {
					ids[i] = append(ids[i], rand.N(s.vocabulary))
				}
			}
			tape := tensor.NewTape(tensor.Infer)
			return bench.Calls(threads, 0, func() {
				tape.Reset()
				m.Hidden(tape, models.Batch{IDs: ids}, models.Run{})
			}), nil
		},
		share: func(r bench.Result) string {
			// Two operations for each weight of a layer and each token, plus the operations of attention.
			each := s.width * (4*s.width + 2*s.hidden)
			flops := 2 * float64(batch*length*s.layers) * float64(each+2*length*s.width)
			return fmt.Sprintf("%.0f%%", 100*flops/r.Median/1e6/r.PeakGFLOPS)
		},
	}
}

// prompt is a task that reads a prompt into an empty cache and computes the logits of its last token.
func (s shape) prompt(threads, length int, format tensor.Format) task {
	return task{
		table: "Prompts", name: fmt.Sprintf("prompt %s L%d %s", s.name, length, format),
		libraries: []string{"torch", "llama.cpp", "openvino"},
		request:   s.decoding("prompt", length, format.String()),
		start:     s.reads(threads, models.Options{Format: format}, 0, length, 0),
		share:     func(r bench.Result) string { return fmt.Sprintf("%.0f tokens/s", 1000*float64(length)/r.Median) },
	}
}

// generate is a task that computes one token of a text, from the previous token to the logits.
func (s shape) generate(threads int, format tensor.Format) task {
	stored := strings.TrimSuffix(format.String(), "-weights")
	name := fmt.Sprintf("generate %s %s", s.name, stored) // as in the records of earlier measurements
	if format == tensor.BFloat16 || format == tensor.Int8 {
		name = fmt.Sprintf("generate %s precision %s", s.name, stored)
	}
	bytes := format.Bytes(s.weights())
	return task{
		table: "Generation", name: name,
		libraries: []string{"torch", "ctranslate2", "llama.cpp"},
		request:   s.decoding("generate", read, stored),
		start:     s.reads(threads, models.Options{Format: format}, read, 1, bytes),
		share: func(r bench.Result) string {
			read := float64(bytes) / r.Median / 1e6
			return fmt.Sprintf("%.1f tokens/s, %.0f%% of reading", 1000/r.Median, 100*read/r.PeakReadGBps)
		},
	}
}

// decoding returns the work of a decoder on lk tokens.
func (s shape) decoding(op string, lk int, stored string) request {
	return request{
		Work:   bench.Work{Op: op, B: 1, H: s.heads, G: s.kvHeads, Lk: lk, E: 64, Width: s.width},
		Hidden: s.hidden, Layers: s.layers, Vocab: s.vocabulary, Storage: stored, Bias: s.bias,
	}
}

// reads returns the start of a task in which a decoder, whose cache contains the given number of tokens, reads more and
// computes the logits of the last one. bytes is as in bench.Calls.
func (s shape) reads(threads int, o models.Options, before, tokens, bytes int) func() (bench.Measurer, error) {
	return func() (bench.Measurer, error) {
		m, err := s.load(o)
		if err != nil {
			return bench.Measurer{}, err
		}
		cache, err := models.NewCache(m, 1, attn.CacheConfig{})
		if err != nil {
			return bench.Measurer{}, err
		}
		tape, ids := tensor.NewTape(tensor.Infer), make([]int, before+tokens)
		for i := range ids {
			ids[i] = rand.N(s.vocabulary)
		}
		hidden := func(ids []int) *tensor.Tensor {
			return m.Hidden(tape, models.Batch{IDs: [][]int{ids}}, models.Run{State: cache})
		}
		if before > 0 {
			hidden(ids[:before])
		}
		logits := m.Head().Logits
		return bench.Calls(threads, bytes, func() {
			tape.Reset()
			logits(tape, tensor.Slice(tape, hidden(ids[before:]), 1, tokens-1, tokens))
			for _, layer := range cache.Layers {
				layer.Truncate(before)
			}
		}), nil
	}
}

// weights returns the number of weights in the matrices of a decoder, including the embeddings, which also compute
// the logits.
func (s shape) weights() int {
	kv := s.width / s.heads * s.kvHeads
	return s.vocabulary*s.width + s.layers*s.width*(2*s.width+2*kv+3*s.hidden)
}

// load writes a model directory with random weights and loads it.
func (s shape) load(o models.Options) (*models.Model, error) {
	dir, err := os.MkdirTemp("", "attn-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := s.write(dir, safetensors.BF16, randomWeights); err != nil {
		return nil, err
	}
	return models.Load(dir, o)
}

// write writes config.json and weights of a type.
func (s shape) write(dir string, dtype safetensors.DType, weights func(io.Writer, safetensors.Info) error) error {
	config, tensors := s.encoder()
	if s.positions == 0 {
		config, tensors = s.decoder()
	}
	for i := range tensors {
		tensors[i].DType = dtype
	}
	text, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), text, 0o666)
	}
	if err != nil {
		return err
	}
	stream := &safetensors.Stream{Tensors: tensors, Data: func(w io.Writer, i int) error { return weights(w, tensors[i]) }}
	return stream.WriteFile(filepath.Join(dir, "model.safetensors"))
}

// randomWeights writes numbers of about ±0.03, and 1 for the gains of norms.
func randomWeights(w io.Writer, info safetensors.Info) error {
	n, one := info.Len(), []byte{0, 0, 0x80, 0x3f}[4-info.DType.Bits()/8:]
	if strings.Contains(strings.ToLower(info.Name), "norm.weight") {
		_, err := w.Write(bytes.Repeat(one, n))
		return err
	}
	weights := someWeights[info.DType]()
	for n *= len(one); n > 0; n -= min(n, len(weights)) {
		if _, err := w.Write(weights[:min(n, len(weights))]); err != nil {
			return err
		}
	}
	return nil
}

// someWeights are random numbers for each type, which are repeated: drawing half a billion numbers would take longer
// than the measurement.
var someWeights = map[safetensors.DType]func() []byte{
	safetensors.BF16: sync.OnceValue(func() []byte { return drawnWeights(2) }),
	safetensors.F32:  sync.OnceValue(func() []byte { return drawnWeights(4) }),
}

func drawnWeights(width int) []byte {
	b, rng := make([]byte, 2<<20), rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(b); i += width {
		x := rng.Uint64()
		for j := range width - 1 {
			b[i+j] = byte(x >> (8 * j))
		}
		b[i+width-1] = 0x3c | byte(x>>56)&0x80
	}
	return b
}

// tensorsOf returns tensors with the given names and shapes. The caller must set their type.
func tensorsOf(shapes map[string][]int) []safetensors.Info {
	var all []safetensors.Info
	for name, shape := range shapes {
		all = append(all, safetensors.Info{Name: name, Shape: shape})
	}
	slices.SortFunc(all, func(a, b safetensors.Info) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (s shape) encoder() (config map[string]any, tensors []safetensors.Info) {
	config = map[string]any{
		"model_type": "bert", "architectures": []string{"BertModel"}, "hidden_size": s.width, "intermediate_size": s.hidden, "hidden_act": "gelu",
		"num_hidden_layers": s.layers, "num_attention_heads": s.heads, "vocab_size": s.vocabulary, "max_position_embeddings": s.positions,
		"type_vocab_size": 2, "layer_norm_eps": 1e-12,
	}
	shapes := map[string][]int{
		"embeddings.word_embeddings.weight":       {s.vocabulary, s.width},
		"embeddings.position_embeddings.weight":   {s.positions, s.width},
		"embeddings.token_type_embeddings.weight": {2, s.width},
	}
	norm := func(name string) { shapes[name+".weight"], shapes[name+".bias"] = []int{s.width}, []int{s.width} }
	linear := func(name string, in, out int) {
		shapes[name+".weight"], shapes[name+".bias"] = []int{out, in}, []int{out}
	}
	norm("embeddings.LayerNorm")
	for i := range s.layers {
		at := fmt.Sprintf("encoder.layer.%d.", i)
		for _, name := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"} {
			linear(at+name, s.width, s.width)
		}
		linear(at+"intermediate.dense", s.width, s.hidden)
		linear(at+"output.dense", s.hidden, s.width)
		norm(at + "attention.output.LayerNorm")
		norm(at + "output.LayerNorm")
	}
	return config, tensorsOf(shapes)
}

func (s shape) decoder() (config map[string]any, tensors []safetensors.Info) {
	config = map[string]any{
		"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}, "hidden_size": s.width, "intermediate_size": s.hidden, "hidden_act": "silu",
		"num_hidden_layers": s.layers, "num_attention_heads": s.heads, "num_key_value_heads": s.kvHeads, "vocab_size": s.vocabulary,
		"max_position_embeddings": 8192, "rope_theta": 1e5, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
	}
	if s.bias {
		config["model_type"], config["architectures"] = "qwen2", []string{"Qwen2ForCausalLM"}
	}
	kv := s.width / s.heads * s.kvHeads
	shapes := map[string][]int{"model.embed_tokens.weight": {s.vocabulary, s.width}, "model.norm.weight": {s.width}}
	for i := range s.layers {
		at := fmt.Sprintf("model.layers.%d.", i)
		for name, shape := range map[string][]int{
			"input_layernorm": {s.width}, "post_attention_layernorm": {s.width},
			"self_attn.q_proj": {s.width, s.width}, "self_attn.k_proj": {kv, s.width}, "self_attn.v_proj": {kv, s.width},
			"self_attn.o_proj": {s.width, s.width},
			"mlp.gate_proj":    {s.hidden, s.width}, "mlp.up_proj": {s.hidden, s.width}, "mlp.down_proj": {s.width, s.hidden},
		} {
			shapes[at+name+".weight"] = shape
		}
		if s.bias {
			shapes[at+"self_attn.q_proj.bias"], shapes[at+"self_attn.k_proj.bias"], shapes[at+"self_attn.v_proj.bias"] = []int{s.width}, []int{kv}, []int{kv}
		}
	}
	return config, tensorsOf(shapes)
}
