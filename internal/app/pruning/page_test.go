package pruning

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
)

// A page writes its model without heads, once: the model and the list of its heads are read again, and the output for the
// text is that without these heads. What cannot be removed leaves no directory.
func TestPage(t *testing.T) {
	const fixtures = "../../../models/testdata/"
	for _, c := range []struct {
		dir, text string
		off       map[string][]int
		want      string // the error
		command   string // its end
	}{
		{"bert_text", "the cat", map[string][]int{"encoder.0.self": {1}}, "", "--out DIR-measured"},
		{"sentence_mean", "the cat", map[string][]int{"encoder.0.self": {0}, "encoder.1.self": {2}}, "", "--out DIR-measured"},
		{"reranker_words", "the cat", map[string][]int{"decoder.1.self": {0, 1, 2, 3}}, "", "--empty-layers --out DIR-measured"},
		{"reranker_words", "the cat", map[string][]int{"decoder.1.self": {0}}, "heads 0 to 1 of decoder.1.self share keys and values", ""},
		{"albert_text", "the cat", map[string][]int{"encoder.0.self": {1}}, "share their output map", ""},
		{"decoders/qwen3_5", "the cat", map[string][]int{"decoder.0.self": {0, 1}}, "", "--out DIR-measured"}, // of a layer with a state
		{"decoders/diffllama", "the cat", map[string][]int{"decoder.0.self": {0, 1}}, "", "--out DIR-measured"},
	} {
		full := c.dir == "decoders/diffllama" // whose layers cannot have fewer heads
		dir := t.TempDir()
		err := os.CopyFS(dir, os.DirFS(fixtures+c.dir))
		if name := filepath.Join(dir, "tokenizer.json"); err == nil && !atomicfile.Exists(name) {
			var words []byte
			if words, err = os.ReadFile(fixtures + "reranker_words/tokenizer.json"); err == nil {
				err = os.WriteFile(name, words, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		m, err := models.Load(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		page := Page{Out: filepath.Join(t.TempDir(), "new", "small")}
		if page.Model, err = recording.New(dir, m, 0, io.Discard); err != nil {
			t.Fatal(err)
		}
		r, err := page.Record(t.Context(), c.text, "")
		if err != nil {
			t.Fatal(c.dir, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := page.Prune(ended, r, c.off); err == nil || atomicfile.Exists(page.Out) {
			t.Errorf("%s: after the end of the context: %v, directory %v", c.dir, err, atomicfile.Exists(page.Out))
		}
		y, err := page.Prune(t.Context(), r, c.off)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || atomicfile.Exists(page.Out) {
				t.Errorf("%s: %v, want %s; directory %v", c.dir, err, c.want, atomicfile.Exists(page.Out))
			}
			continue
		}
		if err != nil {
			t.Fatal(c.dir, err)
		}
		if !strings.HasSuffix(y.Command, strings.ReplaceAll(c.command, "DIR", page.Out)) || y.Dir != page.Out || (y.Note != "") != full {
			t.Errorf("%s: %+v", c.dir, y)
		}
		if before, after := y.Sizes[1].Before, y.Sizes[1].After; after < before == full || y.Sizes[0].Before-y.Sizes[0].After != float64(removed(c.off)) {
			t.Errorf("%s: sizes %+v", c.dir, y.Sizes)
		}
		if y.Output.Rows[0].Before == y.Output.Rows[0].After {
			t.Errorf("%s: the output does not change: %+v", c.dir, y.Output)
		}
		small, err := models.Load(page.Out, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		kept, err := Target{Keep: filepath.Join(page.Out, KeptFile)}.kept(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range m.HeadLayers() {
			for h := range l.Heads {
				if slices.Contains(kept, prune.Head{Layer: l.Name, Number: h}) == slices.Contains(c.off[l.Name], h) {
					t.Errorf("%s: the list says otherwise of %s.%d: %v", c.dir, l.Name, h, kept)
				}
			}
		}
		if got := total(small.HeadLayers()); got != len(kept) && !full {
			t.Errorf("%s: %d heads, want %d", c.dir, got, len(kept))
		}
		if _, err := models.Load(filepath.Join(page.Out, MaskedDir), models.Options{}); (err != nil) != full {
			t.Errorf("%s: the masked form: %v", c.dir, err)
		}
		if _, err := page.Prune(t.Context(), r, c.off); err == nil || !strings.Contains(err.Error(), "already exists") || !atomicfile.Exists(filepath.Join(page.Out, KeptFile)) {
			t.Errorf("%s, again: %v", c.dir, err)
		}
	}
}

func removed(off map[string][]int) (n int) {
	for _, list := range off {
		n += len(list)
	}
	return n
}
