package lens_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
)

// model returns a model of the tests of package models, with a tokenizer.
func model(t *testing.T, name, tokenizer string) *models.Model {
	t.Helper()
	dir := t.TempDir()
	for _, from := range []string{"../models/testdata/" + name, tokenizer} {
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParseMetric(t *testing.T) {
	dir := t.TempDir()
	// Spaces are part of tokens, as in SentencePiece; the numbers are those of the file.
	const tokens = `{"version": "1.0", "model": {"type": "WordLevel", "unk_token": "?",
		"vocab": {"?": 0, "▁Paris": 1, "Paris": 2, ")": 3, "\"": 4, "#7": 5, "-": 6, "▁a": 7, "b": 8}}, "pre_tokenizer": {"type": "WhitespaceSplit"}}`
	if err := os.WriteFile(dir+"/tokenizer.json", []byte(tokens), 0o644); err != nil {
		t.Fatal(err)
	}
	m := model(t, "decoders/llama3", dir)
	one := func(token int) lens.Metric {
		return lens.Logits{Terms: []lens.Logit{{Token: token, Factor: 1}}, At: lens.All}
	}
	for text, want := range map[string]lens.Metric{
		"loss":          lens.Loss{},
		" probability ": lens.Probability{},
		"logit(Paris)":  one(2),
		"logit( Paris)": one(1),
		"logit(#7)":     one(7),
		`logit("#7")`:   one(7), // quotes are for parentheses only
		`logit(")")`:    one(3),
		"logit(-)":      one(6),
		`logit(")`:      one(4),
		"-logit( a)+ 2.5*logit(b) − 2 logit(#3)": lens.Logits{At: lens.All, Terms: []lens.Logit{
			{Token: 7, Factor: -1}, {Token: 8, Factor: 2.5}, {Token: 3, Factor: -2},
		}},
	} {
		if got, err := lens.ParseMetric(m, text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v (%v), want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                      `lens: unknown metric "", want logit(TOKEN) - logit(TOKEN), class(NAME), loss, probability or similarity("a sentence")`,
		"logit(Rome)":           "lens: logit(Rome): the vocabulary has no such token",
		"logit(b Paris)":        `lens: logit(b Paris): the text is 2 tokens, "b", "Paris", want one`,
		"logit(#31)":            "lens: logit 31, want one of 0 to 30",
		"logit(#-1)":            "lens: logit -1, want one of 0 to 30",
		"logit(b":               `lens: metric: "logit(b", want a ) at its end`,
		"logit(b) logit(b)":     `lens: metric: "logit(b)", want + or - before a term`,
		"logit(b) + 1.2.3 loss": `lens: metric: factor "1.2.3", want a number`,
		"logit(b) + loss":       `lens: unknown metric "loss", want logit(TOKEN) - logit(TOKEN), class(NAME), loss, probability or similarity("a sentence")`,
		"similarity(b)":         "lens: similarity is a metric of a pipeline of sentence-transformers, and no part of a sum",
	} {
		if got, err := lens.ParseMetric(m, text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, error %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{`similarity("a) b")`: "a) b", "similarity(a b)": "a b"} {
		if got, ok := lens.ParseSimilarity(text); !ok || got != want {
			t.Errorf("%s: %q, %v", text, got, ok)
		}
	}
	if _, ok := lens.ParseSimilarity("loss"); ok {
		t.Error("loss is a similarity")
	}
}

// In a vocabulary of bytes, letters are bytes: é is the byte 0xe9 there, and the two bytes of the letter é are tokens.
func TestParseMetricOfBytes(t *testing.T) {
	dir := t.TempDir()
	const tokens = `{"version": "1.0", "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true, "trim_offsets": false},
		"decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true}, "model": {"type": "BPE", "merges": [["Ġ", "a"]],
		"vocab": {"Ġ": 0, "Ċ": 1, "a": 2, "Ġa": 3, "Ã": 4, "©": 5, "é": 6}}}`
	if err := os.WriteFile(dir+"/tokenizer.json", []byte(tokens), 0o644); err != nil {
		t.Fatal(err)
	}
	m := model(t, "decoders/llama3", dir)
	for text, want := range map[string]int{"logit( a)": 3, "logit(Ġa)": 3, "logit(a)": 2, "logit( )": 0} {
		got, err := lens.ParseMetric(m, text)
		if want := (lens.Logits{Terms: []lens.Logit{{Token: want, Factor: 1}}, At: lens.All}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v (%v), want %v", text, got, err, want)
		}
	}
	if _, err := lens.ParseMetric(m, "logit(é)"); err == nil || err.Error() != `lens: logit(é): the text is 2 tokens, "Ã", "©", want one` {
		t.Errorf("error %v", err)
	}
	tok, err := m.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range []string{" ", "\n", "a", " a", "Ã"} {
		if got := lens.TokenText(tok, id); got != want {
			t.Errorf("token %d is %q, want %q", id, got, want)
		}
	}
}
