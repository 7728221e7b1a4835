//go:build amd64 && !purego

package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Where the processor multiplies pairs of bfloat16, products have the bits of products of floats.
func TestPairsHaveTheBitsOfFloats(t *testing.T) {
	if !hasPairs {
		t.Skip("this processor does not multiply pairs of bfloat16")
	}
	defer func() { hasPairs = true }()
	r := rand.New(rand.NewPCG(9, 10))
	for _, size := range sizesOfRounded {
		k, n := size[0], size[1]
		const rows = 9
		a, bias := gaussians(r, rows*k), gaussians(r, n)
		w, columns := newRounded(k, n, r)
		all := slices.Concat(columns...)
		var results [2][]float32
		for i := range results {
			hasPairs = i == 0
			w.Memory, results[i] = make([]byte, w.Size()), make([]float32, rows*n)
			w.Set(0, n, RowMajor(all, k).T())
			w.Multiply(RowMajor(results[i], n), RowMajor(a, k), rows, 0, n, bias, 0)
		}
		if !slices.Equal(results[0], results[1]) {
			t.Errorf("%d×%d: pairs give other bits than floats", k, n)
		}
	}
}
