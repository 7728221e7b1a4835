package texts

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
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
	read := func(texts ...string) {
		var list []probe.Reading
		for _, text := range texts {
			r, err := probe.ReadTarget(m, text, "abc")
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, r)
		}
		u.Read(list...)
	}
	read("abc", "cab")
	said("")
	read("axb", "yx")
	said("not in the source vocabulary, read as <unk>: \"x\" \"y\"\n")
	if got := u.Pairs([]seq2seq.Pair{{Source: "xz", Target: "y"}, {Source: "z", Target: "ab"}}); !slices.Equal(got, []string{"y", "z"}) {
		t.Errorf("new pieces of pairs: %q", got)
	}
	said("not in the source vocabulary, read as <unk>: \"z\"\nnot in the target vocabulary, read as <unk>: \"y\"\n")
	read("0123456789ABCDEFGHIJ") // four pieces have been named
	said("not in the source vocabulary, read as <unk>: " + quotedEach("0123456789ABCDEF") + "and others\n")
	if got := u.Pairs([]seq2seq.Pair{{Source: "K", Target: "a"}}); !slices.Equal(got, []string{"K"}) {
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
