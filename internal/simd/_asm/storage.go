package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A stored is a number format of the vectors of a KV cache and of the weights of models.
type stored struct{ bytes int }

var (
	float32s = stored{4}
	bfloat16 = stored{2}
	int8s    = stored{1}
)

// widenAt reads a vector of stored numbers as floats.
func (s avxProgram) widenAt(n stored, from Mem, v reg.VecVirtual) {
	switch n.bytes {
	case 4:
		VMOVUPS(from, v)
	case 2:
		VPMOVZXWD(from, v)
		VPSLLD(U8(16), v, v)
	default:
		VPMOVSXBD(from, v)
		VCVTDQ2PS(v, v)
	}
}

// fromStored returns the kernel that converts stored numbers to floats. Their number is a multiple of
// sixteen, so four vectors of four floats leave none for single vectors.
func fromStored(n stored) func(p program) {
	return func(p program) {
		dst, x := p.pointer("dst"), p.pointer("x")
		l := p.along("n", dst).with(x, n.bytes)
		body := func(s step) { s.store(p.widen(n, s.at(x), s.i), dst) }
		l.full(4, body)
		if p.impl().lanes > 4 {
			l.full(1, body)
		}
		p.end()
	}
}

// fromFloat16 writes the loop that converts halves to floats, in whole vectors. A NaN keeps all its
// bits.
func fromFloat16(s avxProgram) {
	dst, x := pointer("dst"), pointer("x")
	// Shifted left by 13, a half has the exponent and the fraction of a float at their places, and an
	// exponent that is too small by 127 - 15 = 112. Exponent 31, of infinities and NaN, needs 112 twice to
	// become 255. Subnormal halves are integers times 2⁻²⁴.
	magnitude, rebias := s.bitsReg(0x7fff), s.bitsReg(112<<23)
	least, most, unit := s.numReg(1<<10), s.numReg(31<<10-1), s.numReg(0x1p-24)
	l := s.along("n", dst).with(x, 2)
	l.steps(1, func(int, extent) {
		h, a, number, v, more := s.reg(), s.reg(), s.reg(), s.reg(), s.reg()
		VPMOVZXWD(mem(l.at(x)), h)
		s.and(a, h, magnitude)
		VCVTDQ2PS(a, number) // compared as floats, because small integers are normal numbers then
		VPSLLD(U8(13), a, v)
		VPADDD(rebias, v, v)
		VPADDD(rebias, v, more)
		v = s.blend(s.compare(greater, most, number), more, v) // infinity and NaN
		small := s.compare(less, least, number)
		VMULPS(unit, number, number)
		v = s.blend(small, number, v) // no implicit bit
		VPSUBD(a, h, h)
		VPSLLD(U8(16), h, h)
		s.or(v, v, h)
		s.writeAt(v, nil, mem(l.at(dst)))
	})
	s.end()
}

// toInt8 writes the loop that divides by a scale and rounds to 8-bit integers, in whole vectors of
// sixteen. It computes in float64, because float32 cannot represent the inverse of a scale.
func toInt8(s avxProgram) {
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	p, err := Param("inverse").Resolve()
	if err != nil {
		panic(err)
	}
	inverse, least := s.reg(), XMM()
	VBROADCASTSD(p.Addr, inverse)
	lowest := constant(0xffffff81) // -127
	if s.lanes == 8 {
		VMOVUPS(lowest, least)
	}
	var bound reg.VecVirtual
	if s.lanes == 16 {
		bound = s.reg()
		VBROADCASTSS(lowest, bound)
	}
	loop := label("loop")
	Label(loop)
	if s.lanes == 16 {
		var halves [2]reg.VecVirtual
		for i := range halves {
			d := s.reg()
			VCVTPS2PD(Mem{Base: x, Disp: 32 * i}, d)
			VMULPD(inverse, d, d)
			halves[i] = YMM()
			VCVTPD2DQ(d, halves[i])
		}
		all := s.reg()
		VINSERTI64X4(U8(1), halves[1], halves[0].AsZ(), all)
		VPMAXSD(bound, all, all)
		VPMOVSDB(all, Mem{Base: dst})
	} else {
		var quarters [4]reg.VecVirtual
		for i := range quarters {
			d := YMM()
			VCVTPS2PD(Mem{Base: x, Disp: 16 * i}, d)
			VMULPD(inverse, d, d)
			quarters[i] = XMM()
			VCVTPD2DQY(d, quarters[i])
			VPMAXSD(least, quarters[i], quarters[i])
		}
		VPACKSSDW(quarters[1], quarters[0], quarters[0])
		VPACKSSDW(quarters[3], quarters[2], quarters[2])
		VPACKSSWB(quarters[2], quarters[0], quarters[0])
		VMOVDQU(quarters[0], Mem{Base: dst})
	}
	ADDQ(U8(64), x)
	ADDQ(U8(16), dst)
	SUBQ(U8(16), n)
	JNZ(LabelRef(loop))
	s.end()
}

// toBFloat16 writes the loop that rounds floats to their upper halves, in whole vectors of sixteen.
func toBFloat16(s avxProgram) {
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	words, halves := make([]reg.VecVirtual, 16/s.lanes), s.newHalves()
	loop := label("loop")
	Label(loop)
	for i := range words {
		words[i] = halves.of(Mem{Base: x, Disp: i * s.bytes()})
	}
	if s.lanes == 16 {
		VPMOVDW(words[0], Mem{Base: dst})
	} else {
		// packs each half of 128 bits by itself, so the quarters change places
		VPACKUSDW(words[1], words[0], words[0])
		VPERMQ(U8(0xd8), words[0], words[0])
		VMOVUPS(words[0], Mem{Base: dst})
	}
	ADDQ(U8(64), x)
	ADDQ(U8(32), dst)
	SUBQ(U8(16), n)
	JNZ(LabelRef(loop))
	s.end()
}

// halves are the constants for rounding to bfloat16.
type halves struct {
	avxProgram
	one, half, quiet vec
}

func (s avxProgram) newHalves() halves {
	return halves{s, s.bitsReg(1), s.bitsReg(0x7fff), s.bitsReg(1 << 6)}
}

// of returns a vector of floats, rounded to bfloat16 in the lower halves. The upper halves are 0.
func (s halves) of(x Mem) reg.VecVirtual {
	v, high := s.reg(), s.reg()
	VMOVUPS(x, v)
	VPSRLD(U8(16), v, high)
	round, nan := s.reg(), s.reg()
	// Adding 0x7fff, and 1 if the lowest bit that stays is 1, carries into it as rounding to the nearest
	// does, ties to even. A NaN keeps its upper bits, with one set that it stays a NaN.
	s.and(round, high, s.one)
	s.or(nan, high, s.quiet)
	VPADDD(register(s.half), round, round)
	VPADDD(v, round, round)
	VPSRLD(U8(16), round, round)
	return s.blend(s.compare(unordered, v, v), nan, round)
}

// magnitude writes the loop for the largest absolute value. It compares the bits without the sign
// as integers, which have the same order.
func magnitude(s avxProgram) {
	x := pointer("x")
	acc, clear := s.vecs(4), s.bitsReg(1<<31-1)
	for _, v := range acc {
		s.setZero(v)
	}
	s.along("n", x).each(len(acc), func(t step) {
		v := register(t.load(x))
		s.and(v, clear, v)
		VPMAXSD(v, acc[t.i], acc[t.i])
	})
	s.returnFirst(s.fold(acc, func(a, b, dst Op) { VPMAXSD(a, b, dst) }))
}
