package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

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

// read is the number of tokens that a decoder has processed before the measured step.
const read = 128

// inGo is the task of encode beside other libraries in Go, which read the model's directory.
func (s shape) inGo(threads, batch, length int) task {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("attn-compare-%d-go", os.Getpid()))
	t := s.encode(threads, batch, length, tensor.Float32)
	t.table, t.name = "Encoding in Go", strings.Replace(t.name, "encode", "encode in Go", 1)
	t.libraries, t.request.File = []string{"hugot", "cybertron"}, dir
	return s.kept(t, dir, safetensors.F32)
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
				return nil, err
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
			return nil, err
		}
		cache, err := models.NewCache(m, 1, attn.CacheConfig{})
		if err != nil {
			return nil, err
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

// kept adds to the start of a task that the model is written to a directory, which is removed at the end.
func (s shape) kept(t task, dir string, file safetensors.DType) task {
	start := t.start
	t.start = func() (bench.Measurer, error) {
		if err := os.Mkdir(dir, 0o777); err != nil {
			return nil, err
		}
		if err := s.write(dir, file, randomWeights); err != nil {
			return nil, err
		}
		return start()
	}
	t.end = func() error { return os.RemoveAll(dir) }
	return t
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
	width := info.DType.Bits() / 8
	if strings.Contains(strings.ToLower(info.Name), "norm.weight") {
		_, err := w.Write(bytes.Repeat([]byte{0, 0, 0x80, 0x3f}[4-width:], info.Len()))
		return err
	}
	random, b := rand.NewChaCha8([32]byte{}), make([]byte, 1<<20)
	for left := info.Len() * width; left > 0; left -= len(b) {
		b = b[:min(left, len(b))]
		random.Read(b) // never fails
		for i := width - 1; i < len(b); i += width {
			b[i] = 0x3c | b[i]&0x80 // sign and exponent
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// tensors collects the tensors of a model. The caller must set their type.
type tensors []safetensors.Info

func (t *tensors) add(name string, shape ...int) {
	*t = append(*t, safetensors.Info{Name: name, Shape: shape})
}

func (t *tensors) linear(name string, in, out int, bias bool) {
	t.add(name+".weight", out, in)
	if bias {
		t.add(name+".bias", out)
	}
}

func (t *tensors) norm(name string, width int) {
	t.add(name+".weight", width)
	t.add(name+".bias", width)
}

func (s shape) encoder() (config map[string]any, t tensors) {
	config = map[string]any{
		"model_type": "bert", "architectures": []string{"BertModel"}, "hidden_size": s.width, "intermediate_size": s.hidden, "hidden_act": "gelu",
		"num_hidden_layers": s.layers, "num_attention_heads": s.heads, "vocab_size": s.vocabulary, "max_position_embeddings": s.positions,
		"type_vocab_size": 2, "layer_norm_eps": 1e-12,
	}
	t.add("embeddings.word_embeddings.weight", s.vocabulary, s.width)
	t.add("embeddings.position_embeddings.weight", s.positions, s.width)
	t.add("embeddings.token_type_embeddings.weight", 2, s.width)
	t.norm("embeddings.LayerNorm", s.width)
	for i := range s.layers {
		at := fmt.Sprintf("encoder.layer.%d.", i)
		for _, name := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"} {
			t.linear(at+name, s.width, s.width, true)
		}
		t.linear(at+"intermediate.dense", s.width, s.hidden, true)
		t.linear(at+"output.dense", s.hidden, s.width, true)
		t.norm(at+"attention.output.LayerNorm", s.width)
		t.norm(at+"output.LayerNorm", s.width)
	}
	return config, t
}

func (s shape) decoder() (config map[string]any, t tensors) {
	config = map[string]any{
		"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}, "hidden_size": s.width, "intermediate_size": s.hidden, "hidden_act": "silu",
		"num_hidden_layers": s.layers, "num_attention_heads": s.heads, "num_key_value_heads": s.kvHeads, "vocab_size": s.vocabulary,
		"max_position_embeddings": 8192, "rope_theta": 1e5, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
	}
	if s.bias {
		config["model_type"], config["architectures"] = "qwen2", []string{"Qwen2ForCausalLM"}
	}
	kv := s.width / s.heads * s.kvHeads
	t.add("model.embed_tokens.weight", s.vocabulary, s.width)
	t.add("model.norm.weight", s.width)
	for i := range s.layers {
		at := fmt.Sprintf("model.layers.%d.", i)
		t.add(at+"input_layernorm.weight", s.width)
		t.add(at+"post_attention_layernorm.weight", s.width)
		t.linear(at+"self_attn.q_proj", s.width, s.width, s.bias)
		t.linear(at+"self_attn.k_proj", s.width, kv, s.bias)
		t.linear(at+"self_attn.v_proj", s.width, kv, s.bias)
		t.linear(at+"self_attn.o_proj", s.width, s.width, false)
		t.linear(at+"mlp.gate_proj", s.width, s.hidden, false)
		t.linear(at+"mlp.up_proj", s.width, s.hidden, false)
		t.linear(at+"mlp.down_proj", s.hidden, s.width, false)
	}
	return config, t
}
