package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// adamW writes the step of AdamW. The scalars are the fields of adamScalars in package simd, in the
// same order.
func adamW(s isa) {
	p, g, m, v, scalars := pointer("p"), pointer("grad"), pointer("m"), pointer("v"), pointer("s")
	var f [8]reg.VecVirtual
	for i := range f {
		f[i] = s.vec()
		VBROADCASTSS(Mem{Base: scalars, Disp: 4 * i}, f[i])
	}
	keep, beta1, beta2, oneBeta1, oneBeta2, rate, rootScale, epsilon := f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]
	st := s.along("n")
	st.each(1, func(i int, k *mask) {
		gi, mi, vi, pi := s.vec(), s.vec(), s.vec(), s.vec()
		s.load(st.at(g, i), k, gi)
		s.load(st.at(m, i), k, mi)
		s.load(st.at(v, i), k, vi)
		s.load(st.at(p, i), k, pi)
		VMULPS(beta1, mi, mi)
		VFMADD231PS(oneBeta1, gi, mi)
		s.store(mi, k, st.at(m, i))
		VMULPS(gi, gi, gi)
		VMULPS(beta2, vi, vi)
		VFMADD231PS(oneBeta2, gi, vi)
		s.store(vi, k, st.at(v, i))
		VSQRTPS(vi, vi)
		VFMADD213PS(epsilon, rootScale, vi)
		VMULPS(rate, mi, mi)
		VDIVPS(vi, mi, mi)
		VFMSUB213PS(mi, keep, pi) // p·keep - step
		s.store(pi, k, st.at(p, i))
	})
	s.end()
}
