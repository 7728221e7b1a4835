package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// additiveTileGrad writes the kernel for the gradients of up to additiveRows queries and any number
// of keys, for one vector of features.
func additiveTileGrad(s isa) {
	args := pointer("t")
	field := fields(args, gradArg)
	e, f, dk, ds, keys := field("e"), field("f"), field("dk"), field("ds"), field("keys")
	row, dsRow := newLadder(field("row")), newLadder(field("dsRow"))
	// eachSum calls do for every sum of a row and its address.
	eachSum := func(sums []reg.VecVirtual, name string, do func(sum reg.VecVirtual, at Mem)) {
		base := field(name)
		for r, v := range sums {
			do(v, row.at(base, r))
		}
	}
	load := func(v reg.VecVirtual, at Mem) { VMOVUPS(at, v) }
	store := func(v reg.VecVirtual, at Mem) { VMOVUPS(v, at) }
	one := s.numReg(1)
	half, two := s.num(0.5), s.num(2)
	eachHeight(Mem{Base: args, Disp: gradArg("rows")}, func(rows int) {
		dqSum, dwSum, er := s.vecs(rows), s.vecs(rows), make([]Op, rows)
		eachSum(dqSum, "dq", load)
		eachSum(dwSum, "dw", load)
		for r := range rows {
			er[r] = row.at(e, r)
			if s.lanes == 16 { // which has enough registers for them
				v := s.vec()
				VMOVUPS(er[r], v)
				er[r] = v
			}
		}
		repeat("key", keys, func() {
			fj, sum := s.vec(), s.vec()
			VMOVUPS(Mem{Base: f}, fj)
			VMOVUPS(Mem{Base: dk}, sum)
			for r := range rows {
				x, g := s.vec(), s.vec()
				VMOVUPS(half, x)
				VFMADD231PS(er[r], fj, x)
				th := s.oneMinusInverse(x, one, two)
				VMOVUPS(one, g)
				VFNMADD231PS(th, th, g)
				d := s.vec()
				VBROADCASTSS(dsRow.at(ds, r), d)
				VFMADD231PS(g, d, dqSum[r])
				VFMADD231PS(g, d, sum)
				VFMADD231PS(th, d, dwSum[r])
			}
			VMOVUPS(sum, Mem{Base: dk})
			ADDQ(row.row, f)
			ADDQ(row.row, dk)
			ADDQ(U8(4), ds)
		})
		eachSum(dqSum, "dq", store)
		eachSum(dwSum, "dw", store)
		s.end()
	})
}

// oneMinusInverse returns 1-1/x. It overwrites x.
func (s isa) oneMinusInverse(x, one reg.VecVirtual, two Op) reg.VecVirtual {
	r, c := s.vec(), s.vec()
	if s.lanes == 16 {
		VRCP14PS(x, r)
		VMOVUPS(two, c)
		VFNMADD231PS(r, x, c)
		VFNMADD213PS(one, r, c)
		return c
	}
	VRCPPS(x, r)
	VMOVUPS(one, c)
	VFNMADD231PS(r, x, c)
	VFMADD213PS(c, c, c) // e+e²
	VSUBPS(r, one, x)
	VFNMADD231PS(c, r, x)
	return x
}
