//go:build !js || translator

package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/attn-go/attn/examples/induction"
	"github.com/attn-go/attn/nn"
)

func init() {
	handle("induction.train", trainInduction)
	handle("induction.run", runInduction)
}

// growing is the result of induction.train, and a frame.
type growing struct {
	Step       int                     `json:"step"`
	Steps      int                     `json:"steps"`
	Seconds    float64                 `json:"seconds"` // of computation so far
	Parameters int                     `json:"parameters"`
	Losses     reals                   `json:"losses"`  // by position, nats
	Tokens     []int                   `json:"tokens"`  // of a sequence
	Weights    [induction.Layers]brief `json:"weights"` // of its heads, [H L L] for each layer
}

// grown is the model of the page.
var grown *induction.Model

// measuring are the sequences that measure, the first of which is shown.
var measuring = induction.Draw(rand.New(rand.NewPCG(1, 3)), 64, induction.Length/2)

// trainInduction trains a new model or, if heads are given, a copy of the last one that has only these. It ends at a step,
// or if ctx ends.
func trainInduction(ctx context.Context, a struct {
	Seed uint64                  `json:"seed"`
	Keep [induction.Layers][]int `json:"keep"`
	To   int                     `json:"to"`
}, frame func(any)) (any, error) {
	m, g := induction.New(a.Seed), growing{Steps: 400, Tokens: measuring[:induction.Length]}
	if a.Keep[0] == nil {
		grown = m
	} else if grown == nil {
		return nil, errNoTraining
	} else {
		var err error
		if m, err = grown.Keep(a.Keep); err != nil {
			return nil, err
		}
		g.Steps = 100
	}
	state := func() growing {
		g.Parameters, g.Losses = nn.Count(m), m.Losses(measuring, induction.Edits{})
		for i, w := range m.Run(nil, g.Tokens, induction.Edits{}).Weights {
			g.Weights[i] = w.Data()
		}
		return g
	}
	frame(state())
	start := time.Now()
	for step := range m.Train(min(a.To, 1)*g.Steps, a.Seed) {
		g.Step, g.Seconds = step, time.Since(start).Seconds()
		if step%10 == 0 {
			frame(state())
		}
		if pause(); step >= a.To || ctx.Err() != nil {
			break
		}
	}
	return state(), nil
}

// runInduction returns losses of the model by position, in nats: for each set of sites those of a run in which the outputs
// of these heads are replaced, by those for another sequence or by 0.
func runInduction(ctx context.Context, a struct {
	Tokens []int              `json:"tokens"` // of a sequence; none: those that measure
	From   []int              `json:"from"`   // the other sequence; none: 0
	Sets   [][]induction.Site `json:"sets"`
}, _ func(any)) (any, error) {
	if grown == nil {
		return nil, errNoTraining
	}
	if a.Tokens == nil {
		a.Tokens = measuring
	}
	var other *induction.Run
	if a.From != nil {
		r := grown.Run(nil, a.From, induction.Edits{})
		other = &r
	}
	losses := make([]reals, len(a.Sets))
	for i, sites := range a.Sets {
		losses[i] = grown.Losses(a.Tokens, induction.Put(other, sites...))
		pause()
	}
	return losses, ctx.Err()
}
