package tokenizer_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/attn-go/attn/tokenizer"
)

// The files beside a tokenizer.json change tokens, their types and the end that is cut as in transformers.
func TestConfigured(t *testing.T) {
	var golden struct {
		Cases []struct {
			Name        string
			Texts       []string
			Files       map[string]json.RawMessage
			Most        int
			IDs         [][]int
			Pair, Types []int
		}
	}
	if readGzip(t, "../testdata/tokenizer/configured.json.gz", &golden); len(golden.Cases) < 80 {
		t.Fatalf("%d cases", len(golden.Cases))
	}
	for _, c := range golden.Cases {
		files := map[string]string{}
		for name, text := range c.Files {
			files[name] = string(text)
		}
		tok, _, err := loadFiles(t, files)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		o := tokenizer.Options{MaxLength: c.Most, NoTruncation: c.Most == 0}
		for i, text := range c.Texts {
			if x, err := tok.Encode(text, o); err != nil || !slices.Equal(x.IDs, c.IDs[i]) {
				t.Errorf("%s: %q has tokens %v, want %v (%v)", c.Name, text, x.IDs, c.IDs[i], err)
			}
		}
		if x, err := tok.EncodePair(c.Texts[1], c.Texts[2], o); err != nil || !slices.Equal(x.IDs, c.Pair) || !slices.Equal(x.TypeIDs, c.Types) {
			t.Errorf("%s: the pair has tokens %v of types %v, want %v and %v (%v)", c.Name, x.IDs, x.TypeIDs, c.Pair, c.Types, err)
		}
	}
}
