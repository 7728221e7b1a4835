package tasks

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn/models"
)

// The same similarity is the same cosine, in the file that heads are scored on and in that of
// --train, whose range is another.
func TestSimilaritiesOfTwoFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "train")
	if err := os.WriteFile(path, []byte("a\tb\t1\nc\td\t6\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := &Model{Model: new(models.Model), Task: similarity, low: 0, high: 5}
	lines, err := m.ReadTraining(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	for _, line := range lines {
		got = append(got, m.cosine(line.Value))
	}
	if want := []float64{1. / 6, 1}; !slices.Equal(got, want) || m.cosine(0) != 0 {
		t.Errorf("cosines %v and %v for 0, want %v and 0", got, m.cosine(0), want)
	}
}
