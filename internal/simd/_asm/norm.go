package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func sumSquaresAbout(s isa) {
	x, mean := pointer("x"), s.broadcast("mean")
	acc := s.accumulators(sumLanes)
	st := s.along("n")
	st.inLanes(len(acc), func(i int, m *mask) {
		v := s.vec()
		s.load(st.at(x, i), m, v)
		VSUBPS(mean, v, v)
		if m != nil {
			s.keep(*m, v)
		}
		VFMADD231PS(v, v, acc[i])
	})
	s.giveBack(s.fold(acc, addPS))
}

func norm(s isa) {
	dst, x, gain, shift := pointer("dst"), pointer("x"), pointer("gain"), pointer("shift")
	u := s.unit()
	st := s.along("n")
	st.each(2, func(i int, m *mask) {
		v, g, y := s.vec(), s.vec(), s.vec()
		s.load(st.at(x, i), m, v)
		s.load(st.at(gain, i), m, g)
		s.load(st.at(shift, i), m, y)
		u.of(v)
		VFMADD231PS(v, g, y)
		s.store(y, m, st.at(dst, i))
	})
	s.end()
}

func normSums(s isa) {
	dy, x, gain := pointer("dy"), pointer("x"), pointer("gain")
	u := s.unit()
	flat, along := s.accumulators(32), s.accumulators(32)
	st := s.along("n")
	st.inLanes(len(flat), func(i int, m *mask) {
		v, g, d := s.vec(), s.vec(), s.vec()
		s.load(st.at(x, i), m, v)
		s.load(st.at(gain, i), m, g)
		s.load(st.at(dy, i), m, d)
		u.of(v)
		VMULPS(d, g, g)
		VADDPS(g, flat[i], flat[i])
		VFMADD231PS(v, g, along[i])
	})
	Store(s.fold(flat, addPS).AsX(), ReturnIndex(0))
	Store(s.fold(along, addPS).AsX(), ReturnIndex(1))
	s.end()
}

func normGrad(s isa) {
	dx, dy, x, gain := pointer("dx"), pointer("dy"), pointer("x"), pointer("gain")
	u := s.unit()
	flatAll, alongAll := s.broadcast("flat"), s.broadcast("along")
	st := s.along("n")
	st.each(2, func(i int, m *mask) {
		v, g, d, sum := s.vec(), s.vec(), s.vec(), s.vec()
		s.load(st.at(x, i), m, v)
		s.load(st.at(gain, i), m, g)
		s.load(st.at(dy, i), m, d)
		s.load(st.at(dx, i), m, sum)
		u.of(v)
		VFMSUB213PS(flatAll, d, g)
		VFNMADD231PS(alongAll, v, g)
		VFMADD231PS(u.inv, g, sum)
		s.store(sum, m, st.at(dx, i))
	})
	s.end()
}

// layerNorm writes the normalisation of some short rows, one after the other:
// as the sums of one wait for each other, the processor begins with the next.
func layerNorm(s isa) {
	size, eps, one := s.broadcast("size"), s.broadcast("eps"), s.numReg(1)
	dst, x, gain, shift := pointer("dst"), pointer("x"), pointer("gain"), pointer("shift")
	mean, inv, rows := pointer("mean"), pointer("inv"), pointer("rows")
	loop := label("row")
	Label(loop)

	acc := s.accumulators(32)
	st := s.along("d")
	st.inLanes(len(acc), func(i int, m *mask) {
		v := s.vec()
		s.load(st.at(x, i), m, v)
		VADDPS(v, acc[i], acc[i])
	})
	u := unit{s.vec(), s.vec()}
	sum := s.fold(acc, addPS).AsX()
	VDIVSS(size.AsX(), sum, sum)
	VMOVSS(sum, Mem{Base: mean})
	VBROADCASTSS(sum, u.mean)

	for _, v := range acc {
		s.clear(v)
	}
	st = s.along("d")
	st.inLanes(len(acc), func(i int, m *mask) {
		v := s.vec()
		s.load(st.at(x, i), m, v)
		VSUBPS(u.mean, v, v)
		if m != nil {
			s.keep(*m, v)
		}
		VFMADD231PS(v, v, acc[i])
	})
	sum = s.fold(acc, addPS).AsX()
	VDIVSS(size.AsX(), sum, sum)
	VADDSS(eps.AsX(), sum, sum)
	VSQRTSS(sum, sum, sum)
	VDIVSS(sum, one.AsX(), sum)
	VMOVSS(sum, Mem{Base: inv})
	VBROADCASTSS(sum, u.inv)

	st = s.along("d")
	st.each(2, func(i int, m *mask) {
		v, g, y := s.vec(), s.vec(), s.vec()
		s.load(st.at(x, i), m, v)
		s.load(st.at(gain, i), m, g)
		s.load(st.at(shift, i), m, y)
		u.of(v)
		VFMADD231PS(v, g, y)
		s.store(y, m, st.at(dst, i))
	})
	d := pointer("d")
	LEAQ(Mem{Base: x, Index: d, Scale: 4}, x)
	LEAQ(Mem{Base: dst, Index: d, Scale: 4}, dst)
	ADDQ(U8(4), mean)
	ADDQ(U8(4), inv)
	DECQ(rows)
	JNZ(LabelRef(loop))
	s.end()
}

// layerNormGrad writes the gradient of layerNorm with respect to x.
func layerNormGrad(s isa) {
	size := s.broadcast("size")
	dx, dy, x, gain := pointer("dx"), pointer("dy"), pointer("x"), pointer("gain")
	mean, inv, rows := pointer("mean"), pointer("inv"), pointer("rows")
	loop, next := label("row"), label("next")
	Label(loop)
	u := unit{s.vec(), s.vec()}
	VBROADCASTSS(Mem{Base: mean}, u.mean)
	VBROADCASTSS(Mem{Base: inv}, u.inv)

	flat, along, seen := s.accumulators(32), s.accumulators(32), s.zero()
	st := s.along("d")
	st.inLanes(len(flat), func(i int, m *mask) {
		v, g, d := s.vec(), s.vec(), s.vec()
		s.load(st.at(x, i), m, v)
		s.load(st.at(gain, i), m, g)
		s.load(st.at(dy, i), m, d)
		s.or(d, seen, seen)
		u.of(v)
		VMULPS(d, g, g)
		VADDPS(g, flat[i], flat[i])
		VFMADD231PS(v, g, along[i])
	})
	if s.lanes == 16 { // 0 and -0 are all that has no other bit than the sign
		k := K()
		VPTESTMD(constant(notSign), seen, k)
		KORTESTW(k, k)
	} else {
		VPTEST(constant(notSign), seen)
	}
	JZ(LabelRef(next))
	means := [2]reg.VecVirtual{s.vec(), s.vec()}
	for i, acc := range [][]reg.VecVirtual{flat, along} {
		sum := s.fold(acc, addPS).AsX()
		VDIVSS(size.AsX(), sum, sum)
		VBROADCASTSS(sum, means[i])
	}

	st = s.along("d")
	st.each(2, func(i int, m *mask) {
		v, g, d, sum := s.vec(), s.vec(), s.vec(), s.vec()
		s.load(st.at(x, i), m, v)
		s.load(st.at(gain, i), m, g)
		s.load(st.at(dy, i), m, d)
		s.load(st.at(dx, i), m, sum)
		u.of(v)
		VFMSUB213PS(means[0], d, g)
		VFNMADD231PS(means[1], v, g)
		VFMADD231PS(u.inv, g, sum)
		s.store(sum, m, st.at(dx, i))
	})
	Label(next)
	d := pointer("d")
	for _, p := range []reg.GPVirtual{dx, dy, x} {
		LEAQ(Mem{Base: p, Index: d, Scale: 4}, p)
	}
	ADDQ(U8(4), mean)
	ADDQ(U8(4), inv)
	DECQ(rows)
	JNZ(LabelRef(loop))
	s.end()
}

// unit makes unit vectors, by the parameters mean and inv.
type unit struct{ mean, inv reg.VecVirtual }

func (s isa) unit() unit { return unit{s.broadcast("mean"), s.broadcast("inv")} }

// of replaces x.
func (u unit) of(x reg.VecVirtual) {
	VSUBPS(u.mean, x, x)
	VMULPS(u.inv, x, x)
}
