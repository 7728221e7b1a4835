package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
)

// draw replaces the drawing of a picture.
func draw(record *heads.Record, layer int) (title, picture string, err error) {
	l := record.Layers[layer]
	var sum float32
	for h := range l.Heads {
		sum += l.Head(h)[0]
	}
	return l.Kind.String(), fmt.Sprintf("%d heads, %d: %v", l.Heads, len(record.Layers), sum), nil
}

// The page shows the output of each checkpoint, and reads a checkpoint only once.
func TestSampler(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	r := DatesRecipe()
	r.Network.Width, r.Network.Hidden, r.Limit = 8, 8, 50
	r.Network.Arch = models.Transformer
	data, err := r.Pairs()
	if err != nil {
		t.Fatal(err)
	}
	s := Sampler{Draw: draw, Dir: dir}
	if note, sample := s.Read(ctx); note != "" || sample != (Sample{}) {
		t.Errorf("of an empty directory %q, %+v", note, sample)
	}
	source, target := Vocabularies(data.Learn, r.Units, r.VocabSize)
	save := func(seed uint64) {
		t.Helper()
		m, err := models.NewTranslator(r.Network, source, target, rand.New(rand.NewPCG(seed, 2)))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Save(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.Save(dir, []atomicfile.File{r.File()}); err != nil {
		t.Fatal(err)
	}
	save(1)
	note, first := s.Read(ctx)
	if !strings.Contains(note, "with dropout 0.05;") {
		t.Errorf("note %q", note)
	}
	if first.Source != data.Example() || first.Written == "" || first.Title != "cross" || !strings.HasPrefix(first.Heads, "4 heads, 1: ") {
		t.Errorf("sample %+v", first)
	}
	weights := filepath.Join(dir, models.WeightsFile)
	info, err := os.Stat(weights)
	if err != nil {
		t.Fatal(err)
	}
	save(3)
	if err := os.Chtimes(weights, info.ModTime(), info.ModTime()); err != nil { // so that it looks unchanged
		t.Fatal(err)
	}
	if _, again := s.Read(ctx); again != first {
		t.Error("a checkpoint is read twice")
	}
	later := info.ModTime().Add(time.Second)
	if err := os.Chtimes(weights, later, later); err != nil {
		t.Fatal(err)
	}
	if _, next := s.Read(ctx); next.Source != first.Source || next.Written == first.Written && next.Heads == first.Heads {
		t.Error("the next checkpoint is not read")
	}
	given := Sampler{Draw: draw, Dir: dir, Text: "5 march 2019"}
	if _, sample := given.Read(ctx); sample.Source != "5 march 2019" {
		t.Errorf("of a text of one's own %+v", sample)
	}
}
