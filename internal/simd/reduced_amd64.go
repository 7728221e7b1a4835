//go:build amd64 && !purego

package simd

import (
	"math"

	"golang.org/x/sys/cpu"
)

// Pairs of bfloat16 take the place of floats, so products of pairs are products of floats of half the depth, with
// another kernel. The first of a pair is in the upper half, which the processor adds first.

// hasPairs and hasQuads report whether AVX-512 multiplies pairs of bfloat16, and fours of integers; hasShortQuads
// reports the latter of AVX-VNNI. Only tests change them.
var (
	hasPairs      = hasAVX512() && cpu.X86.HasAVX512BF16
	hasQuads      = hasAVX512() && cpu.X86.HasAVX512VNNI
	hasShortQuads = cpu.X86.HasAVXVNNI
)

// slowPairs reports whether vectors multiply pairs at half of the speed of floats, as on Xeons with tile units. Only tests
// change it.
var slowPairs = cpu.X86.HasAMXTile

// roundsToPairs reports whether products of rounded numbers are products of pairs.
func roundsToPairs() bool { return hasPairs && active == avx512 && !slowPairs }

// packsPairs reports whether weights that are packed in bfloat16 are pairs.
func packsPairs() bool { return roundsToPairs() || hasPairs && active == avx512 && usesTiles() }

// usesQuads reports whether a kernel multiplies integers: wherever there is assembly.
func usesQuads() bool { return active != generic }

// quadTile returns the tiles of the kernel for integers.
func quadTile() quadShape {
	switch {
	case active == avx512 && hasQuads:
		return quadShape{tileRows, 32, true}
	case hasShortQuads:
		return quadShape{narrowRows, 8, false}
	}
	return quadShape{tileRows, 8, false}
}

// gemmQuads calls the kernel for integers.
func gemmQuads(t *tileArgs) {
	switch {
	case quadTile().keeps:
		gemmQuadsAVX512(t)
	case hasShortQuads:
		gemmQuadsDotAVX2(t)
	default:
		gemmQuadsAVX2(t)
	}
}

// Reduced returns the names of the instructions by which products in bfloat16 and int8 are faster than in float32.
func Reduced() (names []string) {
	if roundsToPairs() {
		names = append(names, "AVX512-BF16")
	}
	switch {
	case quadTile().keeps:
		names = append(names, "AVX512-VNNI")
	case hasShortQuads && active != generic:
		names = append(names, "AVX-VNNI")
	}
	if packsPairs() && usesTiles() {
		names = append(names, "AMX")
	}
	return names
}

// toPairs sets rows of dst, which follow one another, to the pairs of rows of m, whose elements are contiguous. The
// last pair of a row may lack its second.
func toPairs(dst []float32, m Mat, rows, n int) {
	toPairsAVX512(&dst[0], 4*((n+1)/2), &m.Data[0], 4*m.Row, rows, n)
}

// packPairRows sets rows of dst, width apart, to pairs of elements in the same column of two rows of m.
func packPairRows(dst []float32, m Mat, depth, cols, width int) {
	if depth > 1 {
		pairRowsAVX512(&dst[0], 4*width, &m.Data[0], &m.Data[m.Row], 8*m.Row, depth/2, cols)
	}
	if depth%2 > 0 {
		for j, v := range m.Data[(depth-1)*m.Row:][:cols] {
			dst[depth/2*width+j] = math.Float32frombits(uint32(NearestBFloat16(v)) << 16)
		}
	}
}

// multiplyPairPanel is multiplyPanel for a panel of pairs.
func multiplyPairPanel(
	c, a Mat, m int, l PanelLayout, b []float32, more bool, bias []float32, chain int, next stored,
) {
	if usesTiles() {
		multiplyPairsOnTiles(c, a, m, l, b, more, bias, chain)
		return
	}
	multiplyPanelWith(kernelPairs, c, a, m, l, b, more, bias, chain, next)
}
