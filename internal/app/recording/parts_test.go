package recording

import (
	"os"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
)

// A record of a translation has axes of the source and of the target, and a layer is as
// large as the longer one makes it.
func TestLongTarget(t *testing.T) {
	dir := t.TempDir()
	for _, from := range []string{"../../../models/testdata/seq2seq/marian", "../../../testdata/tokenizer/marian"} {
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	short, long := "the cat", "the cat ate the cat, the cat ate"
	for _, text := range [][2]string{{short, long}, {long, short}} {
		e, err := probe.TranslationExample(m, text[0], text[1])
		if err != nil {
			t.Fatal(err)
		}
		want := max(len(e.IDs), len(e.Reads))
		in, err := Read(m, text[0], text[1])
		n, target := lengths(in)
		if err != nil || n != len(e.IDs) || target != len(e.Reads) || want < 2*min(n, target) {
			t.Errorf("%q: %d and %d tokens (%v), want %d and %d", text, n, target, err, len(e.IDs), len(e.Reads))
		}
		layers := len(m.Attention())
		if parts, _ := Parts(m, []probe.Reading{in}, LayerBytes(m, want)); parts != layers {
			t.Errorf("%q: %d parts, want one for each of %d layers", text, parts, layers)
		}
	}
	// Each fits the positions of its side, and both together would not.
	half := strings.Repeat("the cat ate ", 8)
	r, err := Model{Model: m}.Record(t.Context(), half, half)
	if err != nil || len(r.Layers) != 6 {
		t.Errorf("a source and a target of half as many tokens as the model takes: %v", err)
	}
	if e, err := m.Encode(half, ""); err != nil || 2*len(e.IDs) <= m.Sizes().Positions {
		t.Errorf("the source is %v (%v), want more than half of %d tokens", e, err, m.Sizes().Positions)
	}
	if got := LayerBytes(m, 1<<20); got != int64(4*m.Sizes().Heads)<<40 {
		t.Errorf("weights of a layer take %d bytes", got)
	}
}
