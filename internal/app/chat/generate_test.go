package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
)

// newGenerator returns a generator with a tiny model of 31 words, w0 to w30.
func newGenerator(t *testing.T, template string) (g *Generator, out, messages *bytes.Buffer, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../models/testdata/decoders/llama3")); err != nil {
		t.Fatal(err)
	}
	words := `"w0": 0`
	for i := 1; i < 31; i++ {
		words += fmt.Sprintf(`, "w%[1]d": %[1]d`, i)
	}
	for name, text := range map[string]string{
		"generation_config.json": `{"eos_token_id": null}`,
		"tokenizer.json": `{"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"},
			"model": {"type": "WordLevel", "vocab": {` + words + `}, "unk_token": "w0"}}`,
		"chat_template.jinja": template,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := m.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	out, messages = new(bytes.Buffer), new(bytes.Buffer)
	g = &Generator{Model: m, Tokenizer: tok, Options: models.Generation{Tokens: 3}, Out: out, Messages: messages}
	return g, out, messages, dir
}

// The tokens that the model generates are written as text, and counted.
func TestGenerate(t *testing.T) {
	g, out, messages, _ := newGenerator(t, "")
	e, err := g.Encode("argument", "w10 w25 w8", false)
	if err != nil {
		t.Fatal(err)
	}
	text, err := g.Write(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := g.Model.Generate(t.Context(), e.IDs, g.Options)
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for id := range tokens {
		want += fmt.Sprintf(" w%d", id)
	}
	speed := strings.HasPrefix(messages.String(), "3 tokens read in ")
	if text != want || out.String() != want+"\n" || g.Written != 3 || !speed {
		t.Errorf("%q, %q, %d tokens, %q, want %q", text, out, g.Written, messages, want)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := g.Write(stopped, e); !errors.Is(err, context.Canceled) || g.Written != 0 {
		t.Errorf("error %v after %d tokens, want an interruption before the first", err, g.Written)
	}
	var bad *input.Error
	_, err = g.Encode("here", strings.Repeat("w1 ", 97), false)
	if want := "here: the prompt has more than 96 tokens, the limit of the model"; !errors.As(err, &bad) || bad.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Each turn continues the conversation: the prompt of a turn has all turns before it.
func TestConverse(t *testing.T) {
	const template = "w7{% for m in messages %} {{ m.content | trim }}{% endfor %}"
	g, out, messages, dir := newGenerator(t, template)
	if _, err := g.Converse(dir); err != nil {
		t.Fatal(err)
	}
	if err := g.AnswerLines(context.Background(), "input", strings.NewReader("\ufeffw3\n\n \n\ufeffw4 w5\r\n")); err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	reads := regexp.MustCompile(`(?m)^\d+ tokens read`).FindAllString(messages.String(), -1)
	// The second turn reads the last generated token and the message.
	if len(answers) != 2 || fmt.Sprint(reads) != "[2 tokens read 3 tokens read]" {
		t.Fatalf("%q, %q", answers, reads)
	}
	whole, out, _, dir := newGenerator(t, template)
	if _, err := whole.Converse(dir); err != nil {
		t.Fatal(err)
	}
	if err := whole.Answer(context.Background(), "argument", 0, "w3 "+answers[0]+" w4 w5"); err != nil {
		t.Fatal(err)
	}
	if out.String() != answers[1]+"\n" {
		t.Errorf("the second answer is %q, in one turn %q", answers[1], out)
	}
	var bad *input.Error
	err := g.AnswerLines(context.Background(), "input", strings.NewReader("\n"+strings.Repeat("w1 ", 99)))
	if !errors.As(err, &bad) || bad.Line != 2 {
		t.Errorf("error %v, want one of line 2", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := whole.AnswerLines(stopped, "input", strings.NewReader("w3")); !errors.Is(err, context.Canceled) || errors.As(err, &bad) {
		t.Errorf("error %v, want an interruption", err)
	}
}

func TestReadPrompt(t *testing.T) {
	if text, err := ReadPrompt("input", strings.NewReader("\ufeffa\n\ufeffb \r\n\n")); text != "a\nb " || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := ReadPrompt("input", strings.NewReader(strings.Repeat("a", LongestPrompt+1))); err == nil {
		t.Error("no error for a prompt that is too long")
	}
}
