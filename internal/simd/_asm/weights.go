package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// above writes the loop that collects the indices of large elements. It writes whole vectors of
// indices; those after the count are meaningless.
func above(s avxProgram) {
	x, dst := pointer("x"), pointer("dst")
	least, places := register(s.broadcast("least")), register(s.broadcast("first"))
	lanes := s.bitsOp(uint32(s.lanes))
	VPADDD(ascending(), places, places)
	count := GP64()
	XORQ(count, count)
	l := s.along("n", x)
	w := s.gatherer()
	l.each(2, func(t step) {
		v := register(t.load(x))
		large := s.compare(greater, least, v)
		if t.e != nil {
			s.both(*t.e.(*mask), &large)
		}
		w.gather(large, places, dst, count)
		VPADDD(lanes, places, places)
	})
	Store(count, ReturnIndex(0))
	s.end()
}

// both keeps the lanes of b that are also in a.
func (s avxProgram) both(a mask, b *mask) {
	if s.lanes == 16 {
		KANDW(a.k, b.k, b.k)
	} else {
		VANDPS(a.y, b.y, b.y)
	}
}

// ascending returns the integers from 0 to 15.
func ascending() Mem {
	var all []Constant
	for i := range 16 {
		all = append(all, U32(i))
	}
	return inMemory("ascending", all...)
}

// A gatherer writes selected lanes contiguously. AVX2 has no instruction for it, so the numbers of
// the lanes are bytes of a word from which PEXT removes the lanes that are not selected.
type gatherer struct {
	s                    avxProgram
	lowBits, laneNumbers reg.GPVirtual
}

func (s avxProgram) gatherer() gatherer {
	g := gatherer{s: s}
	if s.lanes == 8 {
		g.lowBits, g.laneNumbers = GP64(), GP64()
		MOVQ(U64(0x0101010101010101), g.lowBits)
		MOVQ(U64(0x0706050403020100), g.laneNumbers)
	}
	return g
}

// gather writes the lanes of v that m selects after the first count integers at dst.
func (g gatherer) gather(m mask, v reg.VecVirtual, dst, count reg.GPVirtual) {
	to := Mem{Base: dst, Index: count, Scale: 4}
	bits := GP64()
	if g.s.lanes == 16 {
		t := g.s.reg()
		// compressed in a register: with a destination in memory the instruction takes many times as long
		VPCOMPRESSD_Z(v, m.k, t)
		VMOVUPS(t, to)
		KMOVW(m.k, bits.As32())
		POPCNTL(bits.As32(), bits.As32())
		ADDQ(bits, count)
		return
	}
	none := label("none")
	VMOVMSKPS(m.y, bits.As32())
	TESTL(bits.As32(), bits.As32())
	JZ(LabelRef(none))
	lanes, order, t := GP64(), XMM(), YMM()
	// A bit of each selected lane becomes the lowest bit of its byte, and 255 times that the whole byte;
	// PEXT then takes these bytes of the numbers of lanes, one behind the other.
	PDEPQ(g.lowBits, bits, lanes)
	IMUL3Q(U32(255), lanes, lanes)
	PEXTQ(lanes, g.laneNumbers, lanes)
	MOVQ(lanes, order)
	VPMOVZXBD(order, t)
	VPERMD(v, t, t)
	VMOVUPS(t, to)
	POPCNTL(bits.As32(), bits.As32())
	ADDQ(bits, count)
	Label(none)
}

// ranks writes, for each vector, the loop over all elements that may come before its elements.
// Ranks are counted in floats, whose masks are the same on all instruction sets.
func ranks(s avxProgram) {
	dst, x := pointer("dst"), pointer("x")
	length := pointer("n")
	one, lanes := s.numReg(1), s.num(float64(s.lanes))
	places := s.reg()
	VCVTDQ2PS(ascending(), places)
	s.along("n", dst, x).each(1, func(t step) {
		own, rank, place := s.reg(), register(s.zero()), register(s.zero())
		s.readInto(own, t.at(x), t.i, t.e)
		i := GP64()
		XORQ(i, i)
		loop := label("other")
		Label(loop)
		other := s.reg()
		VBROADCASTSS(Mem{Base: x, Index: i, Scale: 4}, other)
		// equal elements have the rank of their place, so that the order is stable
		larger, tie := s.compare(greater, own, other), s.compare(equal, own, other)
		s.both(s.compare(less, places, place), &tie)
		s.either(larger, &tie)
		VADDPS(s.where(tie, one), rank, rank)
		VADDPS(one, place, place)
		INCQ(i)
		CMPQ(i, length)
		JL(LabelRef(loop))
		VCVTTPS2DQ(rank, rank)
		t.store(rank, dst)
		VADDPS(lanes, places, places)
	})
	s.end()
}

// either adds to b the lanes of a.
func (s avxProgram) either(a mask, b *mask) {
	if s.lanes == 16 {
		KORW(a.k, b.k, b.k)
	} else {
		VORPS(a.y, b.y, b.y)
	}
}

// where returns a in the lanes of m, and 0 in the others.
func (s avxProgram) where(m mask, a reg.VecVirtual) reg.VecVirtual {
	v := s.reg()
	if s.lanes == 16 {
		VMOVAPS_Z(a, m.k, v)
	} else {
		VANDPS(m.y, a, v)
	}
	return v
}

// logPoly approximates (ln(1+f) - f + f²/2)/f³ for 1+f between √½ and √2, with the coefficients of
// logf in Moshier's Cephes library.
var logPoly = []float64{3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1, -1.6668057665e-1, 1.4249322787e-1,
	-1.2420140846e-1, 1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2}

// entropy writes the sum of x·ln x with ln x = e·ln2 + ln(1+f). A zero has a finite e too, which is
// then multiplied by 0.
func entropy(s avxProgram) {
	x := pointer("x")
	root := s.bitsOp(math.Float32bits(math.Sqrt2 / 2))
	one, half, ln2, log := s.num(1), s.num(0.5), s.num(math.Ln2), s.polynomial(logPoly)
	acc := as[reg.VecVirtual](s.sums(32))
	s.along("n", x).inLanes(len(acc), func(i int, t step) {
		v, e, f, square := register(t.load(x)), s.reg(), s.reg(), s.reg()
		// As integers the bits of floats are in their order, so the difference to √½, shifted, is the
		// exponent for which 1+f is from √½ to √2.
		VPSUBD(root, v, e)
		VPSRAD(U8(23), e, e)
		VPSLLD(U8(23), e, f)
		VPSUBD(f, v, f)
		VCVTDQ2PS(e, e)
		VSUBPS(one, f, f)
		VMULPS(f, f, square)
		p := register(log(f))
		VFMSUB213PS(half, f, p)
		VFMADD213PS(f, square, p)
		VFMADD231PS(ln2, e, p)
		VFNMADD231PS(v, p, acc[i])
	})
	s.returnFirst(s.fold(acc, addPS))
}
