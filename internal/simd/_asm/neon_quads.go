package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/a64"
)

// gemmQuads writes the kernel for tiles of up to six rows by four vectors, which are 24 sums of integers. It needs the
// dot-product extension, whose SDOT multiplies bytes with sign: the kernel subtracts 128 from those of A, and begins the
// sums of a column with 128·Σ b. It divides the total by the scale and rounds, which gives Σ b: this is below 2¹⁴, and
// total and quotient are each rounded to 24 bits. For a column of zeros 0/0 becomes 0. If the total has overflowed, the
// result is not finite anyway. USDOT multiplies bytes without sign by bytes with sign, but fewer processors have it.
func (f *neonProgram) gemmQuads() {
	t := newArguments(f, tileArg)
	q := &neonQuads{neonProgram: f, offset: f.X(), b: t.field("b").(a64.X), left: t.field("depth").(a64.X), most: f.X()}
	a, aRow, c, cRow := t.field("a"), t.field("aRow"), t.field("c"), t.field("cRow")
	f.Do("MOVD", 0, q.offset)
	f.Do("MOVD", groupWords, q.most)
	t.eachHeight(f.tiling().rows, func(rows int) {
		q.a, q.c = as[a64.X](f.rows(a, aRow, rows)), as[a64.X](f.rows(c, cRow, rows))
		q.x, q.y = f.Vs(rows), f.Vs(2)
		group := f.NewLabel("group")
		f.Bind(group)
		f.Scope(q.group)
		f.Do("CBNZ", q.left, group)
		f.Return()
	})
}

// neonQuads is the state of the kernel.
type neonQuads struct {
	*neonProgram
	a, c       []a64.X // the rows
	b, offset  a64.X   // the group in the panel, and in the rows of A
	left, most a64.X   // words: left, and of a whole group
	x          []a64.V // of each row
	y          []a64.V // the vectors of the panel in use
}

// quadVectors is the number of vectors of a row of the panel.
const quadVectors = 4

// group writes the code for a group, whose sums are added to C. It moves b and offset to the next one.
func (q *neonQuads) group() {
	words, bytes, b, loop := q.X(), q.X(), q.X(), q.NewLabel("words")
	q.Do("CMP", q.most, q.left)
	q.Do("CSEL", "LT", q.left, q.most, words)
	q.Do("SUB", words, q.left)
	q.Do("ADD", 8, q.offset, bytes)
	q.Do("ADD", 2*quadVectors*vectorBytes, q.b, b)
	sums := q.begin()
	q.Bind(loop)
	q.four(sums, bytes, b)
	q.Do("SUBS", 4, words, words)
	q.Do("BNE", loop)
	q.finish(sums)
	q.Do("MOVD", bytes, q.offset)
	q.Do("MOVD", b, q.b)
}

// vector returns the address of vector v of the scales or, from quadVectors on, of the totals.
func (q *neonQuads) vector(v int) a64.Mem { return at(q.b, v) }

// begin returns the initial sums.
func (q *neonQuads) begin() [][]a64.V {
	sums := make([][]a64.V, len(q.a))
	for r := range sums {
		sums[r] = q.Vs(quadVectors)
	}
	for v, first := range sums[0] {
		q.LDRQ(q.y[v%2], q.vector(v))
		q.LDRQ(first, q.vector(quadVectors+v))
		q.FDIV(first, first, q.y[v%2])
		q.FCVTNS(first, first)
		q.SHL(first, first, 7)
		for _, row := range sums[1:] {
			q.MOV(row[v], first)
		}
	}
	return sums
}

// four adds the products of four words, at bytes into the rows and at b of the panel, and moves both behind the words.
func (q *neonQuads) four(sums [][]a64.V, bytes, b a64.X) {
	top := q.y[0]
	q.TopBits(top)
	for r, x := range q.x {
		q.LDRQ(x, a64.Indexed(q.a[r], bytes))
		q.EOR(x, x, top) // less 128
	}
	q.Do("ADD", vectorBytes, bytes)
	for n := range 4 * quadVectors {
		y := q.y[n%2]
		q.LDRQ(y, at(b, n))
		for r, x := range q.x {
			q.SDOTLane(sums[r][n%quadVectors], y, x, n/quadVectors)
		}
	}
	q.Do("ADD", 4*quadVectors*vectorBytes, b)
}

// finish multiplies the sums by the scales, and adds them and the totals to C.
func (q *neonQuads) finish(sums [][]a64.V) {
	for r, x := range q.x {
		q.LDRD(x, a64.Indexed(q.a[r], q.offset))
	}
	factor, c := q.y[0], q.y[1]
	for v := range quadVectors {
		q.LDRQ(factor, q.vector(v))
		for _, row := range sums {
			q.SCVTF(row[v], row[v])
			q.FMUL(row[v], row[v], factor)
		}
		q.LDRQ(factor, q.vector(quadVectors+v))
		for r, row := range sums {
			q.LDRQ(c, at(q.c[r], v))
			q.FMLALane(c, row[v], q.x[r], 0)
			q.FMLALane(c, factor, q.x[r], 1)
			q.STRQ(c, at(q.c[r], v))
		}
	}
}

// toQuads writes the loop that rounds whole groups of floats to integers.
func (f *neonProgram) toQuads() {
	dst, x, groups := f.pointer("dst").(a64.X), f.pointer("x").(a64.X), f.pointer("n")
	least, most, nan := f.num(0x1p-118), f.num(255), f.inRegister(bits4(0x7fc00000))
	inverse255 := f.inRegister(bits4(math.Float32bits(1. / 255)))
	f.repeat(groups, func() {
		// four of each, so that a minimum does not wait for the one before
		lows, highs := as[a64.V](f.sums(16)), as[a64.V](f.sums(16))
		low, high, width, scale, inverse, zero := lows[0], highs[0], f.V(), f.V(), f.V(), f.V()
		v := f.Vs(4)
		for i := range groupWords {
			f.LDRQ(v[i%4], at(x, i))
			f.FMIN(lows[i%4], lows[i%4], v[i%4])
			f.FMAX(highs[i%4], highs[i%4], v[i%4])
		}
		f.DUP(low, f.fold(lows, f.FMIN), 0)
		f.DUP(high, f.fold(highs, f.FMAX), 0)
		f.FSUB(width, high, low)
		f.FMUL(scale, width, inverse255)
		f.FDIV(inverse, most, width)
		f.FCMGT(v[0], least, width)
		f.BIC(scale, scale, v[0])
		f.BIC(inverse, inverse, v[0])
		f.FSUB(high, high, high) // 0, or NaN
		f.FSUB(v[0], low, low)
		f.ORR(high, high, v[0])
		f.FCMEQ0(high, high)
		f.BIF(scale, nan, high)
		f.FMUL(zero, inverse, low)
		f.FCVTNS(zero, zero) // minus the zero point
		f.SCVTF(v[0], zero)
		f.FMUL(v[0], v[0], scale)
		f.STRS(scale, a64.At(dst, 0))
		f.STRS(v[0], a64.At(dst, 4))
		f.move(8, dst)
		f.toIntegers(dst, x, inverse, zero, v)
		f.move(4*groupWords, dst)
		f.move(vectorBytes*groupWords, x)
	})
	f.Return()
}

// toIntegers writes the integers nearest to x·inverse, less zero and at most 255, as bytes. It overwrites v.
func (f *neonProgram) toIntegers(dst, x a64.X, inverse, zero a64.V, v []a64.V) {
	for i := range groupWords / len(v) {
		for n, y := range v {
			f.LDRQ(y, at(x, len(v)*i+n))
			f.FMUL(y, y, inverse)
			f.FCVTNS(y, y)
			f.SUB(y, y, zero)
		}
		// The lower halves of the words; 256, the distance of two ends that are rounded away from 0, then
		// saturates to 255.
		f.UZP1H(v[0], v[0], v[1])
		f.UZP1H(v[2], v[2], v[3])
		f.UQXTNH(v[0], v[0])
		f.UQXTNH2(v[0], v[2])
		f.STRQ(v[0], at(dst, i))
	}
}
