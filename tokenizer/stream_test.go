package tokenizer

import (
	"strings"
	"testing"
)

// The text of a stream equals the text of all tokens together.
func TestStream(t *testing.T) {
	g := readGolden()
	for _, name := range []string{"gpt2", "llama3", "llama2", "gemma", "t5", "unigram bytes", "bert uncased"} {
		tok := g.load(t, name)
		for _, text := range append(g.random(300), g.Texts...) {
			e, err := tok.Encode(text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := tok.Stream()
			var b strings.Builder
			for _, id := range e.IDs {
				b.WriteString(s.Next(id))
			}
			b.WriteString(s.Rest())
			if want := tok.Decode(e.IDs); b.String() != want {
				t.Errorf("%s: stream is %q, want %q", name, b.String(), want)
			}
		}
	}
}

// A token that changes the text before it does not end the stream: an invalid byte makes the whole run of bytes
// invalid.
func TestStreamContinues(t *testing.T) {
	tok := readGolden().load(t, "llama2")
	s := tok.Stream()
	var got []string
	for _, token := range []string{"<0xC3>", "<0xA9>", "<0xFF>", "a", "b"} {
		id, ok := tok.ID(token)
		if !ok {
			t.Fatalf("no token %s", token)
		}
		got = append(got, s.Next(id))
	}
	if all := strings.Join(got, "|"); all != "|é||\ufffd\ufffd\ufffda|b" {
		t.Errorf("stream is %q", all)
	}
}

// A character of several tokens is returned when it is complete.
func TestStreamCharacter(t *testing.T) {
	tok := readGolden().load(t, "gpt2")
	e, err := tok.Encode("a\U0001f9a6b", Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := tok.Stream()
	var got []string
	for _, id := range e.IDs {
		got = append(got, s.Next(id))
	}
	if all := strings.Join(got, "|"); all != "a|||\U0001f9a6|b" {
		t.Errorf("stream is %q of %q", all, e.Tokens)
	}
}
