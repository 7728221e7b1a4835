package simd

import (
	"fmt"
	"sync"

	"github.com/attn-go/attn/internal/par"
)

// Products in reduced precision: inputs and weights are rounded.
//
// To bfloat16: the products are exact in float32, where they are added. So the result is that of floats with the same
// values, bit for bit, and processors that multiply pairs of bfloat16 need half of the steps. Tile units add the
// products of packed weights in another order.
//
// To 8-bit integers, see quads.go.
//
// Weights may be stored in words of 32 bits that contain several steps, and so may rounded Panels. The words of a column
// are in the layout of a column of floats.

// wordsOf returns the number of words of a column of rounded numbers, which are pairs or floats.
func wordsOf(depth int, pairs bool) int {
	if pairs {
		return (depth + 1) / 2
	}
	return depth
}

// toWords sets rows of dst, which follow one another, to rows of m, rounded to bfloat16: pairs, or floats.
func toWords(dst []float32, m Mat, rows, n int, pairs bool, s *scratch) {
	switch {
	case rows == 0 || n == 0:
	case m.Col != 1:
		s.row = grow(s.row, n)
		for i := range rows {
			toWords(dst[i*wordsOf(n, pairs):], RowMajor(contiguous(s.row, m.from(i, 0)), n), 1, n, pairs, s)
		}
	case pairs:
		toPairs(dst, m, rows, n)
	default:
		RoundBFloat16(dst, m, rows, n)
	}
}

// rounded returns m rows of A for steps k0 to k1 of a product with rounded panels, and these steps in words.
func (p *Panels) rounded(a Mat, m, k0, k1 int, s *scratch) (Mat, int, int) {
	if k0%2 != 0 {
		panic(fmt.Sprintf("simd: MultiplyPanels: k0=%d of rounded panels, want an even one", k0))
	}
	pairs, depth := p.form == inPairs, k1-k0
	n := wordsOf(depth, pairs)
	s.a = grow(s.a, m*n)
	words := RowMajor(s.a, n)
	if a.Row == 1 { // columns are contiguous
		if words = RowMajor(s.a, m).T(); pairs {
			packPairRows(s.a, a.T(), depth, m, m)
		} else {
			RoundBFloat16(s.a, a.T(), depth, m)
		}
	} else {
		toWords(s.a, a, m, depth, pairs, s)
	}
	k0 = wordsOf(k0, pairs)
	return words, k0, k0 + n
}

// packPairPanel is packPanel for pairs.
func packPairPanel(dst []float32, m Mat, depth, cols, width int, s *scratch) {
	if m.Col == 1 {
		packPairRows(dst, m, depth, cols, width)
		return
	}
	words := wordsOf(depth, true) // columns are contiguous
	s.a = grow(s.a, cols*words)
	toWords(s.a, m.T(), cols, depth, true, s)
	packPanel(dst, RowMajor(s.a, words).T(), words, cols, width)
}

// multiplyRounded is Multiply for a product with Rounded, which it rounds before it multiplies. Where a zero needs care
// words would not do, so the factors are then floats.
func multiplyRounded(p *Product) {
	if p.Count > 1 {
		panic(fmt.Sprintf("simd: Multiply: Count=%d with Rounded, want 1", p.Count))
	}
	one, words := *p, roundedFactors.Get().(*[2][]float32)
	one.Rounded = false
	if one.pairs = roundsToPairs() && !p.careful(); one.pairs {
		one.Sparse, one.K = false, wordsOf(p.K, true)
	}
	one.A = roundFactor(&words[0], p.A, p.M, p, one.pairs)
	one.B = roundFactor(&words[1], p.B.T(), p.N, p, one.pairs).T()
	Multiply(&one)
	roundedFactors.Put(words)
}

var roundedFactors = sync.Pool{New: func() any { return new([2][]float32) }}

// roundFactor rounds rows of m, as deep as p, to pairs or else to floats in memory.
func roundFactor(memory *[]float32, m Mat, rows int, p *Product, pairs bool) Mat {
	deep := m.Row == 1 && m.Col != 1 // columns are contiguous
	from, length, count, each := m, p.K, rows, 1
	if deep {
		from, length, count = m.T(), rows, p.K
	}
	words := length
	switch {
	case pairs && deep:
		count, each = (p.K+1)/2, 2
	case pairs:
		words = (p.K + 1) / 2
	}
	*memory = grow(*memory, count*words)
	to := *memory
	par.For(count, par.Chunk(count, each*length), func(lo, hi int) {
		par.Check(p.Context)
		s := scratches.Get().(*scratch)
		switch part := from.from(lo*each, 0); {
		case pairs && deep:
			packPairRows(to[lo*words:], part, min(hi*2, p.K)-lo*2, words, words)
		case pairs:
			toWords(to[lo*words:], part, hi-lo, length, true, s)
		default:
			RoundBFloat16(to[lo*words:], part, hi-lo, length)
		}
		s.free()
	})
	if deep {
		return RowMajor(to, words).T()
	}
	return RowMajor(to, words)
}

// contiguous returns the first row of a, copied to row if its elements are apart.
func contiguous(row []float32, a Mat) []float32 {
	if a.Col == 1 {
		return a.Data[:len(row)]
	}
	for k := range row {
		row[k] = a.Data[k*a.Col]
	}
	return row
}

// RoundBFloat16 sets dst to rows of m, whose elements are contiguous, rounded to bfloat16. It returns the matrix.
func RoundBFloat16(dst []float32, m Mat, rows, cols int) Mat {
	if m.check("m", rows, cols, 1, 0); m.Col != 1 {
		panic(fmt.Sprintf("simd: RoundBFloat16: Col=%d, want 1", m.Col))
	}
	s := scratches.Get().(*scratch)
	defer s.free()
	s.half = grow(s.half, cols)
	for i := range rows {
		toBFloat16(s.half, m.Data[i*m.Row:][:cols])
		fromBFloat16(dst[i*cols:][:cols], s.half)
	}
	return RowMajor(dst, cols)
}
