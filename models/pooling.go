package models

import (
	"math"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Pooling combines the hidden states of a text into one vector.
type Pooling struct {
	Name string // the value of "pooling_mode" in sentence-transformers
	flag string // in older files, the key that is set to true
	// weight is the weight of token i of n. Nil means the elementwise maximum over all tokens.
	weight func(i, n int) float64
}

// Poolings returns the table of poolings. For n tokens, including special ones,
//
//	cls                   h_1
//	max                   the largest of each element
//	mean                  Σ h_i / n
//	mean_sqrt_len_tokens  Σ h_i / √n
//	weightedmean          Σ i·h_i / Σ i
//	lasttoken             h_n
func Poolings() []Pooling {
	only := func(at bool) float64 {
		if at {
			return 1
		}
		return 0
	}
	return []Pooling{ // in the order in which older files concatenate them
		{"cls", "pooling_mode_cls_token", func(i, n int) float64 { return only(i == 0) }},
		{"max", "pooling_mode_max_tokens", nil},
		{"mean", "pooling_mode_mean_tokens", func(i, n int) float64 { return 1 / float64(n) }},
		{"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", func(i, n int) float64 { return 1 / math.Sqrt(float64(n)) }},
		{"weightedmean", "pooling_mode_weightedmean_tokens", func(i, n int) float64 { return float64(i+1) / (float64(n) * float64(n+1) / 2) }},
		{"lasttoken", "pooling_mode_lasttoken", func(i, n int) float64 { return only(i == n-1) }},
	}
}

// Forward pools hidden states [B L D] of texts of the given lengths: out is [B D]. Gradients flow
// to hidden; values after the end of a text have no effect.
func (p Pooling) Forward(t *tensor.Tape, hidden *tensor.Tensor, lens []int) *tensor.Tensor {
	if p.weight == nil {
		return largest(t, hidden, lens)
	}
	b, l, d := hidden.Dim(0), hidden.Dim(1), hidden.Dim(2)
	w := t.Make(b, 1, l)
	clear(w.Data())
	for z, n := range lens {
		for i := range n {
			w.Data()[z*l+i] = float32(p.weight(i, n))
		}
	}
	return tensor.Reshape(t, tensor.Mix(t, w, hidden), b, d)
}

// largest returns the elementwise maximum over the tokens of a text.
func largest(t *tensor.Tape, hidden *tensor.Tensor, lens []int) *tensor.Tensor {
	b, l, d := hidden.Dim(0), hidden.Dim(1), hidden.Dim(2)
	y, from := t.Make(b, d), make([]int, b*d)
	x := hidden.Data()
	for z, n := range lens {
		for e := range d {
			at := z*l*d + e
			for i := 1; i < n; i++ {
				if next := (z*l+i)*d + e; x[next] > x[at] || x[next] != x[next] {
					at = next
				}
			}
			y.Data()[z*d+e], from[z*d+e] = x[at], at
		}
	}
	if t.Needs(hidden) {
		t.Record(y, func(dy []float32) {
			dx := t.GradOf(hidden)
			for k, at := range from {
				dx[at] += dy[k]
			}
		})
	}
	return y
}

// firstElements is the Layer that keeps the first elements of a vector.
type firstElements int

func (n firstElements) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.Slice(t, x, 1, 0, int(n))
}

// normalized divides a vector by its length, as torch.nn.functional.normalize does.
var normalized = nn.L2Norm{Eps: 1e-12}
