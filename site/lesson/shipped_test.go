//go:build !js || translator

package main

import (
	"context"
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/train"
)

var update = flag.Bool("update", false, "train the shipped model of dates again, as attn train does")

// TestShipped checks that the shipped model is as good as attn train's, whose weights are float32. With -update it
// trains the model:
//
//	go test ./site/lesson -run TestShipped -update
func TestShipped(t *testing.T) {
	if *update {
		ship(t)
	}
	m, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	q, err := measure(context.Background(), m.Model, m.test)
	if err != nil {
		t.Fatal(err)
	}
	if q.Texts != 1000 || q.Exact < 985 {
		t.Errorf("%d of %d dates are exact, want at least 985 of 1,000", q.Exact, q.Texts)
	}
	t.Logf("%d of %d exact, loss %.4f", q.Exact, q.Texts, q.Loss)
}

func ship(t *testing.T) {
	task := datesTask()
	learn, _, m, err := task.build(task.network, task.settings.Seed)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := train.NewTrainer(m, learn, task.settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Run(context.Background(), func(train.Progress) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("dates", 0o755); err != nil {
		t.Fatal(err)
	}
	source, target := train.Vocabularies(learn, train.DatesRecipe().Units, train.DatesRecipe().VocabSize)
	pieces, err := json.Marshal([2][]string{source.Pieces(), target.Pieces()})
	if err == nil {
		err = os.WriteFile("dates/pieces.json", append(pieces, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Params() {
		for i, x := range p.Data() {
			p.Data()[i] = coarse(x)
		}
	}
	if err := statedict.Save("dates/model.safetensors", m, statedict.SaveOptions{DType: safetensors.F16}); err != nil {
		t.Fatal(err)
	}
	t.Skip("the model is trained; run the test again without -update")
}

// coarse rounds a weight to four binary digits after the first. It changes none of the figures of the lesson, and
// a page with such weights is 70 kB smaller, compressed.
func coarse(x float32) float32 {
	const dropped = 23 - 4
	return math.Float32frombits((math.Float32bits(x) + 1<<(dropped-1)) &^ (1<<dropped - 1))
}
