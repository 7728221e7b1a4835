package tasks

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
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

// copyModel copies directories of models/testdata into one, and returns it.
func copyModel(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		files, err := filepath.Glob("../../../models/testdata/" + name)
		if err != nil || files == nil {
			t.Fatalf("no files %s (%v)", name, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err := errors.Join(err, os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each kind of model has its task, and its data become a probe and records.
func TestOpen(t *testing.T) {
	const tokenizer = "sentence_dense/tokenizer.json"
	pairs := "the cat\ta dog\t2.5\nwho sat\twho sleeps\t5\n"
	for _, c := range []struct {
		dir                string
		data               string
		name, items        string
		metric             string
		sources, texts     int
		wrong, wrongReason string
	}{
		{
			copyModel(t, "bert_words/*", tokenizer), "the cat sat\na dog\n\nthe cat sat\n",
			"masked words", "texts", "loss", 2, 3, "the cat\n", "",
		},
		{copyModel(t, "bert_text/*", tokenizer), "the cat\tcalm\na dog\tthe sun\tglad\n", "classes of a text", "texts", "accuracy", 2, 2, "the cat\tangry\n", `1: label "angry", want one of "calm", "glad", "sad"`},
		{"../../../models/testdata/sentence_dense", pairs, "similarity of texts", "pairs", "spearman", 2, 4, "a\tb\tc\n", `1: similarity "c", want a number`},
		{"../../../models/testdata/sentence_dense", "the cat\na dog\nthe cat\n", "vectors of texts", "texts", "cosine", 2, 3, "a\tb\n", "1: has 2 columns, want two texts and a number, how similar they are, or only texts, with tabs between them"},
	} {
		m, err := Open(c.dir, write(t, c.data), models.Options{}, Limits{Lines: 9})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if m.Name != c.name || m.Items != c.items || m.Metrics[0] != c.metric || m.Recipe != nil {
			t.Errorf("task %q of %s by %v, want %q of %s by %s", m.Name, m.Items, m.Metrics, c.name, c.items, c.metric)
		}
		probe, err := m.Probe(t.Context(), m.Data, m.Lines, 1)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		examples := 0
		for _, n := range probe.Batches() {
			examples += n
		}
		if examples != len(m.Lines) {
			t.Errorf("%s: %d examples of %d lines", c.name, examples, len(m.Lines))
		}
		texts, parts, record, err := m.Recorder()
		if err != nil || texts != c.texts || parts != 1 {
			t.Errorf("%s: %d texts in %d parts (%v), want %d in 1", c.name, texts, parts, err, c.texts)
		}
		if r, err := record(t.Context(), texts-1); err != nil || len(r.Layers) == 0 {
			t.Errorf("%s: the last record: %v", c.name, err)
		}
		files := m.Files()
		if n := len(stats.GroupBy(m.Lines, m.Source)); n != c.sources {
			t.Errorf("%s: %d sources, want %d", c.name, n, c.sources)
		}
		if !slices.Contains(files, filepath.Join(c.dir, "config.json")) {
			t.Errorf("%s: files %v", c.name, files)
		}
		path := write(t, c.wrong)
		m, err = Open(c.dir, path, models.Options{}, Limits{Lines: 9})
		if err == nil {
			_, err = m.Probe(t.Context(), path, m.Lines, 1)
		}
		want := path + ":" + c.wrongReason
		if c.wrongReason == "" && err != nil || c.wrongReason != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: error %v, want %s", c.name, err, want)
		}
		if _, err := Open(c.dir, "", models.Options{}, Limits{}); !errors.As(err, new(*flags.Error)) {
			t.Errorf("%s without data: %v", c.name, err)
		}
	}
}

// Lines of the first sources stay in order.
func TestLimit(t *testing.T) {
	m := &Model{Task: translation}
	for i, s := range []string{"a", "b", "a", "c", "b"} {
		m.Lines = append(m.Lines, train.Line{Number: i, Columns: []string{s, ""}})
	}
	m.Limit(2)
	var numbers []int
	for _, l := range m.Lines {
		numbers = append(numbers, l.Number)
	}
	if want := []int{0, 1, 2, 4}; !slices.Equal(numbers, want) {
		t.Errorf("lines %v, want %v", numbers, want)
	}
}

func TestOpenErrors(t *testing.T) {
	answers := copyModel(t, "bert_answers/*", "sentence_dense/tokenizer.json")
	for dir, want := range map[string]string{
		answers:                             answers + ": has a head for the span of an answer, want a head for ",
		"../../../models/testdata/bert":     "tokenizer: ../../../models/testdata/bert: has no tokenizer.json",
		filepath.Join(t.TempDir(), "empty"): "no such file",
	} {
		if _, err := Open(dir, write(t, "a\n"), models.Options{}, Limits{Lines: 1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", dir, err, want)
		}
	}
}
