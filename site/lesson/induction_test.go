//go:build !js || translator

package main

import (
	"context"
	"math"
	"testing"

	"github.com/attn-go/attn/examples/induction"
)

// grow trains the model of seed 1 up to a step, as the page does.
func grow(t *testing.T, to int) (g growing, frames int) {
	t.Helper()
	g = call(t, "induction.train", object{"seed": 1, "to": to}, func(growing) { frames++ })
	if g.Step != to || g.Steps != 400 || len(g.Losses) != 23 || len(g.Tokens) != 24 || len(g.Weights[1]) != 4*24*24 {
		t.Errorf("step %d of %d, %d losses, %d tokens, %d weights", g.Step, g.Steps, len(g.Losses), len(g.Tokens), len(g.Weights[1]))
	}
	return g, frames
}

// single returns the losses without each head alone.
func single(t *testing.T) [][]float64 {
	t.Helper()
	var sets [][]induction.Site
	for i := range 8 {
		sets = append(sets, []induction.Site{{Layer: i / 4, Head: i % 4, Position: -1}})
	}
	return call[[][]float64](t, "induction.run", object{"sets": sets}, nil)
}

// The page trains examples/induction, and a call replaces what it says.
func TestInductionCalls(t *testing.T) {
	whole, _ := grow(t, 0)
	steps := 4
	g, frames := grow(t, steps)
	if frames != 1 || g.Losses[9] == whole.Losses[9] || g.Parameters != 21_888 {
		t.Errorf("%d frames, loss %v and %v, %d parameters", frames, whole.Losses[9], g.Losses[9], g.Parameters)
	}
	m := induction.New(1)
	for step := range m.Train(400, 1) {
		if step == steps {
			break
		}
	}
	for i, x := range m.Losses(measuring, induction.Edits{}) {
		if x != g.Losses[i] {
			t.Errorf("position %d: loss %v, the example has %v", i, g.Losses[i], x)
		}
	}
	without := single(t)
	for i, losses := range without {
		for p, x := range grown.Losses(measuring, induction.Put(nil, induction.Site{Layer: i / 4, Head: i % 4, Position: -1})) {
			if math.Abs(float64(x)-losses[p]) > 1e-5 {
				t.Fatalf("without head %d, position %d: %v, want %v", i, p, losses[p], x)
			}
		}
	}
	a, b := measuring[:24], measuring[24:48]
	other := grown.Run(nil, a, induction.Edits{})
	site := induction.Site{Layer: 0, Head: 1, Position: 7}
	got := call[[][]float64](t, "induction.run", object{"tokens": b, "from": a, "sets": [][]induction.Site{{}, {site}}}, nil)
	for i, edits := range []induction.Edits{{}, induction.Put(&other, site)} {
		for p, x := range grown.Losses(b, edits) {
			if math.Abs(float64(x)-got[i][p]) > 1e-5 {
				t.Errorf("patched %d, position %d: %v, want %v", i, p, got[i][p], x)
			}
		}
	}
	small, frames := growing{}, 0
	small = call(t, "induction.train", object{"seed": 1, "keep": [][]int{{2}, {3}}, "to": 3}, func(growing) { frames++ })
	if small.Step != 3 || small.Steps != 100 || small.Parameters != 21_888-6*4*12*48 || len(small.Weights[0]) != 24*24 {
		t.Errorf("step %d of %d, %d parameters, %d weights", small.Step, small.Steps, small.Parameters, len(small.Weights[0]))
	}
	if again := single(t); again[5][20] != without[5][20] {
		t.Error("training the smaller model changes the whole one")
	}

	for name, args := range map[string]string{
		"head 4":           `{"seed": 1, "keep": [[4], [0]], "to": 1}`,
		"a token too many": `{"tokens": [24], "sets": [[]]}`,
	} {
		call := "induction.train"
		if name[0] == 'a' {
			call = "induction.run"
		}
		if text := failure(call, args); text == "" {
			t.Errorf("%s: no error", name)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	result, err := run(ctx, "induction.train", []byte(`{"seed": 1, "to": 400}`), func(any) {})
	if g, ok := result.(growing); err != nil || !ok || g.Step != 1 {
		t.Errorf("cancelled: %v, %v", g.Step, err)
	}
}
