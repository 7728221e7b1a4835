// Command decoder trains a small Llama on lines of text, to predict each token from those before it, and writes it as a
// directory in the format of Hugging Face. All commands of attn read it:
//
//	go run ./examples/decoder -train train.txt -test test.txt -out small-llama
//	attn generate --model small-llama "I think that"
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/train"
)

// The sizes of the model.
const layers, heads, width, hidden = 4, 8, 256, 512

func main() {
	log.SetFlags(0)
	training := flag.String("train", "", "file of lines to learn from")
	test := flag.String("test", "", "file of lines to measure the loss on, which are not learnt from")
	out := flag.String("out", "", "new directory for the model")
	vocabulary := flag.Int("vocabulary", 4000, "largest number of tokens")
	steps := flag.Int("steps", 6000, "training steps, each on up to 64 lines")
	rate := flag.Float64("rate", 0.002, "largest learning rate")
	seed := flag.Uint64("seed", 1, "of the first parameters and of the order of batches")
	flag.Parse()
	run(*training, *test, *out, *vocabulary, train.Tuning{Steps: *steps, Rate: *rate, Seed: *seed})
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func run(trainFile, testFile, dir string, vocabulary int, o train.Tuning) {
	test := read(testFile, nil)
	training := read(trainFile, test)
	draw(dir, seq2seq.BuildVocabulary(training, seq2seq.BPE, vocabulary), rand.New(rand.NewPCG(o.Seed, 2)))
	m, err := models.Load(dir, models.Options{Trainable: true})
	check(err)
	learner, examiner := probeOf(m, training), probeOf(m, test)
	ctx := context.Background()
	report := func(step int) {
		loss, err := learner.On(examiner).Loss(ctx) // of the model as trained so far
		check(err)
		fmt.Printf("step %5d: test loss %.3f nats per token, perplexity %.1f\n", step, loss, math.Exp(loss))
	}
	report(0)
	o.Progress = func(step int) {
		if step%500 == 0 || step == o.Steps {
			report(step)
		}
	}
	check(train.FineTune(ctx, learner, learner, o))
	check(learner.Model().Save(dir))
}

// read returns the distinct lines of a file, without some.
func read(file string, without []string) (lines []string) {
	data, err := os.ReadFile(file)
	check(err)
	seen := map[string]bool{"": true}
	for _, line := range without {
		seen[line] = true
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); !seen[line] {
			seen[line], lines = true, append(lines, line)
		}
	}
	return lines
}

// probeOf returns lines as examples for a model, with the loss of its predictions.
func probeOf(m *models.Model, lines []string) *probe.Probe {
	examples := make([]probe.Example, len(lines))
	var err error
	for i, line := range lines {
		examples[i], err = probe.TextExample(m, line, nil)
		check(err)
	}
	p, err := probe.New(m, examples)
	check(err)
	return p
}

// draw writes a directory with the settings, the vocabulary and random parameters of a Llama.
func draw(dir string, v *seq2seq.Vocabulary, rng *rand.Rand) {
	check(os.Mkdir(dir, 0o755)) // fails if the directory exists: nothing is overwritten
	for name, content := range map[string]any{"tokenizer.json": v, "config.json": map[string]any{
		"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}, "vocab_size": v.Len(),
		"num_hidden_layers": layers, "num_attention_heads": heads, "hidden_size": width, "intermediate_size": hidden,
		"max_position_embeddings": 512, "tie_word_embeddings": true, // the map to logits is the embedding matrix
		"bos_token_id": nil, "eos_token_id": seq2seq.EOS, "pad_token_id": seq2seq.Pad,
	}} {
		text, err := json.MarshalIndent(content, "", "  ")
		check(err)
		check(os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	var weights safetensors.File
	add := func(name string, x *tensor.Tensor) {
		weights.Tensors = append(weights.Tensors, safetensors.FromFloat32s(name+".weight", x.Shape(), x.Data()))
	}
	matrix := func(name string, out, in int) { add(name, tensor.Scale(nil, tensor.Randn(rng, out, in), 0.02)) }
	norm := func(name string) { add(name, tensor.Full(1, width)) }
	matrix("model.embed_tokens", v.Len(), width)
	for i := range layers {
		at := fmt.Sprintf("model.layers.%d.", i)
		for _, name := range []string{"q_proj", "k_proj", "v_proj", "o_proj"} {
			matrix(at+"self_attn."+name, width, width)
		}
		matrix(at+"mlp.gate_proj", hidden, width)
		matrix(at+"mlp.up_proj", hidden, width)
		matrix(at+"mlp.down_proj", width, hidden)
		norm(at + "input_layernorm")
		norm(at + "post_attention_layernorm")
	}
	norm("model.norm")
	check(weights.WriteFile(filepath.Join(dir, models.WeightsFile)))
}
