package score

import (
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Additive is the score w_vᵀ·tanh(W_q·q + W_k·k). It compares queries and keys of any two sizes
// in a hidden space of h features.
//
// Source: Bahdanau et al., "Neural Machine Translation by Jointly Learning to
// Align and Translate", 2015, https://arxiv.org/abs/1409.0473, appendix A.1.2.
type Additive struct {
	WQ *tensor.Tensor // [h Eq]
	WK *tensor.Tensor // [h Ek]
	WV *tensor.Tensor // [h]
}

// NewAdditive returns an additive score with random initial parameters, drawn by nn.Xavier, and
// by nn.Torch for w_v. A hidden of 0 means eq.
func NewAdditive(eq, ek, hidden int, rng *rand.Rand) *Additive {
	return additiveKind.New(Sizes{Query: eq, Key: ek, Hidden: hidden}, rng).(*Additive)
}

// Form returns w_vᵀ·tanh(W_q·q + W_k·k).
func (s *Additive) Form() attn.Form {
	s.check()
	mapped := func(arg string, w *tensor.Tensor) func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		return func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
			wantSize(arg, x, w.Dim(1))
			return tensor.Linear(t, x, w, nil)
		}
	}
	return attn.Form{Queries: mapped("query", s.WQ), Keys: mapped("key", s.WK), Additive: s.WV}
}

// check panics unless the shapes of the parameters fit together; a caller may have read them from
// a file.
func (s *Additive) check() {
	const wv, wq, wk = "wv of the additive score", "wq of the additive score", "wk of the additive score"
	tensor.Want("attn: Attend", wv, s.WV)
	tensor.Want("attn: Attend", wq, s.WQ)
	tensor.Want("attn: Attend", wk, s.WK)
	wantShape(wv, s.WV, s.WV.Rank() == 1, "[h]")
	h := s.WV.Dim(0)
	wantShape(wq, s.WQ, s.WQ.Rank() == 2 && s.WQ.Dim(0) == h, "[h=%d Eq]", h)
	wantShape(wk, s.WK, s.WK.Rank() == 2 && s.WK.Dim(0) == h, "[h=%d Ek]", h)
}

// Params returns "wq", "wk" and "wv".
func (s *Additive) Params() nn.Params {
	return nn.Vars{{Name: "wq", Tensor: s.WQ}, {Name: "wk", Tensor: s.WK}, {Name: "wv", Tensor: s.WV}}.Params()
}

// WithParams returns an Additive with the given "wq", "wk" and "wv".
func (s *Additive) WithParams(p map[string]*tensor.Tensor) attn.Score {
	return &Additive{WQ: p["wq"], WK: p["wk"], WV: p["wv"]}
}

// additiveKind is the table entry of Additive.
var additiveKind = Kind{
	Name: "additive", Formula: "wvᵀ·tanh(wq·q + wk·k)", Score: &Additive{},
	Params: []Param{
		{Name: "wq", Axes: []string{"h", "Eq"}, New: func(s Sizes, rng *rand.Rand) *tensor.Tensor {
			return nn.Xavier(rng, s.hidden(), s.Query)
		}},
		{Name: "wk", Axes: []string{"h", "Ek"}, New: func(s Sizes, rng *rand.Rand) *tensor.Tensor {
			return nn.Xavier(rng, s.hidden(), s.Key)
		}},
		{Name: "wv", Axes: []string{"h"}, New: func(s Sizes, rng *rand.Rand) *tensor.Tensor {
			return nn.Torch(rng, s.hidden())
		}},
	},
}
