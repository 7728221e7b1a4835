package texts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/models"
)

// The flags of attn embed give the vectors of the library, or an error that names the flag.
func TestEmbedding(t *testing.T) {
	const mean, words = "../../../models/testdata/sentence_mean", "../../../models/testdata/bert_words"
	prompted := t.TempDir()
	if err := os.CopyFS(prompted, os.DirFS(mean)); err != nil {
		t.Fatal(err)
	}
	const settings, prompts = "config_sentence_transformers.json", `{"prompts": {"query": "the cat ", "document": ""}}`
	if err := os.WriteFile(filepath.Join(prompted, settings), []byte(prompts), 0o644); err != nil {
		t.Fatal(err)
	}
	vector := func(o Embedding, dir, text string) (string, error) {
		e, err := o.Load(dir, models.Options{})
		if err != nil {
			return "", err
		}
		var b strings.Builder
		err = Vectors(e).Texts(t.Context(), []string{text}, &b)
		return b.String(), err
	}
	given := func(s string) *string { return &s }
	want, err := vector(Embedding{}, mean, "the cat sat")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Embedding{{Prompt: given("the cat ")}, {PromptName: given("query")}} {
		if got, err := vector(o, prompted, "sat"); err != nil || got != want {
			t.Errorf("%+v: %q, %v, want %q", o, got, err, want)
		}
	}
	if got, err := vector(Embedding{Pooling: given("mean"), Normalize: true, Prompt: given("")}, prompted, "the cat sat"); err != nil || got != want {
		t.Errorf("mean: %q, %v, want %q", got, err, want)
	}
	for _, c := range []struct {
		o         Embedding
		dir, want string
		usage     bool
	}{
		{Embedding{}, words, ", or --pooling of attn embed, such as mean", false},
		{Embedding{Pooling: given("mean")}, words, "has no tokenizer.json", false},
		{Embedding{Prompt: given("query")}, prompted, "has a prompt of that name, want --prompt-name query, or another text", true},
		{Embedding{PromptName: given("x y")}, prompted, "has the prompts document, query", true},
		{Embedding{PromptName: given("query")}, "unnamed", "names no prompts", true},
	} {
		if c.dir == "unnamed" {
			if err := os.Remove(filepath.Join(prompted, settings)); err != nil {
				t.Fatal(err)
			}
			c.dir = prompted
		}
		_, err := c.o.Load(c.dir, models.Options{})
		var usage *flags.Error
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &usage) != c.usage {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
}

func TestCountCut(t *testing.T) {
	f := filter.Filter[Vector]{Write: func(w io.Writer, l *filter.Line[Vector]) error {
		_, err := fmt.Fprintln(w, l.Text)
		return err
	}}
	f, cut := CountCut(f)
	for i := range 5 {
		if err := f.Write(io.Discard, &filter.Line[Vector]{Value: Vector{Cut: i%2 == 0}}); err != nil {
			t.Fatal(err)
		}
	}
	if *cut != 3 {
		t.Errorf("%d texts are truncated, want 3", *cut)
	}
}
