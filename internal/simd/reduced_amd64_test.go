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

// All kernels for integers have the same bits.
func TestQuadsHaveTheSameBits(t *testing.T) {
	defer func(short, long bool) { hasShortQuads, hasQuads = short, long }(hasShortQuads, hasQuads)
	short, long, kernels := hasShortQuads, hasQuads, 0
	for _, size := range sizesOfRounded {
		k, n := size[0], size[1]
		var want []float32
		Each(func(name string) {
			for i := range 4 {
				if hasShortQuads, hasQuads = i&1 > 0, i&2 > 0; hasShortQuads && !short || hasQuads && !long {
					continue
				}
				r := rand.New(rand.NewPCG(13, uint64(k)))
				const rows = 29
				a, bias := gaussians(r, rows*k), gaussians(r, n)
				w, columns := newRounded(Int8, k, n, r)
				if !w.quads() {
					continue
				}
				kernels++
				got := make([]float32, rows*n)
				w.Set(0, n, RowMajor(slices.Concat(columns...), k).T())
				w.Multiply(RowMajor(got, n), RowMajor(a, k), rows, 0, n, bias, 0)
				if want == nil {
					want = got
				} else if !slices.Equal(got, want) {
					t.Errorf("%d×%d: %s, AVX-VNNI %v, AVX512-VNNI %v: other bits", k, n, name, hasShortQuads, hasQuads)
				}
			}
		})
	}
	t.Logf("%d ways", kernels/len(sizesOfRounded))
}

// The kernels round groups to the bits of generic Go.
func TestToQuads(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	x := gaussians(r, 50*groupSteps)
	for g := range 50 {
		for i := range groupSteps {
			x[g*groupSteps+i] *= float32(math.Ldexp(1, 5*g-140))
		}
	}
	want := make([]float32, 50*(2+groupWords))
	toQuadsGeneric(want, x, 50)
	Each(func(name string) {
		got := make([]float32, len(want))
		toQuads(got, x, 50)
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%s: word %d of group %d is %08x, want %08x", name, i%(2+groupWords), i/(2+groupWords), math.Float32bits(got[i]), math.Float32bits(want[i]))
			}
		}
	})
}
