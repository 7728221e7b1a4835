package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

func axpy(s isa) {
	a, x, y := s.broadcast("a"), pointer("x"), pointer("y")
	st := s.along("n")
	st.each(4, func(i int, m *mask) {
		xi, yi := s.vec(), s.vec()
		s.load(st.at(x, i), m, xi)
		s.load(st.at(y, i), m, yi)
		VFMADD231PS(xi, a, yi)
		s.store(yi, m, st.at(y, i))
	})
	s.end()
}

func scale(s isa) {
	dst, a, x := pointer("dst"), s.broadcast("a"), pointer("x")
	s.unary(dst, x, 4, func(v reg.VecVirtual) reg.VecVirtual {
		VMULPS(v, a, v)
		return v
	})
}

func scaleShift(s isa) {
	dst, a, x := pointer("dst"), s.broadcast("a"), pointer("x")
	b := s.broadcast("b")
	s.unary(dst, x, 4, func(v reg.VecVirtual) reg.VecVirtual {
		VFMADD213PS(b, a, v)
		return v
	})
}

func add(s isa) { s.zip(false, func(x, y, _ reg.VecVirtual) { VADDPS(y, x, x) }) }

func mul(s isa) { s.zip(false, func(x, y, _ reg.VecVirtual) { VMULPS(y, x, x) }) }

func mulAdd(s isa) { s.zip(true, func(x, y, dst reg.VecVirtual) { VFMADD213PS(dst, y, x) }) }

// zip writes a loop in which op sets x to the new value of dst. If read, dst has its old value.
func (s isa) zip(read bool, op func(x, y, dst reg.VecVirtual)) {
	dst, x, y := pointer("dst"), pointer("x"), pointer("y")
	st := s.along("n")
	st.each(4, func(i int, m *mask) {
		xi, yi, di := s.vec(), s.vec(), s.vec()
		s.load(st.at(x, i), m, xi)
		s.load(st.at(y, i), m, yi)
		if read {
			s.load(st.at(dst, i), m, di)
		}
		op(xi, yi, di)
		s.store(xi, m, st.at(dst, i))
	})
	s.end()
}
