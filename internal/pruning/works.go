package pruning

import (
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// Works returns what is measured: whole translations of so many sentences at once,
// a decoder's single step, and the attention layers alone. The first is what is
// told in a sentence: what the goal was held against, if it is one of speed.
func (x *Translations) Works() []Work[*seq2seq.Probe] {
	var list []Work[*seq2seq.Probe]
	typical := x.typical()
	batches := []int{1, 8, typical.Batch}
	if x.Faster {
		slices.Reverse(batches)
	}
	for _, b := range batches {
		for _, l := range []int{typical.Length, 64} {
			list = append(list, translation(b, l))
		}
	}
	for _, l := range []int{typical.Length, 256} {
		list = append(list, decoderStep(1, l))
	}
	for _, b := range []int{1, 8, 32} {
		for _, l := range []int{typical.Length, 128} {
			list = append(list, attentionLayers(b, l, x.model.Config.Width, func(p *seq2seq.Probe) float64 {
				return Count(p.Translator(), Reads{Batch: b, Source: l, Target: l}).Attention
			}))
		}
	}
	return list
}

// typical returns the work that a goal of speed is held against: translating 32
// sentences of the data's mean length.
func (x *Translations) typical() Work[*seq2seq.Probe] {
	tokens, texts := 0, 0
	for _, p := range x.parts.Select {
		tokens += len(x.model.Source.Encode(p.Source)) + len(x.model.Target.Encode(p.Target)) + 2
		texts += 2
	}
	return translation(32, (tokens+texts/2)/texts)
}

// translation is encoding sources and writing as many tokens, one by one.
func translation(batch, length int) Work[*seq2seq.Probe] {
	return Work[*seq2seq.Probe]{
		Name: "translate", Batch: batch, Length: length,
		On: func(p *seq2seq.Probe) func() { return p.Translator().TranslateWorkload(batch, length, length) },
		Operations: func(p *seq2seq.Probe) float64 {
			return Count(p.Translator(), Reads{Batch: batch, Source: length, Target: length}).All()
		},
	}
}

// decoderStep is writing one more token after length have been written.
func decoderStep(batch, length int) Work[*seq2seq.Probe] {
	return Work[*seq2seq.Probe]{
		Name: "decode one token", Batch: batch, Length: length,
		On: func(p *seq2seq.Probe) func() { return p.Translator().StepWorkload(batch, length, length) },
		Operations: func(p *seq2seq.Probe) float64 {
			return Count(p.Translator(), Reads{Batch: batch, Source: length, Target: 1, Cached: length}).All()
		},
	}
}

// attentionLayers is every attention layer at once, with all tokens known.
func attentionLayers[S prune.Subject](batch, length, width int, operations func(S) float64) Work[S] {
	return Work[S]{
		Name: "attention layers", Batch: batch, Length: length, Operations: operations,
		On: func(s S) func() {
			x := tensor.Randn(rand.New(rand.NewPCG(1, 1)), batch, length, width)
			tape := tensor.NewTape(tensor.Infer)
			return func() {
				for _, l := range s.Layers() {
					tape.Reset()
					var o attn.Options
					if kind, _ := heads.Place(l.Config().Name); kind == heads.Decoder {
						o.Mask = mask.Causal()
					}
					l.Forward(tape, x, x, x, o)
				}
			}
		},
	}
}
