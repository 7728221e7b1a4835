package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func sumRows(s isa) {
	dst, x := pointer("dst"), pointer("x")
	st := s.along("n")
	st.blocks(4, func(vectors int, m *mask) {
		sum := s.vecs(vectors)
		for i, v := range sum {
			s.load(st.at(dst, i), m, v)
		}
		s.downRows(st, func(r, at reg.GPVirtual) {
			for i, v := range sum {
				xi := s.vec()
				s.load(Mem{Base: x, Index: at, Scale: 1, Disp: i * s.bytes()}, m, xi)
				VADDPS(xi, v, v)
			}
		})
		for i, v := range sum {
			s.store(v, m, st.at(dst, i))
		}
	})
	s.end()
}

func copyRows(s isa) { s.toRows(false) }

func addRows(s isa) { s.toRows(true) }

// toRows writes the loop that copies rows, or adds them to others.
func (s isa) toRows(sum bool) {
	dst, dstStride, x := pointer("dst"), pointer("dstStride"), pointer("x")
	SHLQ(U8(2), dstStride)
	st := s.along("n")
	st.blocks(4, func(vectors int, m *mask) {
		to := GP64()
		LEAQ(st.at(dst, 0), to)
		s.downRows(st, func(_, at reg.GPVirtual) {
			for i := range vectors {
				v, place := s.vec(), Mem{Base: to, Disp: i * s.bytes()}
				s.load(Mem{Base: x, Index: at, Scale: 1, Disp: i * s.bytes()}, m, v)
				if sum {
					d := s.vec()
					s.load(place, m, d)
					VADDPS(d, v, v)
				}
				s.store(v, m, place)
			}
			ADDQ(dstStride, to)
		})
	})
	s.end()
}

func normGains(s isa) {
	dgain, dshift, dy, x := pointer("dgain"), pointer("dshift"), pointer("dy"), pointer("x")
	mean, inv := pointer("mean"), pointer("inv")
	zero := s.zero()
	st := s.along("n")
	st.blocks(4, func(vectors int, m *mask) {
		gains, shifts := s.vecs(vectors), s.vecs(vectors)
		for i := range gains {
			s.load(st.at(dgain, i), m, gains[i])
			s.load(st.at(dshift, i), m, shifts[i])
		}
		s.downRows(st, func(r, at reg.GPVirtual) {
			u := unit{avxProgram{s}, s.vec(), s.vec()}
			VBROADCASTSS(Mem{Base: mean, Index: r, Scale: 4}, register(u.mean))
			VBROADCASTSS(Mem{Base: inv, Index: r, Scale: 4}, register(u.inv))
			for i := range gains {
				v, d := s.vec(), s.vec()
				s.load(Mem{Base: x, Index: at, Scale: 1, Disp: i * s.bytes()}, m, v)
				s.load(Mem{Base: dy, Index: at, Scale: 1, Disp: i * s.bytes()}, m, d)
				u.apply(v)
				s.keep(s.compare(notEqual, d, zero), v)
				VADDPS(d, shifts[i], shifts[i])
				VFMADD231PS(d, v, gains[i])
			}
		})
		for i := range gains {
			s.store(gains[i], m, st.at(dgain, i))
			s.store(shifts[i], m, st.at(dshift, i))
		}
	})
	s.end()
}

// downRows writes the loop over the rows of a matrix, in the column at the position of the stream.
// r is the number of a row and at its offset in bytes. The parameters are rows, at least 1, and
// stride.
func (s isa) downRows(st stream, row func(r, at reg.GPVirtual)) {
	rows, stride := pointer("rows"), pointer("stride")
	r, at := GP64(), GP64()
	SHLQ(U8(2), stride)
	MOVQ(st.index, at)
	SHLQ(U8(2), at)
	XORQ(r, r)
	loop := label("row")
	Label(loop)
	row(r, at)
	ADDQ(stride, at)
	INCQ(r)
	CMPQ(r, rows)
	JL(LabelRef(loop))
}
