package pruning

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/exercise"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// work is something whose speed is measured.
type work struct {
	name          string
	batch, length int
	on            func(m *seq2seq.Translator) func()
	operations    func(m *seq2seq.Translator) float64
}

// works returns what is measured: whole translations of so many sentences at once,
// a decoder's single step, and the attention layers alone. The first is what is
// told in a sentence: what the goal was held against, if it is one of speed.
func (x *run) works() []work {
	var list []work
	typical := x.typical()
	batches := []int{1, 8, typical.batch}
	if x.Goal.Speed > 0 {
		slices.Reverse(batches)
	}
	for _, b := range batches {
		for _, l := range []int{typical.length, 64} {
			list = append(list, translation(b, l))
		}
	}
	for _, l := range []int{typical.length, 256} {
		list = append(list, decoderStep(1, l))
	}
	for _, b := range []int{1, 8, 32} {
		for _, l := range []int{typical.length, 128} {
			list = append(list, attentionLayers(b, l))
		}
	}
	return list
}

// typical returns the work that a goal of speed is held against: translating 32
// sentences of the data's mean length.
func (x *run) typical() work {
	tokens, texts := 0, 0
	for _, p := range x.Parts.Select {
		tokens += len(x.Model.Source.Encode(p.Source)) + len(x.Model.Target.Encode(p.Target)) + 2
		texts += 2
	}
	return translation(32, (tokens+texts/2)/texts)
}

// translation is encoding sources and writing as many tokens, one by one.
func translation(batch, length int) work {
	return work{
		name: "translate", batch: batch, length: length,
		on: func(m *seq2seq.Translator) func() { return exercise.Translate(m, batch, length, length) },
		operations: func(m *seq2seq.Translator) float64 {
			return Count(m, Reads{Batch: batch, Source: length, Target: length}).All()
		},
	}
}

// decoderStep is writing one more token after length have been written.
func decoderStep(batch, length int) work {
	return work{
		name: "decode one token", batch: batch, length: length,
		on: func(m *seq2seq.Translator) func() { return exercise.Step(m, batch, length, length) },
		operations: func(m *seq2seq.Translator) float64 {
			return Count(m, Reads{Batch: batch, Source: length, Target: 1, Cached: length}).All()
		},
	}
}

// attentionLayers is every attention layer at once, with all tokens known.
func attentionLayers(batch, length int) work {
	return work{
		name: "attention layers", batch: batch, length: length,
		on: func(m *seq2seq.Translator) func() {
			x := tensor.Randn(rand.New(rand.NewPCG(1, 1)), batch, length, m.Config.Width)
			tape := tensor.NewTape(tensor.Infer)
			return func() {
				for _, l := range m.Layers() {
					tape.Reset()
					var o attn.Options
					if strings.Contains(l.Config().Name, "decoder") && !strings.Contains(l.Config().Name, "cross") {
						o.Mask = attn.Causal()
					}
					l.Forward(tape, x, x, x, o)
				}
			}
		},
		operations: func(m *seq2seq.Translator) float64 {
			return Count(m, Reads{Batch: batch, Source: length, Target: length}).Attention
		},
	}
}

// speed measures the pruned model against the whole one, in turns.
func (x *run) speed(ctx context.Context) error {
	if x.SpeedTime <= 0 || x.compact == nil {
		return nil
	}
	list := x.works()
	tell := x.progress("speed")
	for i, w := range list {
		tell(i, len(list))
		s, err := turns(ctx, x.SpeedTime, w.on(x.Model), w.on(x.compact))
		if err != nil {
			return err
		}
		s.Work, s.Batch, s.Length = w.name, w.batch, w.length
		s.Bound = reports.Number(w.operations(x.Model) / w.operations(x.compact))
		x.report.Speed = append(x.report.Speed, s)
	}
	tell(len(list), len(list))
	return nil
}
