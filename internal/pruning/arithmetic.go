package pruning

import (
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/score"
)

// Operations counts the multiply-adds of a translator: those of its attention layers, including
// their maps and scores, and all others. Only products count; softmax and norms do not.
type Operations struct{ Attention, Rest float64 }

// All returns the sum.
func (o Operations) All() float64 { return o.Attention + o.Rest }

// Reads describes the tokens that a translator reads and writes.
type Reads struct {
	Batch, Source, Target int // sequences; tokens of each
	// Cached is the number of target tokens read before. If it is not 0, the source has been read
	// too and does not count.
	Cached int
	// Encode excludes the decoder.
	Encode bool
}

// Count returns the number of multiply-adds of a translator. Keys and values are computed once
// and cached, and a decoder's query attends to the tokens before it.
func Count(m *models.Model, r Reads) Operations {
	c := m.Translator.Config
	b, s, t := float64(r.Batch), float64(r.Source), float64(r.Target)
	past := float64(r.Cached)
	d, hidden, layers := float64(c.Width), float64(c.Hidden), float64(c.Layers)
	fresh := 1. // 1 if the source is read now, otherwise 0
	if r.Cached > 0 {
		fresh = 0
	}
	if r.Encode {
		t = 0
	}
	var o Operations
	for _, l := range m.Attention() {
		switch name := l.Config().Name; {
		case strings.Contains(name, "cross"):
			o.Attention += b * layerOperations(l, t, fresh*s, t*s)
		case strings.Contains(name, "decoder"):
			o.Attention += b * layerOperations(l, t, t, t*past+t*(t+1)/2)
		default:
			o.Attention += b * fresh * layerOperations(l, s, s, s*s)
		}
	}
	vocabulary := t * d * float64(c.TargetVocab)
	if c.Arch == models.GRU {
		// A unit of h states and n inputs takes 3h(n+h) per token.
		unit := func(in, h float64) float64 { return 3 * h * (in + h) }
		o.Rest = b * (fresh*layers*(s*2*unit(d, d/2)+d*d) + t*(unit(2*d, d)+(layers-1)*unit(d, d)+3*d*d) + vocabulary)
		if c.Heads == 0 {
			o.Attention += b * 2 * t * s * d
		}
		return o
	}
	o.Rest = b * (layers*2*d*hidden*(fresh*s+t) + vocabulary)
	return o
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
