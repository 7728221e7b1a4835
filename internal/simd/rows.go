package simd

// The functions below process rows of a matrix that start a stride apart. They are for rows of a
// few vectors, where one call for each row would take longer than its work.

// SumRows sets dst[j] += x[r·stride+j] for the given number of rows, in their order.
func SumRows(dst, x []float32, rows, stride int) {
	inBlocks(rows, len(dst), func(r0, r1, j0, j1 int) {
		sumRows(dst[j0:j1], x[r0*stride+j0:(r1-1)*stride+j1], r1-r0, stride)
	})
}

// CopyRows sets dst[r·dstStride+j] = x[r·stride+j] for rows of the given number
// of columns. dst and x must not overlap.
func CopyRows(dst []float32, dstStride int, x []float32, stride, rows, cols int) {
	eachRows(dst, dstStride, x, stride, rows, cols, copyRows)
}

// AddRows sets dst[r·dstStride+j] += x[r·stride+j] for rows of the given number of columns. The
// rows of dst must not overlap.
func AddRows(dst []float32, dstStride int, x []float32, stride, rows, cols int) {
	eachRows(dst, dstStride, x, stride, rows, cols, addRows)
}

// CopyTransposed sets dst[r·dstStride+j] = x[j·stride+r]: it copies the transpose of x, which has
// cols rows. dst and x must not overlap.
func CopyTransposed(dst []float32, dstStride int, x []float32, stride, rows, cols int) {
	const side = 64 // the parts stay in a cache
	s := scratches.Get().(*scratch)
	s.b = grow(s.b, side*side)
	for r := 0; r < rows; r += side {
		for j := 0; j < cols; j += side {
			n, width := min(side, rows-r), min(side, cols-j)
			packPanel(s.b, RowMajor(x[j*stride+r:], stride).T(), n, width, side)
			CopyRows(dst[r*dstStride+j:], dstStride, s.b, side, n, width)
		}
	}
	s.free()
}

// eachRows splits the rows of two matrices into blocks that are small enough for do, which is copyRows or addRows.
func eachRows(dst []float32, dstStride int, x []float32, stride, rows, cols int,
	do func(dst []float32, dstStride int, x []float32, stride, rows, cols int)) {
	if rows > 0 && cols > 0 && cols <= mostCols && rows <= piece/cols { // one block
		do(dst[:(rows-1)*dstStride+cols], dstStride, x[:(rows-1)*stride+cols], stride, rows, cols)
		return
	}
	inBlocks(rows, cols, func(r0, r1, j0, j1 int) {
		d, s := dst[r0*dstStride+j0:(r1-1)*dstStride+j1], x[r0*stride+j0:(r1-1)*stride+j1]
		do(d, dstStride, s, stride, r1-r0, j1-j0)
	})
}

// mostCols is the largest number of columns for a kernel.
const mostCols = 1 << 10

// inBlocks splits a matrix into blocks that are small enough for a kernel.
func inBlocks(rows, cols int, do func(r0, r1, j0, j1 int)) {
	for j := 0; j < cols; j += mostCols {
		width := min(mostCols, cols-j)
		for r := 0; r < rows; {
			r1 := min(r+piece/width, rows)
			do(r, r1, j, j+width)
			r = r1
		}
	}
}

// RowDots sets dst[i] to the product of row i of x and row i of y, of n elements each. The result
// equals an element of Multiply, bit for bit.
func RowDots(dst []float32, x, y Mat, n int) {
	x.check("x", len(dst), n, 1, 0)
	y.check("y", len(dst), n, 1, 0)
	s := scratches.Get().(*scratch)
	defer s.free()
	// Rows side by side, because each sum is a chain whose additions must wait for one another. More
	// short rows need fewer calls.
	width := 16
	if n <= 64 {
		width = 64
	}
	s.a, s.b = grow(s.a, n*width), grow(s.b, n*width)
	for i := 0; i < len(dst) && n > 0; i += width {
		rows := min(width, len(dst)-i)
		packRows(s.a, x.from(i, 0), rows, n, width)
		packRows(s.b, y.from(i, 0), rows, n, width)
		sums := dst[i : i+rows]
		clear(sums)
		for k := range n {
			mulAdd(sums, s.a[k*width:][:rows], s.b[k*width:][:rows])
		}
		for k := range sums {
			sums[k] += 0 // like Multiply
		}
	}
	if n == 0 {
		clear(dst)
	}
}

// packRows copies rows of n elements to columns; rows of dst are width apart.
func packRows(dst []float32, m Mat, rows, n, width int) { packPanel(dst, m.T(), n, rows, width) }
