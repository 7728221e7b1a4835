package heads

import (
	"errors"
	"fmt"
	"math"

	"github.com/attn-go/attn/tensor"
)

// Divergence returns how much the weights of two heads differ: the Jensen–Shannon divergence of their rows,
// in nats, averaged over the rows.
//
//	½ Σ_j a_j ln(a_j/m_j) + ½ Σ_j b_j ln(b_j/m_j),   m = (a + b)/2
//
// It is 0 for equal heads and ln 2 for heads that never attend to the same key. Rows that are zero in both
// heads do not count; if all rows are, the result is NaN.
//
// Shapes: a and b [rows Lk]. Divergence panics with a *tensor.ShapeError if their lengths differ or are no
// multiple of rows.
//
// Source: Clark et al. 2019, section 6, https://arxiv.org/abs/1906.04341. Differs: no smoothing, because
// the divergence is finite without it.
func Divergence(a, b []float32, rows int) float64 {
	if len(a) != len(b) || rows < 0 || rows == 0 && len(a) > 0 || rows > 0 && len(a)%rows != 0 {
		panic(&tensor.ShapeError{Op: "heads: Divergence", Arg: "heads", What: "sizes", Got: []int{len(a), len(b)}, Want: fmt.Sprintf("%d·Lk for both", rows)})
	}
	var result mean
	for i := range rows {
		n := len(a) / rows
		d, empty := 0., true
		for j := i * n; j < (i+1)*n; j++ {
			x, y := float64(a[j]), float64(b[j])
			empty = empty && x == 0 && y == 0
			m := (x + y) / 2
			if x != 0 {
				d += float64(x / 2 * math.Log(x/m))
			}
			if y != 0 {
				d += float64(y / 2 * math.Log(y/m))
			}
		}
		if !empty {
			result.add(max(d, 0)) // rounding may make d negative
		}
	}
	return result.value()
}

// Rollout returns how much of each input token is in each vector after the last layer, if only attention
// and its residual connections mixed the tokens: [L L], rows sum to 1.
//
//	Â_l = mean over heads of A_l, plus the identity, each row divided by its sum
//	R   = Â_n · … · Â_1
//
// The layers must be all layers of an encoder or of a decoder, from index 0, in this order and with every
// head. Attention between two texts is not included: the rollout of a whole translator is Cross ·
// Rollout(encoder). A signed layer counts with its Shares.
//
// Errors: no layers; a layer that is missing or has another kind or size; a layer without all its heads.
//
// Source: Abnar and Zuidema, "Quantifying Attention Flow in Transformers", 2020,
// https://arxiv.org/abs/2005.00928, section 3.
func Rollout(layers []Layer) ([]float32, error) {
	if len(layers) == 0 {
		return nil, errors.New("heads: rollout of no layers")
	}
	n := len(layers[0].Keys)
	var result []float32
	for at := range layers {
		l := &layers[at]
		fail := func(format string, args ...any) ([]float32, error) {
			return nil, fmt.Errorf("heads: rollout: layer %.100q: "+format, append([]any{l.Name}, args...)...)
		}
		switch {
		case l.Kind.OfTwo():
			return fail("is of kind %s, want %s or %s", l.Kind, Encoder, Decoder)
		case l.Kind != layers[0].Kind:
			return fail("is of kind %s, the first of kind %s", l.Kind, layers[0].Kind)
		case l.Index != at:
			return fail("has index %d, want %d: every layer from the first on is needed, with weights", l.Index, at)
		case len(l.Queries) != n || len(l.Keys) != n:
			return fail("has %d queries and %d keys, want %d of both", len(l.Queries), len(l.Keys), n)
		case l.Chosen != nil:
			return fail("has some of its heads only")
		}
		mean, _ := MeanOf(l.Heads, func(h int) ([]float32, error) { return l.Shares(h), nil })
		result = RollOn(result, mean)
	}
	return result, nil
}

// RollOn computes one step of Rollout. It returns the rollout up to a layer, Â·before, given the rollout up
// to the previous layer and the mean of the layer's heads. before is nil for the first layer.
//
// Shapes: before, mean and result [L L]. RollOn panics with a *tensor.ShapeError if the matrices are not
// square or their sizes differ.
func RollOn(before, mean []float32) []float32 {
	n := int(math.Round(math.Sqrt(float64(len(mean)))))
	if n*n != len(mean) || before != nil && len(before) != len(mean) {
		panic(&tensor.ShapeError{Op: "heads: RollOn", Arg: "weights", What: "sizes", Got: []int{len(before), len(mean)}, Want: "L·L for both"})
	}
	mixed := withIdentity(mean, n)
	if before == nil {
		return mixed
	}
	return tensor.MatMul(nil, tensor.New(mixed, n, n), tensor.New(before, n, n)).Data()
}

// withIdentity returns weights [n n] plus the identity, each row divided by its sum.
func withIdentity(weights []float32, n int) []float32 {
	out := make([]float32, n*n)
	for i := range n {
		sum := 1.
		for _, w := range weights[i*n : (i+1)*n] {
			sum += float64(w)
		}
		for j := range n {
			w := float64(weights[i*n+j])
			if i == j {
				w++
			}
			out[i*n+j] = float32(w / sum)
		}
	}
	return out
}
