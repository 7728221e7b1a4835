package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// TestInParts measures heads by records of all layers, and by a record for each layer, as
// where the weights of all do not go into one.
func TestInParts(t *testing.T) {
	m, err := models.Load("../../models/testdata/sentence_dense", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	texts := [][2]string{{"the cat sat on the mat"}, {"a dog", "the sun"}}
	var measured [2]string
	for i, most := range []int{1 << 20, 1000} {
		parts, record, err := (&loaded{Model: m}).recorder(texts, most)
		if err != nil {
			t.Fatal(err)
		}
		if parts != 1+i {
			t.Errorf("%d parts, want %d", parts, 1+i)
		}
		layers := pruning.Layers(m.Attention())
		if err := pruning.MeasureHeads(context.Background(), parts*len(texts), record, layers, func(int, int) {}); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(layers)
		if err != nil {
			t.Fatal(err)
		}
		measured[i] = string(data)
	}
	if measured[0] != measured[1] {
		t.Errorf("in parts:\n%s\nwant\n%s", measured[1], measured[0])
	}
}

// A record of a translation has axes of the source and of the target, and a layer is as
// large as the longer one makes it.
func TestLongTarget(t *testing.T) {
	dir := t.TempDir()
	for _, from := range []string{"../../models/testdata/seq2seq/marian", "../../testdata/tokenizer/marian"} {
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &loaded{Model: m}
	short, long := "the cat", "the cat ate the cat, the cat ate"
	for _, text := range [][2]string{{short, long}, {long, short}} {
		e, err := m.TranslationExample(text[0], text[1])
		if err != nil {
			t.Fatal(err)
		}
		want := max(len(e.IDs), len(e.Reads))
		if n, target, err := lengths(m, text[0], text[1]); err != nil || n != len(e.IDs) || target != len(e.Reads) || want < 2*min(n, target) {
			t.Errorf("%q: %d and %d tokens (%v), want %d and %d", text, n, target, err, len(e.IDs), len(e.Reads))
		}
		layers := len(m.Attention())
		if parts, _, err := l.recorder([][2]string{text}, int(layerBytes(m, want))); err != nil || parts != layers {
			t.Errorf("%q: %d parts (%v), want one for each of %d layers", text, parts, err, layers)
		}
	}
	// Each fits the positions of its side, and both together would not.
	half := strings.Repeat("the cat ate ", 8)
	r, err := modelSource{m: m}.Record(t.Context(), half, half)
	if err != nil || len(r.Layers) != 6 {
		t.Errorf("a source and a target of half as many tokens as the model takes: %v", err)
	}
	if n, _, err := lengths(m, half, ""); err != nil || 2*n <= m.Sizes().Positions {
		t.Errorf("a source of %d tokens (%v), want more than half of %d", n, err, m.Sizes().Positions)
	}
	if got := layerBytes(m, 1<<20); got != int64(4*m.Sizes().Heads)<<40 {
		t.Errorf("weights of a layer take %d bytes", got)
	}
}

// The same similarity is the same cosine, in the file that heads are scored on and in that of
// --train, whose range is another.
func TestSimilaritiesOfTwoFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "train")
	if err := os.WriteFile(path, []byte("a\tb\t1\nc\td\t6\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := &loaded{Model: new(models.Model), task: &similarityTask, low: 0, high: 5}
	lines, err := (&pruneCommand{Train: path}).trainLines(l, [3][]train.Line{})
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	for _, line := range lines {
		got = append(got, l.cosine(line.Value))
	}
	if want := []float64{1. / 6, 1}; !slices.Equal(got, want) || l.cosine(0) != 0 {
		t.Errorf("cosines %v and %v for 0, want %v and 0", got, l.cosine(0), want)
	}
}
