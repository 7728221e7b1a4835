package simd

import (
	"fmt"
	"math"
)

// Set sets columns j to j+n to the columns of b, which has K rows and n columns, rounded to the format. Different
// panels may be set concurrently.
func (p *Panels) Set(j, n int, b Mat) {
	if j < 0 || n < 0 || j+n > p.N {
		panic(fmt.Sprintf("simd: Panels.Set: columns %d to %d of %d", j, j+n, p.N))
	}
	b.check("B", p.K, n, 1, 0)
	p.set(j, n, unpacked{floats: b})
}

// SetBFloat16 is Set for consecutive columns of K bfloat16 each. The result is the same as for Set
// with the same values as floats, but faster; stored as bfloat16, a NaN keeps its bits.
func (p *Panels) SetBFloat16(j, n int, x []uint16) {
	if j < 0 || n < 0 || j+n > p.N || len(x) < n*p.K {
		panic(fmt.Sprintf("simd: Panels.SetBFloat16: columns %d to %d of %d, %d elements for K=%d", j, j+n, p.N, len(x), p.K))
	}
	p.set(j, n, unpacked{bfloat16: x, depth: p.K})
}

func (p *Panels) set(j, n int, b unpacked) {
	for cols := 0; n > 0 && p.K > 0; j, n = j+cols, n-cols {
		if cols > 0 {
			b = b.from(0, cols)
		}
		cols = min(n, p.Width-j%p.Width)
		whole := j%p.Width == 0 && (cols == p.Width || j+cols == p.N)
		if whole && p.form == inFloats {
			floats := view[float32](p.Memory)[p.At(0, j):][:p.Panel()]
			if b.pack(floats, p.K, cols, p.Width); p.Rounded {
				RoundBFloat16(floats, RowMajor(floats, p.Width), p.K, p.Width)
			}
			continue
		}
		s := scratches.Get().(*scratch)
		switch {
		case p.form == inPairs && whole && b.bfloat16 == nil:
			packPairPanel(view[float32](p.Memory)[p.b.at(0, j):][:p.b.step], b.floats, p.K, cols, p.Width, s)
		case p.form == inPairs || p.form == inQuads:
			p.setWords(j, cols, b, whole, s)
		default:
			p.setPart(j, cols, b, whole, s)
		}
		s.free()
	}
}

// unpacked is the source of columns: either a matrix of floats, or consecutive columns of depth
// bfloat16 each.
type unpacked struct {
	floats   Mat
	bfloat16 []uint16
	depth    int
}

// from returns the part from row k and column j on.
func (b unpacked) from(k, j int) unpacked {
	if b.bfloat16 != nil {
		b.bfloat16 = b.bfloat16[j*b.depth+k:]
	} else {
		b.floats = b.floats.from(k, j)
	}
	return b
}

// pack copies rows×cols elements as floats to rows that are width apart.
func (b unpacked) pack(dst []float32, rows, cols, width int) {
	if b.bfloat16 != nil {
		packWiden(dst, b.bfloat16, b.depth, rows, cols, width)
	} else {
		packPanel(dst, b.floats, rows, cols, width)
	}
}

// setFloats is the number of floats that are converted at a time. They stay in a first-level cache
// between the steps.
const setFloats = 1 << 12

// setPart sets columns of one panel, which is whole if it has no others.
func (p *Panels) setPart(j, cols int, b unpacked, whole bool, s *scratch) {
	at, numbers := p.At(0, j), p.numbers()
	if whole && p.form == inHalves && b.bfloat16 != nil {
		packBFloat16(view[uint16](p.Memory)[at:][:p.Panel()], b.bfloat16, b.depth, p.K, cols, p.Width)
		return
	}
	step := min(p.K, max(1, setFloats/p.Width))
	s.b = grow(s.b, step*p.Width)
	for k := 0; k < p.K; k += step {
		rows := min(step, p.K-k)
		floats := s.b[:rows*p.Width]
		b.from(k, 0).pack(floats, rows, cols, p.Width)
		each, n := p.Width, cols
		if whole { // contiguous
			each, n = len(floats), len(floats)
		}
		to := at + k*p.Width
		for i := 0; i < len(floats); i += each {
			numbers.Part(to+i, to+i+n).round(floats[i:][:n], 1)
		}
	}
}

// setWords sets columns of one panel, which is whole if it has no others.
func (p *Panels) setWords(j, cols int, b unpacked, whole bool, s *scratch) {
	rows, width := p.b.rows, p.b.width
	s.a, s.b = grow(s.a, cols*rows), grow(s.b, p.K)
	for c := range cols {
		column := b.column(s.b, c)
		if words := s.a[c*rows:][:rows]; p.form == inQuads {
			weightQuads(words, column)
		} else {
			toWords(words, RowMajor(column, p.K), 1, p.K, true, s)
		}
	}
	memory := view[float32](p.Memory)
	if whole {
		words := RowMajor(s.a, rows).T()
		for c := 0; c < cols; c += width {
			packPanel(memory[p.b.at(0, j+c):], words.from(0, c), rows, min(width, cols-c), width)
		}
		return
	}
	for c := range cols {
		for k, word := range s.a[c*rows:][:rows] {
			memory[p.b.at(k, j+c)] = word
		}
	}
}

// column returns a column of floats, which may be in dst.
func (b unpacked) column(dst []float32, c int) []float32 {
	if b = b.from(0, c); b.bfloat16 == nil {
		return contiguous(dst, b.floats.T())
	}
	fromBFloat16(dst, b.bfloat16[:len(dst)])
	return dst
}

// Column sets dst to the numbers of column j.
func (p *Panels) Column(dst []float32, j int) {
	if j < 0 || j >= p.N || len(dst) != p.K {
		panic(fmt.Sprintf("simd: Panels.Column: column %d of %d, %d elements of %d", j, p.N, len(dst), p.K))
	}
	words := view[uint32](p.Memory)
	switch p.form {
	case inPairs:
		for k := range dst {
			dst[k] = math.Float32frombits(words[p.b.at(k/2, j)] << (k % 2 * 16) &^ 0xffff)
		}
	case inQuads:
		for k := range dst {
			group := words[p.b.at(k/groupSteps*(2+groupWords), j):]
			word := group[(2+k%groupSteps/4)*p.b.width]
			dst[k] = float32(int8(word>>(k%4*8))) * math.Float32frombits(group[0])
		}
	default:
		p.numbers().Read(dst, p.At(0, j), p.Width)
	}
}
