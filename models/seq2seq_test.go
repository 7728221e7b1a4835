package models_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// noToken is a target that the loss ignores.
const noToken = -1

// seq2seqCases returns the directories of encoder–decoders.
func seq2seqCases(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/seq2seq/*")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no encoder-decoders: %v", err)
	}
	return paths
}

// openSeq2seq loads an encoder–decoder with its golden file and its input.
func openSeq2seq(t *testing.T, dir string) (*models.Model, *tensortest.Golden, models.Batch) {
	t.Helper()
	m, err := models.Load(dir, models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	g := tensortest.Open(t, filepath.Join(dir, "golden.safetensors"))
	rows := func(name, lens string) (rows [][]int) {
		all, l := g.Ints(name), g.Shape(name)[1]
		for i, n := range g.Ints(lens) {
			rows = append(rows, all[i*l:][:n])
		}
		return rows
	}
	return m, g, models.Batch{IDs: rows("in.ids", "in.lens"), Targets: rows("in.targets", "in.target_lens")}
}

// TestSeq2seqGolden compares every encoder–decoder with transformers: states, weights, logits, gradients and
// generated tokens. It is exact enough to detect an eps of 5e-6 in norms instead of Marian's 1e-5.
func TestSeq2seqGolden(t *testing.T) {
	for _, dir := range seq2seqCases(t) {
		simd.Each(func(kernels string) {
			t.Run(filepath.Base(dir)+"/"+kernels, func(t *testing.T) { goldenSeq2seq(t, dir) })
		})
	}
}

func goldenSeq2seq(t *testing.T, dir string) {
	m, g, x := openSeq2seq(t, dir)
	seen := map[string]int{}
	check := func(kind string, y *tensor.Tensor) {
		g.Check(fmt.Sprintf("want.%s.%d", kind, seen[kind]), y)
		seen[kind]++
	}
	states := func(kind string, tokens [][]int) func(int, *tensor.Tensor) {
		return func(n int, y *tensor.Tensor) {
			if n != seen[kind] {
				t.Errorf("%s %d, want %d", kind, n, seen[kind])
			}
			check(kind, cleared(y, tokens))
		}
	}
	tape := tensor.NewTape(tensor.Eval)
	hidden := m.Hidden(tape, x, models.Run{
		Observers: []attn.Observer{observe.Weights(func(layer string, w *tensor.Tensor) {
			kind := map[string]string{"encoder": "encoder", "decoder": "decoder"}[strings.Split(layer, ".")[0]]
			if strings.HasSuffix(layer, ".cross") {
				kind = "cross"
			}
			if want := map[string]string{"encoder": "encoder.%d.self", "decoder": "decoder.%d.self", "cross": "decoder.%d.cross"}[kind]; layer != fmt.Sprintf(want, seen[kind]) {
				t.Errorf("layer %q is number %d of kind %s", layer, seen[kind], kind)
			}
			check(kind, w)
		})},
		States:       states("hidden", x.Targets),
		SourceStates: states("source", x.IDs),
	})
	z := m.Sizes()
	if want := map[string]int{
		"encoder": z.Layers, "source": z.Layers + 1, "decoder": z.Decoder.Layers, "cross": z.Decoder.Layers, "hidden": z.Decoder.Layers + 1,
	}; !maps.Equal(seen, want) {
		t.Errorf("seen %v, want %v", seen, want)
	}
	logits := m.Head().Logits(tape, hidden)
	g.Check("want.logits", cleared(logits.Clone(), x.Targets))

	var next []int
	for _, ids := range x.Targets {
		row := slices.Repeat([]int{noToken}, logits.Dim(1))
		copy(row, ids[1:])
		next = append(next, row...)
	}
	tape.Backward(nn.CrossEntropy(tape, logits, next, noToken, 0), nil)
	for name, p := range m.Params() {
		if p.Grad() == nil {
			t.Errorf("%s has no gradient", name)
			return
		}
	}
	checkGradients(t, m, g, 2e-6)

	want := g.Ints("want.tokens")
	if got := generate(t, m, x.IDs[0], models.Generation{Tokens: len(want), Ends: []int{}}); !slices.Equal(got, want) {
		t.Errorf("tokens\n%v, want\n%v", got, want)
	}
	got, err := m.Beam(context.Background(), x.IDs[0], 4, models.Generation{Tokens: 12})
	if want := g.Ints("want.beam"); err != nil || !slices.Equal(got, want) {
		t.Errorf("beam\n%v, want\n%v (error %v)", got, want, err)
	}
}

// cleared sets the values after the end of each sequence to 0.
func cleared(y *tensor.Tensor, tokens [][]int) *tensor.Tensor {
	y = y.Clone()
	l, d := y.Dim(1), y.Len()/y.Dim(0)/y.Dim(1)
	for i, ids := range tokens {
		clear(y.Data()[(i*l+len(ids))*d : (i+1)*l*d])
	}
	return y
}

// TestSeq2seqSteps reads sources and targets of different lengths at once, alone, and in parts with a cache
// whose sequences are reordered. The logits are the same, bit for bit.
func TestSeq2seqSteps(t *testing.T) {
	for _, dir := range seq2seqCases(t) {
		m, _, x := openSeq2seq(t, dir)
		whole := logitsOf(m, x, models.Run{})
		v, l := whole.Dim(2), whole.Dim(1)
		row := func(y *tensor.Tensor, b, i int) []float32 { return y.Data()[(b*y.Dim(1)+i)*v:][:v] }
		for b := range x.IDs {
			alone := logitsOf(m, models.Batch{IDs: x.IDs[b : b+1], Targets: x.Targets[b : b+1]}, models.Run{})
			for i := range x.Targets[b] {
				if !slices.Equal(row(alone, 0, i), row(whole, b, i)) {
					t.Fatalf("%s: sequence %d alone differs from in a batch at token %d", dir, b, i)
				}
			}
		}
		for _, step := range []int{1, 3, l} {
			cache, err := models.NewCache(m, len(x.IDs), attn.CacheConfig{})
			if err != nil {
				t.Fatal(err)
			}
			order := []int{0, 1}
			for at := 0; at < l; at += step {
				var part models.Batch
				if at == 0 {
					part.IDs = x.IDs
				} else {
					cache = cache.Select([]int{1, 0}).(*models.Cache)
					slices.Reverse(order)
				}
				for _, b := range order {
					one := x.Targets[b]
					part.Targets = append(part.Targets, one[min(at, len(one)):min(at+step, len(one))])
				}
				y := logitsOf(m, part, models.Run{State: cache})
				for n, b := range order {
					for i := range part.Targets[n] {
						if !slices.Equal(row(y, n, i), row(whole, b, at+i)) {
							t.Fatalf("%s: in steps of %d: sequence %d differs at token %d", dir, step, b, at+i)
						}
					}
				}
			}
		}
		// Without targets, the decoder reads the token with which each of them begins.
		first := logitsOf(m, models.Batch{IDs: x.IDs}, models.Run{})
		if first.Dim(1) != 1 || !slices.Equal(row(first, 0, 0), row(whole, 0, 0)) {
			t.Errorf("%s: logits without targets %v", dir, first.Shape())
		}
	}
}

// seq2seqTypes returns the families of the encoder–decoders in testdata.
func seq2seqTypes(t *testing.T) []string {
	var all []string
	for _, dir := range seq2seqCases(t) {
		m, _, _ := openSeq2seq(t, dir)
		all = append(all, m.Family.Type)
	}
	return all
}

// TestSeq2seqSaves saves a model and loads it again.
func TestSeq2seqSaves(t *testing.T) {
	for _, dir := range seq2seqCases(t) {
		m, _, x := openSeq2seq(t, dir)
		to := t.TempDir()
		config, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err = errors.Join(err, os.WriteFile(filepath.Join(to, "config.json"), config, 0o600),
			statedict.Save(filepath.Join(to, "model.safetensors"), m, statedict.SaveOptions{Names: models.StateDict})); err != nil {
			t.Fatal(err)
		}
		again, err := models.Load(to, models.Options{Trainable: true})
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		if want, got := logitsOf(m, x, models.Run{}), logitsOf(again, x, models.Run{}); !slices.Equal(got.Data(), want.Data()) {
			t.Errorf("%s: other logits after saving", dir)
		}
	}
}

// TestSeq2seqInBFloat16 loads weights as bfloat16. The logits have the bits of a model whose matrices were
// rounded in the file.
func TestSeq2seqInBFloat16(t *testing.T) {
	for _, dir := range seq2seqCases(t) {
		m, _, x := openSeq2seq(t, dir)
		for name, p := range m.Params() {
			if len(p.Shape()) == 2 && !strings.Contains(name, "relative_attention_bias") && !strings.Contains(name, "embed_positions") {
				for i, v := range p.Data() {
					bits := math.Float32bits(v)
					p.Data()[i] = math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff) // to nearest, ties to even
				}
			}
		}
		to := t.TempDir()
		config, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err = errors.Join(err, os.WriteFile(filepath.Join(to, "config.json"), config, 0o600),
			statedict.Save(filepath.Join(to, "model.safetensors"), m, statedict.SaveOptions{Names: models.StateDict})); err != nil {
			t.Fatal(err)
		}
		simd.Each(func(kernels string) { // for which weights are packed at loading
			rounded, err := models.Load(to, models.Options{Trainable: true})
			if err != nil {
				t.Fatal(err)
			}
			half, err := models.Load(dir, models.Options{Format: tensor.BFloat16Weights})
			if err != nil {
				t.Fatal(err)
			}
			got, want := logitsOf(half, x, models.Run{}).Data(), logitsOf(rounded, x, models.Run{}).Data()
			if !slices.Equal(got, want) {
				t.Errorf("%s/%s: logits in bfloat16 are not those of rounded weights", dir, kernels)
			}
		})
	}
}

// TestSeq2seqRefuses checks the errors for invalid directories and settings of encoder–decoders.
func TestSeq2seqRefuses(t *testing.T) {
	for _, c := range []struct {
		dir    string
		change map[string]any
		want   string
	}{
		{"marian", map[string]any{"normalize_before": true}, "normalize_before is true, want false or none"},
		{"marian", map[string]any{"static_position_embeddings": false}, "static_position_embeddings is false, want true or none"},
		{"marian", map[string]any{"decoder_vocab_size": 32}, "decoder_vocab_size is 32, want vocab_size, 31, as share_encoder_decoder_embeddings is true"},
		{"marian", map[string]any{"decoder_start_token_id": 31}, "decoder_start_token_id is 31, want 0 to 30"},
		{"marian", map[string]any{"is_encoder_decoder": false}, "is_encoder_decoder is false, want true or none"},
		{"marian", map[string]any{"is_decoder": true}, "is_decoder is true, want false or none"},
		{"marian", map[string]any{"tie_word_embeddings": false}, "tie_word_embeddings is false, want true or none"},
		{"marian", map[string]any{"encoder_attention_heads": 5}, "encoder_attention_heads is 5, want a divisor of d_model, which is 12"},
		{"marian", map[string]any{"activation_function": "mish"}, `activation_function is "mish", want one of`},
		{"marian", map[string]any{"decoder_layers": 3}, "decoder.layers.2"},
		{"marian", map[string]any{"num_hidden_layers": 0}, "num_hidden_layers is 0, want 2 or none"},
		{"m2m100", map[string]any{"pad_token_id": 31}, "pad_token_id is 31, want 0 to 30"},
		{"m2m100", map[string]any{"decoder_vocab_size": 31}, "decoder_vocab_size is 31, want none"},
		{"m2m100", map[string]any{"share_encoder_decoder_embeddings": false}, "share_encoder_decoder_embeddings is false, want true or none"},
		{"m2m100", map[string]any{"tie_word_embeddings": false}, "lm_head.weight"},
		{"m2m100", map[string]any{"normalize_before": true}, "setting normalize_before = true is not known for model_type m2m_100"},
		{"marian", map[string]any{"model_type": "m2m_100", "decoder_vocab_size": nil}, "the file has final_logits_bias, which is not a tensor of M2M100"},
		{"t5", map[string]any{"scale_decoder_outputs": json.RawMessage("null")}, "scale_decoder_outputs is null, want true or false"},
		{"t5_1.1", map[string]any{"is_gated_act": json.RawMessage("null")}, "is_gated_act is null, want true or false"},
		{"marian", map[string]any{"quantum": 1}, "setting quantum = 1 is not known for model_type marian"},
		{"t5", map[string]any{"feed_forward_proj": "gated"}, `feed_forward_proj is "gated", want the name of an activation`},
		{"t5_saved_by_5", map[string]any{"dense_act_fn": "relu"}, `dense_act_fn is "relu", want "silu" or none`},
		{"t5", map[string]any{"relative_attention_num_buckets": 32}, "relative_attention_bias.weight"},
		{"t5", map[string]any{"tie_word_embeddings": false}, "lm_head.weight"},
	} {
		if got := refused(t, edit(t, "seq2seq/"+c.dir, c.change)); !strings.Contains(got, c.want) {
			t.Errorf("%s %v: %s, want %s", c.dir, c.change, got, c.want)
		}
	}
}

// TestSeq2seqMisuse checks what Hidden, Generate and Beam reject.
func TestSeq2seqMisuse(t *testing.T) {
	m, _, x := openSeq2seq(t, "testdata/seq2seq/marian")
	cache, err := models.NewCache(m, 2, attn.CacheConfig{})
	if err != nil {
		t.Fatal(err)
	}
	m.Hidden(nil, x, models.Run{State: cache})
	for want, f := range map[string]func(){
		"models: Hidden: source is given, want nil: the cache stores the source": func() { m.Hidden(nil, x, models.Run{State: cache}) },
		"models: Hidden: targets is 0 sequences, want 2, one for each sequence of the cache": func() {
			m.Hidden(nil, models.Batch{}, models.Run{State: cache})
		},
		"models: Hidden: targets is 1 sequences, want 2, one for each source": func() {
			m.Hidden(nil, models.Batch{IDs: x.IDs, Targets: x.Targets[:1]}, models.Run{})
		},
		"models: Hidden: sequence 0 has 62 tokens, want at most 61": func() {
			m.Hidden(nil, models.Batch{IDs: [][]int{make([]int, 62)}}, models.Run{})
		},
	} {
		if err := tensor.Catch(f); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	bert, err := models.Load("testdata/bert_words", models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m    *models.Model
		x    models.Batch
		want string
	}{
		{bert, models.Batch{IDs: [][]int{{1}}, Targets: [][]int{{1}}}, "target tokens for a model that is not an encoder-decoder, want none"},
		{m, models.Batch{IDs: x.IDs, Targets: x.Targets[:1]}, "targets of 1 sequences, want 2"},
		{m, models.Batch{IDs: x.IDs[:1], Targets: [][]int{{31}}}, "targets: token id 31, want 0 to 30"},
		{m, models.Batch{IDs: x.IDs, Targets: x.Targets}, ""},
	} {
		if err := c.m.Sizes().Check(c.x); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	if _, err := m.Beam(context.Background(), x.IDs[0], 0, models.Generation{}); err == nil || err.Error() != "models: Beam: 0 hypotheses, want at least 1" {
		t.Errorf("error %v", err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := m.Beam(ended, x.IDs[0], 2, models.Generation{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if _, _, err := models.NewEmbedder(m, models.Poolings()[:1]).Encode(t.Context(), "text"); err == nil ||
		err.Error() != "Marian is an encoder-decoder, whose states depend on its output, want an encoder or a decoder" {
		t.Errorf("error %v", err)
	}
	// As many tokens as the decoder has positions, and one more; the first is not counted.
	if got := generate(t, m, x.IDs[0], models.Generation{Ends: []int{}}); len(got) != 61 {
		t.Errorf("%d tokens, want 61", len(got))
	}
	for _, c := range []struct{ generation, want string }{
		{`{"bad_words_ids": [[31]]}`, "bad_words_ids has token id 31, want 0 to 30"},
		{`{"bad_words_ids": [[]]}`, "bad_words_ids is [[]], want a list of words, each a list of token ids"},
		{`{"forced_bos_token_id": 31}`, "forced_bos_token_id is 31, want 0 to 30"},
		{`{"decoder_start_token_id": -1}`, "decoder_start_token_id is -1, want 0 to 30"},
	} {
		dir := copyDir(t, "testdata/seq2seq/marian")
		write(t, filepath.Join(dir, "generation_config.json"), c.generation)
		m, err := models.Load(dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Generate(t.Context(), x.IDs[0], models.Generation{}); err == nil || !strings.HasSuffix(err.Error(), "generation_config.json: "+c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// Write returns the same tokens for several sources at once as for each alone.
func TestSeq2seqWrite(t *testing.T) {
	for _, dir := range seq2seqCases(t) {
		m, _, x := openSeq2seq(t, dir)
		sources := append(slices.Clone(x.IDs), x.IDs[0][:2])
		for _, g := range []models.Generation{{Tokens: 9, Ends: []int{}}, {}, {Sampling: models.Sampling{Temperature: 2, Seed: 3}}, {Beam: 3}} {
			together, err := m.Write(t.Context(), sources, g)
			if err != nil {
				t.Fatal(err)
			}
			for i, source := range sources {
				alone := g
				if g.Tokens == 0 {
					alone.Tokens = 2*len(source) + 20
				}
				var want []int
				if g.Beam > 1 {
					want, err = m.Beam(t.Context(), source, g.Beam, alone)
				} else {
					want = generate(t, m, source, alone)
				}
				if err != nil || !slices.Equal(together[i], want) {
					t.Errorf("%s, %+v: source %d becomes %v among others and %v alone (%v)", dir, g, i, together[i], want, err)
				}
			}
		}
	}
}
