//go:build amd64 && !purego

package simd

import (
	"math"
	"unsafe"

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
func usesPairs() bool { return hasPairs && (active == avx512 || active == amx) }

// quads reports whether inputs and weights are words of integers: wherever there is assembly.
func (w *Packed) quads() bool { return w.Rounded && w.Format == Int8 && active != generic }

// quadsKernel returns the kernel for integers, the largest number of rows of its tiles, and the columns of a panel.
func quadsKernel() (kernel func(*tileArgs), rows, width int) {
	switch {
	case active != avx2 && hasQuads:
		return gemmQuadsAVX512, tileRows, 32
	case hasShortQuads:
		return gemmQuadsDotAVX2, narrowRows, 8
	}
	return gemmQuadsAVX2, tileRows, 8
}

func quadsWidth() int {
	_, _, width := quadsKernel()
	return width
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

// multiplyPairs is Multiply for rows of pairs.
func (w *Packed) multiplyPairs(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	l, b := w.wordLayout(), view[float32](w.Memory)
	chain := w.chain() / 2
	step := chain * equalStep((l.K+chain-1)/chain, depthBlock/chain)
	for j := j0; j < j1; j += w.Width {
		next := j + w.Width
		if next >= j1 {
			next = after
		}
		if next < 0 || next >= w.N {
			next = j
		}
		part := PanelLayout{N: min(w.Width, j1-j), Width: w.Width}
		var first []float32
		if bias != nil {
			first = bias[j : j+part.N]
		}
		for k := 0; k < l.K; k += step {
			part.K = min(step, l.K-k)
			at := l.At(k, j)
			ahead := at + part.Panel()
			if k+part.K == l.K {
				ahead = l.At(0, next-next%w.Width)
			}
			multiplyPanelWith(kernelPairs, c.from(0, j), a.from(0, k), m, part, b[at:], k > 0, first, chain,
				stored{unsafe.Pointer(&b[ahead]), Float32.Size()})
		}
	}
}

// toQuads sets dst to whole groups of x.
func toQuads(dst, x []float32, groups int) {
	switch {
	case groups == 0:
	case active == avx2:
		toQuadsAVX2(&dst[0], &x[0], groups)
	case active == avx512 || active == amx:
		toQuadsAVX512(&dst[0], &x[0], groups)
	default:
		toQuadsGeneric(dst, x, groups)
	}
}

// multiplyQuads is Multiply for rows of groups.
func (w *Packed) multiplyQuads(c, a Mat, m, j0, j1 int, bias []float32) {
	kernel, highest, _ := quadsKernel()
	var partial [narrowRows * 32]float32
	l, words := w.wordLayout(), view[float32](w.Memory)
	t := tileArgs{aRow: 4 * a.Row, depth: integersOf(w.K)}
	for j := j0; j < j1; j += l.Width {
		t.b = &words[l.At(0, j)]
		cols := min(l.Width, j1-j)
		for i := 0; i < m; i += t.rows {
			left := (m - i + highest - 1) / highest // tiles of nearly the same height
			t.rows = (m - i + left - 1) / left
			sums := c.from(i, j)
			if cols < l.Width {
				sums = RowMajor(partial[:], l.Width)
			}
			for r := range t.rows {
				if row := sums.Data[r*sums.Row:][:cols]; bias != nil {
					copy(row, bias[j:])
				} else {
					clear(row)
				}
			}
			t.a, t.c, t.cRow = &a.Data[i*a.Row], &sums.Data[0], 4*sums.Row
			kernel(&t)
			for r := 0; cols < l.Width && r < t.rows; r++ {
				copy(c.Data[(i+r)*c.Row+j:][:cols], sums.Data[r*sums.Row:])
			}
		}
	}
}
