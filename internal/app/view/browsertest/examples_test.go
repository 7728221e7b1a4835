package browsertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// The examples of the open head are below it, also in an exported page.
func TestExamplesOfHead(t *testing.T) {
	t.Parallel()
	words := letters(4)
	record := &heads.Record{Source: "abcd", Layers: []heads.Layer{layer(heads.Encoder, 0, 2, words, words)}}
	path := filepath.Join(t.TempDir(), "examples.json")
	text := `{"criterion": "sharp", "data": "corpus", "texts": 1234, "layers": [{"name": "` + record.Layers[0].Name + `", "heads": 2, "examples": [
		[{"score": 1.5, "weight": 0.75, "line": 7, "query": 2, "key": 0, "queries": ["x", "</p>", "z"], "keys": ["x", "</p>", "z"], "weights": [0.75, 0.25, 0]}],
		[{"score": 1, "weight": 1, "line": 8, "query": 0, "key": 1, "queries": ["q"], "keys": ["x", "y"], "weights": [0, 1]}]]}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := view.Options{Name: "m", Records: []*heads.Record{record}}
	if err := o.ReadExamples(path); err != nil {
		t.Fatal(err)
	}
	b := open(t, 1280, 800)
	b.visit(serve(t, o))
	seen := func() {
		t.Helper()
		if got := b.text("#examples p"); !strings.HasSuffix(got, "head 0 scores highest by “sharp” among 1,234 texts of corpus") {
			t.Errorf("the title is %q", got)
		}
		if got := b.text("#examples li .small"); got != "score 1.500, weight 0.750, line 7" {
			t.Errorf("the example is %q", got)
		}
		if got := b.text("#examples .picked"); got != "z" {
			t.Errorf("the query is %q", got)
		}
		if got := js[string](b, `[...document.querySelectorAll("#examples .chip")].map((c) => c.textContent + " " + c.title + (c.style.background ? "*" : "")).join("|")`); got != "x 0.750*|</p> 0.250*|z 0" {
			t.Errorf("the tokens are %q", got)
		}
	}
	seen()
	page := b.download(`[data-export="html"]`, "m.html")
	b.visit(b.save(page))
	seen()
	b.visit(js[string](b, `location.href.split("#")[0]`) + "#a=0.1")
	if got := js[string](b, `document.querySelector("#examples .flow").textContent`); got != "qattends toxy" {
		t.Errorf("an example of two texts is %q", got)
	}
}
