package main

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// testModels is the absolute path of models/testdata: tests change the working directory.
var testModels, _ = filepath.Abs("../../models/testdata")

// newModel writes an untrained translator of dates to a directory.
func newModel(t *testing.T, dir string) {
	t.Helper()
	r := train.DatesRecipe()
	r.Network.Arch, r.Network.Width, r.Network.Hidden = models.Transformer, 8, 3
	source, target := train.Vocabularies(train.Dates(13, 1), r.Units, r.VocabSize)
	m, err := models.NewTranslator(r.Network, source, target, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
}

// copyModel copies a directory of models/testdata, without the expected results of its tests.
func copyModel(t *testing.T, name, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(filepath.Join(testModels, name))); err != nil {
		t.Fatal(err)
	}
	golden, err := filepath.Glob(to + "/golden*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range golden {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// The same kind of failure has the same exit code in all commands.
func TestExitCodes(t *testing.T) {
	t.Chdir(t.TempDir())
	newModel(t, "run")
	copyModel(t, "sentence_mean", "encoder")
	copyModel(t, "llama_text", "decoder")
	pairs := filepath.Join(makePairs(t), "pairs.tsv")
	if err := errors.Join(os.WriteFile("texts", []byte("a\nb\n"), 0o644), os.Rename(pairs, "pairs"), os.Mkdir("empty", 0o755)); err != nil {
		t.Fatal(err)
	}
	check := func(code int, line string) {
		t.Helper()
		var out, messages bytes.Buffer
		got := run(context.Background(), strings.Fields(line), console{in: strings.NewReader(""), out: &out, err: &messages})
		if got != code || strings.Count(messages.String(), "\n") != 1 {
			t.Errorf("attn %s: exit code %d and %q, want %d and one line", line, got, messages.String(), code)
		}
	}
	// X is a missing input, or an empty directory in place of a file or a model.
	for _, line := range []string{
		"tokenize --model encoder --file X", "tokenize --model X a", "embed --model encoder X", "embed --model X texts",
		"heads --model run --data X", "heads --model run --sums X", "heads --model X --data pairs",
		"view --model encoder --importance X", "view --weights X", "view --model X",
		"map --model encoder --font X --png p cat", "map --weights X", "map --model X hello",
		"run --model encoder --in X --out y", "run --model X --out y hello", "apply --in X --out y", "eval --model run --data X", "eval --model X --data pairs",
		"prune --model run --data X --out new", "prune --model X --data pairs --out new", "train --data X --out new", "train --data pairs --valid X --out new",
		"train --resume --out X", "shards --input X --shards 1 --output new tokenize --model encoder",
		"shards --input texts --shards 1 --output new tokenize --model X", "shards --output X --merge",
		"models X", "merge --base X --adapter encoder --out new", "merge --base encoder --adapter X --out new", "generate --model X a", "export --model X --onnx y", "translate --model X a",
	} {
		for _, input := range []string{"missing", "empty"} {
			check(exitInput, strings.Replace(line, "X", input, 1))
		}
	}
	for _, line := range []string{
		// A file in place of a directory.
		"tokenize --model texts a", "models texts", "generate --model texts a", "embed --model texts texts", "follow texts", "follow missing",
		"export --model texts --onnx y", "shards --output texts --merge", "train --resume --out texts",
		// A model of the wrong kind.
		"generate --model encoder a", "translate --model encoder a", "eval --model encoder --data pairs",
		"export --model decoder --onnx y", "embed --model run texts", "heads --model encoder --sums texts",
	} {
		want := exitInput
		if strings.HasPrefix(line, "train") { // X is an output of attn train
			want = exitFailed
		}
		check(want, line)
	}
	// An output that cannot be written: X is a file in place of a directory, or a directory in place of
	// a file.
	for line, x := range map[string]string{
		"train --data pairs --out X": "texts", "prune --model run --data pairs --out X": "texts",
		"shards --input texts --shards 1 --output X tokenize --model encoder": "texts", "fetch a/b --out X": "texts",
		"merge --base encoder --adapter encoder --out X": "texts",
		"map --model encoder --svg X hello":              "empty", "embed --model encoder --npy X texts": "empty", "run --model encoder --out X hello": "empty",
		"heads --model run --data pairs --svg X": "empty", "export --model run --onnx X": "empty", "apply --in texts --out X": "empty",
		"prune --model run --data pairs --out new --report X": "empty",
	} {
		for _, x := range []string{x, "texts/below"} {
			check(exitFailed, strings.Replace(line, "X", x, 1))
		}
	}
}
