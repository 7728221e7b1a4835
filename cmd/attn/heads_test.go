package main

import (
	"math"
	"testing"

	"github.com/attn-go/attn/internal/pruning"
)

// Where no head has more than 0, none stands out.
func TestImportanceOfNothing(t *testing.T) {
	for v, want := range map[float64]string{0: "·", -1: "-", math.NaN(): "?"} {
		if got := shade(v, 0); got != want {
			t.Errorf("shade of %v is %q, want %q", v, got, want)
		}
	}
	r := headsReport{
		Layers: []pruning.Layer{{Kind: "encoder", Heads: 2}},
		Scores: []pruning.Scores{{Method: "leave-one-out", Values: [][]pruning.Number{{0, -1}}}},
	}
	for _, v := range r.figure().Panels[0].Values {
		if v != 0 {
			t.Errorf("drawn as %v, want 0", v)
		}
	}
}
