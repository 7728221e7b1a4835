package probe

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor/tensortest"
)

func TestRecord(t *testing.T) {
	src, write, read := []string{"a", "b", "c", "<eos>"}, []string{"f", "e", "<eos>"}, []string{"<bos>", "f", "e"}
	type layer struct {
		name          string
		kind          heads.Kind
		index         int
		queries, keys []string
	}
	all := []layer{
		{"encoder.0.self", heads.Encoder, 0, src, src}, {"encoder.1.self", heads.Encoder, 1, src, src},
		{"decoder.0.self", heads.Decoder, 0, write, read}, {"decoder.1.self", heads.Decoder, 1, write, read},
		{"decoder.0.cross", heads.Cross, 0, write, src}, {"decoder.1.cross", heads.Cross, 1, write, src},
	}
	for _, c := range toyConfigs() {
		want := all
		if c.Arch == models.GRU {
			want = all[4:5] // one, however many layers
		}
		r, err := RecordTexts(t.Context(), newToy(t, c, toyBatch), "abc", "fe", heads.RecorderOptions{})
		if err != nil {
			t.Fatalf("%s: %v", titleOf(c), err)
		}
		if r.Source != "abc" || r.Target != "fe" || !slices.Equal(r.Special, []string{"<bos>", "<eos>"}) {
			t.Errorf("%s: texts %q, %q, special tokens %q", titleOf(c), r.Source, r.Target, r.Special)
		}
		var got []layer
		for i := range r.Layers {
			l := &r.Layers[i]
			got = append(got, layer{l.Name, l.Kind, l.Index, l.Queries, l.Keys})
			if problems := l.Check(); problems != nil || l.Heads != max(c.Heads, 1) {
				t.Errorf("%s: %s has %d heads and the problems %v", titleOf(c), l.Name, l.Heads, problems)
			}
			if l.Kind == heads.Decoder && (l.Head(1)[0] != 1 || l.Head(1)[1] != 0 || l.Head(1)[5] != 0) {
				t.Errorf("%s: %s sees what is not written yet: %v", titleOf(c), l.Name, l.Head(1))
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: layers\n%v, want\n%v", titleOf(c), got, want)
		}
	}
}

func TestRecordAtNothing(t *testing.T) {
	m := newToy(t, models.TranslatorConfig{Arch: models.GRU, Score: "dot", Width: 12, Layers: 1}, toyBatch)
	_, err := RecordTexts(t.Context(), m, "a", "", heads.RecorderOptions{Kinds: []heads.Kind{heads.Encoder}})
	if want := "heads: none of the selected layers was observed"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The heads of a compact model have the weights and the numbers that they have in the masked one.
func TestRecordCompact(t *testing.T) {
	for _, c := range headed() {
		m, kept := newShaken(t, c, toyBatch), toyKept(c)
		if c.Arch == models.GRU && c.Score == "additive" {
			kept["decoder.0.cross"] = nil
		}
		small := keepHeads(t, m, kept)
		whole, err := RecordTexts(t.Context(), maskedModel(t, m, kept), "abc", "fe", heads.RecorderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := RecordTexts(t.Context(), small, "abc", "fe", heads.RecorderOptions{})
		if c.Arch == models.GRU && len(kept["decoder.0.cross"]) == 0 {
			if want := "the model has no attention heads left, so it has no weights to record"; err == nil || err.Error() != want {
				t.Errorf("%s: error %v, want %s", titleOf(c), err, want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for i := range r.Layers {
			l := &r.Layers[i]
			for h, number := range small.HeadNumbers(l.Name) {
				seen++
				tensortest.Close(t, titleOf(c)+": "+l.Name, l.Head(h), wide(whole.Layer(l.Kind, l.Index).Head(number)), 1e-6)
			}
		}
		want := 0
		for _, l := range small.Attention() {
			want += l.Config().Heads
		}
		if seen != want {
			t.Errorf("%s: %d heads were seen, want %d", titleOf(c), seen, want)
		}
	}
}

// maskedModel returns a model from files in which the other heads are zeros.
func maskedModel(t *testing.T, m *models.Model, kept map[string][]int) *models.Model {
	t.Helper()
	dir := t.TempDir()
	config, err := m.Config(), m.Save(dir)
	if err != nil {
		t.Fatal(err)
	}
	var weights bytes.Buffer
	err = errors.Join(m.WriteMasked(&weights, kept), os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644),
		os.WriteFile(filepath.Join(dir, models.WeightsFile), weights.Bytes(), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := models.Load(dir, models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	return whole
}
