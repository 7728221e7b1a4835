package main

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/seq2seq"
)

// The page shows what each checkpoint writes, and reads one once.
func TestSampler(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	r := datesRecipe()
	r.Network.Width, r.Network.Hidden, r.Limit = 8, 8, 50
	r.Network.Arch = seq2seq.Transformer
	data, err := r.pairs()
	if err != nil {
		t.Fatal(err)
	}
	s := sampler{dir: dir}
	if note, sample := s.read(ctx); note != "" || sample != (curve.Sample{}) {
		t.Errorf("of an empty directory %q, %+v", note, sample)
	}
	source, target := r.vocabularies(data.learn)
	save := func(seed uint64) {
		t.Helper()
		m, err := seq2seq.New(r.Network, source, target, rand.New(rand.NewPCG(seed, 2)))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Save(dir); err != nil {
			t.Fatal(err)
		}
	}
	writeRecipe(t, r, dir)
	save(1)
	note, first := s.read(ctx)
	if !strings.Contains(note, "with dropout 0.05;") {
		t.Errorf("note %q", note)
	}
	if first.Source != exampleOf(data.test) || first.Written == "" || first.Title != "cross attention, layer 0" || strings.Count(first.Heads, ">head ") != 4 || strings.Contains(first.Heads, "<style") {
		t.Errorf("sample %+v", first)
	}
	weights := filepath.Join(dir, seq2seq.WeightsFile)
	info, err := os.Stat(weights)
	if err != nil {
		t.Fatal(err)
	}
	save(3)
	if err := os.Chtimes(weights, info.ModTime(), info.ModTime()); err != nil { // as if it were the same
		t.Fatal(err)
	}
	if _, again := s.read(ctx); again != first {
		t.Error("a checkpoint is read twice")
	}
	later := info.ModTime().Add(time.Second)
	if err := os.Chtimes(weights, later, later); err != nil {
		t.Fatal(err)
	}
	if _, next := s.read(ctx); next.Source != first.Source || next.Written == first.Written && next.Heads == first.Heads {
		t.Error("the next checkpoint is not read")
	}
	given := sampler{dir: dir, text: "5 march 2019"}
	if _, sample := given.read(ctx); sample.Source != "5 march 2019" {
		t.Errorf("of a text of one's own %+v", sample)
	}
}
