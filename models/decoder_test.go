package models_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// decoderCases returns the names of the decoders in testdata.
func decoderCases(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("testdata/decoders")
	if err != nil || len(entries) == 0 {
		t.Fatalf("no decoders: %v", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// openDecoder loads a decoder of testdata with its golden file.
func openDecoder(t *testing.T, name string) (*models.Model, *tensortest.Golden) {
	t.Helper()
	dir := filepath.Join("testdata/decoders", name)
	g := tensortest.Open(t, filepath.Join(dir, "golden.safetensors"))
	o := models.Options{Trainable: true}
	if length := g.Setting("length"); length != "" {
		n, err := strconv.Atoi(length)
		if err != nil {
			t.Fatal(err)
		}
		o.Tokens = n
	}
	m, err := models.Load(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return m, g
}

// TestDecodersGolden compares every decoder with transformers: states, weights, logits,
// gradients, and the tokens that follow.
func TestDecodersGolden(t *testing.T) {
	for _, name := range decoderCases(t) {
		simd.Each(func(kernels string) {
			t.Run(name+"/"+kernels, func(t *testing.T) { goldenDecoder(t, name) })
		})
	}
}

func goldenDecoder(t *testing.T, name string) {
	m, g := openDecoder(t, name)
	ids := g.Ints("in.ids")
	x := models.Batch{IDs: [][]int{ids}}
	layers := m.Sizes().Layers
	var weights, states int
	for n := range layers {
		if g.Has(fmt.Sprintf("want.weights.%d", n)) {
			weights++
		}
	}
	tape := tensor.NewTape(tensor.Eval)
	hidden := m.Hidden(tape, x, models.Run{
		Observers: []attn.Observer{observe.Weights(func(layer string, w *tensor.Tensor) {
			var n int
			if strings.HasSuffix(layer, ".mamba") { // beside attention
				return
			}
			if _, err := fmt.Sscanf(layer, "decoder.%d.self", &n); err != nil {
				t.Errorf("layer %q: %v", layer, err)
			}
			if name := fmt.Sprintf("want.weights.%d", n); g.Has(name) {
				g.Check(name, w)
				weights--
			}
		})},
		States: func(n int, h *tensor.Tensor) {
			if n != states {
				t.Errorf("state %d, want %d", n, states)
			}
			g.Check(fmt.Sprintf("want.hidden.%d", n), h)
			states++
		},
	})
	if weights != 0 || states != layers+1 {
		t.Errorf("%d weights are missing, and there are %d states of %d layers", weights, states, layers)
	}
	logits := m.Head().Logits(tape, hidden)
	g.Check("want.logits", logits)

	// The token after each one; after the last there is none.
	const none = -1
	loss := nn.CrossEntropy(tape, logits, append(slices.Clone(ids[1:]), none), none, 0)
	tape.Backward(loss, nil)
	checkGradients(t, m, g, 1e-5)

	if g.Has("want.tokens") {
		want := g.Ints("want.tokens")
		if got := generate(t, m, ids, models.Generation{Tokens: len(want), Ends: []int{}}); !slices.Equal(got, want) {
			t.Errorf("tokens\n%v, want\n%v", got, want)
		}
	}
}

// checkGradients compares two numbers of each gradient: a product with a fixed vector, and its length. least
// is the minimum tolerance relative to the length.
func checkGradients(t *testing.T, m *models.Model, g *tensortest.Golden, least float64) {
	t.Helper()
	dict, err := models.StateDict(m)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range dict {
		if !e.Parts[0].NeedsGrad() { // no parameter
			continue
		}
		var all []float32
		for _, p := range e.Parts {
			if p.Grad() == nil && (strings.Contains(e.Name, ".experts.") || e.Blocks > 0) { // no token uses it
				all = append(all, make([]float32, p.Len())...)
				continue
			}
			if p.Grad() == nil {
				t.Errorf("%s has no gradient", e.Name)
				return
			}
			all = append(all, p.Grad().Data()...)
		}
		if n := e.Interleaved; n > 0 {
			var blocks []float32
			for i := range n {
				for _, p := range e.Parts {
					rows := p.Len() / n
					blocks = append(blocks, p.Grad().Data()[i*rows:][:rows]...)
				}
			}
			all = blocks
		}
		columns := e.Parts[0].Dim(e.Parts[0].Rank() - 1)
		if lo, hi := e.Columns[0], e.Columns[1]; hi > 0 {
			var some []float32
			for row := range slices.Chunk(all, columns) {
				some = append(some, row[lo:hi]...)
			}
			if all = some; hi < columns {
				n-- // other tensors have the other columns
			}
			columns = hi - lo
		}
		if e.Transposed {
			rows := len(all) / columns
			turned := make([]float32, len(all))
			for i := range rows {
				for j := range columns {
					turned[j*rows+i] = all[i*columns+j]
				}
			}
			all = turned
		}
		along, squares := 0.0, 0.0
		for i, v := range all {
			along += float64(v) * math.Cos(float64(1+i))
			squares += float64(v) * float64(v)
		}
		name := goldenName(g, e.Name)
		want := g.Float64s("grad." + name)
		// The error of a single number may be small by chance, so the tolerance has a minimum, relative
		// to the length of the gradient.
		tensortest.Close(t, "gradient of "+e.Name, []float32{float32(along), float32(math.Sqrt(squares))}, want,
			max(g.Number("budget.grad."+name), least*want[1]))
		n += len(e.Parts)
	}
	if count := len(slices.Collect(func(yield func(string) bool) {
		for name := range m.Params() {
			yield(name)
		}
	})); n != count {
		t.Errorf("%d parameters in the table of the file, want %d", n, count)
	}
}

// goldenName returns the name in transformers of a tensor of the file.
func goldenName(g *tensortest.Golden, name string) string {
	if name == "encoder.embed_tokens.weight" && !g.Has("grad."+name) { // it represents all tied tensors
		return "shared.weight"
	}
	for _, as := range [][2]string{{"", ""}, {"", "transformer."}, {"language_model.model.", "model."}, {"model.language_model.", "model."}, {"language_model.", ""}, {"embed_out.", "lm_head."}} {
		if len(name) > len(as[0]) && name[:len(as[0])] == as[0] && g.Has("grad."+as[1]+name[len(as[0]):]) {
			return as[1] + name[len(as[0]):]
		}
	}
	return name
}

// generate returns the tokens that follow a prompt.
func generate(t *testing.T, m *models.Model, prompt []int, o models.Generation) []int {
	t.Helper()
	tokens, err := m.Generate(t.Context(), prompt, o)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(tokens)
}

// logitsOf returns the logits of a batch in one pass.
func logitsOf(m *models.Model, x models.Batch, r models.Run) *tensor.Tensor {
	return m.Head().Logits(nil, m.Hidden(nil, x, r))
}

// TestDecoderSteps reads sequences of different lengths at once, in two parts with a cache, and token by
// token. The logits are the same, bit for bit.
func TestDecoderSteps(t *testing.T) {
	for _, name := range fewer(decoderCases(t)) {
		m, g := openDecoder(t, name)
		ids := g.Ints("in.ids")
		testSteps(t, name, m, ids)
		for _, p := range tensor.Formats() {
			m, err := models.Load(m.Dir, models.Options{Tokens: m.Sizes().Positions, Format: p})
			if err != nil {
				t.Fatal(err)
			}
			testSteps(t, fmt.Sprintf("%s in %v", name, p), m, ids)
		}
	}
}

func testSteps(t *testing.T, name string, m *models.Model, ids []int) {
	t.Helper()
	x := models.Batch{IDs: [][]int{ids, ids[3:10], slices.Repeat(ids[1:2], 2)}}
	whole := logitsOf(m, x, models.Run{})
	v, l := m.Sizes().Vocabulary, len(ids)
	row := func(y *tensor.Tensor, b, i int) []float32 {
		return y.Data()[(b*y.Dim(1)+i)*v:][:v]
	}
	for b, one := range x.IDs {
		alone := logitsOf(m, models.Batch{IDs: [][]int{one}}, models.Run{})
		for i := range one {
			if !slices.Equal(row(alone, 0, i), row(whole, b, i)) {
				t.Fatalf("%s: sequence %d alone differs from in a batch at token %d", name, b, i)
			}
		}
	}
	for _, step := range []int{1, 4, l} {
		cache, err := models.NewCache(m, len(x.IDs), attn.CacheConfig{})
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < l; at += step {
			var part models.Batch
			for _, one := range x.IDs {
				part.IDs = append(part.IDs, one[min(at, len(one)):min(at+step, len(one))])
			}
			y := logitsOf(m, part, models.Run{State: cache})
			for b := range x.IDs {
				for i := range part.IDs[b] {
					if !slices.Equal(row(y, b, i), row(whole, b, at+i)) {
						t.Fatalf("%s: in steps of %d: sequence %d differs at token %d", name, step, b, at+i)
					}
				}
			}
		}
	}
}

// decoderTypes returns the families of the decoders in testdata.
func decoderTypes(t *testing.T) map[string]bool {
	seen := map[string]bool{}
	for _, name := range decoderCases(t) {
		m, _ := openDecoder(t, name)
		seen[m.Family.Type] = true
	}
	return seen
}

// TestGenerate checks where generated texts end.
func TestGenerate(t *testing.T) {
	m, g := openDecoder(t, "llama3")
	ids, want := g.Ints("in.ids"), g.Ints("want.tokens")
	first := slices.Index(want, want[9])
	for _, c := range []struct {
		o    models.Generation
		want []int
	}{
		{models.Generation{Tokens: 9, Ends: []int{}}, want[:9]},
		{models.Generation{Tokens: 50, Ends: []int{-1, want[9]}}, want[:first]},
		{models.Generation{Tokens: 50, Ends: []int{}, Sampling: models.Sampling{Temperature: 0.5, TopK: 1, Seed: 3}}, want},
	} {
		if got := generate(t, m, ids, c.o); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.o, got, c.want)
		}
	}
	// Without a limit, as many tokens as the model has positions, and one more.
	if got, most := generate(t, m, ids, models.Generation{Ends: []int{}}), m.Sizes().Positions; len(ids)+len(got) != most+1 {
		t.Errorf("%d tokens after %d, want %d in all", len(got), len(ids), most+1)
	}
	drawn := models.Generation{Tokens: 40, Ends: []int{}, Sampling: models.Sampling{Temperature: 1, TopP: 0.95, Seed: 5}}
	once, again := generate(t, m, ids, drawn), generate(t, m, ids, drawn)
	if !slices.Equal(once, again) {
		t.Errorf("the same seed gives %v and %v", once, again)
	}
	if drawn.Seed = 6; slices.Equal(generate(t, m, ids, drawn), once) {
		t.Error("another seed gives the same tokens")
	}
	drawn.Cache.Format = tensor.BFloat16 // and runs
	if got := generate(t, m, ids, drawn); len(got) != 40 {
		t.Errorf("%d tokens with a cache of bfloat16, want 40", len(got))
	}
}

func TestGenerateErrors(t *testing.T) {
	m, g := openDecoder(t, "gpt2")
	ids := g.Ints("in.ids")
	encoder, err := models.Load("testdata/bert_words", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m      *models.Model
		prompt []int
		o      models.Generation
		want   string
	}{
		{encoder, ids, models.Generation{}, "models: Generate: BERT does not predict the next token, want a model with a head for the next word"},
		{m, nil, models.Generation{}, "no tokens, want one or more"},
		{m, []int{31}, models.Generation{}, "token id 31, want 0 to 30"},
		{m, make([]int, 65), models.Generation{}, "65 tokens, want at most 64"},
		{m, ids, models.Generation{Tokens: -1}, "models: Generate: -1 tokens, want at least 1, or 0 for no limit"},
		{m, ids, models.Generation{Sampling: models.Sampling{TopP: 2}}, "models: top-p 2, want a probability above 0, or 0 for all tokens"},
	} {
		if _, err := c.m.Generate(t.Context(), c.prompt, c.o); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	if err := tensor.Catch(func() {
		cache, err := models.NewCache(m, 1, attn.CacheConfig{})
		if err != nil {
			t.Fatal(err)
		}
		for range 7 {
			m.Hidden(nil, models.Batch{IDs: [][]int{ids}}, models.Run{State: cache})
		}
	}); err == nil || err.Error() != "models: Hidden: sequence 0 has 66 tokens, want at most 64" {
		t.Errorf("error %v of a sequence that is too long", err)
	}
}

// TestDecodersInBFloat16 loads weights as bfloat16. If the file has that type, the logits have the bits of
// float32; otherwise they are close.
func TestDecodersInBFloat16(t *testing.T) {
	simd.Each(func(kernels string) {
		for _, name := range fewer(decoderCases(t)) {
			m, g := openDecoder(t, name)
			dir := filepath.Join("testdata/decoders", name)
			tokens := m.Sizes().Positions
			half, err := models.Load(dir, models.Options{Tokens: tokens, Format: tensor.BFloat16Weights})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			ids := g.Ints("in.ids")
			x := models.Batch{IDs: [][]int{ids, ids[2:9]}}
			want, got := logitsOf(m, x, models.Run{}).Data(), logitsOf(half, x, models.Run{}).Data()
			exact := !slices.Contains([]string{"gpt2", "gpt2_unscaled", "llama2"}, name)
			for i, v := range got {
				if d := math.Abs(float64(v - want[i])); exact && v != want[i] || d > 0.5 || d != d {
					t.Errorf("%s/%s: logit %d is %v, want %v", name, kernels, i, v, want[i])
					break
				}
			}
			if exact && g.Has("want.tokens") {
				want := g.Ints("want.tokens")
				if got := generate(t, half, ids, models.Generation{Tokens: len(want), Ends: []int{}}); !slices.Equal(got, want) {
					t.Errorf("%s/%s: tokens %v, want %v", name, kernels, got, want)
				}
			}
		}
	})
}

// TestDecodersInInt8 loads weights as int8. The logits are near those of a float32 model with the same rounded weights,
// whose inputs are not rounded.
func TestDecodersInInt8(t *testing.T) {
	for _, name := range fewer(decoderCases(t)) {
		m, g := openDecoder(t, name)
		small, err := models.Load(filepath.Join("testdata/decoders", name), models.Options{Tokens: m.Sizes().Positions, Format: tensor.Int8})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		held := 0
		for name, p := range m.Params() {
			if p.Rank() != 2 || strings.HasSuffix(name, "wpe.weight") { // a vector, or positions: in float32
				continue
			}
			held++
			out, in := p.Dim(0), p.Dim(1)
			packed := tensor.NewPacked(out, in, tensor.Int8)
			packed.SetRows(0, p.Data())
			index := make([]int, out)
			for i := range index {
				index[i] = i
			}
			copy(p.Data(), packed.Rows(nil, index).Data())
		}
		if layers := m.Sizes().Layers; held < 3*layers {
			t.Errorf("%s: %d matrices of integers in %d layers", name, held, layers)
		}
		ids := g.Ints("in.ids")
		x := models.Batch{IDs: [][]int{ids, ids[2:9]}}
		want, got := logitsOf(m, x, models.Run{}).Data(), logitsOf(small, x, models.Run{}).Data()
		var difference, size float64
		for i, v := range got {
			difference += math.Pow(float64(v-want[i]), 2)
			size += math.Pow(float64(want[i]), 2)
		}
		if d := math.Sqrt(difference / size); !(d < 0.1) {
			t.Errorf("%s: logits with a relative difference of %v", name, d)
		}
		if n := len(generate(t, small, ids, models.Generation{Tokens: 5, Ends: []int{}})); n == 0 {
			t.Errorf("%s: no tokens", name)
		}
	}
}

// TestSlidingCaches reads more tokens than fit in a page of a cache. Models with a sliding window compute the
// same logits as without a cache, and their memory does not grow if all layers have a window.
func TestSlidingCaches(t *testing.T) {
	for _, name := range []string{"mistral", "gemma3", "gemma4"} {
		m, err := models.Load(filepath.Join("testdata/decoders", name), models.Options{Tokens: 1400})
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]int, 1301)
		for i := range ids {
			ids[i] = (i*i*7 + i/3) % 31
		}
		whole := logitsOf(m, models.Batch{IDs: [][]int{ids}}, models.Run{})
		cache, err := models.NewCache(m, 1, attn.CacheConfig{})
		if err != nil {
			t.Fatal(err)
		}
		v := m.Sizes().Vocabulary
		for at, n := 0, 0; at < len(ids); at += n {
			n = min(1, len(ids)-at)
			if at == 0 {
				n = 900
			}
			y := logitsOf(m, models.Batch{IDs: [][]int{ids[at : at+n]}}, models.Run{State: cache})
			if !slices.Equal(y.Data(), whole.Data()[at*v:(at+n)*v]) {
				t.Fatalf("%s: logits at %d differ with a cache", name, at)
			}
		}
		all := 4 * 2 * 10 * 2 * 1301 // float32 keys and values of two heads of ten elements
		for i, layer := range cache.Layers {
			slides := name == "mistral" || i%2 == 0
			if bytes := layer.Bytes(); name != "gemma4" && slides != (bytes < all) {
				t.Errorf("%s: the cache of layer %d has %d bytes, and %d are all keys and values", name, i, bytes, all)
			}
		}
	}
}

// TestGemmaGELU loads early Gemma files, in which "gelu" means the tanh approximation.
func TestGemmaGELU(t *testing.T) {
	m, g := openDecoder(t, "gemma")
	x := models.Batch{IDs: [][]int{g.Ints("in.ids")}}
	want := logitsOf(m, x, models.Run{})
	for _, name := range []any{"gelu", nil, "relu"} {
		other, err := models.Load(edit(t, "decoders/gemma", map[string]any{"hidden_act": name}), models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if same := slices.Equal(logitsOf(other, x, models.Run{}).Data(), want.Data()); same != (name != "relu") {
			t.Errorf("hidden_act %v gives the same logits: %v", name, same)
		}
	}
}

// If config.json has the original number of positions outside rope_parameters, that number takes precedence,
// as in transformers.
func TestOriginalPositions(t *testing.T) {
	m, g := openDecoder(t, "llama_yarn")
	rope := map[string]any{"rope_type": "yarn", "factor": 2, "rope_theta": 100, "original_max_position_embeddings": 7}
	other, err := models.Load(edit(t, "decoders/llama_yarn", map[string]any{"rope_parameters": rope, "original_max_position_embeddings": 48}), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := models.Batch{IDs: [][]int{g.Ints("in.ids")}}
	if !slices.Equal(logitsOf(other, x, models.Run{}).Data(), logitsOf(m, x, models.Run{}).Data()) {
		t.Error("other logits than with the number in rope_parameters")
	}
}
