package simd

// genericWidth is the width of a panel of B.
const genericWidth = 4

// readsDirectlyGeneric reports whether the kernel reads B in place. Copying B is faster only over
// several rows of A.
func readsDirectlyGeneric(p *Product) bool { return p.M < 4 && (p.B.Col == 1 || p.B.Row == 1) }

func blockGeneric(p *Product, a Mat, i0, i1, j0, j1, k0, k1 int, b *blockOfB) {
	chain := k1 - k0
	if p.Blocks {
		chain = sumBlock(p.K)
	}
	blockInChains(p, a, i0, i1, j0, j1, k0, k1, b, chain, p.Blocks && k0 > 0)
}

// blockInChains is blockGeneric, in chains of chain steps. If apart, all chains are summed
// separately and added to C; otherwise the first continues the sums in C.
func blockInChains(p *Product, a Mat, i0, i1, j0, j1, k0, k1 int, b *blockOfB, chain int, apart bool) {
	if k0 == 0 {
		for i := i0; i < i1; i++ {
			p.begin(i, j0, j1)
		}
	}
	if k0 < k1 {
		addChains(p.C.from(i0, j0), a, i1-i0, j1-j0, k1-k0, b, j0-b.col, chain, apart)
	}
	if k1 == p.K {
		for i := i0; i < i1; i++ {
			c := p.C.Data[i*p.C.Row:][j0:j1]
			for j := range c {
				c[j] += 0
			}
		}
	}
}

// addChains adds the product of a and of the columns of b from j on to c.
func addChains(c, a Mat, rows, cols, depth int, b *blockOfB, j, chain int, apart bool) {
	s := scratches.Get().(*scratch)
	defer s.free()
	for k := 0; k < depth; k += chain {
		n, to := min(chain, depth-k), c
		if apart {
			s.row = grow(s.row, rows*cols)
			clear(s.row)
			to = RowMajor(s.row, cols)
		}
		if b.copied {
			blockPacked(a.from(0, k), to, rows, cols, n, b.data[j/b.width*b.step+k*b.row:], b.step)
		} else {
			blockDirect(a.from(0, k), to, rows, cols, n, b.from.from(k, j))
		}
		if apart {
			AddRows(c.Data, c.Row, s.row, cols, rows, cols)
		}
		apart = true
	}
}

// blockOfAGeneric returns a block of A with contiguous rows: a copy if the rows of A are not
// contiguous.
func blockOfAGeneric(p *Product, i0, i1, _, k0, k1 int, s *scratch) Mat {
	if k0 == k1 {
		return Mat{}
	}
	a := p.A.from(i0, k0)
	if a.Col == 1 {
		return a
	}
	depth := k1 - k0
	s.a = grow(s.a, (i1-i0)*depth)
	packPanelGeneric(s.a, a, i1-i0, depth, depth)
	return RowMajor(s.a, depth)
}

// singleRowGeneric leaves all products to blockGeneric.
func singleRowGeneric(*Product, int, int, *scratch) bool { return false }

// blockDirect adds a·b to c without copying b first: row by row if the rows of b are contiguous,
// otherwise column by column.
func blockDirect(a, c Mat, rows, cols, depth int, b Mat) {
	for i := range rows {
		ai := a.Data[i*a.Row:][:depth]
		ci := c.Data[i*c.Row:][:cols]
		if b.Col == 1 {
			for k, v := range ai {
				axpyGeneric(v, b.Data[k*b.Row:][:cols], ci)
			}
			continue
		}
		j := 0
		for ; j+4 <= cols; j += 4 {
			b0, b1 := b.Data[j*b.Col:][:len(ai)], b.Data[(j+1)*b.Col:][:len(ai)]
			b2, b3 := b.Data[(j+2)*b.Col:][:len(ai)], b.Data[(j+3)*b.Col:][:len(ai)]
			cj := ci[j:][:4]
			s0, s1, s2, s3 := cj[0], cj[1], cj[2], cj[3]
			for k, v := range ai {
				s0 += float32(v * b0[k])
				s1 += float32(v * b1[k])
				s2 += float32(v * b2[k])
				s3 += float32(v * b3[k])
			}
			cj[0], cj[1], cj[2], cj[3] = s0, s1, s2, s3
		}
		for ; j < cols; j++ {
			bj := b.Data[j*b.Col:][:len(ai)]
			s := ci[j]
			for k, v := range ai {
				s += float32(v * bj[k])
			}
			ci[j] = s
		}
	}
}

// blockPacked adds a·b to c, where b is packed in panels of 4 columns, step apart.
func blockPacked(a, c Mat, rows, cols, depth int, b []float32, step int) {
	for j := 0; j < cols; j += 4 {
		panel := b[j/4*step:][:4*depth]
		width := min(4, cols-j)
		for i := 0; i < rows; i += 2 {
			// The last of an odd number of rows is computed twice, with the same result.
			i1 := min(i+1, rows-1)
			c0, c1 := c.Data[i*c.Row+j:][:width], c.Data[i1*c.Row+j:][:width]
			var t [8]float32
			copy(t[:4], c0)
			copy(t[4:], c1)
			tile2x4(&t, a.Data[i*a.Row:][:depth], a.Data[i1*a.Row:][:depth], panel)
			copy(c0, t[:4])
			copy(c1, t[4:])
		}
	}
}

// tile2x4 adds to t, 2×4, the product of two rows of A and a panel of B. Eight sums, four elements
// of B and two of A just fit in the registers of amd64.
func tile2x4(t *[8]float32, a0, a1, b []float32) {
	s00, s01, s02, s03 := t[0], t[1], t[2], t[3]
	s10, s11, s12, s13 := t[4], t[5], t[6], t[7]
	a1 = a1[:len(a0)]
	for k, x := range a0 {
		if len(b) < 4 {
			break // never happens, but avoids bounds checks
		}
		y := a1[k]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		s00 += float32(x * b0)
		s01 += float32(x * b1)
		s02 += float32(x * b2)
		s03 += float32(x * b3)
		s10 += float32(y * b0)
		s11 += float32(y * b1)
		s12 += float32(y * b2)
		s13 += float32(y * b3)
		b = b[4:]
	}
	*t = [8]float32{s00, s01, s02, s03, s10, s11, s12, s13}
}

// packPanelGeneric copies a matrix of rows×cols to dst, row by row, with zeros up to width.
func packPanelGeneric(dst []float32, m Mat, rows, cols, width int) {
	if m.Col == 1 {
		for k := range rows {
			copy(dst[k*width:], m.Data[k*m.Row:][:cols])
		}
	} else {
		for j := range cols {
			d, src := dst[j:], m.Data[j*m.Col:]
			if m.Row == 1 {
				for k, v := range src[:rows] {
					d[k*width] = v
				}
				continue
			}
			for k := range rows {
				d[k*width] = src[k*m.Row]
			}
		}
	}
	for k := range rows {
		clear(dst[k*width+cols:][:width-cols])
	}
}

// packBFloat16Generic copies columns of depth elements to rows, a few rows at a time, so that they
// stay in a cache.
func packBFloat16Generic(dst, x []uint16, stride, depth, cols, width int) {
	const step = 32
	for k := 0; k < depth; k += step {
		rows := min(step, depth-k)
		for j := range cols {
			to := dst[k*width+j:]
			for i, v := range x[j*stride+k:][:rows] {
				to[i*width] = v
			}
		}
	}
}

func packWidenGeneric(dst []float32, x []uint16, stride, depth, cols, width int) {
	s := scratches.Get().(*scratch)
	defer s.free()
	s.a = grow(s.a, depth*cols)
	for j := range cols {
		fromBFloat16(s.a[j*depth:][:depth], x[j*stride:][:depth])
	}
	packPanel(dst, RowMajor(s.a, depth).T(), depth, cols, width)
}
