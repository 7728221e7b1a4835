//go:build amd64 && !purego

package simd

import (
	"math"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Pairs of bfloat16 take the place of floats, so products of pairs are products of floats of half the depth, with
// another kernel. The first of a pair is in the upper half, which the processor adds first.

// hasPairs reports whether AVX-512 multiplies pairs of bfloat16. Only tests change it.
var hasPairs = hasAVX512() && cpu.X86.HasAVX512BF16

// pairs reports whether the weights are stored in pairs.
func (w *Packed) pairs() bool { return w.Rounded && hasPairs && (active == avx512 || active == amx) }

// pairLayout is the layout of the pairs.
func (w *Packed) pairLayout() PanelLayout { return PanelLayout{(w.K + 1) / 2, w.N, w.Width} }

// roundToPairs returns m rows of a as pairs.
func (w *Packed) roundToPairs(a Mat, m int, s *scratch) Mat {
	depth := (w.K + 1) / 2
	s.a, s.row = grow(s.a, m*depth), grow(s.row, w.K)
	for i := range m {
		toPairs(s.a[i*depth:][:depth], contiguous(s.row, a.from(i, 0)))
	}
	return RowMajor(s.a, depth)
}

// toPairs sets dst to the pairs of x, whose last may lack its second.
func toPairs(dst, x []float32) {
	whole := len(x) &^ 15
	if whole > 0 {
		toPairsAVX512(&dst[0], &x[0], whole)
	}
	for k := whole; k < len(x); k += 2 {
		pair := uint32(NearestBFloat16(x[k])) << 16
		if k+1 < len(x) {
			pair |= uint32(NearestBFloat16(x[k+1]))
		}
		dst[k/2] = math.Float32frombits(pair)
	}
}

// setPairs sets columns of one panel.
func (w *Packed) setPairs(j, cols int, b unpacked, s *scratch) {
	l := w.pairLayout()
	s.a, s.b = grow(s.a, cols*l.K), grow(s.b, w.K)
	for c := range cols {
		from, column := b.from(0, c), s.b
		if b.bfloat16 != nil {
			fromBFloat16(column, from.bfloat16[:w.K])
		} else {
			column = contiguous(column, from.floats.T())
		}
		toPairs(s.a[c*l.K:][:l.K], column)
	}
	to := view[float32](w.Memory)[l.At(0, j):]
	pairs := RowMajor(s.a, l.K).T()
	if j%w.Width == 0 && (cols == w.Width || j+cols == w.N) {
		packPanel(to, pairs, l.K, cols, w.Width)
		return
	}
	for k := range l.K {
		for c := range cols {
			to[k*w.Width+c] = pairs.Data[c*l.K+k]
		}
	}
}

// readPairs sets dst to the weights of column j.
func (w *Packed) readPairs(dst []float32, j int) {
	pairs := view[uint32](w.Memory)[w.pairLayout().At(0, j):]
	for k := range dst {
		pair := pairs[k/2*w.Width]
		dst[k] = math.Float32frombits(pair << (k % 2 * 16) &^ 0xffff)
	}
}

// multiplyPairs is Multiply for rows of pairs.
func (w *Packed) multiplyPairs(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	l, b := w.pairLayout(), view[float32](w.Memory)
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
