package view

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
)

// examplesFile is as attn heads --examples --json writes it, for a cross-attention layer of two heads.
const examplesFile = `{"model": "m", "data": "corpus", "criterion": "sharp", "texts": 2, "tokens": 9, "layers": [{"name": "decoder.0.cross",
"kind": "cross", "index": 0, "heads": 2, "kept": [0, 1], "examples": [[], [{"score": 1.5, "weight": 0.75, "line": 2, "query": 1, "key": 0,
"queries": ["▁x", "<eos>"], "keys": ["▁a", "##b", "<eos>"], "special": ["<eos>"], "weights": [0.75, 0.25, 0], "source": "ab", "target": "x"}]]}]}`

func TestExamples(t *testing.T) {
	path := filepath.Join(t.TempDir(), "examples.json")
	write := func(text string) error {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return new(Options).ReadExamples(path)
	}
	if err := write(examplesFile); err != nil {
		t.Fatal(err)
	}
	o := Options{Records: []*heads.Record{sample()}}
	if err := o.ReadExamples(path); err != nil {
		t.Fatal(err)
	}
	s := New(o)
	if got := ask(s, "GET", "/api/start", "", nil).Body.String(); !strings.Contains(got, `"examples":{"criterion":"sharp","data":"corpus","texts":2}`) {
		t.Errorf("start: %s", got)
	}
	const address = "/api/examples?record=r0&layer=0&head="
	if got := ask(s, "GET", address+"0", "", nil).Body.String(); got != "[]" {
		t.Errorf("head 0: %s, want none", got)
	}
	if w := ask(s, "GET", address+"2", "", nil); w.Code != 400 {
		t.Errorf("head 2: status %d, want 400", w.Code)
	}
	var got []struct {
		Score      float64
		Line       int
		Query, Key int
		Q, K       []string
		Weights    []float32
		Source     string
	}
	if err := json.Unmarshal(ask(s, "GET", address+"1", "", nil).Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Score != 1.5 || got[0].Line != 2 || strings.Join(got[0].Q, "|") != "▁x|∎" || got[0].K[2] != "∎" || got[0].Weights[1] != 0.25 || got[0].Source != "ab" {
		t.Errorf("head 1: %+v", got)
	}
	page, err := Page(t.Context(), o, nil)
	if err != nil || !strings.Contains(string(page), `"api/examples?record=r0\u0026layer=0\u0026head=1"`) {
		t.Errorf("the exported page has no examples: %v", err)
	}
	if got := ask(New(Options{Records: o.Records}), "GET", address+"1", "", nil).Body.String(); got != "[]" {
		t.Errorf("without examples: %s", got)
	}

	for change, want := range map[string]string{
		`"criterion": "sharp"|"criterion": ""`: "is not the output of attn heads --examples --json",
		`"heads": 2|"heads": 3`:                `layer "decoder.0.cross" has examples of 2 heads, want 3`,
		`"query": 1|"query": 2`:                `layer "decoder.0.cross" has an example of query 2 of 2 and key 0 of 3 with 3 weights`,
		`"key": 0|"key": -1`:                   `layer "decoder.0.cross" has an example of query 1 of 2 and key -1 of 3 with 3 weights`,
		`, 0], "source"|], "source"`:           `layer "decoder.0.cross" has an example of query 1 of 2 and key 0 of 3 with 2 weights`,
	} {
		old, with, _ := strings.Cut(change, "|")
		if err := write(strings.Replace(examplesFile, old, with, 1)); err == nil || err.Error() != path+": "+want {
			t.Errorf("%s: error %v, want %s", change, err, want)
		}
	}
}
