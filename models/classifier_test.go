package models_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// classifier loads a model of testdata with a tokenizer, and settings changed.
func classifier(t *testing.T, dir string, change map[string]any) (*models.Classifier, error) {
	t.Helper()
	to := edit(t, dir, change)
	data, err := os.ReadFile("testdata/sentence_mean/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(to, "tokenizer.json"), string(data))
	m, err := models.Load(to, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return models.NewClassifier(m)
}

// Logits are those of the model for the tokens of a text or a pair, in any company.
func TestClassifier(t *testing.T) {
	c, err := classifier(t, "bert_text", nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"calm", "glad", "sad"}; !slices.Equal(c.Labels(), want) {
		t.Errorf("labels %q, want %q", c.Labels(), want)
	}
	var all []models.Batch
	var together models.Batch
	for _, texts := range [][]string{{"the cat sat"}, {"who?", "the dog sleeps"}, {"a cat"}, {strings.Repeat("the cat sat ", 9)}} {
		x, cut, err := c.Encode(t.Context(), texts...)
		if err != nil || cut != (len(texts[0]) > 100) {
			t.Fatalf("%q: cut %v, error %v", texts, cut, err)
		}
		one := models.BatchOf(x)
		all = append(all, one)
		together.IDs, together.Types = append(together.IDs, one.IDs...), append(together.Types, one.Types...)
	}
	if types := together.Types[1]; types[0] != 0 || types[len(types)-1] != 1 {
		t.Errorf("token types of a pair are %v", types)
	}
	got := c.Logits(tensor.NewTape(tensor.Infer), together)
	for i, one := range all {
		want := c.Model.Head().Of(nil, c.Model.Hidden(nil, one, models.Run{}), one).Data()
		if row := got.Data()[i*3:][:3]; !slices.Equal(row, want) {
			t.Errorf("logits %d are %v, alone %v", i, row, want)
		}
	}
	if _, _, err := c.Encode(t.Context()); err == nil || err.Error() != "0 texts, want one or two" {
		t.Errorf("error %v", err)
	}
}

func TestClassifierProbabilities(t *testing.T) {
	logits := []float32{1, -2, 3}
	for _, x := range []struct {
		dir    string
		change map[string]any
		of     func(i int) float64
	}{
		{"bert_text", nil, func(i int) float64 {
			sum := 0.
			for _, x := range logits {
				sum += math.Exp(float64(x))
			}
			return math.Exp(float64(logits[i])) / sum
		}},
		{"bert_text", map[string]any{"problem_type": "multi_label_classification"}, func(i int) float64 { return 1 / (1 + math.Exp(-float64(logits[i]))) }},
		{"bert_rank", nil, func(i int) float64 { return 1 / (1 + math.Exp(-float64(logits[i]))) }},
	} {
		c, err := classifier(t, x.dir, x.change)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range c.Probabilities(logits[:len(c.Labels())]) {
			if want := x.of(i); math.Abs(p-want) > 1e-12 {
				t.Errorf("%s with %v: probability %d is %v, want %v", x.dir, x.change, i, p, want)
			}
		}
	}
	for dir, want := range map[string]string{
		"bert":       "has no head, want a head for the classes of a text",
		"bert_words": "has a head for the masked words, want one for the classes of a text",
	} {
		if _, err := classifier(t, dir, nil); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", dir, err, want)
		}
	}
}

// The answers of a decoder are the tokens of the LogitScore in modules.json, or those that the caller names. Without
// either, a model that answers with other tokens than yes and no would get wrong scores.
func TestAnswerTokens(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"1_LogitScore/config.json", `{"true_token_id": 99}`, "config.json: true_token_id is 99, want 0 to 18"},
		{"1_LogitScore/config.json", `{}`, "config.json: true_token_id is -1, want 0 to 18"},
		{"1_LogitScore/config.json", `{"true_token_id": 1, "module_input_name": "logits"}`, `module_input_name is "logits"`},
		{"1_LogitScore/config.json", `{"true_token_id": 1, "scale": 2}`, "scale = 2 is not known"},
		{"modules.json", `[{"path": "", "type": "sentence_transformers.models.Transformer"}]`, "modules.json: has other modules, want a Transformer and, for a decoder, a LogitScore"},
		{"modules.json", `[`, "modules.json: "},
	} {
		dir := edit(t, "reranker_score", nil)
		write(t, filepath.Join(dir, c.file), c.text)
		m, err := models.Load(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := models.NewClassifier(m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v, want %s", c.file, c.text, err, c.want)
		}
	}
	for dir, want := range map[string]string{
		"decoders/llama3": "is a decoder, and no modules.json with a LogitScore names the tokens of its answers, want it, or the tokens, such as --answers yes,no",
		"reranker_words":  "is a decoder, and no modules.json with a LogitScore names the tokens of its answers", "seq2seq/marian": "is an encoder-decoder, want a decoder, or a head for the classes of a text",
	} {
		m, err := models.Load("testdata/"+dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := models.NewClassifier(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", dir, err, want)
		}
	}
}

// Named answers win over those in the files, and must be tokens.
func TestNamedAnswers(t *testing.T) {
	for _, c := range []struct {
		dir     string
		answers []string
		want    string
	}{
		{"reranker_words", []string{"yes", "no"}, ""},
		{"reranker_words", []string{"answer"}, ""},
		{"reranker_score", []string{"no", "yes"}, ""},
		{"reranker_words", []string{"1", "0"}, `has no answers "1,0", want one or two tokens of its vocabulary`},
		{"reranker_words", []string{"yes", "no", "who"}, `has no answers "yes,no,who", want one or two tokens of its vocabulary`},
		{"decoders/llama3", []string{"yes", "no"}, "no tokenizer"},
		{"bert_rank", []string{"yes", "no"}, "has a head for the classes of a text, want no answers"},
	} {
		m, err := models.Load("testdata/"+c.dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := models.NewClassifier(m, c.answers...); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %q: error %v, want %s", c.dir, c.answers, err, c.want)
		}
	}
}
