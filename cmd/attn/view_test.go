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
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/app/view"
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
	const keep = 16 << 20
	server := view.New(view.Options{Recorder: recording.Model{Model: m}, Keep: keep, MaxText: train.LongestText})
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
	heap := func() (size, goal int64) { // at the goal, the next collection starts
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc), int64(s.NextGC)
	}
	runtime.GC()
	before, _ := heap()
	peak := int64(0)
	for i := range 450 {
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
		size, _ := heap()
		peak = max(peak, size)
	}
	runtime.GC()
	after, goal := heap()
	if kept := after - before; kept < keep/2 || kept > keep+keep/8 {
		t.Errorf("texts take %.1f MB, of which %d MB may be kept", float64(kept)/(1<<20), keep>>20)
	}
	if most := (before + keep) * 3 / 2; goal > most { // with Go's default, it would be twice the heap
		t.Errorf("the collector starts at %d MB, want at most %d MB", goal>>20, most>>20)
	}
	if peak > 2*keep { // the collector runs later on a busy machine
		t.Errorf("the heap grew to %d MB, want at most %d MB", peak>>20, 2*keep>>20)
	}
}
