package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

func relu(s isa) {
	dst, x := pointer("dst"), pointer("x")
	zero := s.zero()
	s.unary(dst, x, 4, func(v reg.VecVirtual) reg.VecVirtual {
		VMAXPS(v, zero, v) // keeps NaN and -0
		VADDPS(zero, v, v) // turns -0 into 0
		return v
	})
}

func reluGrad(s isa) {
	dx, dy, x := pointer("dx"), pointer("dy"), pointer("x")
	zero := s.zero()
	st := s.along("n")
	st.each(2, func(i int, m *mask) {
		v, d, sum := s.vec(), s.vec(), s.vec()
		s.load(st.at(x, i), m, v)
		positive := s.compare(less, v, zero)
		s.load(st.at(dx, i), m, d)
		s.load(st.at(dy, i), m, sum)
		s.addWhere(positive, sum, d)
		s.store(d, m, st.at(dx, i))
	})
	s.end()
}

func softmaxMean(s isa) {
	dy, y := pointer("dy"), pointer("y")
	zero := s.zero()
	acc := s.accumulators(32)
	st := s.along("n")
	st.inLanes(len(acc), func(i int, m *mask) {
		w, d := s.vec(), s.vec()
		s.load(st.at(y, i), m, w)
		s.load(st.at(dy, i), m, d)
		s.keep(s.compare(notEqual, w, zero), d)
		VFMADD231PS(w, d, acc[i])
	})
	s.returnFirst(s.fold(acc, addPS))
}

func softmaxGrad(s isa) {
	dx, dy, y := pointer("dx"), pointer("dy"), pointer("y")
	mean := s.broadcast("mean")
	zero := s.zero()
	st := s.along("n")
	st.each(2, func(i int, m *mask) {
		w, d, sum := s.vec(), s.vec(), s.vec()
		s.load(st.at(y, i), m, w)
		s.load(st.at(dy, i), m, d)
		s.load(st.at(dx, i), m, sum)
		VSUBPS(mean, d, d)
		VMULPS(w, d, d)
		s.addWhere(s.compare(notEqual, w, zero), d, sum)
		s.store(sum, m, st.at(dx, i))
	})
	s.end()
}

// addWhere adds x to sum in the lanes of m. It overwrites x.
func (s isa) addWhere(m mask, x, sum reg.VecVirtual) {
	if s.lanes == 16 {
		VADDPS(x, sum, m.k, sum)
		return
	}
	VADDPS(x, sum, x)
	VBLENDVPS(m.y, x, sum, sum)
}
