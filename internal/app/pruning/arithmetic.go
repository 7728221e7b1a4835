package pruning

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/score"
)

// Reads describes the tokens that a translator reads and writes.
type Reads struct {
	Batch, Source, Target int // sequences; tokens of each
	// Cached is the number of target tokens read before. If it is not 0, the source has been read
	// too and does not count.
	Cached int
}

// Count returns the number of multiply-adds of a translator. Only products count; softmax and norms do not. Keys and
// values are computed once and cached, and a decoder's query attends to the tokens before it.
func Count(n models.Network, r Reads) float64 {
	b, s, t := float64(r.Batch), float64(r.Source), float64(r.Target)
	past := float64(r.Cached)
	encoded := s
	if r.Cached > 0 {
		encoded = 0
	}
	// Every network of attn train counts the multiply-adds outside its attention layers.
	sum := n.(interface {
		Operations(encoded, source, target float64) float64
	}).Operations(encoded, s, t)
	for _, l := range n.Attention() {
		switch kind, _ := heads.Place(l.Config().Name); kind {
		case heads.Cross:
			sum += layerOperations(l, t, encoded, t*s)
		case heads.Decoder:
			sum += layerOperations(l, t, t, t*past+t*(t+1)/2)
		default:
			sum += layerOperations(l, encoded, encoded, encoded*s)
		}
	}
	return b * sum
}

// layerOperations returns the multiply-adds of an attention layer for one sequence with the given
// numbers of queries, keys, and query–key pairs that are not masked.
func layerOperations(l *attn.MultiHead, queries, keys, pairs float64) float64 {
	c := l.Config()
	h, g, e, v := float64(c.Heads), float64(c.KVHeads), float64(c.HeadSize), float64(c.ValueSize)
	ofQuery, ofKey, compare := 0., 0., e // of the score, per head
	switch s := c.Score.(type) {
	case *score.Bilinear:
		ofQuery = float64(s.W.Len())
	case *score.Additive:
		ofQuery, ofKey, compare = float64(s.WQ.Len()), float64(s.WK.Len()), float64(s.WV.Len())
	}
	return queries*h*(float64(c.QueryWidth)*e+ofQuery+float64(c.OutWidth)*v) +
		keys*g*(float64(c.KeyWidth)*e+ofKey+float64(c.ValueWidth)*v) +
		pairs*h*(compare+v)
}
