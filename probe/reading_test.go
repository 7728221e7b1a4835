package probe_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
)

// withWords adds a tokenizer with the words w0, w1, … to a decoder of testdata.
func withWords(t *testing.T, name string) *models.Model {
	t.Helper()
	dir := edit(t, filepath.Join("decoders", name), nil)
	var words []string
	for i := range 31 {
		words = append(words, fmt.Sprintf(`"w%d": %d`, i, i))
	}
	write(t, filepath.Join(dir, "tokenizer.json"), `{"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"},
		"model": {"type": "WordLevel", "unk_token": "w0", "vocab": {`+strings.Join(words, ", ")+`}}}`)
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// stepByStep returns the weights of each step while a model generates n tokens.
func stepByStep(t *testing.T, m *models.Model, prompt string, n int) *heads.Record {
	t.Helper()
	e, err := m.Encode(prompt, "")
	if err != nil {
		t.Fatal(err)
	}
	recorder := heads.NewRecorder(heads.RecorderOptions{})
	// The last generated token is not an input.
	tokens, err := m.Generate(t.Context(), e.IDs, models.Generation{Tokens: n + 1, Ends: []int{}, Run: models.Run{Observers: []attn.Observer{recorder}}})
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Clone(e.Tokens)
	for id := range tokens {
		names = append(names, fmt.Sprintf("w%d", id))
	}
	r, err := recorder.Record(heads.Texts{SourceTokens: names[:len(names)-1]})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// recordGenerated returns the weights of a text and of what a model generates after it.
func recordGenerated(ctx context.Context, m *models.Model, text string, g models.Generation) (*heads.Record, error) {
	in, err := probe.Read(m, text, "")
	if err != nil {
		return nil, err
	}
	if in, err = in.Generate(ctx, g); err != nil {
		return nil, err
	}
	return probe.Record(ctx, in, heads.RecorderOptions{})
}

// TestRecordGenerated compares the weights of steps with those of all tokens at once.
func TestRecordGenerated(t *testing.T) {
	for _, name := range []string{"gpt2", "llama3", "mistral", "gemma3"} {
		m := withWords(t, name)
		const prompt, n = "w10 w25 w8 w14", 9
		got, err := recordGenerated(t.Context(), m, prompt, models.Generation{Tokens: n, Ends: []int{}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := stepByStep(t, m, prompt, n)
		if got.Source != prompt || len(strings.Fields(got.Target)) != n || len(got.Layers) != m.Sizes().Layers {
			t.Errorf("%s: a record of %q and %q with %d layers", name, got.Source, got.Target, len(got.Layers))
		}
		for i, l := range want.Layers {
			g := got.Layers[i]
			if g.Kind != heads.Decoder || !slices.Equal(g.Queries, l.Queries) || !slices.Equal(g.Keys, l.Keys) {
				t.Errorf("%s: layer %d is of %v to %v, want %v to %v", name, i, g.Queries, g.Keys, l.Queries, l.Keys)
			}
			if want := map[bool][]int{false: {0, 0, 1, 1}}[name == "gpt2"]; !slices.Equal(g.KeyHeads, want) {
				t.Errorf("%s: layer %d has key/value heads %v, want %v", name, i, g.KeyHeads, want)
			}
			if !slices.Equal(g.Weights, l.Weights) {
				t.Errorf("%s: layer %d has other weights at once than step by step", name, i)
			}
			for r := range g.Heads * len(g.Queries) {
				sum := 0.0
				for _, w := range g.Weights[r*len(g.Keys):][:len(g.Keys)] {
					sum += float64(w)
				}
				if math.Abs(sum-1) > 1e-5 {
					t.Fatalf("%s: layer %d: row %d sums to %v", name, i, r, sum)
				}
			}
		}
	}
	m := withWords(t, "llama3")
	some, err := probe.RecordTexts(t.Context(), m, "w1 w2", "", heads.RecorderOptions{Heads: func(_ string, h int) bool { return h == 1 || h == 2 }})
	if err != nil || !slices.Equal(some.Layers[0].KeyHeads, []int{0, 1}) {
		t.Errorf("heads 1 and 2 have key/value heads %v, %v", some.Layers[0].KeyHeads, err)
	}
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, "the text has no tokens, want one or more"},
		{"w1 w2", 0, "probe: Generate: 0 tokens, want at least 1"},
		{"w1 w2", 95, "probe: Generate: 95 tokens after 2, want at most 96 in all"},
	} {
		if _, err := recordGenerated(t.Context(), m, c.text, models.Generation{Tokens: c.n}); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := recordGenerated(ctx, m, "w1", models.Generation{Tokens: 3, Ends: []int{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
