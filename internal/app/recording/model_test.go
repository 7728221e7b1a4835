package recording

import (
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/seq2seq"
)

// newTranslator returns a translator with random parameters for texts of the letter x.
func newTranslator(t *testing.T, c models.TranslatorConfig) *models.Model {
	t.Helper()
	v := seq2seq.BuildVocabulary([]string{"x"}, seq2seq.Chars, 10)
	c.SourceVocab, c.TargetVocab = v.Len(), v.Len()
	m, err := models.NewTranslator(c, v, v, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTranslator(t *testing.T) {
	var said strings.Builder
	m := newTranslator(t, models.TranslatorConfig{
		Arch: models.Transformer, Score: "scaled", Width: 16, Heads: 4, Layers: 1, Hidden: 16,
	})
	s, err := New("dir", m, 0, &said)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Record(t.Context(), "xxx", "")
	if err != nil {
		t.Fatal(err)
	}
	if r.Source != "xxx" || len(r.Layers) == 0 {
		t.Errorf("%q → %q with %d layers", r.Source, r.Target, len(r.Layers))
	}
	if r, err = s.Record(t.Context(), "xxx", "xx"); err != nil || r.Target != "xx" {
		t.Fatalf("with a target: %v", err)
	}
	if l := r.Layer(heads.Cross, 0); l == nil || !strings.HasPrefix(strings.Join(l.Queries, ""), "xx") {
		t.Errorf("cross layer 0 is %v", l)
	}
	long := strings.Repeat("x", maxTokens)
	for _, texts := range [][2]string{{long, ""}, {"x", long}} {
		_, err := s.Record(t.Context(), texts[0], texts[1])
		if err == nil || !strings.Contains(err.Error(), "tokens, want at most 4096") {
			t.Errorf("a long text: %v", err)
		}
	}
	if r, err := s.Record(t.Context(), "yx", "xz"); err != nil || r.Target != "xz" {
		t.Errorf("with unknown letters: %v", err)
	}
	want := `not in the source vocabulary, read as <unk>: "y"
not in the target vocabulary, read as <unk>: "z"
`
	if said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	if o := s.Page(); o.MaxText != MaxText || o.Keep < maxKept || o.Second.Label != "" {
		t.Errorf("the page has the options %+v", o)
	}
	if _, err := New("dir", m, 3, &said); err == nil || err.Error() != "--generate requires a decoder, and dir is a transformer translator model" {
		t.Errorf("generation by a translator: %v", err)
	}
}

// The page explains why a record has no queries and keys.
func TestNoVectors(t *testing.T) {
	for _, c := range []struct{ score, source, want string }{
		{"scaled", strings.Repeat("x", 2000), "a shorter text has them"},
		{"gaussian", "x", "not products"},
	} {
		s := Model{Model: newTranslator(t, models.TranslatorConfig{
			Arch: models.Transformer, Score: c.score, Width: 256, Heads: 4, Layers: 2, Hidden: 16,
		})}
		r, err := s.Record(t.Context(), c.source, "x")
		if err != nil {
			t.Fatal(err)
		}
		if size := r.Layers[0].VectorSize(); size != 0 || !strings.Contains(s.NoVectors(r), c.want) {
			t.Errorf("%s scores of %d letters: vectors of %d, and the reason is %q",
				c.score, len(c.source), size, s.NoVectors(r))
		}
	}
}

// Weights that are computed on request are bit-for-bit equal to recorded weights. Queries and keys are
// recorded for short texts.
func TestTranslatorKeepsNoWeights(t *testing.T) {
	transformer := models.TranslatorConfig{Arch: models.Transformer, Heads: 8, Layers: 3, Hidden: 16}
	for _, c := range []models.TranslatorConfig{
		transformer, {Arch: models.GRU, Layers: 3}, {Arch: models.GRU, Layers: 2, Heads: 2},
	} {
		c.Score, c.Width = "scaled", 16
		s := Model{Model: newTranslator(t, c)}
		r, err := s.Record(t.Context(), "xxxxx", "xx")
		if err != nil {
			t.Fatal(err)
		}
		kept, err := probe.RecordTexts(t.Context(), s.Model, "xxxxx", "xx", heads.RecorderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var vectors int64
		for i := range r.Layers {
			l := &r.Layers[i]
			vectors += 4 * int64(len(l.QueryVectors)+len(l.KeyVectors))
			if l.ValueNorms == nil || l.VectorSize() == 0 || l.Weights != nil {
				t.Errorf("%s with %d heads: %s has %d norms, vectors of %d, and %d weights",
					c.Arch, c.Heads, l.Name, len(l.ValueNorms), l.VectorSize(), len(l.Weights))
			}
			for h := range l.Heads {
				if !slices.Equal(l.Head(h), kept.Layers[i].Head(h)) {
					t.Errorf("%s with %d heads: %s: head %d has other weights on request", c.Arch, c.Heads, l.Name, h)
				}
			}
		}
		if most := keptBytes(s.Model, 6, 3); c.Heads > 0 && vectors > most {
			t.Errorf("%s with %d heads: vectors of %d bytes, want at most %d", c.Arch, c.Heads, vectors, most)
		}
	}
}

// recordOfSentences returns a model of sentences, and the record of two texts for its page.
func recordOfSentences(t *testing.T) (*models.Model, *heads.Record) {
	t.Helper()
	m, err := models.Load("../../../models/testdata/sentence_dense", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Model{Model: m}.Record(t.Context(), "the cats", "who ?")
	if err != nil {
		t.Fatal(err)
	}
	return m, r
}

func TestPretrained(t *testing.T) {
	m, r := recordOfSentences(t)
	want := "[CLS] the cat ##s [SEP] who ? [SEP]"
	l := r.Layer(heads.Encoder, 1)
	if r.Source != "the cats" || r.Target != "who ?" || len(r.Layers) != 2 || strings.Join(l.Keys, " ") != want {
		t.Errorf("%q and %q in %d layers with keys %v, want %s", r.Source, r.Target, len(r.Layers), l.Keys, want)
	}
	s, err := New("dir", m, 0, io.Discard)
	if o := s.Page(); err != nil || o.MaxText != MaxText || o.Keep < maxKept || o.Second.Label != "Second text" {
		t.Errorf("the page has the options %+v; %v", o, err)
	}
	if _, err := New("dir", m, 3, io.Discard); err == nil || err.Error() != "--generate requires a decoder, and dir is a BERT model" {
		t.Errorf("generation by an encoder: %v", err)
	}
	if strings.Join(r.Special, " ") != "[CLS] [SEP]" {
		t.Errorf("special tokens %v", r.Special)
	}
	if problems := l.Check(); problems != nil {
		t.Errorf("weights: %v", problems)
	}
}

// Weights are computed when the page requests them. For a text that is too long for this, the
// error names the limit.
func TestPretrainedKeepsNoWeights(t *testing.T) {
	m, r := recordOfSentences(t)
	kept, err := probe.RecordTexts(t.Context(), m, "the cats", "who ?", heads.RecorderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Layers {
		l := &r.Layers[i]
		if l.Weights != nil || l.ValueNorms == nil || l.VectorSize() == 0 ||
			l.Held == 0 || int64(l.Held*len(r.Layers)) > keptBytes(m, len(l.Keys), 0) {
			t.Errorf("%s has %d weights, %d norms, vectors of %d, and keeps %d bytes",
				l.Name, len(l.Weights), len(l.ValueNorms), l.VectorSize(), l.Held)
		}
		for h := range l.Heads {
			if !slices.Equal(l.Head(h), kept.Layers[i].Head(h)) {
				t.Errorf("%s: head %d has other weights on request", l.Name, h)
			}
		}
	}
	long := Model{Model: m, Generate: maxTokens}
	_, err = long.Record(t.Context(), "the cats", "")
	if err == nil || err.Error() != "the text has 4101 tokens, want at most 4096" {
		t.Errorf("a long text: %v", err)
	}
}

// What a record keeps of each layer is what keptBytes counts, for layers of all kinds.
func TestKeptBytes(t *testing.T) {
	dirs, err := filepath.Glob("../../../models/testdata/decoders/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	for _, dir := range append(dirs, "../../../models/testdata/bert") {
		m, err := models.Load(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		m.Hidden(nil, models.Batch{IDs: [][]int{{3, 4, 5, 6, 7}}}, models.Run{Inspect: func(_ string, p attn.Parts) { kept += p.RetainedBytes }})
		if want := keptBytes(m, 5, 0); int64(kept) > want || int64(kept) < want*9/10 {
			t.Errorf("%s keeps %d bytes, but keptBytes is %d", dir, kept, want)
		}
	}
}
