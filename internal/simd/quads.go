package simd

import "math"

// Products of 8-bit integers. The depth is divided into groups of 128 steps, the last of which may be shorter. In each,
// the elements of a column of B are integers from -127 to 127 times a scale, the largest magnitude divided by 127. Those
// of a row of A are a scale times integers from 0 to 255, less a zero point, which are spread from the least element
// (or 0) to the largest (or 0). Sums of integers are exact:
//
//	C[i][j] = Bias[j]
//	for each group { C[i][j] += scaleA[i] * (float(Σ a[i][k]·b[k][j]) * scaleB[j]); C[i][j] -= scaleA[i]·zero[i] * total[j] }
//
// where total[j] is scaleB[j]·Σ b[k][j]. Kernels round the last two sums once each, Go twice. A group that is not finite has the scale NaN, and so has one of B with a magnitude of 2^113 or more, whose sum
// times its scale could overflow; one whose numbers are within 2^-118 counts as 0.
//
// A group of a row is words: the scale; -scale·zero; and four integers each. A group of a column is words: the scale,
// the total, and four integers each. The last group is padded with zeros to a multiple of four words.
//
// Source of zero points: Jacob et al., "Quantization and Training of Neural Networks for Efficient
// Integer-Arithmetic-Only Inference", 2017, https://arxiv.org/abs/1712.05877.
const (
	groupSteps = 128
	groupWords = groupSteps / 4 // of integers
)

// groupsOf returns the number of groups, integersOf that of words of integers, and groupedWords that of all words.
func groupsOf(depth int) int     { return (depth + groupSteps - 1) / groupSteps }
func integersOf(depth int) int   { return (depth + 15) / 16 * 4 }
func groupedWords(depth int) int { return 2*groupsOf(depth) + integersOf(depth) }

// groupAt returns the words of the group of step k, of a row or a column.
func groupAt(words []float32, k int) []float32 {
	return words[k/groupSteps*(2+groupWords):][:min(2+groupWords, len(words)-k/groupSteps*(2+groupWords))]
}

// setBytes sets the integers of a group.
func setBytes(group []float32, integers []byte) {
	for i := range group[2:] {
		var word uint32
		for b := range 4 {
			if at := 4*i + b; at < len(integers) {
				word |= uint32(integers[at]) << (8 * b)
			}
		}
		group[2+i] = math.Float32frombits(word)
	}
}

// inputQuads sets dst to the groups of a row x.
func inputQuads(dst, x []float32) {
	whole := len(x) / groupSteps
	toQuads(dst, x, whole)
	if rest := x[whole*groupSteps:]; len(rest) > 0 {
		var padded [groupSteps]float32 // zeros change neither scale nor zero point
		var words [2 + groupWords]float32
		copy(padded[:], rest)
		toQuads(words[:], padded[:], 1)
		copy(groupAt(dst, whole*groupSteps), words[:])
	}
}

// toQuadsGeneric sets dst to whole groups of x.
func toQuadsGeneric(dst, x []float32, groups int) {
	for k := 0; k < groups*groupSteps; k += groupSteps {
		inputGroup(groupAt(dst, k), x[k:][:groupSteps])
	}
}

// inputGroup sets dst to a group of a row.
func inputGroup(dst, x []float32) {
	var low, high, scale, inverse float32
	finite := true
	for _, v := range x {
		low, high, finite = min(low, v), max(high, v), finite && v-v == 0
	}
	if width := high - low; width >= 0x1p-118 {
		scale, inverse = width*(1./255), 255/width
	}
	var integers [groupSteps]byte
	zero := 0.
	if finite {
		zero = math.RoundToEven(float64(float32(low * inverse)))
		for k, v := range x {
			integers[k] = byte(min(math.RoundToEven(float64(float32(v*inverse)))-zero, 255))
		}
	} else {
		scale = float32(math.NaN())
	}
	dst[0], dst[1] = scale, float32(int(zero))*scale
	setBytes(dst, integers[:len(x)])
}

// weightQuads sets dst to the groups of a column.
func weightQuads(dst, column []float32) {
	var integers [groupSteps]int8
	var bytes [groupSteps]byte
	for k := 0; k < len(column); k += groupSteps {
		x := column[k:min(k+groupSteps, len(column))]
		to, scale, inverse := groupAt(dst, k), float32(0), 0.
		switch most := Magnitude(x); {
		case !(most < 0x1p113): // also NaN
			scale = float32(math.NaN())
		case most >= 0x1p-119:
			scale, inverse = most/127, 127/float64(most)
		}
		sum := 0
		clear(integers[:])
		if inverse != 0 {
			toInt8(integers[:len(x)], x, inverse)
		}
		for i, v := range integers[:len(x)] {
			bytes[i], sum = byte(v), sum+int(v)
		}
		to[0], to[1] = scale, scale*float32(sum)
		setBytes(to, bytes[:len(x)])
	}
}

// genericQuads is the number of columns of a panel of integers where no kernel multiplies them.
const genericQuads = 4

// multiplyQuadsGeneric is Multiply for rows of groups.
func (p *Panels) multiplyQuadsGeneric(c, a Mat, m, j0, j1 int, bias []float32) {
	words := view[float32](p.Memory)
	var pairs [groupSteps][2]int64 // of a group of the panel, see pairOf
	for j := j0; j < j1; j += genericQuads {
		cols, panel := min(genericQuads, j1-j), words[p.b.at(0, j):][:p.b.step]
		for i := range m {
			row := c.Data[i*c.Row+j:][:cols]
			if clear(row); bias != nil {
				copy(row, bias[j:])
			}
		}
		for k := 0; k < p.b.rows; k += 2 + groupWords {
			group := panel[k*genericQuads:][:min(2+groupWords, p.b.rows-k)*genericQuads]
			scales, totals, integers := group[:genericQuads], group[genericQuads:], group[2*genericQuads:]
			for at := 0; at < len(integers); at += genericQuads {
				y := integers[at:][:genericQuads]
				y0, y1, y2, y3 := math.Float32bits(y[0]), math.Float32bits(y[1]), math.Float32bits(y[2]), math.Float32bits(y[3])
				for b := range 4 {
					pairs[at+b] = [2]int64{pairOf(y0, y1), pairOf(y2, y3)}
					y0, y1, y2, y3 = y0>>8, y1>>8, y2>>8, y3>>8
				}
			}
			for i := range m {
				x := a.Data[i*a.Row+k:][:2+len(integers)/genericQuads]
				sums, row := quadSums(x[2:], &pairs), c.Data[i*c.Row+j:][:cols]
				for j := range row {
					row[j] += float32(x[0] * float32(float32(sums[j])*scales[j]))
					row[j] += float32(x[1] * totals[j])
				}
			}
		}
	}
}

// pairOf returns a number that multiplies the lowest integers of two words at once: the second 2^32 times.
func pairOf(x, y uint32) int64 { return int64(int8(x)) + int64(int8(y))<<32 }

// quadSums returns the sums of the products of the integers in x with those of each column.
func quadSums(x []float32, columns *[groupSteps][2]int64) (sums [genericQuads]int32) {
	var first, second int64
	for k, word := range x {
		quad := math.Float32bits(word)
		y := columns[k*4&(groupSteps-4):][:4]
		x0, x1, x2, x3 := int64(quad&255), int64(quad>>8&255), int64(quad>>16&255), int64(quad>>24)
		first += x0*y[0][0] + x1*y[1][0] + x2*y[2][0] + x3*y[3][0]
		second += x0*y[0][1] + x1*y[1][1] + x2*y[2][1] + x3*y[3][1]
	}
	sums[0], sums[2] = int32(first), int32(second)
	sums[1], sums[3] = int32((first-int64(sums[0]))>>32), int32((second-int64(sums[2]))>>32)
	return sums
}
