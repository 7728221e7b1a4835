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

// usesPairs reports whether products of rounded numbers are products of pairs.
func usesPairs() bool { return hasPairs && active == avx512 }

// quads reports whether inputs and weights are words of integers: wherever there is assembly.
func (w *Packed) quads() bool { return w.Rounded && w.Format == Int8 && active != generic }

// longQuads reports whether the kernel for integers is that of AVX-512. It reads biases and writes a part of a panel.
func longQuads() bool { return active != avx2 && hasQuads }

// quadsWidth is the number of columns of a panel of integers.
func quadsWidth() int {
	if longQuads() {
		return 32
	}
	return 8
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
		multiplyOnTiles(c, a, m, l, b, more, bias, chain)
		return
	}
	multiplyPanelWith(kernelPairs, c, a, m, l, b, more, bias, chain, next)
}

// toQuads sets dst to whole groups of x.
func toQuads(dst, x []float32, groups int) {
	switch {
	case groups == 0:
	case active == avx2:
		toQuadsAVX2(&dst[0], &x[0], groups)
	case active == avx512:
		toQuadsAVX512(&dst[0], &x[0], groups)
	default:
		toQuadsGeneric(dst, x, groups)
	}
}

// multiplyQuads is Multiply for rows of groups.
func (w *Packed) multiplyQuads(c, a Mat, m, j0, j1 int, bias []float32) {
	if m >= tileQuadRows && longQuads() && usesTiles() {
		w.multiplyQuadsOnTiles(c, a, m, j0, j1, bias)
		return
	}
	l, words, long := w.wordLayout(), view[float32](w.Memory), longQuads()
	t := tileArgs{aRow: 4 * a.Row, cRow: 4 * c.Row, depth: integersOf(w.K)}
	highest := tileRows
	if !long && hasShortQuads {
		highest = narrowRows
	}
	for j := j0; j < j1; j += l.Width {
		t.last, t.b = min(l.Width, j1-j), &words[l.At(0, j)]
		if bias != nil {
			t.start, t.bias = startBias, &bias[j]
		}
		for i := 0; i < m; i += t.rows {
			left := (m - i + highest - 1) / highest // tiles of nearly the same height
			t.rows = (m - i + left - 1) / left
			t.a = &a.Data[i*a.Row]
			if long {
				t.c = &c.Data[i*c.Row+j]
				gemmQuadsAVX512(&t)
			} else {
				t.addQuads(c.from(i, j), bias, j)
			}
		}
	}
}

// addQuads computes a tile with kernels that add whole panels to C.
func (t tileArgs) addQuads(c Mat, bias []float32, j int) {
	sums, width := c, quadsWidth()
	if t.last < width {
		s := scratches.Get().(*scratch)
		defer s.free()
		s.tile = grow(s.tile, t.rows*width)
		sums = RowMajor(s.tile, width)
	}
	for r := range t.rows {
		if row := sums.Data[r*sums.Row:][:t.last]; bias != nil {
			copy(row, bias[j:])
		} else {
			clear(row)
		}
	}
	t.c, t.cRow = &sums.Data[0], 4*sums.Row
	if hasShortQuads {
		gemmQuadsDotAVX2(&t)
	} else {
		gemmQuadsAVX2(&t)
	}
	for r := 0; t.last < width && r < t.rows; r++ {
		copy(c.Data[r*c.Row:][:t.last], sums.Data[r*sums.Row:])
	}
}
