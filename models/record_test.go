package models_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
)

// recordRun records a run of a network. Tokens are named by their position.
func recordRun(t *testing.T, m *models.Model, x models.Batch, o heads.RecorderOptions) *heads.Record {
	t.Helper()
	names := func(ids [][]int) (tokens []string) {
		if len(ids) > 0 {
			for i := range ids[0] {
				tokens = append(tokens, fmt.Sprint(i))
			}
		}
		return tokens
	}
	r := heads.NewRecorder(o)
	observers, inspect := r.Callbacks()
	m.Hidden(nil, x, models.Run{Observers: observers, Inspect: inspect})
	record, err := r.Record(heads.Texts{SourceTokens: names(x.IDs), TargetTokens: names(x.Targets)})
	if err != nil {
		t.Fatalf("%s: %v", m.Dir, err)
	}
	return record
}

// TestRecordOnRequest compares weights that are computed on request with stored ones for every family, bit
// for bit.
func TestRecordOnRequest(t *testing.T) {
	some := models.Batch{IDs: [][]int{{5, 3, 8, 2, 11, 7, 4}}}
	try := func(m *models.Model, x models.Batch) {
		kept, asked := recordRun(t, m, x, heads.RecorderOptions{}), recordRun(t, m, x, heads.RecorderOptions{OnRequest: true})
		if len(asked.Layers) != len(kept.Layers) || len(asked.Layers) < len(m.Attention()) {
			t.Fatalf("%s: %d and %d layers", m.Dir, len(asked.Layers), len(kept.Layers))
		}
		for i := range kept.Layers {
			k, a := &kept.Layers[i], &asked.Layers[i]
			if a.Weights != nil || a.Name != k.Name || a.Heads != k.Heads {
				t.Errorf("%s: layer %s keeps %d weights, want none of %s", m.Dir, a.Name, len(a.Weights), k.Name)
			}
			for h := range k.Heads {
				if !slices.Equal(a.Head(h), k.Head(h)) {
					t.Errorf("%s: %s: head %d has other weights on request", m.Dir, k.Name, h)
				}
			}
		}
	}
	for _, dir := range fewer(cases(t)) {
		m, err := models.Load(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		try(m, some)
	}
	for _, name := range fewer(decoderCases(t)) {
		m, _ := openDecoder(t, name)
		try(m, some)
	}
	for _, dir := range seq2seqCases(t) {
		m, _, x := openSeq2seq(t, dir)
		try(m, models.Batch{IDs: x.IDs[:1], Targets: x.Targets[:1]})
	}
}
