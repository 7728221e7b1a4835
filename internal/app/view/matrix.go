package view

import (
	"encoding/binary"
	"math"
)

// matrix contains weights [rows cols].
type matrix struct {
	rows, cols int
	w          []float32
	signed     bool // of a signed layer: the scale goes from −hi to hi
}

// span is a range [from, to) of tokens, or of rows and columns.
type span struct{ from, to int }

func (s span) len() int { return s.to - s.from }

// lens selects how the weights are shown.
type lens struct {
	hide   bool // without special tokens
	renorm bool // and with rows rescaled to sum to 1
	words  bool // with the pieces of words merged
	values bool // weights times the norms of the vectors that the values add
}

// normalise divides a row by its sum, unless the sum is 0.
func normalise(row []float32) {
	var sum float32
	for _, w := range row {
		sum += w
	}
	if sum == 0 {
		return
	}
	for j := range row {
		row[j] /= sum
	}
}

// bounds returns the range of the finite weights, extended to include 0. If they are signed, 0 is its centre.
func (m matrix) bounds() (lo, hi float32) {
	if hi, ok := largest(m.w); ok && !m.signed {
		return 0, hi
	}
	for _, w := range m.w {
		if w > hi && w <= math.MaxFloat32 {
			hi = w
		} else if w < lo && w >= -math.MaxFloat32 {
			lo = w
		}
	}
	if m.signed {
		hi = max(hi, -lo)
		lo = -hi
	}
	return lo, hi
}

// largest returns the largest weight, or 0 if there are none. ok reports that all weights are
// finite and not negative, as attention weights are. The bits of such floats have the order of
// their values, and comparing integers takes a third of the time. The overview spends most of its
// time here.
func largest(w []float32) (most float32, ok bool) {
	var a, b, c, d uint32
	for ; len(w) >= 4; w = w[4:] {
		a, b = max(a, math.Float32bits(w[0])), max(b, math.Float32bits(w[1]))
		c, d = max(c, math.Float32bits(w[2])), max(d, math.Float32bits(w[3]))
	}
	for _, x := range w {
		a = max(a, math.Float32bits(x))
	}
	bits := max(a, b, c, d)
	return math.Float32frombits(bits), bits <= math.Float32bits(math.MaxFloat32)
}

// pool returns a part of the matrix with at most `most` rows and columns: a cell is the
// largest weight of a block, or, if they are signed, the one farthest from 0. Values that are not finite count as
// largest, so that they stay visible.
func (m matrix) pool(q, k span, most int) (out matrix, blockQ, blockK int) {
	blockQ, blockK = ceil(q.len(), most), ceil(k.len(), most)
	if blockQ == 1 && blockK == 1 && q.len() == m.rows && k.len() == m.cols {
		return m, 1, 1
	}
	out = matrix{rows: ceil(q.len(), blockQ), cols: ceil(k.len(), blockK), signed: m.signed}
	out.w = make([]float32, out.rows*out.cols)
	for i := range out.w {
		if !m.signed {
			out.w[i] = float32(math.Inf(-1))
		}
	}
	for i := q.from; i < q.to; i++ {
		to := out.w[(i-q.from)/blockQ*out.cols:][:out.cols]
		row := m.w[i*m.cols+k.from : i*m.cols+k.to]
		for c := range to {
			most, block := to[c], row[c*blockK:min((c+1)*blockK, len(row))]
			if m.signed {
				for _, w := range block {
					if w != w || math.Abs(float64(w)) > math.Abs(float64(most)) {
						most = w
					}
				}
				to[c] = most
				continue
			}
			if x, ok := largest(block); ok {
				if x > most {
					to[c] = x
				}
				continue
			}
			for _, w := range block {
				if w > most || w != w {
					most = w
				}
			}
			to[c] = most
		}
	}
	return out, blockQ, blockK
}

// ceil returns n/d rounded up, and at least 1.
func ceil(n, d int) int { return max(1, (n+d-1)/d) }

// An encoded matrix is eight little-endian numbers of four bytes and the weights. The
// numbers are "ahm1", rows, columns, rows and columns of a block, the smallest and the
// largest weight of the head as floats, and the bytes of a weight: 1 for a code, 4 for a
// float, plus 256 if the weights are signed. A code means lo + code/254·(hi-lo); 255 is a value that is not finite. Padding
// fills the bytes up to a multiple of 4.
const (
	wireMagic = "ahm1"
	notFinite = 255
	levels    = 254
)

// appendWire appends an encoded matrix of blocks to b.
func (m matrix) appendWire(b []byte, blockQ, blockK int, lo, hi float32, exact bool) []byte {
	size := 1
	if exact {
		size = 4
	}
	if m.signed {
		size |= 256
	}
	b = append(b, wireMagic...)
	for _, n := range []uint32{uint32(m.rows), uint32(m.cols), uint32(blockQ), uint32(blockK),
		math.Float32bits(lo), math.Float32bits(hi), uint32(size)} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	if exact {
		for _, w := range m.w {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(w))
		}
		return b
	}
	// In float64, because hi − lo may overflow float32.
	width := float64(hi) - float64(lo)
	for _, w := range m.w {
		code := byte(0)
		switch {
		case w != w || w > math.MaxFloat32 || w < -math.MaxFloat32:
			code = notFinite
		case width > 0:
			code = byte(math.Round(max(0, min(1, (float64(w)-float64(lo))/width)) * levels))
		}
		b = append(b, code)
	}
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}
