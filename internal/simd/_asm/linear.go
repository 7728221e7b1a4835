package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// linear writes the loops that multiply and add element by element.
func linear(s isa) {
	s.begin("axpy", "func(a float32, x, y *float32, n int)")
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

	s.begin("scale", "func(dst *float32, a float32, x *float32, n int)")
	dst, a, x := pointer("dst"), s.broadcast("a"), pointer("x")
	st = s.along("n")
	st.each(4, func(i int, m *mask) {
		xi := s.vec()
		s.load(st.at(x, i), m, xi)
		VMULPS(xi, a, xi)
		s.store(xi, m, st.at(dst, i))
	})
	s.end()

	s.begin("scaleShift", "func(dst *float32, a float32, x *float32, b float32, n int)")
	dst, a, x = pointer("dst"), s.broadcast("a"), pointer("x")
	b := s.broadcast("b")
	st = s.along("n")
	st.each(4, func(i int, m *mask) {
		xi := s.vec()
		s.load(st.at(x, i), m, xi)
		VFMADD213PS(b, a, xi)
		s.store(xi, m, st.at(dst, i))
	})
	s.end()

	s.threes("add", func(x, y, _ reg.VecVirtual) { VADDPS(y, x, x) })
	s.threes("mul", func(x, y, _ reg.VecVirtual) { VMULPS(y, x, x) })
	s.threes("mulAdd", func(x, y, dst reg.VecVirtual) { VFMADD213PS(dst, y, x) })
}

// threes writes a loop in which op sets x to what becomes of dst.
func (s isa) threes(name string, op func(x, y, dst reg.VecVirtual)) {
	s.begin(name, "func(dst, x, y *float32, n int)")
	dst, x, y := pointer("dst"), pointer("x"), pointer("y")
	st := s.along("n")
	st.each(4, func(i int, m *mask) {
		xi, yi, di := s.vec(), s.vec(), s.vec()
		s.load(st.at(x, i), m, xi)
		s.load(st.at(y, i), m, yi)
		if name == "mulAdd" {
			s.load(st.at(dst, i), m, di)
		}
		op(xi, yi, di)
		s.store(xi, m, st.at(dst, i))
	})
	s.end()
}
