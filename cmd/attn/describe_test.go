package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
)

// The text and the JSON object contain the special properties of a model.
func TestDescription(t *testing.T) {
	for dir, want := range map[string][]string{
		"bert_pruned": {
			"family      BERT (bert), encoder", "heads       3 of size 5; left in the layers: 2 1",
			"vocabulary  43 tokens, 2 types of tokens", "head        masked words", "file        7.53 kB, F16", "memory      15.1 kB, as F32",
			`"heads_left":[2,1]`, `"task":"masked words"`, `"tokenizer_error":"tokenizer: ../../models/testdata/bert_pruned: has no tokenizer.json`,
		},
		"bert_text":      {"head        classes of a text: calm, glad, sad", `"labels":["calm","glad","sad"]`},
		"decoders/gemma": {"heads       4 of size 10, 1 of keys and values", `"kv_heads":1`, "text        up to 96 tokens"},
		"seq2seq/t5": {
			"family      T5 (t5), encoder and decoder", "decoder     2 layers of 3 heads of size 5, 31 tokens", "text        of any length",
			`"decoder":{"layers":2,"heads":3,"head_size":5,"hidden":17,"vocabulary":31}`,
		},
		"static_model2vec": {
			"family      StaticEmbedding (StaticEmbedding), table", "width       5", "text        up to 6 tokens", "vocabulary  27 tokens",
			"head        none: a row of the table for each token", "pipeline    StaticEmbedding, Normalize", `"kind":"table"`,
		},
		"sparse_router": {"family      BERT (bert), encoder", "routes      document, query", "pipeline    MLMTransformer, SpladePooling", `"routes":["document","query"]`},
		"sentence_dense": {
			"head        none: hidden states only", "pipeline    Transformer, Pooling, Dense, Dense, Normalize", "tokenizer   27 tokens",
			"parameters  4,396", `"pipeline":["Transformer",`,
		},
	} {
		d, err := models.Describe("../../models/testdata/"+dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		object, err := json.Marshal(newDescription(d))
		if err != nil {
			t.Fatal(err)
		}
		lines := append(strings.Split(newDescription(d).lines(), "\n"), string(object))
		for _, w := range want {
			if !slices.ContainsFunc(lines, func(l string) bool { return l == w || w[0] == '"' && strings.Contains(l, w) }) {
				t.Errorf("%s: %q is not in\n%s", dir, w, strings.Join(lines, "\n"))
			}
		}
	}
}

// Labels and errors from files are one line each, and without HTML escapes in JSON.
func TestDescriptionEscapes(t *testing.T) {
	d, err := models.Describe("../../models/testdata/bert_text", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.Labels = []string{"<a>\x1b[2J", "b\nloads no", "c", "d", "e", "f", "g", "h"}
	d.Pipeline, d.Unpooled = []string{"Dense"}, errors.New("no pooling")
	text := newDescription(d).lines()
	for _, want := range []string{
		"head        classes of a text: <a>\\x1b[2J, b\\nloads no, c, d, e, f and 2 more\n", "\n            which cannot be used: no pooling\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(newDescription(d)); err != nil || !strings.Contains(b.String(), `"<a>`) {
		t.Errorf("%v, %s", err, b.String())
	}
}
