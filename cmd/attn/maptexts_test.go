package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/quote/hostile"
)

// The texts and tokens of a recording can have any characters. A picture, page or table of it has none that XML forbids,
// that control a terminal, or that change the direction of text.
func TestMapOfHostileTexts(t *testing.T) {
	const text = hostile.Text + "\x00\x1b\ufffe\uffff</title>\"'&]]>"
	tokens := append(strings.Split(text, ""), text, hostile.Long)
	n := len(tokens)
	layer := heads.Layer{Name: "encoder.0.self", Kind: heads.Encoder, Heads: 2, Queries: tokens, Keys: tokens, Weights: make([]float32, 2*n*n)}
	for i := range 2 * n {
		layer.Weights[i*n+i%n] = 1
	}
	path := filepath.Join(t.TempDir(), "hostile.safetensors")
	if err := (&heads.Record{Layers: []heads.Layer{layer}, Source: text, Target: hostile.Long}).WriteFile(path); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"--all"}, {"--divergence"}, {"--svg", "-"}, {"--html", "-"}, {"--embed", "-"}, {"--csv", "-"}} {
		var out, messages bytes.Buffer
		if code := run(t.Context(), append([]string{"map", "--weights", path}, args...), console{out: &out, err: &messages}); code != 0 {
			t.Fatalf("%v: code %d: %s", args, code, messages.String())
		}
		for _, r := range out.String() {
			if unicode.IsControl(r) && r != '\n' && r != '\r' || unicode.Is(unicode.Bidi_Control, r) || r&0xfffe == 0xfffe {
				t.Errorf("%v: the output has the character %U", args, r)
			}
		}
		if len(args) > 1 && args[0] == "--svg" {
			for d := xml.NewDecoder(&out); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
