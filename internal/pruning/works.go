package pruning

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// Work is a kind of work whose speed is measured.
type Work struct {
	Name          string
	Batch, Length int
	On            func(p *models.Probe) func()
	Operations    func(p *models.Probe) float64 // multiply-adds; nil if they are not counted
}

// Works returns the kinds of work whose speed is measured. A goal of speed and the summary use
// the first one. There are none if removing heads does not make the model faster.
func (x *Task) Works() []Work {
	whole := x.Parts[Selecting]
	if whole.Model().Translator != nil {
		return x.translatorWorks(whole)
	}
	if _, ok := whole.Network(); !ok {
		return nil
	}
	return x.networkWorks(whole)
}

// translatorWorks are whole translations in batches of different sizes, a single decoder step,
// and the attention layers alone.
func (x *Task) translatorWorks(whole *models.Probe) []Work {
	var list []Work
	short := whole.MeanTokens()
	batches := []int{1, 8, 32}
	if x.Faster {
		slices.Reverse(batches)
	}
	for _, b := range batches {
		for _, l := range []int{short, 64} {
			list = append(list, translation(b, l))
		}
	}
	for _, l := range []int{short, 256} {
		list = append(list, decoderStep(1, l))
	}
	for _, b := range []int{1, 8, 32} {
		for _, l := range []int{short, 128} {
			list = append(list, attentionLayers(b, l, whole.Model().Sizes().Width, func(p *models.Probe) float64 {
				return Count(p.Model(), Reads{Batch: b, Source: l, Target: l}).Attention
			}))
		}
	}
	return list
}

// translation encodes sources and generates the same number of tokens, one by one, whichever are
// most likely.
func translation(batch, length int) Work {
	return Work{
		Name: "translate", Batch: batch, Length: length,
		On: func(p *models.Probe) func() {
			x := models.Batch{IDs: drill(batch, length)}
			return func() {
				state, x := stateOf(p.Model(), batch), x
				for range length {
					x.Targets = drill(batch, 1)
					p.Model().Head().Logits(nil, p.Model().Hidden(nil, x, models.Run{State: state}))
					x.IDs = nil
				}
			}
		},
		Operations: func(p *models.Probe) float64 {
			return Count(p.Model(), Reads{Batch: batch, Source: length, Target: length}).All()
		},
	}
}

// decoderStep generates one more token after length tokens.
func decoderStep(batch, length int) Work {
	return Work{
		Name: "decode one token", Batch: batch, Length: length,
		On: func(p *models.Probe) func() {
			m, all := p.Model(), make([]int, batch)
			for i := range all {
				all[i] = i
			}
			read := stateOf(m, batch)
			written := models.Batch{IDs: drill(batch, length), Targets: drill(batch, length)}
			m.Hidden(nil, written, models.Run{State: read})
			next := models.Batch{Targets: drill(batch, 1)}
			return func() { m.Head().Logits(nil, m.Hidden(nil, next, models.Run{State: read.Select(all)})) }
		},
		Operations: func(p *models.Probe) float64 {
			return Count(p.Model(), Reads{Batch: batch, Source: length, Target: 1, Cached: length}).All()
		},
	}
}

// stateOf returns the initial state of a decoder.
func stateOf(n models.Network, batch int) models.State {
	s, err := models.NewState(n, batch, attn.CacheConfig{})
	if err != nil {
		panic(err) // a decoder has a state
	}
	return s
}

// drill returns sequences of a token that is in every vocabulary.
func drill(size, length int) [][]int {
	return slices.Repeat([][]int{slices.Repeat([]int{seq2seq.EOS}, length)}, size)
}

// attentionLayers runs every attention layer on whole sequences.
func attentionLayers(batch, length, width int, operations func(*models.Probe) float64) Work {
	return Work{
		Name: "attention layers", Batch: batch, Length: length, Operations: operations,
		On: func(p *models.Probe) func() {
			x := tensor.Randn(rand.New(rand.NewPCG(1, 1)), batch, length, width)
			tape := tensor.NewTape(tensor.Infer)
			return func() {
				for _, l := range p.Layers() {
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

// networkWorks are reading texts in batches of different sizes, for a decoder also generating a
// token, and the attention layers alone.
func (x *Task) networkWorks(whole *models.Probe) []Work {
	z := whole.Model().Sizes()
	causal := z.Kind == heads.Decoder
	most := math.MaxInt // longest text that leaves a position for one more token
	if z.Positions > 0 {
		most = z.Positions - 1
	}
	short := whole.MeanTokens()
	long := func(n int) int { return max(min(n, most), short) }
	batches := []int{1, 8, 32}
	if x.Faster {
		slices.Reverse(batches)
	}
	var list []Work
	for _, b := range batches {
		for _, l := range slices.Compact([]int{short, long(128)}) {
			list = append(list, reading(b, l, causal))
		}
	}
	if causal && most > 0 {
		for _, l := range slices.Compact([]int{min(short, most), min(long(256), most)}) {
			list = append(list, writing(l))
		}
	}
	for _, b := range []int{1, 8, 32} {
		for _, l := range slices.Compact([]int{short, long(128)}) {
			list = append(list, attentionLayers(b, l, z.Width, attentionOf(b, l, causal)))
		}
	}
	return list
}

// reading computes the hidden states of texts.
func reading(batch, length int, causal bool) Work {
	name := "encode"
	if causal {
		name = "read"
	}
	return Work{
		Name: name, Batch: batch, Length: length,
		On: func(p *models.Probe) func() {
			n, _ := p.Network()
			x := models.Batch{IDs: slices.Repeat([][]int{make([]int, length)}, batch)}
			tape := tensor.NewTape(tensor.Infer)
			return func() {
				tape.Reset()
				n.Hidden(tape, x, models.Run{})
			}
		},
	}
}

// writing is one decoding step: it computes the logits of one more token after length tokens.
func writing(length int) Work {
	return Work{
		Name: "decode one token", Batch: 1, Length: length,
		On: func(p *models.Probe) func() {
			n, _ := p.Network()
			read := stateOf(n, 1)
			n.Hidden(nil, models.Batch{IDs: [][]int{make([]int, length)}}, models.Run{State: read})
			next := models.Batch{IDs: [][]int{{0}}}
			tape := tensor.NewTape(tensor.Infer)
			return func() {
				tape.Reset()
				n.Head().Logits(tape, n.Hidden(tape, next, models.Run{State: read.Select([]int{0})}))
			}
		},
	}
}

// attentionOf returns the multiply-adds of the attention layers of a model.
func attentionOf(batch, length int, causal bool) func(p *models.Probe) float64 {
	n := float64(length)
	pairs := n * n
	if causal {
		pairs = n * (n + 1) / 2
	}
	return func(p *models.Probe) (sum float64) {
		for _, l := range p.Layers() {
			sum += float64(batch) * layerOperations(l, n, n, pairs)
		}
		return sum
	}
}
