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

// A power contains the constants of 2^x.
type power struct {
	s     isa
	magic reg.VecVirtual
	low   Op
	poly  []Op
}

func (s isa) power() power {
	return power{s: s, magic: s.numReg(magic + 127), low: s.num(powerLow), poly: s.nums(powerPoly...)}
}

// apply returns 2^x for x up to 127, and 0 below powerLow. It overwrites x.
func (p power) apply(x reg.VecVirtual) reg.VecVirtual {
	s := p.s
	normal := s.compare(notLess, p.low, x)
	t, n := s.vec(), s.vec()
	VADDPS(p.magic, x, t)
	VSUBPS(p.magic, t, n)
	VSUBPS(n, x, x)
	VPSLLD(U8(23), t, t)
	y := s.horner(x, p.poly)
	if s.lanes == 16 {
		VMULPS_Z(t, y, normal.k, y)
	} else {
		VMULPS(t, y, y)
		VANDPS(normal.y, y, y)
	}
	return y
}

// eachRow writes a loop over rows. body writes the code for the row at the pointers and moves them
// to the next row.
func eachRow(body func()) { repeat("row", pointer("rows"), body) }

func powerRows(s isa) {
	x, row, c := pointer("x"), pointer("row"), s.broadcast("c")
	shift, sum := pointer("shift"), pointer("sum")
	p := s.power()
	eachRow(func() {
		p.rowLoop(x, shift, sum, c, func(v reg.VecVirtual) reg.VecVirtual { return v })
		ADDQ(row, x)
		ADDQ(U8(4), shift)
		ADDQ(U8(4), sum)
	})
	s.end()
}

// rowLoop writes the loop over a row of powerRows. It stores stored(v) instead of the powers v.
func (p power) rowLoop(x, shift, sum reg.GPVirtual, c reg.VecVirtual, stored func(v reg.VecVirtual) reg.VecVirtual) {
	s, m := p.s, p.s.vec()
	VBROADCASTSS(Mem{Base: shift}, m)
	acc := s.accumulators(16)
	st := s.along("n")
	st.inLanes(len(acc), func(i int, k *mask) {
		v := s.vec()
		s.load(st.at(x, i), k, v)
		VSUBPS(m, v, v)
		VMULPS(c, v, v)
		v = p.apply(v)
		if k != nil {
			s.keep(*k, v)
		}
		VADDPS(v, acc[i], acc[i])
		s.store(stored(v), k, st.at(x, i))
	})
	VMOVSS(s.fold(acc, addPS).AsX(), Mem{Base: sum})
}

// powerDropRows writes powerRows and dropout as one loop, because the multiplications of one and
// the shifts of the other use different units.
func powerDropRows(s isa) {
	x, row, c := pointer("x"), pointer("row"), s.broadcast("c")
	shift, sum := pointer("shift"), pointer("sum")
	key, keyRow, keep := pointer("key"), pointer("keyRow"), s.broadcast("keep")
	p, d := s.power(), s.unstarted()
	eachRow(func() {
		d.start(key)
		p.rowLoop(x, shift, sum, c, func(v reg.VecVirtual) reg.VecVirtual {
			VMULPS_Z(keep, v, d.next().k, v)
			return v
		})
		ADDQ(row, x)
		ADDQ(U8(4), shift)
		ADDQ(U8(4), sum)
		ADDQ(keyRow, key)
	})
	s.end()
}

func weightRows(s isa) {
	x, row, c := pointer("x"), pointer("row"), s.broadcast("c")
	shift, factor := pointer("shift"), pointer("factor")
	p := s.power()
	eachRow(func() {
		m, f := s.vec(), s.vec()
		VBROADCASTSS(Mem{Base: shift}, m)
		VBROADCASTSS(Mem{Base: factor}, f)
		st := s.along("n")
		st.each(1, func(i int, k *mask) {
			v := s.vec()
			s.load(st.at(x, i), k, v)
			VSUBPS(m, v, v)
			VMULPS(c, v, v)
			v = p.apply(v)
			VMULPS(f, v, v)
			s.store(v, k, st.at(x, i))
		})
		ADDQ(row, x)
		ADDQ(U8(4), shift)
		ADDQ(U8(4), factor)
	})
	s.end()
}

func gradRows(s isa) {
	dw, w, row, means := pointer("dw"), pointer("w"), pointer("row"), pointer("mean")
	zero, times := s.zero(), s.broadcast("factor")
	eachRow(func() {
		mean := s.vec()
		VBROADCASTSS(Mem{Base: means}, mean)
		st := s.along("n")
		st.each(2, func(i int, k *mask) {
			wi, v := s.vec(), s.vec()
			s.load(st.at(w, i), k, wi)
			s.load(st.at(dw, i), k, v)
			VSUBPS(mean, v, v)
			VMULPS(wi, v, v)
			VMULPS(times, v, v)
			seen := s.compare(notEqual, zero, wi)
			s.keep(seen, v)
			s.store(v, k, st.at(dw, i))
		})
		ADDQ(row, dw)
		ADDQ(row, w)
		ADDQ(U8(4), means)
	})
	s.end()
}

func scaleRows(s isa) {
	scaledRows(s, s.store)
	s.end()
}

// streamRows is scaleRows that bypasses the caches.
func streamRows(s isa) {
	scaledRows(s, func(v reg.VecVirtual, k *mask, to Mem) {
		if k == nil {
			VMOVNTPS(v, to)
		} else {
			s.store(v, k, to)
		}
	})
	SFENCE() // such stores are not ordered with other stores
	s.end()
}

// scaledRows writes the loop that multiplies the rows of src by their factors. store writes the
// code that stores a vector.
func scaledRows(s isa, store func(v reg.VecVirtual, k *mask, to Mem)) {
	dst, dstRow := pointer("dst"), pointer("dstRow")
	src, srcRow := pointer("src"), pointer("srcRow")
	factor := pointer("factor")
	eachRow(func() {
		f := s.vec()
		VBROADCASTSS(Mem{Base: factor}, f)
		st := s.along("n")
		st.each(2, func(i int, k *mask) {
			v := s.vec()
			s.load(st.at(src, i), k, v)
			VMULPS(f, v, v)
			store(v, k, st.at(dst, i))
		})
		ADDQ(dstRow, dst)
		ADDQ(srcRow, src)
		ADDQ(U8(4), factor)
	})
}

// rowMax writes the loop for the largest element of each row. It may ignore NaN.
func rowMax(s isa) {
	dst, x, row := pointer("dst"), pointer("x"), pointer("row")
	lowest := s.numReg(math.Inf(-1))
	eachRow(func() {
		acc := s.vecs(4)
		for _, v := range acc {
			VMOVUPS(lowest, v)
		}
		st := s.along("n")
		st.each(len(acc), func(i int, k *mask) {
			if k == nil {
				VMAXPS(st.at(x, i), acc[i], acc[i])
				return
			}
			v := s.vec()
			s.load(st.at(x, i), k, v)
			VMAXPS(s.blend(*k, v, lowest), acc[i], acc[i])
		})
		VMOVSS(s.fold(acc, func(a, b, dst Op) { VMAXPS(a, b, dst) }).AsX(), Mem{Base: dst})
		ADDQ(row, x)
		ADDQ(U8(4), dst)
	})
	s.end()
}

// hide writes the loop that sets elements that are not seen to −Inf.
func hide(s isa) {
	x, seen := pointer("x"), pointer("seen")
	lowest, none := s.numReg(math.Inf(-1)), s.zero()
	st := s.along("n")
	// An AVX-512 mask also works on bytes. AVX2 has no mask for bytes and processes whole vectors
	// only; the caller does the rest.
	st.steps(1, func(int, *mask) {
		flags := s.vec()
		VPMOVZXBD(Mem{Base: seen, Index: st.index, Scale: 1}, flags)
		var hidden mask
		if s.lanes == 16 {
			hidden.k = K()
			VPTESTNMD(flags, flags, hidden.k)
		} else {
			hidden.y = s.vec()
			VPCMPEQD(none, flags, hidden.y)
		}
		s.store(lowest, &hidden, st.at(x, 0))
	})
	s.end()
}

// packBits writes the loop that packs booleans, 64 to a word.
func packBits(s isa) {
	dst, seen, n := pointer("dst"), pointer("seen"), pointer("n")
	repeat("loop", n, func() {
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
