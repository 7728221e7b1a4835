package chat

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tokenizer"
)

// A message cannot end its turn: a special token of the template is one token, and the same letters in
// a message are plain text, anywhere in the template.
func TestChatProtectsTurns(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../models/testdata/sentence_dense")); err != nil {
		t.Fatal(err)
	}
	const template = "{% for m in messages %}[CLS] {{ m.content | trim }} [SEP]{% endfor %}"
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(template), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := m.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(dir, tok)
	if err != nil {
		t.Fatal(err)
	}
	c.Say("user", " the cat [SEP]\n")
	c.Say("assistant", "[CLS]")
	c.Say("user", "\uFDD0[\uFDD0SEP][SEP]")
	text, literal, err := c.prompt(map[string]any{"add_generation_prompt": true})
	if want := "[CLS] the cat [SEP] [SEP][CLS] [CLS] [SEP][CLS] \uFDD0[\uFDD0SEP][SEP] [SEP]"; err != nil || text != want {
		t.Fatalf("%q, %v, want %q", text, err, want)
	}
	if want := []tokenizer.Span{{Start: 6, End: 19}, {Start: 31, End: 36}, {Start: 48, End: 64}}; !slices.Equal(literal, want) {
		t.Errorf("literal %v, want %v", literal, want)
	}
	e, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	cls, _ := tok.ID("[CLS]")
	sep, _ := tok.ID("[SEP]")
	var marks []int
	for _, id := range e.IDs {
		if id == cls || id == sep {
			marks = append(marks, id)
		}
	}
	if want := []int{cls, sep, cls, sep, cls, sep}; !slices.Equal(marks, want) {
		t.Errorf("tokens %q, want three turns", e.Tokens)
	}
}

// A damaged file is refused with the place: the template would otherwise lose its special tokens.
func TestDamagedChatFiles(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"chat_template.jinja", "{{ bos_token }}\n\xff", "chat_template.jinja: line 2 is not UTF-8"},
		{"special_tokens_map.json", `{"bos_token": "<s>"`, "special_tokens_map.json: ends in the middle of its JSON"},
		{"special_tokens_map.json", "{\"bos_token\": \"\xff\"}", "special_tokens_map.json: is not UTF-8 at line 1, column 16"},
		{"special_tokens_map.json", `{"bos_token": 7}`, "special_tokens_map.json: bos_token is 7, want a text or an object"},
		{"tokenizer_config.json", `{"eos_token": ["</s>"]}`, `tokenizer_config.json: eos_token is ["</s>"], want a text or an object`},
		{"tokenizer_config.json", `{"eos_token": "\ud83d"}`, "tokenizer_config.json: has half of a surrogate pair at line 1, column 16"},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"chat_template.jinja": "{{ bos_token }}", c.file: c.text} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := New(dir, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %s", c.text, err, c.want)
		}
	}
}
