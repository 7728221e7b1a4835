package heads

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// TestCircuits compares the circuits of layers with grouped keys with those of whole matrices in PyTorch.
func TestCircuits(t *testing.T) {
	const d, h, g, e, v, vocabulary = 23, 6, 3, 5, 7, 41
	var want struct {
		Embed, Unembed []float32
		Layers         []struct {
			Q, K, V, Out, Scale []float32
			Centred             bool
			Own, Copying        []float64
			Composition         [3][][]float64
		}
	}
	text, err := os.ReadFile("testdata/circuits.json")
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, layer int, got, want []float64) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s of layer %d: %d values, want %d", what, layer, len(got), len(want))
		}
		for i, x := range got {
			if math.IsNaN(x) || math.Abs(x-want[i]) > 2e-6 {
				t.Errorf("%s of layer %d, head %d: %v, want %v", what, layer, i, x, want[i])
			}
		}
	}
	gram := tensor.MatMul(nil, tensor.Transpose(nil, tensor.New(want.Embed, vocabulary, d), 1, 0), tensor.New(want.Unembed, vocabulary, d))
	var before *Circuits
	for n, w := range want.Layers {
		l, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: d, Heads: h, KVHeads: g, HeadSize: e, ValueSize: v}, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		copy(l.Q.Weight.Data(), w.Q)
		copy(l.K.Weight.Data(), w.K)
		copy(l.V.Weight.Data(), w.V)
		copy(l.Out.Weight.Data(), w.Out)
		var scale *tensor.Tensor
		if w.Scale != nil {
			scale = tensor.New(w.Scale, d)
		}
		c := NewCircuits(l, scale, w.Centred)
		near("copying by W_OV", n, c.Copying(nil), w.Own)
		near("copying", n, c.Copying(gram), w.Copying)
		if before == nil {
			before = c
		}
		q, k, values := c.Composition(before)
		for part, list := range [][][]float64{q, k, values} {
			for head := range h {
				near("composition of "+"qkv"[part:part+1], n, list[head], w.Composition[part][head])
			}
		}
		before = c
	}
}

// TestEigenvalues: of matrices whose eigenvalues are known, and of random ones by trace and determinant of size 2.
func TestEigenvalues(t *testing.T) {
	for _, c := range []struct {
		matrix []float64
		n      int
		sum    float64
		all    float64 // of the absolute values
	}{
		{nil, 0, 0, 0},
		{[]float64{-3}, 1, -3, 3},
		{[]float64{0, 1, -1, 0}, 2, 0, 2},                                    // ±i
		{[]float64{0, 0, 1, 1, 0, 0, 0, 1, 0}, 3, 0, 3},                      // a cycle: the third roots of 1
		{[]float64{2, 1, 5, 0, 2, 7, 0, 0, -1}, 3, 3, 5},                     // triangular, with a double eigenvalue
		{make([]float64, 16), 4, 0, 0},                                       // zeros
		{[]float64{1, 2, 3, 4, 2, 4, 6, 8, 1, 2, 3, 4, 0, 0, 0, 0}, 4, 8, 8}, // of rank 1
	} {
		sum, all := 0., 0.
		for _, x := range eigenvalues(c.matrix, c.n) {
			sum, all = sum+real(x), all+math.Hypot(real(x), imag(x))
		}
		if math.Abs(sum-c.sum) > 1e-6 || math.Abs(all-c.all) > 1e-6 {
			t.Errorf("%v: sum %v and absolute %v, want %v and %v", c.matrix, sum, all, c.sum, c.all)
		}
	}
}
