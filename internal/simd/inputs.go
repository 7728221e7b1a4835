package simd

// chain returns the number of steps of a block of the sum. With rounded inputs it is even, so that it consists of pairs.
func (p *Panels) chain() int {
	if p.Rounded {
		return 2 * equalStep((p.K+1)/2, sumSteps/2)
	}
	return sumBlock(p.K)
}

// inputLen returns the number of floats or words of a rounded row of A.
func (p *Panels) inputLen() int {
	switch {
	case p.form == inQuads:
		return groupedWords(p.K)
	case p.Format == BFloat16:
		return bfloat16Words(p.K)
	}
	return p.K
}

// roundRows sets the first m rows of dst to rows of a, rounded.
func (p *Panels) roundRows(dst []float32, a Mat, m int, s *scratch) {
	n := p.inputLen()
	s.row = grow(s.row, p.K)
	for i := range m {
		row, x := dst[i*n:][:n], contiguous(s.row, a.from(i, 0))
		switch {
		case p.form == inQuads:
			inputQuads(row, x)
		default:
			toWords(row, RowMajor(x, p.K), 1, p.K, s)
		}
	}
}

// Inputs are rows of A for products with weights in reduced precision. They are rounded once for all pieces of a loop,
// by the first one that needs them: the row "encode BERT-base B1 L128 int8" of bench/RESULTS.md.
type Inputs struct {
	rounded sharedCopy
	p       *Panels
	a       Mat
	m       int
}

// inputRows is the number of rows that are rounded together.
const inputRows = 2 * cutRows

// Reset sets the inputs to the m rows of a, for products with p and others of the same depth and format.
func (in *Inputs) Reset(p *Panels, a Mat, m int) {
	in.p, in.a, in.m = p, a, m
	in.rounded.reserve(m*p.inputLen(), (m+inputRows-1)/inputRows)
	if in.rounded.pack == nil {
		in.rounded.pack = in.round
	}
}

// Free forgets the caller's memory.
func (in *Inputs) Free() { in.p, in.a = nil, Mat{} }

func (in *Inputs) round(part int) {
	s := scratches.Get().(*scratch)
	defer s.free()
	i := part * inputRows
	in.p.roundRows(in.rounded.mem[i*in.p.inputLen():], in.a.from(i, 0), min(inputRows, in.m-i), s)
}

// MultiplyInputs is Multiply for rows i to i+m of the inputs.
func (p *Panels) MultiplyInputs(c Mat, in *Inputs, i, m, j0, j1 int, bias []float32, after int) {
	p.check(c, m, j0, j1, bias)
	if m == 0 || j0 == j1 {
		return
	}
	in.rounded.prepare(i/inputRows, (i+m+inputRows-1)/inputRows)
	n := p.inputLen()
	p.multiplyRounded(c, RowMajor(in.rounded.mem[i*n:], n), m, j0, j1, bias, after)
}

// multiplyRounded is Multiply for rounded rows of A.
func (p *Panels) multiplyRounded(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	if p.form == inQuads {
		p.multiplyQuads(c, a, m, j0, j1, bias, after)
	} else {
		p.multiply(c, a, m, j0, j1, bias, after)
	}
}
