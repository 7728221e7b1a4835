package tokenizer

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// chatGolden has harmless texts beside special tokens, as the library encodes them.
type chatGolden struct {
	Model         json.RawMessage            `json:"model"`
	Normalizers   map[string]json.RawMessage `json:"normalizers"`
	PreTokenizers map[string]json.RawMessage `json:"pre_tokenizers"`
	Templates     []string                   `json:"templates"` // T is the token, {} the text
	Texts         []string                   `json:"texts"`
	Cases         []chatCase                 `json:"cases"`
	// With an added token of several spaces, under Prepend.
	SpacedTemplates []string   `json:"spaced_templates"`
	SpacedTexts     []string   `json:"spaced_texts"`
	Spaced          []chatCase `json:"spaced"`
}

type chatCase struct {
	Normalizer   string       `json:"normalizer"`
	PreTokenizer string       `json:"pre_tokenizer"`
	Tokens       []addedToken `json:"tokens"` // the first is T
	IDs          [][]int      `json:"ids"`    // for each template, and each text in it
}

// A user's text that has no special token gives the tokens of the library, although it is marked as the user's: with
// every combination of settings of a special token beside it, under every normalizer.
func TestChats(t *testing.T) {
	f, err := os.Open("../testdata/tokenizer/chats.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var golden chatGolden
	if err := json.NewDecoder(z).Decode(&golden); err != nil {
		t.Fatal(err)
	}
	wrong, count := map[string]int{}, 0
	for i, c := range slices.Concat(golden.Cases, golden.Spaced) {
		templates, texts := golden.Templates, golden.Texts
		if i >= len(golden.Cases) {
			templates, texts = golden.SpacedTemplates, golden.SpacedTexts
		}
		file, err := json.Marshal(map[string]any{
			"version": "1.0", "added_tokens": c.Tokens, "model": golden.Model,
			"normalizer": golden.Normalizers[c.Normalizer], "pre_tokenizer": golden.PreTokenizers[c.PreTokenizer],
		})
		if err != nil {
			t.Fatal(err)
		}
		tok, err := Read(strings.NewReader(string(file)))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.IDs {
			template, user := templates[i/len(texts)], texts[i%len(texts)]
			var text string
			var users []Span
			for j, part := range strings.Split(strings.ReplaceAll(template, "T", c.Tokens[0].Content), "{}") {
				if j > 0 {
					users = append(users, Span{len(text), len(text) + len(user)})
					text += user
				}
				text += part
			}
			e, err := tok.Encode(text, Options{Literal: users})
			if count++; err == nil && slices.Equal(e.IDs, want) {
				continue
			}
			var got []int
			if err == nil {
				got = e.IDs
			}
			kind := c.Normalizer + ", " + c.PreTokenizer
			if wrong[kind]++; wrong[kind] <= 10 {
				t.Errorf("%s, %+v: %q with %q is %v, want %v, error %v", kind, c.Tokens, template, user, got, want, err)
			}
		}
	}
	for kind, n := range wrong {
		t.Errorf("%s: %d of %d texts differ", kind, n, count)
	}
}
