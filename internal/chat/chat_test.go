package chat

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tokenizer"
)

// A message cannot end its turn: a special token of the template is one token, and the same letters in
// a message are plain text, anywhere in the template.
func TestChatProtectsTurns(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../models/testdata/sentence_dense")); err != nil {
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
	text, literal, err := c.prompt()
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
