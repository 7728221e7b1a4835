package texts

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// padded is a network that counts tokens, padding included.
type padded struct {
	models.Network
	tokens atomic.Int64
}

func (n *padded) Hidden(t *tensor.Tape, x models.Batch, r models.Run) *tensor.Tensor {
	n.tokens.Add(int64(slices.Max(x.Lens()) * len(x.IDs)))
	return n.Network.Hidden(t, x, r)
}

// Lines have the vectors of Embedder.Embed, in the order of the input, and a long line does not pad the others. A line
// that cannot be embedded has no effect on the others.
func TestVectors(t *testing.T) {
	e, err := models.LoadEmbedder("../../../models/testdata/sentence_mean", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Repeat([]string{"the cat sat", "who?", ""}, 200)
	lines[100] = strings.Repeat("the cat sat on the mat. ", 5)
	want, err := e.Embed(t.Context(), lines...)
	if err != nil {
		t.Fatal(err)
	}
	tokens := 0
	for _, text := range lines {
		x, _, err := e.Encode(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		tokens += len(x.IDs)
	}
	n := &padded{Network: e.Model.Network}
	e.Model.Network = n
	lines[7] = "\xff"
	var out bytes.Buffer
	if _, err := Vectors(e).Run(t.Context(), strings.NewReader(strings.Join(lines, "\n")+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(got) != len(lines) || got[7] != `{"error":"invalid UTF-8"}` {
		t.Fatalf("%d lines, line 7 is %s", len(got), got[7])
	}
	for i, line := range got {
		var v []float32
		if i == 7 {
			continue
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil || !slices.Equal(v, want.Data()[i*e.Width():(i+1)*e.Width()]) {
			t.Fatalf("line %d is %s (%v), want the vector of Embed", i, line, err)
		}
	}
	if most := int64(tokens * 11 / 10); n.tokens.Load() > most {
		t.Errorf("%d tokens with padding, of %d, want at most %d", n.tokens.Load(), tokens, most)
	}
}
