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
	Cases         []struct {
		Normalizer   string     `json:"normalizer"`
		PreTokenizer string     `json:"pre_tokenizer"`
		Token        addedToken `json:"token"`
		IDs          [][]int    `json:"ids"` // for each template, and each text in it
	} `json:"cases"`
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
	for _, c := range golden.Cases {
		file, err := json.Marshal(map[string]any{
			"version": "1.0", "added_tokens": []addedToken{c.Token}, "model": golden.Model,
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
			template, user := golden.Templates[i/len(golden.Texts)], golden.Texts[i%len(golden.Texts)]
			before, after, _ := strings.Cut(strings.ReplaceAll(template, "T", c.Token.Content), "{}")
			text, at := before+user+after, Span{len(before), len(before) + len(user)}
			e, err := tok.Encode(text, Options{Literal: []Span{at}})
			if count++; err == nil && slices.Equal(e.IDs, want) {
				continue
			}
			var got []int
			if err == nil {
				got = e.IDs
			}
			kind := c.Normalizer + ", " + c.PreTokenizer
			if wrong[kind]++; wrong[kind] <= 10 {
				t.Errorf("%s, %+v: %q with %q is %v, want %v, error %v", kind, c.Token, template, user, got, want, err)
			}
		}
	}
	for kind, n := range wrong {
		t.Errorf("%s: %d of %d texts differ", kind, n, count)
	}
}
