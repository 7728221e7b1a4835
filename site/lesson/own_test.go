//go:build !js

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/probe"
)

// A model of the reader is opened, and all of its heads are in the page of attn view. What cannot be opened is refused.
func TestOwn(t *testing.T) {
	t.Cleanup(func() { own, ownDir = nil, "/model" })
	refused := func(name string, args object, want string) {
		t.Helper()
		text, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run(context.Background(), name, text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	refused("own.record", object{"text": "a"}, "choose a model first")
	ownDir = "../../models/testdata/sentence_mean"
	opened := call[map[string]int](t, "own.open", object{}, nil)
	if opened["layers"] != 2 || opened["heads"] != 6 {
		t.Errorf("the model has %v", opened)
	}
	page := call[string](t, "own.record", object{"text": "a bird", "theme": "dark"}, nil)
	for _, want := range []string{`"address":"theme=dark"`, "api/head?record=r0\\u0026layer=1\\u0026head=2", "Content-Security-Policy"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	refused("own.record", object{"text": strings.Repeat("a ", 30)}, "more than 13 tokens")
	refused("own.record", object{"text": strings.Repeat("a ", 3000)}, "6,000 bytes, want at most 2,000")
	ownDir = "../../models/testdata/bert_text"
	refused("own.open", object{}, "has no tokenizer.json")
	refused("own.record", object{"text": "a"}, "choose a model first")
	ownDir = t.TempDir()
	refused("own.open", object{}, "config.json")
}

// The small model of lesson 7 reads Chinese, and a head that lesson 7 names attends to the previous character. With
// -update the test writes the page of its sentences, which the site shows:
//
//	go test ./site/lesson -run TestChinese -update
func TestChinese(t *testing.T) {
	t.Cleanup(func() { own, ownDir = nil, "/model" })
	ownDir = "../assets/chinese"
	if opened := call[map[string]int](t, "own.open", object{}, nil); opened["layers"] != 3 || opened["heads"] != 12 {
		t.Errorf("the model has %v", opened)
	}
	script, err := os.ReadFile("../assets/minilm.js")
	if err != nil {
		t.Fatal(err)
	}
	lesson, err := os.ReadFile("../../docs/lessons.md")
	if err != nil {
		t.Fatal(err)
	}
	var records []*heads.Record
	var best, layer, head = 0., 0, 0
	for _, text := range []string{"注意力就是加权平均。", "编码器把每个词元变成一个向量。", "数值相同，只是在内存中的位置不同。"} {
		if !strings.Contains(string(script), strconv.Quote(text)) {
			t.Errorf("lesson 7 has no sentence %s", text)
		}
		r, err := probe.RecordTexts(t.Context(), own, text, "", heads.RecorderOptions{ValueNorms: true, Vectors: true})
		if err != nil {
			t.Fatal(err)
		}
		n := len([]rune(text)) + 2 // characters, and [CLS] and [SEP]
		if got := r.Labels(r.Layers[0].Keys); len(got) != n || slices.Contains(got, "[UNK]") {
			t.Errorf("%s is read as %q", text, got)
		}
		records = append(records, r)
	}
	for l := range records[0].Layers {
		for h := range 4 {
			sum, n := 0., 0
			for _, r := range records {
				w, size := r.Layers[l].Head(h), len(r.Layers[l].Keys)
				for i := 1; i < size; i++ {
					sum, n = sum+float64(w[i*size+i-1]), n+1
				}
			}
			if mean := sum / float64(n); mean > best {
				best, layer, head = mean, l, h
			}
		}
	}
	want := fmt.Sprintf("layer %d, head %d, where a character gives the one before it %.2f of its weight", layer, head, best)
	if text := strings.Join(strings.Fields(string(lesson)), " "); !strings.Contains(text, want) {
		t.Errorf("lesson 7 does not state %q", want)
	}
	if !*update {
		return
	}
	page, err := view.Page(t.Context(), view.Options{Name: "a small model that reads Chinese", Records: records}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, data, _ := strings.Cut(string(page), `id="frozen">`)
	data, _, _ = strings.Cut(data, "</script>")
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("../assets/chinese.json.gz", packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
