package view

import (
	"encoding/binary"
	"math"

	"github.com/attn-go/attn/heads"
)

// matrix is weights [rows cols].
type matrix struct {
	rows, cols int
	w          []float32
}

// span is a range [from, to) of tokens, or of rows and columns.
type span struct{ from, to int }

func (s span) len() int { return s.to - s.from }

// lens is how somebody wants to see the weights.
type lens struct {
	hide   bool // special tokens are left out
	renorm bool // and the rows are made to sum to 1 without them
	words  bool // pieces of words are one
}

// spans returns what is seen of an axis: a token or a word each.
func (l lens) spans(a *axis) []span {
	all := a.words
	if !l.words {
		all = make([]span, len(a.Tokens))
		for i := range all {
			all[i] = span{i, i + 1}
		}
	}
	if !l.hide {
		return all
	}
	var seen []span
	for _, s := range all {
		for i := s.from; i < s.to; i++ {
			if !a.special[i] {
				seen = append(seen, s)
				break
			}
		}
	}
	return seen
}

// look returns the weights of a head through the lens: a word is looked at with
// the sum of its pieces' weights, and looks with their mean (Clark et al. 2019,
// 4.1).
func (l lens) look(layer *heads.Layer, h int, q, k *axis) matrix {
	whole := matrix{len(layer.Queries), len(layer.Keys), layer.Head(h)}
	if l == (lens{}) {
		return whole
	}
	qs, ks := l.spans(q), l.spans(k)
	m := matrix{len(qs), len(ks), make([]float32, len(qs)*len(ks))}
	for i, rows := range qs {
		out := m.w[i*m.cols : (i+1)*m.cols]
		share := 1 / float32(rows.len())
		for r := rows.from; r < rows.to; r++ {
			row := whole.w[r*whole.cols : (r+1)*whole.cols]
			for j, s := range ks {
				for _, w := range row[s.from:s.to] {
					out[j] += share * w
				}
			}
		}
		if l.renorm {
			normalise(out)
		}
	}
	return m
}

// normalise makes a row sum to 1, unless nothing is in it.
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

// bounds returns the smallest and the largest finite weight, and 0 between them.
func (m matrix) bounds() (lo, hi float32) {
	for _, w := range m.w {
		if w > hi && w <= math.MaxFloat32 {
			hi = w
		} else if w < lo && w >= -math.MaxFloat32 {
			lo = w
		}
	}
	return lo, hi
}

// pool returns a part of the matrix with at most so many rows and columns: a
// cell is the largest of a block. What is not finite wins, so that it is seen.
func (m matrix) pool(q, k span, most int) (out matrix, blockQ, blockK int) {
	blockQ, blockK = ceil(q.len(), most), ceil(k.len(), most)
	if blockQ == 1 && blockK == 1 && q.len() == m.rows && k.len() == m.cols {
		return m, 1, 1
	}
	out = matrix{rows: ceil(q.len(), blockQ), cols: ceil(k.len(), blockK)}
	out.w = make([]float32, out.rows*out.cols)
	for i := range out.w {
		out.w[i] = float32(math.Inf(-1))
	}
	for i := q.from; i < q.to; i++ {
		to := out.w[(i-q.from)/blockQ*out.cols:][:out.cols]
		row := m.w[i*m.cols+k.from : i*m.cols+k.to]
		for c := range to {
			most := to[c]
			for _, w := range row[c*blockK : min((c+1)*blockK, len(row))] {
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

// A matrix on the wire is eight numbers of four bytes, little-endian, and the
// weights: "ahm1", rows, columns, tokens in a cell's block of rows and of columns,
// smallest and largest weight of the head as floats, and the size of a weight.
// Size 1 stands for lo + code/254·(hi-lo), 255 for what is not finite; size 4 is
// a float. The bytes are filled up to a multiple of 4.
const (
	wireMagic = "ahm1"
	notFinite = 255
	levels    = 254
)

// appendWire appends a matrix of blocks.
func (m matrix) appendWire(b []byte, blockQ, blockK int, lo, hi float32, exact bool) []byte {
	size := 1
	if exact {
		size = 4
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
	// In float64: the range of two float32 may be too large for one.
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
