package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// The model that is written has learnt the order of the numbers from other lines than those of the test.
func TestRun(t *testing.T) {
	numbers := strings.Fields("one two three four five six seven eight nine ten")
	var lines []string
	for i := range numbers {
		for n := range 4 {
			lines = append(lines, strings.Join(slices.Concat(numbers, numbers)[i:i+5+n], " "))
		}
	}
	dir := t.TempDir()
	write := func(name string, lines ...string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	training, test, out := write("train.txt", lines...), write("test.txt", lines[17:20]...), filepath.Join(dir, "model")
	run(training, test, out, 60, train.Tuning{Steps: 60, Rate: 0.003, Seed: 1})
	m, err := models.Load(out, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	prompt, err := m.Tokens("five six seven")
	if err != nil {
		t.Fatal(err)
	}
	ids := prompt.IDs[0]
	written, err := m.Write(context.Background(), [][]int{ids[:len(ids)-1]}, models.Generation{Tokens: 4}) // without the end of the text
	if err != nil {
		t.Fatal(err)
	}
	if text, want := m.Decode(written[0]), "eight nine"; !strings.HasPrefix(strings.TrimSpace(text), want) {
		t.Errorf("five six seven is followed by %q, want %q", text, want)
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines.txt")
	if err := os.WriteFile(path, []byte("a b\n\nc\r\n a b \nd"), 0o644); err != nil {
		t.Fatal(err)
	}
	if lines, want := read(path, []string{"c"}), []string{"a b", "d"}; !slices.Equal(lines, want) {
		t.Errorf("lines %q, want %q", lines, want)
	}
}
