//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/atomicfile"
)

// A second worker on the same shard fails with a message of one line, and the first continues.
func TestTwoWorkersOnOneShard(t *testing.T) {
	dir := t.TempDir()
	text, out := filepath.Join(dir, "text"), filepath.Join(dir, "out")
	if err := os.WriteFile(text, []byte("the cat\ndogs\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"shards", "--input", text, "--output", out, "--shards", "2", "--shard", "1", "tokenize", "--model", "../../models/testdata/sentence_dense"}
	first, err := atomicfile.Lock(filepath.Join(out, "shard-00001-of-00002")) // like a worker
	if err != nil {
		t.Fatal(err)
	}
	var written, messages bytes.Buffer
	code := run(t.Context(), args, console{in: strings.NewReader(""), out: &written, err: &messages})
	want := "attn: write to " + filepath.Join(out, "shard-00001-of-00002") + ": another process is writing there\n"
	if code != exitFailed || messages.String() != want || written.Len() > 0 {
		t.Errorf("exit code %d, %q, want %d, %q", code, messages.String(), exitFailed, want)
	}
	if entries, err := os.ReadDir(filepath.Join(out, "shard-00001-of-00002")); err != nil || len(entries) > 0 {
		t.Errorf("%v is there, %v", entries, err)
	}
	first.Unlock()
	command(t, args...)
	if got, err := os.ReadFile(filepath.Join(out, "shard-00001-of-00002", "output")); err != nil || string(got) != "2 7 13 3\n" {
		t.Errorf("%q, %v", got, err)
	}
}
