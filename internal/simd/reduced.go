package simd

// Products in reduced precision: inputs and weights are rounded to bfloat16, and the products, which are exact in
// float32, are added in float32. So the result is that of floats with the same values, bit for bit, and processors that
// multiply pairs of bfloat16 need half of the steps.

// Size returns the number of bytes of the weights.
func (w *Packed) Size() int {
	if w.pairs() {
		return w.pairLayout().Len() * Float32.Size()
	}
	return w.Len() * w.Format.Size()
}

// chain returns the number of steps of a block of the sum. With rounded inputs it is even, so that it consists of pairs.
func (w *Packed) chain() int {
	if w.Rounded {
		return 2 * equalStep((w.K+1)/2, sumSteps/2)
	}
	return sumBlock(w.K)
}

// round returns m rows of a, rounded to bfloat16: as pairs or as floats.
func (w *Packed) round(a Mat, m int, s *scratch) Mat {
	if w.pairs() {
		return w.roundToPairs(a, m, s)
	}
	s.a, s.half = grow(s.a, m*w.K), grow(s.half, w.K)
	for i := range m {
		row := s.a[i*w.K:][:w.K]
		toBFloat16(s.half, contiguous(row, a.from(i, 0)))
		fromBFloat16(row, s.half)
	}
	return RowMajor(s.a, w.K)
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
