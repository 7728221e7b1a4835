package simd

import "math"

// Products of 8-bit integers. The depth is divided into groups of 64 steps. In each, the elements of a row or of a
// column are integers from -127 to 127 times a scale, the largest magnitude divided by 127. Sums of a group are exact:
//
//	C[i][j] = Bias[j]
//	for each group { C[i][j] += scaleA[i] * (float(Σ a[i][k]·b[k][j]) * scaleB[j]) }
//
// A processor that cannot multiply integers multiplies and adds the values as floats. The last group is padded with
// zeros. A group that is not finite has the scale NaN; one whose magnitudes are below 2^-119 counts as 0.
//
// A group of a row is 18 words: the scale; the integer -128·Σ a[i][k]; and 16 words of four integers each. A group of a
// column is 17 words: the scale, and 16 words of four integers that are 128 larger, since the processor multiplies
// signed integers by unsigned ones only.
const (
	groupSteps = 64
	groupWords = groupSteps / 4
	groupOfA   = 2 + groupWords // words
)

func groupsOf(depth int) int { return (depth + groupSteps - 1) / groupSteps }

// inputQuads sets dst to the groups of x.
func inputQuads(dst, x []float32, s *scratch) {
	whole := len(x) / groupSteps
	toQuads(dst, x, whole)
	if rest := x[whole*groupSteps:]; len(rest) > 0 {
		s.tile = grow(s.tile, groupSteps)
		clear(s.tile)
		copy(s.tile, rest)
		toQuads(dst[whole*groupOfA:], s.tile, 1)
	}
}

// weightQuads sets dst to the groups of a column.
func weightQuads(dst, column []float32, s *scratch) {
	groups := groupsOf(len(column))
	s.row = grow(s.row, groups*groupOfA)
	inputQuads(s.row, column, s)
	for g := range groups {
		from, to := s.row[g*groupOfA:][:groupOfA], dst[g*(1+groupWords):][:1+groupWords]
		to[0] = from[0]
		for i, word := range from[2:] {
			to[1+i] = math.Float32frombits(math.Float32bits(word) ^ 0x80808080)
		}
	}
}

// toQuadsGeneric rounds groups of 64 elements of x.
func toQuadsGeneric(dst, x []float32, groups int) {
	for g := range groups {
		to, x := dst[g*groupOfA:][:groupOfA], x[g*groupSteps:][:groupSteps]
		most := math.Float32frombits(math.Float32bits(magnitudeGeneric(x)))
		scale, inverse := float32(0), float32(0)
		switch {
		case most-most != 0:
			scale = float32(math.NaN())
		case most >= 0x1p-119:
			scale, inverse = most*(1./127), 127/most
		}
		sum := 0
		var integers [groupSteps]int8
		for k, v := range x {
			if inverse != 0 {
				integers[k] = int8(math.RoundToEven(float64(float32(v * inverse))))
			}
			sum += int(integers[k])
		}
		to[0], to[1] = scale, math.Float32frombits(uint32(int32(-128*sum)))
		for i := range groupWords {
			var word uint32
			for b := range 4 {
				word |= uint32(uint8(integers[4*i+b])) << (8 * b)
			}
			to[2+i] = math.Float32frombits(word)
		}
	}
}

// multiplyQuads is Multiply for rows of groups.
func (w *Packed) multiplyQuads(c, a Mat, m, j0, j1 int, bias []float32) {
	l := w.wordLayout()
	for j := j0; j < j1; j += w.Width {
		n := min(w.Width, j1-j)
		var first []float32
		if bias != nil {
			first = bias[j : j+n]
		}
		quadsPanel(c.from(0, j), a, m, n, groupsOf(w.K), view[float32](w.Memory)[l.At(0, j):], first)
	}
}

// grouped reports whether weights are integers that are stored one by one, with a scale for each group of a column.
func (w *Packed) grouped() bool { return w.Rounded && w.Format == Int8 && !w.quads() }

// setGroups sets columns of one panel.
func (w *Packed) setGroups(j, cols int, b unpacked, s *scratch) {
	integers := view[int8](w.Memory)
	s.b, s.a = grow(s.b, w.K), grow(s.a, groupsOf(w.K)*groupOfA)
	for c := range cols {
		inputQuads(s.a, b.column(s.b, c), s)
		for k := range w.K {
			group := s.a[k/groupSteps*groupOfA:][:groupOfA]
			w.Scales[k/groupSteps*w.N+j+c] = group[0]
			integers[w.At(k, j+c)] = integerOf(group, k)
		}
	}
}

// integerOf returns the integer of step k in its group.
func integerOf(group []float32, k int) int8 {
	return int8(math.Float32bits(group[2+k%groupSteps/4]) >> (k % 4 * 8))
}

// roundToGroups sets dst to x, rounded.
func roundToGroups(dst, x []float32, s *scratch) {
	s.b = grow(s.b, groupsOf(len(x))*groupOfA)
	inputQuads(s.b, x, s)
	for k := range dst {
		group := s.b[k/groupSteps*groupOfA:][:groupOfA]
		dst[k] = float32(integerOf(group, k)) * group[0]
	}
}

// scaleGroups multiplies rows k0, k0+1, … of a panel by their scales.
func (w *Packed) scaleGroups(rows []float32, k0, j, n int) {
	for k := k0; len(rows) > 0; k, rows = k+1, rows[w.Width:] {
		mul(rows[:n], rows[:n], w.Scales[k/groupSteps*w.N+j:][:n])
	}
}
