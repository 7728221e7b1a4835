package models_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tokenizer"
)

// allocated returns the number of bytes that a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A long text is read up to the limit of the model, to embed its beginning and to reject it.
func TestLongText(t *testing.T) {
	e, err := models.LoadEmbedder("testdata/sentence_dense", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.Prompt = "" // a text is copied behind a prompt
	tok, err := e.Model.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	const part, enough = "the cat, the dog and the house ", 1 << 20
	all, err := tok.Encode(strings.Repeat(part, 100), tokenizer.Options{NoTruncation: true, NoPadding: true})
	if err != nil {
		t.Fatal(err)
	}
	end := all.IDs[len(all.IDs)-1]
	long := strings.Repeat(part, (10<<20)/len(part))
	for text, wantCut := range map[string]bool{"the cat": false, long: true} {
		n := allocated(func() {
			x, cut, err := e.Encode(t.Context(), text)
			if err != nil || cut != wantCut {
				t.Fatalf("%.30q: truncated %t, error %v, want %t", text, cut, err, wantCut)
			}
			if want := append(slices.Clone(all.IDs[:e.MostTokens-1]), end); cut && !slices.Equal(x.IDs, want) {
				t.Errorf("tokens %v, want %v", x.IDs, want)
			}
		})
		if n > enough {
			t.Errorf("%.30q: Encode allocates %d bytes", text, n)
		}
	}
	for name, pair := range map[string][2]string{"one": {long, ""}, "first": {long, long}, "second": {"the cat", long}} {
		n := allocated(func() {
			if _, err := e.Model.Encode(pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), "the text has more than ") {
				t.Errorf("%s: error %v", name, err)
			}
		})
		if n > enough {
			t.Errorf("%s: the refusal allocates %d bytes", name, n)
		}
	}
}
