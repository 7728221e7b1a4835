package simd

import (
	"fmt"
	"math"
)

// Packed is a matrix B of weights in the order in which products read it: it is written
// once, when a model is loaded, and read by every product with its inputs.
type Packed struct {
	StoredPanels
	// Scales has a factor for each column of integers, and is nil for other numbers.
	Scales []float32
}

// Set sets columns j to j+n to those of b, which has K rows and n columns: rounded to the
// nearest bfloat16, or to integers from −127 to 127 times a scale of the column. Different
// panels may be set at the same time.
func (w *Packed) Set(j, n int, b Mat) {
	if j < 0 || n < 0 || j+n > w.N {
		panic(fmt.Sprintf("simd: Packed.Set: columns %d to %d of %d", j, j+n, w.N))
	}
	b.check("B", w.K, n, 1, 0)
	s := scratches.Get().(*scratch)
	defer s.free()
	for n > 0 && w.K > 0 {
		cols := min(n, w.Width-j%w.Width)
		w.setPart(j, cols, b, s)
		if j, n = j+cols, n-cols; n > 0 {
			b = b.from(0, cols)
		}
	}
}

// setFloats is how many floats are turned into other numbers at a time: as many as stay in a
// first-level cache between the steps.
const setFloats = 1 << 12

// setPart sets columns of one panel.
func (w *Packed) setPart(j, cols int, b Mat, s *scratch) {
	at := w.At(0, j)
	whole := j%w.Width == 0 && (cols == w.Width || j+cols == w.N)
	if whole && w.Float32 != nil {
		packPanel(w.Float32[at:][:w.Panel()], b, w.K, cols, w.Width)
		return
	}
	step := min(w.K, max(1, setFloats/w.Width))
	s.b = grow(s.b, step*w.Width)
	if w.Int8 != nil {
		w.scale(j, cols, b, s, step)
	}
	for k := 0; k < w.K; k += step {
		rows := min(step, w.K-k)
		floats := s.b[:rows*w.Width]
		packPanel(floats, b.from(k, 0), rows, cols, w.Width)
		if w.Int8 != nil {
			w.divide(floats, j, cols, s)
		}
		each, n := w.Width, cols
		if whole { // and so in one piece
			each, n = len(floats), len(floats)
		}
		to := at + k*w.Width
		for i := 0; i < len(floats); i += each {
			from, to := floats[i:][:n], to+i
			switch {
			case w.Float32 != nil:
				copy(w.Float32[to:], from)
			case w.BFloat16 != nil:
				toBFloat16(w.BFloat16[to:][:n], from)
			default:
				toInt8(w.Int8[to:][:n], from, 1)
			}
		}
	}
}

// scale chooses the scales of columns, and sets s.row to what makes integers of so many rows
// of them: their inverses, row after row.
func (w *Packed) scale(j, cols int, b Mat, s *scratch, rows int) {
	s.row = grow(s.row, rows*w.Width)
	clear(s.row)
	for c := range cols {
		most := columnMagnitude(b, c, w.K, s)
		switch unit := most / 127; {
		case most-most != 0: // not finite: all of its products are NaN
			w.Scales[j+c] = float32(math.NaN())
		case unit < 0x1p-126: // too small for a factor
			w.Scales[j+c] = 0
		default:
			w.Scales[j+c], s.row[c] = unit, 1/unit
		}
	}
	for at := w.Width; at < len(s.row); at *= 2 {
		copy(s.row[at:], s.row[:at])
	}
}

// divide divides rows by the scales of their columns.
func (w *Packed) divide(x []float32, j, cols int, s *scratch) {
	mul(x, x, s.row[:len(x)])
	for c := range cols {
		if scale := w.Scales[j+c]; scale != scale || scale == 0 {
			for at := c; at < len(x); at += w.Width {
				x[at] = 0
			}
		}
	}
}

// columnMagnitude returns the largest absolute value of a column, NaN if one is in it.
func columnMagnitude(b Mat, c, rows int, s *scratch) float32 {
	x := b.Data[c*b.Col:]
	if b.Row == 1 {
		return Magnitude(x[:rows])
	}
	s.a = grow(s.a, rows)
	for k := range s.a {
		s.a[k] = x[k*b.Row]
	}
	return Magnitude(s.a)
}

// Column sets dst to the weights of column j.
func (w *Packed) Column(dst []float32, j int) {
	if j < 0 || j >= w.N || len(dst) != w.K {
		panic(fmt.Sprintf("simd: Packed.Column: column %d of %d, %d elements of %d", j, w.N, len(dst), w.K))
	}
	at := w.At(0, j)
	switch {
	case w.Float32 != nil:
		for k := range dst {
			dst[k] = w.Float32[at+k*w.Width]
		}
	case w.BFloat16 != nil:
		for k := range dst {
			dst[k] = math.Float32frombits(uint32(w.BFloat16[at+k*w.Width]) << 16)
		}
	default:
		for k := range dst {
			dst[k] = float32(w.Int8[at+k*w.Width]) * w.Scales[j]
		}
	}
}

// fewRows is up to how many rows a product reads weights as they are stored. For more it
// turns a part of them into floats first, that stays in a cache.
const fewRows = 6

// Multiply computes on the calling goroutine columns j0 to j1 of C = A·B + bias, or of A·B if
// bias is nil, for m rows of C. j0 is a multiple of Width. An element is the sum of
// Multiply, bit for bit; of integers it is that sum times the scale, plus the bias.
//
// after is the column from which the caller is likely to want a product next: the weights
// there are asked for ahead. It is only advice, and may be any number.
func (w *Packed) Multiply(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	if m < 0 || j0 < 0 || j0 > j1 || j1 > w.N || j0%w.Width != 0 || bias != nil && len(bias) != w.N {
		panic(fmt.Sprintf("simd: Packed.Multiply: m=%d, j0=%d, j1=%d of %d, %d biases", m, j0, j1, w.N, len(bias)))
	}
	if m == 0 || j0 == j1 {
		return
	}
	c.check("C", m, j1, 1, 0)
	a.check("A", m, w.K, 1, 0)
	first := bias // what sums begin with
	if w.Scales != nil {
		first = nil
	}
	if m <= fewRows || w.K == 0 { // in the order in which the weights lie
		for r := 0; first != nil && r < m; r++ {
			copy(c.Data[r*c.Row+j0:], first[j0:j1])
		}
		MultiplyStored(c.from(0, j0), a, m, &w.StoredPanels, 0, w.K, j0, j1, first != nil)
	} else {
		s := scratches.Get().(*scratch)
		for j := j0; j < j1; j += w.Width {
			next := j + w.Width
			if next >= j1 {
				next = after
			}
			w.panel(c, a, m, j, min(w.Width, j1-j), first, next, s)
		}
		s.free()
	}
	if w.Scales == nil {
		return
	}
	for r := range m {
		y := c.Data[r*c.Row+j0:][:j1-j0]
		mul(y, y, w.Scales[j0:j1])
		if bias != nil {
			add(y, y, bias[j0:j1])
		}
	}
}

// panel computes m rows of the columns j to j+n of one panel, without scales. It reads the
// weights in the order in which they lie, and while it does so asks for those that follow,
// behind the last for those of the panel of column next.
func (w *Packed) panel(c, a Mat, m, j, n int, bias []float32, next int, s *scratch) {
	step := depthStep(w.K, depthBlock)
	if w.Float32 == nil {
		s.b = grow(s.b, step*w.Width)
	}
	if bias != nil {
		bias = bias[j : j+n]
	}
	if next < 0 || next >= w.N {
		next = j
	}
	for k0 := 0; k0 < w.K; k0 += step {
		k1, at := min(k0+step, w.K), w.At(k0, j)
		ahead := at + (k1-k0)*w.Width
		if k1 == w.K {
			ahead = w.At(0, next-next%w.Width)
		}
		part := PanelLayout{K: k1 - k0, N: n, Width: w.Width}
		b := s.b
		if w.Float32 != nil {
			b = w.Float32[at:]
		} else {
			w.floats(b[:part.Panel()], at)
		}
		multiplyPanel(c.from(0, j), a.from(0, k0), m, part, b, k0 > 0, bias, w.address(ahead))
	}
}
