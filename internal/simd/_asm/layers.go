package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// layers writes the loops of activations, softmax and normalisation.
func layers(s isa) {
	s.begin("relu", "func(dst, x *float32, n int)")
	dst, x := pointer("dst"), pointer("x")
	zero := s.zero()
	st := s.along("n")
	st.each(4, func(i int, m *mask) {
		v := s.vec()
		s.load(st.at(x, i), m, v)
		VMAXPS(v, zero, v) // of NaN and 0, and of -0 and 0, the first,
		VADDPS(zero, v, v) // which is to be 0
		s.store(v, m, st.at(dst, i))
	})
	s.end()

	s.begin("reluGrad", "func(dx, dy, x *float32, n int)")
	dx, dy, x := pointer("dx"), pointer("dy"), pointer("x")
	zero = s.zero()
	st = s.along("n")
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

	s.begin("softmaxMean", "func(dy, y *float32, n int) float32")
	dy, y := pointer("dy"), pointer("y")
	zero = s.zero()
	acc := s.accumulators(32)
	st = s.along("n")
	st.inLanes(len(acc), func(i int, m *mask) {
		w, d := s.vec(), s.vec()
		s.load(st.at(y, i), m, w)
		s.load(st.at(dy, i), m, d)
		s.keep(s.compare(notEqual, w, zero), d)
		VFMADD231PS(w, d, acc[i])
	})
	s.giveBack(s.fold(acc, addPS))

	s.begin("softmaxGrad", "func(dx, dy, y *float32, n int, mean float32)")
	dx, dy, y = pointer("dx"), pointer("dy"), pointer("y")
	mean := s.broadcast("mean")
	zero = s.zero()
	st = s.along("n")
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

// addWhere adds x to sum in the lanes of m. It destroys x.
func (s isa) addWhere(m mask, x, sum reg.VecVirtual) {
	if s.lanes == 16 {
		VADDPS(x, sum, m.k, sum)
		return
	}
	VADDPS(x, sum, x)
	VBLENDVPS(m.y, x, sum, sum)
}
