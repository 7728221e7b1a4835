package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func sumSquaresAbout(s isa) {
	x, mean := pointer("x"), s.broadcast("mean")
	acc := s.accumulators(sumLanes)
	s.sumSquares("n", x, mean, acc)
	s.returnFirst(s.fold(acc, addPS))
}

// sumSquares writes the loop that adds (x-mean)² to the accumulators.
func (s isa) sumSquares(length string, x reg.GPVirtual, mean reg.VecVirtual, acc []reg.VecVirtual) {
	st := s.along(length)
	st.inLanes(len(acc), func(i int, m *mask) {
		v := s.vec()
		s.load(st.at(x, i), m, v)
		VSUBPS(mean, v, v)
		if m != nil {
			s.keep(*m, v)
		}
		VFMADD231PS(v, v, acc[i])
	})
}

func norm(s isa) {
	dst, x, gain, shift := pointer("dst"), pointer("x"), pointer("gain"), pointer("shift")
	s.unit().normalise("n", dst, x, gain, shift)
	s.end()
}

// normalise writes the loop that sets dst = gain·u + shift.
func (u unit) normalise(length string, dst, x, gain, shift reg.GPVirtual) {
	s := u.s
	st := s.along(length)
	st.each(2, func(i int, m *mask) {
		v, g, y := s.vec(), s.vec(), s.vec()
		s.load(st.at(x, i), m, v)
		s.load(st.at(gain, i), m, g)
		s.load(st.at(shift, i), m, y)
		u.apply(v)
		VFMADD231PS(v, g, y)
		s.store(y, m, st.at(dst, i))
	})
}

func normSums(s isa) {
	dy, x, gain := pointer("dy"), pointer("x"), pointer("gain")
	u := s.unit()
	flat, along := s.accumulators(32), s.accumulators(32)
	u.sums("n", dy, x, gain, flat, along, nil)
	Store(s.fold(flat, addPS).AsX(), ReturnIndex(0))
	Store(s.fold(along, addPS).AsX(), ReturnIndex(1))
	s.end()
}

// sums writes the loop that adds gain·dy to flat and gain·dy·u to along. If seen is not nil, the
// loop ORs the bits of dy into it.
func (u unit) sums(length string, dy, x, gain reg.GPVirtual, flat, along []reg.VecVirtual, seen reg.VecVirtual) {
	s := u.s
	st := s.along(length)
	st.inLanes(len(flat), func(i int, m *mask) {
		v, g, d := s.vec(), s.vec(), s.vec()
		s.load(st.at(x, i), m, v)
		s.load(st.at(gain, i), m, g)
		s.load(st.at(dy, i), m, d)
		if seen != nil {
			s.or(d, seen, seen)
		}
		u.apply(v)
		VMULPS(d, g, g)
		VADDPS(g, flat[i], flat[i])
		VFMADD231PS(v, g, along[i])
	})
}

func normGrad(s isa) {
	dx, dy, x, gain := pointer("dx"), pointer("dy"), pointer("x"), pointer("gain")
	u := s.unit()
	flat, along := s.broadcast("flat"), s.broadcast("along")
	u.gradient("n", dx, dy, x, gain, flat, along)
	s.end()
}

// gradient writes the loop that adds inv·(gain·dy - flat - along·u) to dx.
func (u unit) gradient(length string, dx, dy, x, gain reg.GPVirtual, flat, along reg.VecVirtual) {
	s := u.s
	st := s.along(length)
	st.each(2, func(i int, m *mask) {
		v, g, d, sum := s.vec(), s.vec(), s.vec(), s.vec()
		s.load(st.at(x, i), m, v)
		s.load(st.at(gain, i), m, g)
		s.load(st.at(dy, i), m, d)
		s.load(st.at(dx, i), m, sum)
		u.apply(v)
		VFMSUB213PS(flat, d, g)
		VFNMADD231PS(along, v, g)
		VFMADD231PS(u.inv, g, sum)
		s.store(sum, m, st.at(dx, i))
	})
}

// layerNorm writes the normalisation of several short rows, one after the other. While the sums of
// one row wait for each other, the processor starts with the next row.
func layerNorm(s isa) {
	size, eps, one := s.broadcast("size"), s.broadcast("eps"), s.numReg(1)
	dst, x, gain, shift := pointer("dst"), pointer("x"), pointer("gain"), pointer("shift")
	mean, inv := pointer("mean"), pointer("inv")
	eachRow(func() {
		acc := s.accumulators(32)
		st := s.along("d")
		st.inLanes(len(acc), func(i int, m *mask) {
			v := s.vec()
			s.load(st.at(x, i), m, v)
			VADDPS(v, acc[i], acc[i])
		})
		u := unit{s, s.vec(), s.vec()}
		sum := s.fold(acc, addPS).AsX()
		VDIVSS(size.AsX(), sum, sum)
		VMOVSS(sum, Mem{Base: mean})
		VBROADCASTSS(sum, u.mean)

		for _, v := range acc {
			s.clear(v)
		}
		s.sumSquares("d", x, u.mean, acc)
		sum = s.fold(acc, addPS).AsX()
		VDIVSS(size.AsX(), sum, sum)
		VADDSS(eps.AsX(), sum, sum)
		VSQRTSS(sum, sum, sum)
		VDIVSS(sum, one.AsX(), sum)
		VMOVSS(sum, Mem{Base: inv})
		VBROADCASTSS(sum, u.inv)
		u.normalise("d", dst, x, gain, shift)
		nextRow(mean, inv, x, dst)
	})
	s.end()
}

// nextRow advances pointers to rows by d floats, and the pointers to their mean and inv by one.
func nextRow(mean, inv reg.GPVirtual, rows ...reg.GPVirtual) {
	d := pointer("d")
	for _, p := range rows {
		LEAQ(Mem{Base: p, Index: d, Scale: 4}, p)
	}
	ADDQ(U8(4), mean)
	ADDQ(U8(4), inv)
}

// layerNormGrad writes the gradient of layerNorm with respect to x.
func layerNormGrad(s isa) {
	size := s.broadcast("size")
	dx, dy, x, gain := pointer("dx"), pointer("dy"), pointer("x"), pointer("gain")
	mean, inv := pointer("mean"), pointer("inv")
	eachRow(func() {
		next := label("next")
		u := unit{s, s.vec(), s.vec()}
		VBROADCASTSS(Mem{Base: mean}, u.mean)
		VBROADCASTSS(Mem{Base: inv}, u.inv)
		flat, along, seen := s.accumulators(32), s.accumulators(32), s.zero()
		u.sums("d", dy, x, gain, flat, along, seen)
		if s.lanes == 16 { // only 0 and -0 have no bits other than the sign
			k := K()
			VPTESTMD(constant(notSign), seen, k)
			KORTESTW(k, k)
		} else {
			VPTEST(constant(notSign), seen)
		}
		JZ(LabelRef(next))
		means := s.vecs(2)
		for i, acc := range [][]reg.VecVirtual{flat, along} {
			sum := s.fold(acc, addPS).AsX()
			VDIVSS(size.AsX(), sum, sum)
			VBROADCASTSS(sum, means[i])
		}
		u.gradient("d", dx, dy, x, gain, means[0], means[1])
		Label(next)
		nextRow(mean, inv, dx, dy, x)
	})
	s.end()
}

// unit computes u = (x-mean)·inv, with the parameters mean and inv.
type unit struct {
	s         isa
	mean, inv reg.VecVirtual
}

func (s isa) unit() unit { return unit{s, s.broadcast("mean"), s.broadcast("inv")} }

// apply replaces x by u.
func (u unit) apply(x reg.VecVirtual) {
	VSUBPS(u.mean, x, x)
	VMULPS(u.inv, x, x)
}
