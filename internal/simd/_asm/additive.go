package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// exp2Poly approximates 2^f for |f| <= 1/2 with a relative error of 8e-8.
var exp2Poly = []float64{1.0000001192092896, 0.6931469440460205, 0.24022118747234344,
	0.05550713837146759, 0.00967560987919569, 0.001327640376985073}

// A logistic holds the constants for r = 1/(1+exp(2x)), of which tanh is 1-2r.
// This tanh has a small absolute error, a relative one only away from 0: a sum
// of many does not see the difference, and it takes half the time.
type logistic struct {
	s               isa
	high, low       reg.VecVirtual
	round, one, two reg.VecVirtual // two is -2
	log2e2          Op
	poly            []Op
}

func (s isa) logistic() logistic {
	return logistic{
		s: s, high: s.numReg(tanhHigh), low: s.numReg(-tanhHigh), round: s.numReg(magic + 127),
		one: s.numReg(1), two: s.numReg(-2), log2e2: s.num(2 * math.Log2E), poly: s.nums(exp2Poly...),
	}
}

// of returns r; it destroys x.
func (l logistic) of(x reg.VecVirtual) reg.VecVirtual {
	s := l.s
	VMINPS(x, l.high, x) // of two operands of which one is NaN, the first
	VMAXPS(x, l.low, x)
	t, f := s.vec(), s.vec()
	VMOVUPS(l.round, t)
	VFMADD231PS(l.log2e2, x, t)
	VSUBPS(l.round, t, f)
	VFMSUB231PS(l.log2e2, x, f)
	d := s.horner(f, l.poly)
	VPSLLD(U8(23), t, t)
	VFMADD213PS(l.one, t, d)
	// One step of Newton's method on an approximate reciprocal; for the twelve
	// bits that AVX2 has, one of third order.
	r, e := s.vec(), s.vec()
	if s.lanes == 16 {
		VRCP14PS(d, r)
	} else {
		VRCPPS(d, r)
	}
	VMOVUPS(r, e)
	VFNMADD213PS(l.one, d, e)
	if s.lanes == 8 {
		VFMADD213PS(e, e, e)
	}
	VFMADD213PS(r, r, e)
	return e
}

func additiveScores(s isa) {
	dst, q, k, w, nk := pointer("dst"), pointer("q"), pointer("k"), pointer("w"), pointer("nk")
	l := s.logistic()
	key := label("key")
	Label(key)
	acc := s.accumulators(16)
	st := s.along("h")
	st.inLanes(len(acc), func(i int, m *mask) {
		x, wi := s.vec(), s.vec()
		s.sum(st, q, k, i, m, x)
		t := l.of(x)
		VFMADD213PS(l.one, l.two, t)
		s.load(st.at(w, i), m, wi)
		VFMADD231PS(wi, t, acc[i])
	})
	VMOVSS(s.fold(acc, addPS).AsX(), Mem{Base: dst})
	nextKey(k)
	ADDQ(U8(4), dst)
	DECQ(nk)
	JNZ(LabelRef(key))
	s.end()
}

func additiveGrad(s isa) {
	dq, dk, dw, ds := pointer("dq"), pointer("dk"), pointer("dw"), pointer("ds")
	q, k, w, nk := pointer("q"), pointer("k"), pointer("w"), pointer("nk")
	l := s.logistic()
	key, skip := label("key"), label("skip")
	Label(key)
	bits := GP32()
	MOVL(Mem{Base: ds}, bits)
	ADDL(bits, bits) // 0 for -0 as well
	JZ(LabelRef(skip))
	d, d4 := s.vec(), s.vec()
	VBROADCASTSS(Mem{Base: ds}, d)
	VMULPS(s.num(4), d, d4)
	st := s.along("h")
	st.each(1, func(i int, m *mask) {
		x, g, sum := s.vec(), s.vec(), s.vec()
		s.sum(st, q, k, i, m, x)
		r := l.of(x)
		// 1-tanh² = 4·r·(1-r)
		VSUBPS(r, l.one, g)
		VMULPS(r, g, g)
		VMULPS(d4, g, g)
		s.load(st.at(w, i), m, sum)
		VMULPS(sum, g, g)
		s.load(st.at(dq, i), m, sum)
		VADDPS(g, sum, sum)
		s.store(sum, m, st.at(dq, i))
		s.load(st.at(dk, i), m, sum)
		VADDPS(g, sum, sum)
		s.store(sum, m, st.at(dk, i))
		VFMADD213PS(l.one, l.two, r)
		s.load(st.at(dw, i), m, sum)
		VFMADD231PS(r, d, sum)
		s.store(sum, m, st.at(dw, i))
	})
	Label(skip)
	nextKey(k)
	nextKey(dk)
	ADDQ(U8(4), ds)
	DECQ(nk)
	JNZ(LabelRef(key))
	s.end()
}

// sum sets x to a vector of q plus one of k.
func (s isa) sum(st stream, q, k reg.GPVirtual, i int, m *mask, x reg.VecVirtual) {
	y := s.vec()
	s.load(st.at(q, i), m, x)
	s.load(st.at(k, i), m, y)
	VADDPS(y, x, x)
}

// nextKey moves k on by h floats.
func nextKey(k reg.GPVirtual) {
	h := pointer("h")
	LEAQ(Mem{Base: k, Index: h, Scale: 4}, k)
}
