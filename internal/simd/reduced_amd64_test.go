//go:build amd64 && !purego

package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Where the processor multiplies pairs of bfloat16, products have the bits of products of floats.
func TestPairsHaveTheBitsOfFloats(t *testing.T) {
	if !hasPairs {
		t.Skip("SKIPPED: this processor does not multiply pairs of bfloat16")
	}
	defer func() { hasPairs = true }()
	r := rand.New(rand.NewPCG(9, 10))
	for _, size := range sizesOfRounded {
		k, n := size[0], size[1]
		const rows = 9
		a, bias := gaussians(r, rows*k), gaussians(r, n)
		w, columns := newRounded(BFloat16, k, n, r)
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

// The kernel rounds groups to the bits of generic Go.
func TestToQuads(t *testing.T) {
	if !hasAVX512() {
		t.Skip("SKIPPED: this processor has no AVX-512")
	}
	r := rand.New(rand.NewPCG(11, 12))
	x := gaussians(r, 50*groupSteps)
	for g := range 50 {
		for i := range groupSteps {
			x[g*groupSteps+i] *= float32(math.Ldexp(1, 5*g-140))
		}
	}
	got, want := make([]float32, 50*(2+groupWords)), make([]float32, 50*(2+groupWords))
	toQuads(got, x, 50)
	toQuadsGeneric(want, x, 50)
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("word %d of group %d is %08x, want %08x", i%(2+groupWords), i/(2+groupWords), math.Float32bits(got[i]), math.Float32bits(want[i]))
		}
	}
}
