package texts

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
)

func TestUnknown(t *testing.T) {
	v := seq2seq.BuildVocabulary([]string{"abc"}, seq2seq.Chars, 10)
	m, err := models.NewTranslator(models.TranslatorConfig{
		Arch: models.Transformer, Score: "scaled", Width: 8, Heads: 1, Layers: 1, Hidden: 8, SourceVocab: v.Len(), TargetVocab: v.Len(),
	}, v, v, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	u := NewUnknown(m, &out)
	said := func(want string) {
		t.Helper()
		if out.String() != want {
			t.Errorf("said %q, want %q", out.String(), want)
		}
		out.Reset()
	}
	u.Source("abc", "cab")
	said("")
	if got := u.Source("axb", "yx"); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("new pieces: %q", got)
	}
	said("not in the source vocabulary, read as <unk>: \"x\" \"y\"\n")
	if got := u.Pairs([]seq2seq.Pair{{Source: "xz", Target: "y"}, {Source: "z", Target: "ab"}}); !slices.Equal(got, []string{"y", "z"}) {
		t.Errorf("new pieces of pairs: %q", got)
	}
	said("not in the source vocabulary, read as <unk>: \"z\"\nnot in the target vocabulary, read as <unk>: \"y\"\n")
	u.Source("0123456789ABCDEFGHIJ") // four pieces have been named
	said("not in the source vocabulary, read as <unk>: " + quotedEach("0123456789ABCDEF") + "and others\n")
	if got := u.Source("K"); !slices.Equal(got, []string{"K"}) {
		t.Errorf("new pieces after the limit: %q", got)
	}
	said("")
	if got := NewUnknown(new(models.Model), &out).Pairs([]seq2seq.Pair{{Source: "x", Target: "y"}}); got != nil {
		t.Errorf("another model: %q", got)
	}
	said("")
}

// quotedEach returns each letter in quotation marks, followed by a space.
func quotedEach(letters string) string {
	var text strings.Builder
	for _, letter := range letters {
		text.WriteString(`"` + string(letter) + `" `)
	}
	return text.String()
}
