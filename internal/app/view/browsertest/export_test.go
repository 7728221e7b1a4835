package browsertest

import (
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// The names of exported files contain the name of the model and, for pictures, of the head.
func TestExportedNames(t *testing.T) {
	t.Parallel()
	words := letters(4)
	record := &heads.Record{Source: "abc", Layers: []heads.Layer{layer(heads.Encoder, 0, 2, words, words)}}
	b := open(t, 1280, 800)
	b.visit(serve(t, view.Options{Name: "runs/fra eng.run", Records: []*heads.Record{record}}))
	for kind, want := range map[string]string{"svg": "fra-eng.run-encoder-layer-0-head-0.svg", "png": "fra-eng.run-encoder-layer-0-head-0.png", "html": "fra-eng.run.html"} {
		b.download(`[data-export="`+kind+`"]`, "."+kind)
		if b.saved != want {
			t.Errorf("%s is saved as %q, want %q", kind, b.saved, want)
		}
	}
}
