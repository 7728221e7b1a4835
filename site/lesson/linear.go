//go:build !js || translator

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/examples/factor"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

func init() {
	handle("linear.state", linearState)
	handle("linear.recall", linearRecall)
	handle("linear.rule", linearRule)
}

// linearState adds observations to a state, one after the other, and reads the curve from it.
func linearState(_ context.Context, a struct {
	observations
	P int `json:"p"` // periods of the waves
}, _ func(any)) (any, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.P < 1 || a.P > 20 {
		return nil, fmt.Errorf("%d periods, want 1 to 20", a.P)
	}
	x, y := a.tensors()
	at, waves := queries(), factor.Waves(a.P)
	state, err := linear.NewState(linear.StateConfig{Batch: 1, Heads: 1, KeySize: 2*a.P + 1, ValueSize: 1, Normalize: true})
	if err != nil {
		return nil, err
	}
	for i := range a.X {
		k, v := tensor.Slice(nil, x, 1, i, i+1), tensor.Slice(nil, y, 1, i, i+1)
		state.Attend(nil, k, k, v, linear.Options{Feature: waves, Normalize: true, Scale: 1})
	}
	w := float32(math.Pi * math.Sqrt(float64(a.P)/50))
	r := struct {
		X       reals `json:"x"`
		Truth   reals `json:"truth"`
		Out     reals `json:"out"` // null where all weights are 0 up to rounding
		Softmax reals `json:"softmax"`
		State   reals `json:"state"` // [E 2]: the sums of φ(k)·v and of φ(k)
		W       real  `json:"w"`
	}{X: at.Data(), State: state.Tensor(nil).Data(), W: real(w)}
	kernel := &score.Gaussian{W: tensor.Full(w, 1)}
	r.Softmax = attn.Attend(nil, at, x, y, attn.Options{Score: kernel}).Out.Data()
	sums := tensor.Reshape(nil, state.Tensor(nil), 1, 2*a.P+1, 2)
	read := tensor.MatMul(nil, waves(nil, at), sums).Data() // [places 2]
	for i, x := range r.X {
		r.Truth = append(r.Truth, float32(truth(float64(x))))
		value, sum := read[2*i], read[2*i+1]
		if sum < 1e-5 {
			value = float32(math.NaN())
		}
		r.Out = append(r.Out, value/sum)
	}
	return r, nil
}

// linearRule adds tokens to a state, and reads from it with the query of each. What is given decides the rule.
func linearRule(_ context.Context, a struct {
	Queries [][]float32 `json:"queries"` // [L E]
	Keys    [][]float32 `json:"keys"`
	Values  []float32   `json:"values"`
	Decay   []float32   `json:"decay"`
	Beta    []float32   `json:"beta"` // none: tokens add
}, _ func(any)) (any, error) {
	n, size := len(a.Values), len(slices.Concat(a.Keys...))/max(1, len(a.Keys))
	state, err := linear.NewState(linear.StateConfig{Batch: 1, Heads: 1, KeySize: size, ValueSize: 1})
	if err != nil {
		return nil, err
	}
	o := linear.Options{Scale: 1, Decay: tensor.New(a.Decay, 1, 1, n)}
	if a.Beta != nil {
		o.Beta = tensor.New(a.Beta, 1, 1, n)
	}
	q, k := tensor.New(slices.Concat(a.Queries...), 1, 1, n, size), tensor.New(slices.Concat(a.Keys...), 1, 1, n, size)
	out := state.Attend(nil, q, k, tensor.New(a.Values, 1, 1, n, 1), o).Out
	return map[string]reals{"state": state.Tensor(nil).Data(), "out": out.Data()}, nil
}

// recallSteps is the number of steps of each model.
const recallSteps = 400

// recalling is the result of linear.recall, and a frame.
type recalling struct {
	Step    int            `json:"step"`
	Steps   int            `json:"steps"`
	Seconds float64        `json:"seconds"` // of computation so far
	Pairs   []int          `json:"pairs"`   // of the sequences that measure
	Rules   []recallingOne `json:"rules"`
	Tokens  []string       `json:"tokens"` // of a sequence, the last of which are questions
	Answers []int          `json:"answers"`
}

// recallingOne is the state of one model.
type recallingOne struct {
	Name     string `json:"name"`
	Params   int    `json:"params"`
	Loss     real   `json:"loss"`     // of the last step, nats for a question
	Recalled []real `json:"recalled"` // the share of right answers, by the number of pairs
	Matrix   brief  `json:"matrix"`   // [questions, tokens]
}

// linearRecall trains a model of each rule, all in turns.
func linearRecall(ctx context.Context, a struct {
	Size  int    `json:"size"` // of keys and values
	Again bool   `json:"again"`
	Seed  uint64 `json:"seed"`
}, frame func(any)) (any, error) {
	if a.Size < 2 || a.Size > 32 {
		return nil, fmt.Errorf("keys of %d elements, want 2 to 32", a.Size)
	}
	const shown = 8 // pairs of the sequence with a map
	rng := rand.New(rand.NewPCG(a.Seed, 3))
	example := factor.Draw(rng, 1, shown, shown, a.Again)
	r := recalling{Steps: recallSteps, Answers: example.Answers[shown:]}
	for i, letter := range example.Letters {
		name, digit := string(rune('a'+letter)), "?"
		if i < shown {
			digit = fmt.Sprint(example.Digits[i])
		}
		r.Tokens = append(r.Tokens, name+digit)
	}
	var tests []factor.Batch
	for pairs := 2; pairs <= factor.MostPairs; pairs += 2 {
		r.Pairs = append(r.Pairs, pairs)
		tests = append(tests, factor.Draw(rng, 512/pairs, pairs, pairs, a.Again))
	}
	trainings := make([]*factor.Training, len(factor.Rules))
	for i, rule := range factor.Rules {
		trainings[i] = factor.NewTraining(rule, a.Size, recallSteps, a.Seed, a.Again)
	}
	losses := make([]real, len(trainings))
	start := time.Now()
	state := func() recalling {
		r.Seconds, r.Rules = time.Since(start).Seconds(), nil
		for i, t := range trainings {
			one := recallingOne{Name: factor.Rules[i], Params: nn.Count(t.Model), Loss: losses[i]}
			for _, b := range tests {
				one.Recalled = append(one.Recalled, real(t.Recalled(b)))
			}
			one.Matrix = t.Matrix(example).Data()[shown*len(r.Tokens):]
			r.Rules = append(r.Rules, one)
		}
		return r
	}
	frame(state())
	for r.Step < r.Steps {
		for i, t := range trainings {
			pause()
			if ctx.Err() != nil {
				return state(), nil
			}
			losses[i] = rounded(t.Next())
		}
		if r.Step++; r.Step%20 == 0 && r.Step < r.Steps {
			frame(state())
		}
	}
	return state(), nil
}
