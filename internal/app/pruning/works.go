package pruning

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// Work is a kind of work whose speed is measured.
type Work struct {
	Name          string
	Batch, Length int
	On            func(p *probe.Probe) func()
	Operations    func(p *probe.Probe) float64 // multiply-adds; nil if they are not counted
}

// Works returns the kinds of work whose speed is measured, with short and long texts: translating or reading
// them in batches of different sizes, generating one more token, and the attention layers alone. A goal of
// speed and the summary use the first one. There are none if removing heads does not make the model faster.
func (x *Task) Works() []Work {
	whole := x.Selecting.Probe
	n, err := whole.Network()
	if err != nil {
		return nil
	}
	z := n.Sizes()
	translates, causal := z.Decoder != nil, z.Causal
	most := math.MaxInt // longest text that leaves a position for one more token
	if z.Positions > 0 {
		most = z.Positions - 1
	}
	short := whole.MeanTokens()
	lengths := func(long int) []int { return slices.Compact([]int{short, max(min(long, most), short)}) }
	batches := []int{1, 8, 32}
	if x.Faster {
		slices.Reverse(batches)
	}
	var list []Work
	for _, b := range batches {
		if translates {
			for _, l := range lengths(64) {
				list = append(list, translation(b, l))
			}
			continue
		}
		for _, l := range lengths(128) {
			list = append(list, reading(b, l, causal))
		}
	}
	for _, l := range lengths(256) {
		if l = min(l, most); translates || causal && l > 0 {
			list = append(list, decodingStep(l, translates))
		}
	}
	if len(n.Attention()) < len(whole.Layers()) { // layers of other kinds are measured with the model
		return list
	}
	for _, b := range []int{1, 8, 32} {
		for _, l := range lengths(128) {
			list = append(list, attentionLayers(b, l, z.Width))
		}
	}
	return list
}

// texts returns equal texts of a token that is in every vocabulary.
func texts(batch, length int) [][]int {
	return slices.Repeat([][]int{slices.Repeat([]int{seq2seq.EOS}, length)}, batch)
}

// stateOf returns the initial state of a decoder.
func stateOf(n models.Network, batch int) models.State {
	s, err := models.NewState(n, batch, attn.CacheConfig{})
	if err != nil {
		panic(err) // a decoder has a state
	}
	return s
}

// network returns the network of a probe for which Task.Works has works.
func network(p *probe.Probe) models.Network {
	n, _ := p.Network()
	return n
}

// translation encodes sources and generates the same number of tokens, one by one.
func translation(batch, length int) Work {
	return Work{
		Name: "translate", Batch: batch, Length: length,
		On: func(p *probe.Probe) func() {
			n, tape := network(p), tensor.NewTape(tensor.Infer)
			sources, next := texts(batch, length), texts(batch, 1)
			return func() {
				r := models.Run{State: stateOf(n, batch)}
				x := models.Batch{IDs: sources, Targets: next}
				for range length {
					tape.Reset()
					n.Head().Logits(tape, n.Hidden(tape, x, r))
					x.IDs = nil // encoded
				}
			}
		},
		Operations: func(p *probe.Probe) float64 {
			return Count(network(p), Reads{Batch: batch, Source: length, Target: length})
		},
	}
}

// reading computes the hidden states of texts.
func reading(batch, length int, causal bool) Work {
	name := "encode"
	if causal {
		name = "read"
	}
	return Work{
		Name: name, Batch: batch, Length: length,
		On: func(p *probe.Probe) func() {
			n, tape := network(p), tensor.NewTape(tensor.Infer)
			x := models.Batch{IDs: texts(batch, length)}
			return func() {
				tape.Reset()
				n.Hidden(tape, x, models.Run{})
			}
		},
	}
}

// decodingStep computes the logits of one more token after length tokens. A translator has a source of the same
// length.
func decodingStep(length int, translates bool) Work {
	w := Work{Name: "decode one token", Batch: 1, Length: length}
	read, next := models.Batch{IDs: texts(1, length)}, models.Batch{IDs: texts(1, 1)}
	if translates {
		read.Targets, next = texts(1, length), models.Batch{Targets: texts(1, 1)}
		w.Operations = func(p *probe.Probe) float64 {
			return Count(network(p), Reads{Batch: 1, Source: length, Target: 1, Cached: length})
		}
	}
	w.On = func(p *probe.Probe) func() {
		n, tape := network(p), tensor.NewTape(tensor.Infer)
		state := stateOf(n, 1)
		n.Hidden(nil, read, models.Run{State: state})
		return func() {
			tape.Reset()
			n.Head().Logits(tape, n.Hidden(tape, next, models.Run{State: state.Select([]int{0})}))
		}
	}
	return w
}

// attentionLayers runs every attention layer on whole sequences.
func attentionLayers(batch, length, width int) Work {
	causal := func(l *attn.MultiHead) bool {
		kind, _ := heads.Place(l.Config().Name)
		return kind == heads.Decoder
	}
	return Work{
		Name: "attention layers", Batch: batch, Length: length,
		On: func(p *probe.Probe) func() {
			x := tensor.Randn(rand.New(rand.NewPCG(1, 1)), batch, length, width)
			tape, layers := tensor.NewTape(tensor.Infer), network(p).Attention()
			return func() {
				for _, l := range layers {
					tape.Reset()
					var o attn.Options
					if causal(l) {
						o.Mask = mask.Causal()
					}
					l.Forward(tape, x, x, x, o)
				}
			}
		},
		Operations: func(p *probe.Probe) (sum float64) {
			n := float64(length)
			for _, l := range network(p).Attention() {
				pairs := n * n
				if causal(l) {
					pairs = n * (n + 1) / 2
				}
				sum += layerOperations(l, n, n, pairs)
			}
			return float64(batch) * sum
		},
	}
}
