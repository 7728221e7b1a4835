package view

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn/heads"
)

// A signed layer has a scale with 0 at its centre, keeps the weights farthest from 0, and has measures without an
// entropy; its rollout has shares.
func TestSigned(t *testing.T) {
	tokens := []string{"a", "b", "c"}
	weights := []float32{
		0.5, 0, 0, -3, 1, 0, 0, 0.25, -0.75,
		1, 0, 0, 0.5, 0.5, 0, 0, 0, 2,
	}
	s := New(Options{Records: []*heads.Record{{Layers: []heads.Layer{
		{Name: "decoder.0", Kind: heads.Decoder, Heads: 2, Queries: tokens, Keys: tokens, Weights: weights, Signed: true},
	}}}})
	get := func(path string) []byte {
		w := ask(s, "GET", "/api/"+path, "", nil)
		if w.Code != 200 {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return w.Body.Bytes()
	}
	of := "record=r0&layer=0"
	for head, hi := range map[string]float32{"0": 3, "1": 2, "mean": 1.25} {
		b := get("head?" + of + "&head=" + head)
		word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
		if lo, top := math.Float32frombits(word(5)), math.Float32frombits(word(6)); lo != -hi || top != hi || word(7) != 1|256 {
			t.Errorf("head %s: from %v to %v, size %d, want ±%v and 257", head, lo, top, word(7), hi)
		}
		if head == "0" && !slices.Equal(b[32:41], []byte{148, 127, 127, 0, 169, 127, 127, 138, 95}) {
			t.Errorf("codes %v", b[32:41])
		}
	}
	if b := get("head?" + of + "&head=rollout"); binary.LittleEndian.Uint32(b[28:]) != 1 {
		t.Error("a rollout is signed")
	}
	m, bq, bk := matrix{3, 3, weights[:9], true}.pool(span{0, 3}, span{0, 3}, 2)
	if !slices.Equal(m.w, []float32{-3, 0, 0.25, -0.75}) || bq != 2 || bk != 2 || !m.signed {
		t.Errorf("pooled %+v", m)
	}
	broken := matrix{1, 2, []float32{float32(math.NaN()), 1}, true}
	if m, _, _ := broken.pool(span{0, 1}, span{0, 2}, 1); m.w[0] == m.w[0] {
		t.Errorf("pooled %v, want NaN", m.w)
	}
	var rows [][]*float64
	if err := json.Unmarshal(get("measures?"+of), &rows); err != nil {
		t.Fatal(err)
	}
	for i, c := range columns {
		if x := rows[0][i]; c.Key == "entropy" && x != nil || c.Key == "previous" && (x == nil || *x != 0.5) {
			t.Errorf("%s is %v", c.Key, x)
		}
	}
	var d []*float64
	if err := json.Unmarshal(get("divergence?"+of+"&from=0.0"), &d); err != nil || *d[0] != 0 || !(*d[1] > 0 && *d[1] < math.Ln2) {
		t.Errorf("divergences %v, %v", d, err)
	}
	if w := fmt.Sprint(s.store.fixed[0].outline.Warnings); w != "[]" {
		t.Errorf("warnings %s", w)
	}
}
