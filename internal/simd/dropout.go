package simd

// Dropout sets dst[i] = keep·x[i] where Draw(key, first+i) is at least threshold, and dst[i] = 0
// elsewhere, whatever x[i] is.
//
// Whether an element is dropped depends only on key and its number. So a long slice may be
// processed in pieces, and a backward pass drops the same elements.
func Dropout(dst, x []float32, key uint64, first int, threshold uint32, keep float32) {
	sameLen("Dropout", "dst", len(dst), "x", len(x))
	dropout(dst, x, key+uint64(first)*golden, threshold, keep)
}

// DropoutAdd sets dst[i] = x[i] + keep·y[i] where Dropout keeps element i of y,
// and dst[i] = x[i] elsewhere.
func DropoutAdd(dst, x, y []float32, key uint64, first int, threshold uint32, keep float32) {
	checkThree("DropoutAdd", dst, x, y)
	dropoutAdd(dst, x, y, key+uint64(first)*golden, threshold, keep)
}

// Drops says which elements of some rows Dropout drops, and the factor of the others: element j of
// row i is number First + i·Step + j of the stream Key.
type Drops struct {
	Key         uint64
	First, Step int
	Threshold   uint32
	Keep        float32
}

// PowerDropRows is PowerRows followed by Dropout of every row. The sums are computed before the
// dropout. If the rows are d.Step apart, elements between them may change.
func PowerDropRows(x []float32, stride, n int, c float32, shift, sum []float32, d Drops) {
	sameLen("PowerDropRows", "shift", len(shift), "sum", len(sum))
	checkStrip("PowerDropRows", len(shift), len(x), stride, n)
	if n == 0 {
		clear(sum)
		return
	}
	eachPiece(len(shift), n, func(lo, hi int) {
		part := d
		part.First += lo * d.Step
		powerDropRows(x[lo*stride:], stride, n, c, shift[lo:hi], sum[lo:hi], part)
	})
}

// powerDropRowsGeneric is for implementations that do both steps one after the other.
func powerDropRowsGeneric(x []float32, stride, n int, c float32, shift, sum []float32, d Drops) {
	powerRows(x, stride, n, c, shift, sum)
	DropoutRows(x, x, stride, len(sum), n, d)
}

// DropoutRows is Dropout of rows of n elements, whose starts in dst and x are stride apart. If stride
// is d.Step, elements between the rows may change.
func DropoutRows(dst, x []float32, stride, rows, n int, d Drops) {
	if stride == d.Step { // the numbers of the elements are consecutive, so one call drops all
		rows, n = 1, (rows-1)*stride+n
	}
	for i := range rows {
		Dropout(dst[i*stride:][:n], x[i*stride:][:n], d.Key, d.First+i*d.Step, d.Threshold, d.Keep)
	}
}

// Draw returns number i of the random stream key, uniform over 32 bits.
func Draw(key uint64, i int) uint32 { return uint32(Mix64(key+uint64(i)*golden) >> 32) }

// golden is 2⁶⁴ divided by the golden ratio, odd: the step of SplitMix64.
const golden = 0x9e3779b97f4a7c15

// Mix64 is the output function of SplitMix64, a bijection that turns successive multiples of golden
// into pseudorandom numbers.
//
// Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
func Mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// The loops take the key of their first element.

func dropoutGeneric(dst, x []float32, key uint64, threshold uint32, keep float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = 0
		if Draw(key, i) >= threshold {
			dst[i] = keep * v
		}
	}
}

func dropoutAddGeneric(dst, x, y []float32, key uint64, threshold uint32, keep float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		if Draw(key, i) >= threshold {
			v += float32(keep * y[i])
		}
		dst[i] = v
	}
}
