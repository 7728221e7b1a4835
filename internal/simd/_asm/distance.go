package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// distance writes the kernel for up to additiveRows rows and the given number of vectors of
// columns. Four by four are 16 sums. A step takes three instructions for each sum, or two without
// factors. All of them use the units that multiply, and are enough to keep these units busy.
func distance(vectors int) func(s isa) {
	return func(s isa) { s.distance(vectors) }
}

func (s isa) distance(vectors int) {
	args := pointer("t")
	field := fields(args, distanceArg)
	a, b, bRow, w, depth := field("a"), field("b"), field("bRow"), field("w"), field("depth")
	aRow := newLadder(field("aRow"))
	eachHeight(Mem{Base: args, Disp: distanceArg("rows")}, func(rows int) {
		acc := make([][]reg.VecVirtual, rows)
		for r := range acc {
			acc[r] = s.accumulators(vectors * s.lanes)
		}
		steps := func(factors bool) {
			repeat("step", depth, func() {
				row := s.vecs(vectors)
				for v := range row {
					VMOVUPS(Mem{Base: b, Disp: v * s.bytes()}, row[v])
				}
				f := s.vec()
				if factors {
					VBROADCASTSS(Mem{Base: w}, f)
					ADDQ(U8(4), w)
				}
				for r := range acc {
					x := s.vec()
					VBROADCASTSS(aRow.at(a, r), x)
					for v := range row {
						d := s.vec()
						VSUBPS(x, row[v], d)
						if factors {
							VMULPS(f, d, d)
						}
						VFNMADD231PS(d, d, acc[r][v])
					}
				}
				ADDQ(U8(4), a)
				ADDQ(bRow, b)
			})
		}
		plain, done := label("plain"), label("sums")
		TESTQ(w, w)
		JZ(LabelRef(plain))
		steps(true)
		JMP(LabelRef(done))
		Label(plain)
		steps(false)
		Label(done)
		m, c, cRow := s.firstLanes(field("last")), field("c"), newLadder(field("cRow"))
		for r := range acc {
			for v, sum := range acc[r] {
				last := &m
				if v < vectors-1 {
					last = nil
				}
				s.store(sum, last, cRow.at(c, r).Offset(v*s.bytes()))
			}
		}
		s.end()
	})
}

// distanceGrad writes the kernel for the gradients of up to additiveRows queries and any number of
// keys, for one vector of features. It has the arguments of additiveTileGrad, but with the queries
// and keys themselves.
func distanceGrad(s isa) {
	args := pointer("t")
	field := fields(args, gradArg)
	q, k, dk, ds, keys, dw := field("e"), field("f"), field("dk"), field("ds"), field("keys"), field("dw")
	row, dsRow := newLadder(field("row")), newLadder(field("dsRow"))
	dq := field("dq")
	eachHeight(Mem{Base: args, Disp: gradArg("rows")}, func(rows int) {
		dqSum, dwSum, qr := s.vecs(rows), s.vecs(rows), make([]Op, rows)
		for r := range rows {
			VMOVUPS(row.at(dq, r), dqSum[r])
			qr[r] = row.at(q, r)
			if s.lanes == 16 { // which has enough registers for them
				v := s.vec()
				VMOVUPS(qr[r], v)
				qr[r] = v
			}
		}
		each := func(factors bool) {
			if factors {
				for r := range rows {
					VMOVUPS(row.at(dw, r), dwSum[r])
				}
			}
			repeat("key", keys, func() {
				kj, sum := s.vec(), s.vec()
				VMOVUPS(Mem{Base: k}, kj)
				VMOVUPS(Mem{Base: dk}, sum)
				for r := range rows {
					d, g := s.vec(), s.vec()
					VSUBPS(qr[r], kj, d)
					VBROADCASTSS(dsRow.at(ds, r), g)
					VFMADD231PS(g, d, dqSum[r])
					VFNMADD231PS(g, d, sum)
					if factors {
						VMULPS(d, d, d)
						VFMADD231PS(g, d, dwSum[r])
					}
				}
				VMOVUPS(sum, Mem{Base: dk})
				ADDQ(row.row, k)
				ADDQ(row.row, dk)
				ADDQ(U8(4), ds)
			})
			for r := range rows {
				VMOVUPS(dqSum[r], row.at(dq, r))
				if factors {
					VMOVUPS(dwSum[r], row.at(dw, r))
				}
			}
			s.end()
		}
		plain := label("plain")
		TESTQ(dw, dw)
		JZ(LabelRef(plain))
		each(true)
		Label(plain)
		each(false)
	})
}
