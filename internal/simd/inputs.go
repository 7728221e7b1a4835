package simd

// chain returns the number of steps of a block of the sum. With rounded inputs it is even, so that it consists of pairs.
func (p *Panels) chain() int {
	if p.Rounded {
		return 2 * equalStep((p.K+1)/2, sumSteps/2)
	}
	return sumBlock(p.K)
}

// inputLen returns the number of floats or words of a rounded row of A, for tile units or others.
func (p *Panels) inputLen(tiles bool) int {
	switch {
	case tiles: // begins with a cache line
		return roundUp(groupsOf(p.K)*(2+groupWords), 16)
	case p.form == inQuads:
		return groupedWords(p.K)
	case p.Format == BFloat16:
		return wordsOf(p.K, p.form == inPairs)
	}
	return p.K
}

// inputRows returns the number of rows in memory for m rows of A. Kernels for tile units read the padding.
func inputRows(m int, tiles bool) int {
	if tiles {
		m += quadPadding
	}
	return m
}

// roundRows sets the first m rows of dst to rows of a, rounded.
func (p *Panels) roundRows(dst []float32, a Mat, m int, tiles bool, s *scratch) {
	n := p.inputLen(tiles)
	s.row = grow(s.row, p.K)
	for i := range m {
		row, x := dst[i*n:][:n], contiguous(s.row, a.from(i, 0))
		switch {
		case tiles:
			s.b = grow(s.b, groupedWords(p.K))
			inputQuads(s.b, x)
			sortQuads(row, s.b, p.K)
		case p.form == inQuads:
			inputQuads(row, x)
		default:
			toWords(row, RowMajor(x, p.K), 1, p.K, p.form == inPairs, s)
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
	tiles   bool // whether in the order of tile units
}

// togetherRows is the number of rows that are rounded together.
const togetherRows = 2 * cutRows

// Reset sets the inputs to the m rows of a, for products with p and others of the same depth and format.
func (in *Inputs) Reset(p *Panels, a Mat, m int) {
	in.p, in.a, in.m, in.tiles = p, a, m, p.quadsOnTiles(m)
	in.rounded.reserve(inputRows(m, in.tiles)*p.inputLen(in.tiles), (m+togetherRows-1)/togetherRows)
	if in.rounded.pack == nil {
		in.rounded.pack = in.round
	}
}

// Free forgets the caller's memory.
func (in *Inputs) Free() { in.p, in.a = nil, Mat{} }

func (in *Inputs) round(part int) {
	s := scratches.Get().(*scratch)
	defer s.free()
	i := part * togetherRows
	in.p.roundRows(in.rounded.mem[i*in.p.inputLen(in.tiles):], in.a.from(i, 0), min(togetherRows, in.m-i), in.tiles, s)
}

// MultiplyInputs is Multiply for rows i to i+m of the inputs.
func (p *Panels) MultiplyInputs(c Mat, in *Inputs, i, m, j0, j1 int, bias []float32, after int) {
	p.check(c, m, j0, j1, bias)
	if m == 0 || j0 == j1 {
		return
	}
	in.rounded.prepare(i/togetherRows, (i+m+togetherRows-1)/togetherRows)
	n := p.inputLen(in.tiles)
	p.multiplyRounded(c, RowMajor(in.rounded.mem[i*n:], n), m, j0, j1, bias, after, in.tiles)
}

// multiplyRounded is Multiply for rounded rows of A.
func (p *Panels) multiplyRounded(c, a Mat, m, j0, j1 int, bias []float32, after int, tiles bool) {
	switch {
	case tiles:
		p.multiplyQuadsOnTiles(c, a, m, j0, j1, bias, after)
	case p.form == inQuads:
		p.multiplyQuads(c, a, m, j0, j1, bias, after)
	default:
		p.multiply(c, a, m, j0, j1, bias, after)
	}
}
