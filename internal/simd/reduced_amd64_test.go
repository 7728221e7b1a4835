//go:build amd64 && !purego

package simd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Where vectors multiply pairs of bfloat16, products have the bits of products of floats, of packed and of other factors.
func TestPairsHaveTheBitsOfFloats(t *testing.T) {
	if !hasPairs {
		t.Skip("SKIPPED: this processor does not multiply pairs of bfloat16")
	}
	defer func(tiles, slow bool) { hasPairs, hasTiles, slowPairs = true, tiles, slow }(hasTiles, slowPairs)
	hasTiles, slowPairs = false, false
	r := rand.New(rand.NewPCG(9, 10))
	for _, size := range sizesOfRounded {
		k, n := size[0], size[1]
		const rows = 9
		a, bias := gaussians(r, rows*k), gaussians(r, n)
		_, columns := newRounded(BFloat16, k, n, r)
		b := RowMajor(slices.Concat(columns...), k).T()
		var results [2][]float32
		for i := range results {
			slowPairs = i == 1
			w := NewPanels(k, n, BFloat16, true, newBytes)
			if (w.form == inPairs) == slowPairs {
				t.Fatalf("pairs are slow: %v, panels of form %d", slowPairs, w.form)
			}
			results[i] = make([]float32, 2*rows*n)
			w.Set(0, n, b)
			w.Multiply(RowMajor(results[i], n), RowMajor(a, k), rows, 0, n, bias, 0)
			p := Product{M: rows, N: n, K: k, A: RowMajor(a, k), B: b, C: RowMajor(results[i][rows*n:], n), Rounded: true}
			Multiply(&p)
		}
		if !slices.Equal(results[0], results[1]) {
			t.Errorf("%d×%d: pairs give other bits than floats", k, n)
		}
	}
}

// eachQuads calls f with each kernel for integers that this processor has for the implementation in use.
func eachQuads(f func(kernel string)) {
	short, long, tiles := hasShortQuads, hasQuads, hasTiles
	defer func() { hasShortQuads, hasQuads, hasTiles = short, long, tiles }()
	for i := range 8 {
		hasShortQuads, hasQuads, hasTiles = i&1 > 0, i&2 > 0, i&4 > 0
		if (short || !hasShortQuads) && (long || !hasQuads) && (tiles || !hasTiles) {
			f(fmt.Sprintf("AVX-VNNI %v, AVX512-VNNI %v, tile units %v", hasShortQuads, hasQuads, hasTiles))
		}
	}
}

// Products on tile units have the bits of the formula in tile_units_asm.go, whatever the number of rows.
func TestTileUnits(t *testing.T) {
	if !usesTiles() {
		t.Skip("SKIPPED: this processor has no tile units for bfloat16, or the system does not grant them")
	}
	r := rand.New(rand.NewPCG(21, 22))
	for _, size := range append(sizesOfRounded, [2]int{776, 33}) {
		k, n := size[0], size[1]
		w, columns := newRounded(BFloat16, k, n, r)
		w.Set(0, n, RowMajor(slices.Concat(columns...), k).T())
		for j := range columns {
			w.Column(columns[j], j) // rounded
		}
		for _, rows := range []int{1, 15, 16, 17, 32, 33, 70} {
			a, bias, c := gaussians(r, rows*k), gaussians(r, n), newGuarded(r, (rows-1)*(n+3)+n)
			before := slices.Clone(c.x)
			w.Multiply(RowMajor(c.x, n+3), RowMajor(a, k), rows, 0, n, bias, 0)
			if !c.intact() {
				t.Fatalf("%d×%d, %d rows: wrote outside", k, n, rows)
			}
			for i := range rows - 1 {
				if at := i*(n+3) + n; !slices.Equal(c.x[at:at+3], before[at:at+3]) {
					t.Fatalf("%d×%d, %d rows: wrote behind row %d", k, n, rows, i)
				}
			}
			RoundBFloat16(a, RowMajor(slices.Clone(a), k), rows, k)
			for i := range rows {
				for j := range n {
					want := onTileUnits(bias[j], a[i*k:][:k], columns[j], w.chain())
					if got := c.x[i*(n+3)+j]; got != want {
						t.Fatalf("%d×%d, %d rows: element %d %d is %v, want %v", k, n, rows, i, j, got, want)
					}
				}
			}
		}
	}
}

// onTileUnits is the formula for an element of C.
func onTileUnits(c float32, a, b []float32, block int) float32 {
	for len(a) > 0 {
		n := min(block, len(a))
		for k := 0; k < n; k += 2 * tileSide {
			var sums [2]float32
			for i := k; i < min(k+2*tileSide, n); i++ {
				sums[i%2] = float32(float64(sums[i%2]) + float64(a[i])*float64(b[i]))
			}
			c += float32(sums[0] + sums[1])
		}
		a, b = a[n:], b[n:]
	}
	return c
}
