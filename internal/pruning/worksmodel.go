package pruning

import (
	"math"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// Works returns what is measured of a model whose layers can have fewer heads: reading so many
// texts at once, of a decoder also writing a token behind others, and the attention layers
// alone. None of other models, which keep their shapes.
func (x *Predictions) Works() []Work[*models.Probe] {
	whole := x.Parts[Selecting]
	if _, ok := whole.Network(); !ok {
		return nil
	}
	z := whole.Model().Sizes()
	causal := z.Kind == heads.Decoder
	most := math.MaxInt // tokens behind which there is a position for one more
	if z.Positions > 0 {
		most = z.Positions - 1
	}
	short := whole.MeanTokens()
	long := func(n int) int { return max(min(n, most), short) }
	batches := []int{1, 8, 32}
	if x.Faster {
		slices.Reverse(batches)
	}
	var list []Work[*models.Probe]
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

// reading is making hidden states of texts.
func reading(batch, length int, causal bool) Work[*models.Probe] {
	name := "encode"
	if causal {
		name = "read"
	}
	return Work[*models.Probe]{
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

// writing is decoding one token: making the logits of one more token after length have been read.
func writing(length int) Work[*models.Probe] {
	return Work[*models.Probe]{
		Name: "decode one token", Batch: 1, Length: length,
		On: func(p *models.Probe) func() {
			n, _ := p.Network()
			read, err := models.NewCache(n, 1, attn.CacheConfig{})
			if err != nil {
				panic(err) // a decoder has caches
			}
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
