package probe_test

import (
	"context"
	"slices"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// forgetful is a probe that runs every pass from the embeddings on.
type forgetful struct {
	*probe.Probe
	kept int
}

func (f *forgetful) Run(t *tensor.Tape, i int, p prune.Pass) prune.Outcome {
	if p.Kept != nil {
		f.kept++
	}
	p.Kept = nil
	return f.Probe.Run(t, i, p)
}

// Passes of leave-one-out that begin at the layer of the head have the bits of those that begin at the embeddings.
func TestLeaveOneOutFromKeptStates(t *testing.T) {
	for _, dir := range []string{"bert_words", "decoders/gpt2", "decoders/llama3", "decoders/gpt_neox", "distilbert_words", "decoders/gemma3"} {
		m, err := models.Load("../models/testdata/"+dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		var examples []probe.Example
		for i := range 40 {
			ids, targets := make([]int, 3+i%7), make([]int, 3+i%7)
			for j := range ids {
				ids[j], targets[j] = 1+(i*7+j*3)%19, 1+(i+j)%19
			}
			examples = append(examples, probe.Example{IDs: ids, Targets: targets})
		}
		p, err := probe.New(m, examples)
		if err != nil {
			t.Fatal(err)
		}
		o, f := prune.ImportanceOptions{Methods: []prune.Method{prune.LeaveOneOut}}, &forgetful{Probe: p}
		got, err := prune.Importance(context.Background(), p, o)
		if err != nil {
			t.Fatal(err)
		}
		want, err := prune.Importance(context.Background(), f, o)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := got[0].Flat(p.Layers()), want[0].Flat(p.Layers()); !slices.Equal(a, b) || len(a) == 0 {
			t.Errorf("%s: %v, want %v", dir, a, b)
		}
		if f.kept == 0 || got[0].Passes <= want[0].Passes {
			t.Errorf("%s: %v passes, want more than %v: the states are kept anew for each layer", dir, got[0].Passes, want[0].Passes)
		}
	}
}
