package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/view"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// occupied PROGRAM ARGS… runs a program with an address in use as its last argument.
func occupied() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "occupied:", err)
		os.Exit(99)
	}
	cmd := exec.Command(os.Args[1], append(os.Args[2:], l.Addr().String())...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	var exit *exec.ExitError
	switch err := cmd.Run(); {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "occupied:", err)
		os.Exit(99)
	}
}

func TestTranslatorSource(t *testing.T) {
	m, err := models.LoadTranslator(makeFixture(t) + "/model")
	if err != nil {
		t.Fatal(err)
	}
	s := modelSource{m: m, unknown: newUnknown(io.Discard)}
	r, err := s.Record(t.Context(), "5 march 2019", "")
	if err != nil {
		t.Fatal(err)
	}
	if r.Source != "5 march 2019" || len(r.Layers) == 0 {
		t.Errorf("%q → %q with %d layers", r.Source, r.Target, len(r.Layers))
	}
	if r, err = s.Record(t.Context(), "5 march 2019", "2019-03-05"); err != nil || r.Target != "2019-03-05" {
		t.Fatalf("with a target: %v", err)
	}
	if l := r.Layer(heads.Cross, 0); l == nil || !strings.HasPrefix(strings.Join(l.Queries, ""), "▁2019-03-05") {
		t.Errorf("cross layer 0 is %v", l)
	}
	long := strings.Repeat("x", mostTokens+1)
	for _, texts := range [][2]string{{long, ""}, {"x", long}} {
		if _, err := s.Record(t.Context(), texts[0], texts[1]); err == nil || !strings.Contains(err.Error(), "tokens, want at most 2048") {
			t.Errorf("a long text: %v", err)
		}
	}
}

// The page explains why a record has no queries and keys.
func TestNoVectors(t *testing.T) {
	v := seq2seq.BuildVocabulary([]string{"x"}, seq2seq.Chars, 10)
	for _, c := range []struct{ score, source, want string }{
		{"scaled", strings.Repeat("x", 2000), "a shorter text has them"},
		{"gaussian", "x", "not products"},
	} {
		m, err := models.NewTranslator(models.TranslatorConfig{Arch: models.Transformer, Score: c.score, Width: 256, Heads: 4, Layers: 2, Hidden: 16, SourceVocab: v.Len(), TargetVocab: v.Len()},
			v, v, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		s := modelSource{m: m, unknown: newUnknown(io.Discard)}
		r, err := s.Record(t.Context(), c.source, "x")
		if err != nil {
			t.Fatal(err)
		}
		if size := r.Layers[0].VectorSize(); size != 0 || !strings.Contains(s.NoVectors(r), c.want) {
			t.Errorf("%s scores of %d letters: vectors of %d, and the reason is %q", c.score, len(c.source), size, s.NoVectors(r))
		}
	}
}

// The memory of kept records of a translator is estimated correctly: the heap grows to less than twice
// the limit.
func TestTextsOfTranslatorTakeWhatIsKept(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: prunes")
	}
	v := seq2seq.BuildVocabulary([]string{"abc"}, seq2seq.Chars, 10)
	m, err := models.NewTranslator(models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 64, Heads: 4, Layers: 2, Hidden: 16, SourceVocab: v.Len(), TargetVocab: v.Len()},
		v, v, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	const keep = 32 << 20
	server, err := view.New(view.Options{Source: modelSource{m: m, unknown: newUnknown(io.Discard)}, Keep: keep, MaxText: train.LongestText})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.Serve(ctx, l) }()
	defer func() { cancel(); <-ended }()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	if r, err := client.Get(server.Address(l.Addr().String())); err != nil || r.StatusCode != http.StatusOK {
		t.Fatal(r, err)
	}
	heap := func() int64 {
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	runtime.GC()
	before, peak := heap(), int64(0)
	for i := range 900 {
		body := fmt.Sprintf(`{"source":"%04d ab","target":"%s"}`, i, strings.Repeat("abc", 8))
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Addr().String()+"/api/record", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", "http://"+l.Addr().String())
		r.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		peak = max(peak, heap())
	}
	runtime.GC()
	if kept := heap() - before; kept < keep/2 || kept > keep+keep/8 {
		t.Errorf("texts take %.1f MB, of which %d MB may be kept", float64(kept)/(1<<20), keep>>20)
	}
	if most := (before + keep) * 3 / 2; peak > most {
		t.Errorf("the heap grew to %d MB, want at most %d MB", peak>>20, most>>20)
	}
}

// Weights that are computed on request are bit-for-bit equal to recorded weights. Queries and keys are
// recorded for short texts.
func TestTranslatorSourceKeepsNoWeights(t *testing.T) {
	v := seq2seq.BuildVocabulary([]string{"x"}, seq2seq.Chars, 10)
	source := func(c models.TranslatorConfig) modelSource {
		c.Score, c.Width, c.SourceVocab, c.TargetVocab = "scaled", 16, v.Len(), v.Len()
		m, err := models.NewTranslator(c, v, v, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		return modelSource{m: m, unknown: newUnknown(io.Discard)}
	}
	transformer := models.TranslatorConfig{Arch: models.Transformer, Heads: 8, Layers: 3, Hidden: 16}
	for _, c := range []models.TranslatorConfig{transformer, {Arch: models.GRU, Layers: 3}, {Arch: models.GRU, Layers: 2, Heads: 2}} {
		s := source(c)
		r, err := s.Record(t.Context(), "xxxxx", "xx")
		if err != nil {
			t.Fatal(err)
		}
		kept, err := s.m.Record("xxxxx", "xx", heads.RecorderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var vectors int64
		for i := range r.Layers {
			l := &r.Layers[i]
			if vectors += 4 * int64(len(l.QueryVectors)+len(l.KeyVectors)); l.ValueNorms == nil || l.VectorSize() == 0 || l.Weights != nil {
				t.Errorf("%s with %d heads: %s has %d norms, vectors of %d, and %d weights", c.Arch, c.Heads, l.Name, len(l.ValueNorms), l.VectorSize(), len(l.Weights))
			}
			for h := range l.Heads {
				if !slices.Equal(l.Head(h), kept.Layers[i].Head(h)) {
					t.Errorf("%s with %d heads: %s: head %d has other weights on request", c.Arch, c.Heads, l.Name, h)
				}
			}
		}
		if most := s.vectors(5, 2); vectors > most || vectors < most && c.Arch == models.Transformer {
			t.Errorf("%s with %d heads: vectors of %d bytes, want at most %d", c.Arch, c.Heads, vectors, most)
		}
	}
}
