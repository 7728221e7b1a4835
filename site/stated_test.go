package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// words returns a file with single spaces between its words.
func words(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// head is a head of the exported page, with its weights [queries][keys].
type head struct {
	layer, number int
	weights       [][]float64
}

// exportedHeads returns the heads of lesson 7, and the tokens of its first sentence. The other four are in
// minilm-more.json.gz: view.Page of their records by heads.RecorderOptions{}, from all-MiniLM-L6-v2.
func exportedHeads(t *testing.T) (list []head, tokens []string) {
	t.Helper()
	packed, err := os.ReadFile("assets/minilm-heads.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var page struct{ Answers map[string][]byte }
	if err := json.NewDecoder(r).Decode(&page); err != nil {
		t.Fatal(err)
	}
	var start struct {
		Records []struct{ Axes []struct{ Tokens []string } }
	}
	if err := json.Unmarshal(page.Answers["api/start"], &start); err != nil {
		t.Fatal(err)
	}
	for layer := range 6 {
		for number := range 12 {
			b := page.Answers[fmt.Sprintf("api/head?record=r0&layer=%d&head=%d", layer, number)]
			if len(b) < 32 || string(b[:4]) != "ahm1" {
				t.Fatalf("layer %d, head %d is missing", layer, number)
			}
			rows, columns := int(binary.LittleEndian.Uint32(b[4:])), int(binary.LittleEndian.Uint32(b[8:]))
			low := math.Float32frombits(binary.LittleEndian.Uint32(b[20:]))
			high := math.Float32frombits(binary.LittleEndian.Uint32(b[24:]))
			h := head{layer: layer, number: number}
			for i := range rows {
				row := make([]float64, columns)
				for j := range row {
					row[j] = float64(low) + float64(b[32+i*columns+j])/254*float64(high-low)
				}
				h.weights = append(h.weights, row)
			}
			list = append(list, h)
		}
	}
	return list, start.Records[0].Axes[0].Tokens
}

// The heads and weights that lesson 7 names are those of the page that it shows.
func TestStatedHeads(t *testing.T) {
	list, tokens := exportedHeads(t)
	last := len(tokens) - 1
	// most returns the heads from the largest mean of a query's value on, and these means.
	most := func(from int, value func(i int, row []float64) float64) (heads []head, means []float64) {
		mean := func(h head) (sum float64) {
			for i, row := range h.weights[from:] {
				sum += value(from+i, row) / float64(len(h.weights)-from)
			}
			return sum
		}
		heads = slices.SortedFunc(slices.Values(list), func(a, b head) int { return cmp.Compare(mean(b), mean(a)) })
		for _, h := range heads {
			means = append(means, mean(h))
		}
		return heads, means
	}
	lesson, script := words(t, "../docs/lessons.md"), words(t, "assets/minilm.js")
	stated := func(text, format string, args ...any) {
		t.Helper()
		if want := fmt.Sprintf(format, args...); !strings.Contains(text, want) {
			t.Errorf("the page has %q, which is not stated", want)
		}
	}

	h, mean := most(1, func(i int, row []float64) float64 { return row[i-1] })
	stated(lesson, "The previous token is in layer %d, head %d: every token after the first gives all of its weight (%.2f)",
		h[0].layer, h[0].number, mean[0])
	stated(script, "at: \"%d.%d\", text: t`Layer %[1]d, head %d: each token after the first gives all of its weight",
		h[0].layer, h[0].number)

	h, mean = most(0, func(_ int, row []float64) float64 { return row[0] })
	stated(lesson, "The clearest sink is layer %d, head %d, where tokens give `[CLS]` %.2f on average; "+
		"heads %d and %d of layer %d are close.", h[0].layer, h[0].number, mean[0], h[1].number, h[2].number, h[1].layer)
	if h[1].layer != h[2].layer {
		t.Errorf("the next sinks are in layers %d and %d", h[1].layer, h[2].layer)
	}
	stated(script, "at: \"%d.%d\", text: t`Layer %[1]d, head %d: on average [CLS], the first column, gets %.2f of",
		h[0].layer, h[0].number, mean[0])

	h, mean = most(0, func(_ int, row []float64) float64 { return row[last-1] + row[last] })
	stated(lesson, "The separator is layer %d, head %d: %.2f of the weight goes to the full stop and `[SEP]`.",
		h[0].layer, h[0].number, mean[0])
	stated(script, "at: \"%d.%d\", text: t`Layer %[1]d, head %d: the full stop and [SEP], the last two columns, get %.2f of",
		h[0].layer, h[0].number, mean[0])

	h, mean = most(0, func(i int, row []float64) float64 {
		if i+1 == len(row) {
			return 0
		}
		return row[i+1] * float64(len(tokens)) / float64(len(tokens)-1)
	})
	exercise := words(t, "assets/exercise.js")
	stated(exercise, "layer %d, head %d gives the next token %.2f of the weight, on average.`, [%[1]d, %d]", h[0].layer, h[0].number, mean[0])
	stated(exercise, "gives the next token %.2f of the weight. Another one gives it twice as much.`, [%d, %d]", mean[1], h[1].layer, h[1].number)

	it, animal := slices.Index(tokens, "it"), slices.Index(tokens, "animal")
	h, mean = most(0, func(i int, row []float64) float64 {
		if i != it {
			return 0
		}
		return row[animal] * float64(len(tokens))
	})
	stated(lesson, "in layer %d, head %d, \"it\" attends to \"animal\" with %.2f.", h[0].layer, h[0].number, mean[0])
	stated(script, "at: \"%d.%d\", tok: \"q%d\", text: t`Layer %[1]d, head %d: the selected query “it” gives %.2[4]f of",
		h[0].layer, h[0].number, it, mean[0])
}

// What lesson 6 prints is the output of the example, and lesson 1 names the steps of its program and of its figure.
func TestStatedExamples(t *testing.T) {
	text, err := os.ReadFile("../mask/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "func ExampleDocuments() {")
	_, output, _ := strings.Cut(example, "// Output:\n")
	output, _, _ = strings.Cut(output, "}")
	lesson, err := os.ReadFile("../docs/lessons.md")
	if err != nil {
		t.Fatal(err)
	}
	block := strings.TrimRight(strings.ReplaceAll(output, "\t// ", "    "), "\n")
	if block == "" || !strings.Contains(string(lesson), "\n"+block+"\n") {
		t.Errorf("lesson 6 does not print\n%s", block)
	}
	page, script := words(t, "pages/regression.html"), words(t, "assets/regression.js")
	program := words(t, "../examples/regression/main.go")
	var steps, usual int
	var rate, slow string
	_, after, _ := strings.Cut(page, "The figure takes ")
	form := "%d steps with the learning rate %s instead of the %d with %s above"
	if _, err := fmt.Sscanf(after, form, &steps, &rate, &usual, &slow); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(script, fmt.Sprintf("steps = %d, rate = %s,", steps, rate)) ||
		!strings.Contains(program, fmt.Sprintf("for range %d {", usual)) ||
		!strings.Contains(program, fmt.Sprintf("optimizer.Step(%s)", slow)) {
		t.Errorf("lesson 1 states %d steps with %s and %d with %s", steps, rate, usual, slow)
	}
}
