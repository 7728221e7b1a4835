package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// powerPoly approximates 2^f for |f| <= 1/2 with a relative error of 6e-9.
var powerPoly = []float64{1, 0.693147242, 0.240226552, 0.0555026196,
	0.00961745251, 0.00134232431, 0.000156579728}

// powerLow is the exponent below which results are close to denormal numbers, on which
// multiplications are slow. Below it the kernels return 0.
const powerLow = -125

// powers returns a function that writes 2^x, for x up to 127, and 0 below powerLow. It overwrites x.
func powers(p program) func(x vec) vec {
	round, low, polynomial := p.number(magic+127), p.constant(powerLow), p.powerPolynomial(powerPoly)
	return func(x vec) vec {
		normal, t, n := p.notLess(x, low), p.vec(), p.vec()
		// round also adds 127, the bias of exponents, to the integer in the low bits of t
		p.add(t, x, round)
		p.sub(n, t, round)
		p.sub(x, x, n)
		p.exponent(t)
		y := polynomial(x)
		p.mulWhere(normal, y, t)
		return y
	}
}

func powerRows(p program) {
	x, row, c := p.pointer("x"), p.pointer("row"), p.broadcast("c")
	shift, sum := p.pointer("shift"), p.pointer("sum")
	power := powers(p)
	eachRow(p, func() {
		powerRow(p, power, x, shift, sum, c, func(v vec) vec { return v })
		p.advance(x, row)
		p.move(4, shift, sum)
	})
	p.end()
}

// powerRow writes the loop over a row of powerRows. It stores stored(v) instead of the powers v.
func powerRow(p program, power func(v vec) vec, x, shift, sum ptr, c vec, stored func(v vec) vec) {
	m, sums := p.load(shift, 0), p.sums(16)
	p.along("n", x).inLanes(len(sums), func(i int, s step) {
		v := s.load(x)
		p.sub(v, v, m)
		p.mul(v, v, c)
		v = power(v)
		// lanes behind the row are not in the sum
		s.keep(v)
		p.add(sums[i], sums[i], v)
		s.store(stored(v), x)
	})
	p.storeSum(sums, sum)
}

// powerDropRows writes powerRows and dropout as one loop, because the multiplications of one and
// the shifts of the other use different units.
func powerDropRows(s avxProgram) {
	x, row, c := pointer("x"), pointer("row"), s.broadcast("c")
	shift, sum := pointer("shift"), pointer("sum")
	key, keyRow, keep := pointer("key"), pointer("keyRow"), register(s.broadcast("keep"))
	power, d := powers(s), s.unstarted()
	eachRow(s, func() {
		d.start(key)
		powerRow(s, power, x, shift, sum, c, func(v vec) vec {
			VMULPS_Z(keep, register(v), d.next().k, register(v))
			return v
		})
		s.advance(x, row)
		s.move(4, shift, sum)
		s.advance(key, keyRow)
	})
	s.end()
}

func weightRows(p program) {
	x, row, c := p.pointer("x"), p.pointer("row"), p.broadcast("c")
	shift, factor := p.pointer("shift"), p.pointer("factor")
	power := powers(p)
	eachRow(p, func() {
		m, f := p.load(shift, 0), p.load(factor, 0)
		p.along("n", x).each(p.by(1, 2, 1), func(s step) {
			v := s.load(x)
			p.sub(v, v, m)
			p.mul(v, v, c)
			v = power(v)
			p.mul(v, v, f)
			s.store(v, x)
		})
		p.advance(x, row)
		p.move(4, shift, factor)
	})
	p.end()
}

func gradRows(p program) {
	dw, w, row, means := p.pointer("dw"), p.pointer("w"), p.pointer("row"), p.pointer("mean")
	zero, times := p.zero(), p.broadcast("factor")
	eachRow(p, func() {
		mean := p.load(means, 0)
		p.along("n", dw, w).each(2, func(s step) {
			wi, v := s.load(w), s.load(dw)
			p.sub(v, v, mean)
			p.mul(v, v, wi)
			p.mul(v, v, times)
			p.keep(p.nonzero(wi, zero), v)
			s.store(v, dw)
		})
		p.advance(dw, row)
		p.advance(w, row)
		p.move(4, means)
	})
	p.end()
}

func scaleRows(p program) {
	scaledRows(p, step.store)
	p.end()
}

// streamRows is scaleRows that bypasses the caches.
func streamRows(s avxProgram) {
	scaledRows(s, func(to step, v vec, x ptr) {
		if to.e == nil {
			VMOVNTPS(register(v), to.mem(x))
		} else {
			to.store(v, x)
		}
	})
	SFENCE() // such stores are not ordered with other stores
	s.end()
}

// scaledRows writes the loop that multiplies the rows of src by their factors. store writes the
// code that stores a vector.
func scaledRows(p program, store func(s step, v vec, x ptr)) {
	dst, dstRow := p.pointer("dst"), p.pointer("dstRow")
	src, srcRow := p.pointer("src"), p.pointer("srcRow")
	factor := p.pointer("factor")
	eachRow(p, func() {
		f := p.load(factor, 0)
		p.along("n", dst, src).each(p.by(2, 4, 4), func(s step) {
			v := s.load(src)
			p.mul(v, v, f)
			store(s, v, dst)
		})
		p.advance(dst, dstRow)
		p.advance(src, srcRow)
		p.move(4, factor)
	})
}

// rowMax writes the loop for the largest element of each row. It may ignore NaN.
func rowMax(p program) {
	dst, x, row, lowest := p.pointer("dst"), p.pointer("x"), p.pointer("row"), p.number(math.Inf(-1))
	eachRow(p, func() {
		// several, so that a maximum does not wait for the one before
		most := copies(p, lowest, p.by(4, 8, 4))
		p.along("n", x).each(len(most), func(s step) { p.larger(most[s.i], s.or(x, lowest)) })
		p.storeLargest(most, dst)
		p.advance(x, row)
		p.move(4, dst)
	})
	p.end()
}

// hide writes the loop that sets elements that are not seen to −Inf.
func hide(s avxProgram) {
	x, seen := pointer("x"), pointer("seen")
	lowest, none := s.numReg(math.Inf(-1)), register(s.zero())
	l := s.along("n", x).with(seen, 1)
	// An AVX-512 mask also works on bytes. AVX2 has no mask for bytes and processes whole vectors
	// only; the caller does the rest.
	l.steps(1, func(int, extent) {
		flags := s.reg()
		VPMOVZXBD(mem(l.at(seen)), flags)
		var hidden mask
		if s.lanes == 16 {
			hidden.k = K()
			VPTESTNMD(flags, flags, hidden.k)
		} else {
			hidden.y = s.reg()
			VPCMPEQD(none, flags, hidden.y)
		}
		s.writeAt(lowest, &hidden, mem(l.at(x)))
	})
	s.end()
}

// packBits writes the loop that packs booleans, 64 to a word.
func packBits(s avxProgram) {
	dst, seen, n := pointer("dst"), pointer("seen"), pointer("n")
	s.repeat(n, func() {
		if s.lanes == 16 {
			flags, k := ZMM(), K()
			VMOVDQU8(Mem{Base: seen}, flags)
			VPTESTMB(flags, flags, k)
			KMOVQ(k, Mem{Base: dst})
		} else {
			var word reg.GPVirtual
			for half := range 2 {
				flags, part := YMM(), GP64()
				VMOVDQU(Mem{Base: seen, Disp: 32 * half}, flags)
				VPSLLW(U8(7), flags, flags) // moves a boolean, 0 or 1, to the sign of its byte
				VPMOVMSKB(flags, part.As32())
				if half == 0 {
					word = part
					continue
				}
				SHLQ(U8(32), part)
				ORQ(part, word)
			}
			MOVQ(word, Mem{Base: dst})
		}
		ADDQ(U8(64), seen)
		ADDQ(U8(8), dst)
	})
	s.end()
}
