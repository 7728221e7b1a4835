package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Sizes and constants that package simd also defines: see additive.go there.
const (
	additiveRows  = 4 // queries at a time
	additiveKeyIn = 25.25
	additiveKeyBy = 1.0 / (1 << 13)
)

// additiveExp writes the kernel for E and F. It reports whether no x was clamped. A NaN counts as
// clamped.
func additiveExp(p program) {
	dst, x := p.pointer("dst"), p.pointer("x")
	high, factor, low, moved := p.broadcast("limit"), p.broadcast("factor"), p.zero(), p.zero()
	p.sub(low, low, high)
	exp := exponential(p)
	p.along("n", dst, x).each(1, func(s step) {
		v, change := s.load(x), p.vec()
		c := p.limited(v, high, low)
		p.sub(change, v, c)
		p.or(moved, change)
		p.add(c, c, c)
		c = exp(c)
		p.mul(c, c, factor)
		s.store(c, dst)
	})
	p.returnNone(moved)
}

// additiveKeys writes the kernel that computes G and w·G for a panel of keys. A row of the panel
// has room for both, and contains k in the place of G. A NaN stays NaN.
func additiveKeys(s isa) {
	panel, w, h := pointer("panel"), pointer("w"), pointer("h")
	width := s.additive
	high, low := s.numReg(additiveKeyIn), s.numReg(-additiveKeyIn)
	minusTwo, factor := s.num(-2), s.num(additiveKeyBy)
	exp := exponential(avxProgram{s})
	repeat("row", h, func() {
		wf := s.vec()
		VBROADCASTSS(Mem{Base: w}, wf)
		at, vectors, vector := GP64(), pointer("vectors"), label("vector")
		MOVQ(panel, at)
		Label(vector)
		v := s.vec()
		VMOVUPS(Mem{Base: at}, v)
		VMINPS(v, high, v)
		VMAXPS(v, low, v)
		VMULPS(minusTwo, v, v)
		v = register(exp(v))
		VMULPS(factor, v, v)
		VMOVUPS(v, Mem{Base: at})
		VMULPS(v, wf, v)
		VMOVUPS(v, Mem{Base: at, Disp: 4 * width})
		ADDQ(U8(s.bytes()), at)
		DECQ(vectors)
		JNZ(LabelRef(vector))
		ADDQ(I32(8*width), panel)
		ADDQ(U8(4), w)
	})
	s.end()
}

// A ladder gives the addresses of rows at equal distances.
type ladder struct{ row, row3 reg.GPVirtual }

func newLadder(row reg.GPVirtual) ladder {
	row3 := GP64()
	LEAQ(Mem{Base: row, Index: row, Scale: 2}, row3)
	return ladder{row, row3}
}

// at returns the address of row r, below additiveRows, of the rows that start at base.
func (l ladder) at(base reg.GPVirtual, r int) Mem {
	switch r {
	case 0:
		return Mem{Base: base}
	case 3:
		return Mem{Base: base, Index: l.row3, Scale: 1}
	}
	return Mem{Base: base, Index: l.row, Scale: uint8(r)}
}

// eachHeight calls body for every number of rows from additiveRows down to 1, to write its code.
func eachHeight(rows Mem, body func(rows int)) {
	for n := additiveRows; n > 1; n-- {
		next := label("rows")
		CMPQ(rows, U8(n))
		JNE(LabelRef(next))
		body(n)
		Label(next)
	}
	body(1)
}

// additiveTile writes the kernel for the scores of up to additiveRows queries and the given number
// of vectors of keys.
func additiveTile(vectors int) func(s isa) {
	return func(s isa) { s.additiveTile(vectors) }
}

func (s isa) additiveTile(vectors int) {
	args := pointer("t")
	field := fields(args, scoreArg)
	e, panel, pairs := field("e"), field("panel"), field("pairs")
	eRow := newLadder(field("eRow"))
	width := s.additive
	one, two := s.num(1), s.num(2)
	eachHeight(Mem{Base: args, Disp: scoreArg("rows")}, func(rows int) {
		acc := make([][]reg.VecVirtual, rows)
		for r := range acc {
			acc[r] = s.accumulators(vectors * s.lanes)
		}
		repeat("pair", pairs, func() {
			// at returns G of one of two features or, with a larger index, w·G.
			at := func(f, v int) Mem { return Mem{Base: panel, Disp: 8*width*f + v*s.bytes()} }
			g0, g1 := s.vecs(vectors), s.vecs(vectors)
			w0, w1 := make([]Op, vectors), make([]Op, vectors)
			for v := range vectors {
				VMOVUPS(at(0, v), g0[v])
				VMOVUPS(at(1, v), g1[v])
				w0[v], w1[v] = at(0, v).Offset(4*width), at(1, v).Offset(4*width)
				if s.lanes == 16 { // which has enough registers for them
					x0, x1 := s.vec(), s.vec()
					VMOVUPS(w0[v], x0)
					VMOVUPS(w1[v], x1)
					w0[v], w1[v] = x0, x1
				}
			}
			for r := range rows {
				e0, e1 := s.vec(), s.vec()
				VBROADCASTSS(eRow.at(e, r), e0)
				VBROADCASTSS(eRow.at(e, r).Offset(4), e1)
				for v := range vectors {
					// w0·G0/t0 + w1·G1/t1 with one reciprocal for both.
					t0, t1, n := s.vec(), s.vec(), s.vec()
					VADDPS(g0[v], e0, t0)
					VADDPS(g1[v], e1, t1)
					VMULPS(w0[v], t1, n)
					VFMADD231PS(w1[v], t0, n)
					d := t0
					VMULPS(t0, t1, d)
					s.addQuotient(n, d, one, two, acc[r][v])
				}
			}
			ADDQ(U8(8), e)
			ADDQ(I32(2*8*width), panel)
		})

		m, c, cRow := s.firstLanes(field("last")), field("c"), newLadder(field("cRow"))
		factor, sum := s.vec(), s.vec()
		VBROADCASTSS(Mem{Base: args, Disp: scoreArg("factor")}, factor)
		VBROADCASTSS(Mem{Base: args, Disp: scoreArg("sum")}, sum)
		for r := range acc {
			for v, a := range acc[r] {
				VFMADD213PS(sum, factor, a)
				last := &m
				if v < vectors-1 {
					last = nil
				}
				s.store(a, last, cRow.at(c, r).Offset(v*s.bytes()))
			}
		}
		s.end()
	})
}

// addQuotient adds n/d to acc. It overwrites n and d.
func (s isa) addQuotient(n, d reg.VecVirtual, one, two Op, acc reg.VecVirtual) {
	r, c := s.vec(), s.vec()
	if s.lanes == 16 {
		VRCP14PS(d, r)
		VMOVUPS(two, c)
		VFNMADD231PS(r, d, c)
		VMULPS(r, n, n)
		VFMADD231PS(c, n, acc)
		return
	}
	VRCPPS(d, r)
	VMOVUPS(one, c)
	VFNMADD231PS(r, d, c)
	VFMADD213PS(c, c, c) // e+e²
	VMULPS(r, n, n)
	VFMADD213PS(n, n, c)
	VADDPS(c, acc, acc)
}
