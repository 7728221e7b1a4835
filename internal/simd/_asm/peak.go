package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// fmaChains is the number of sums that fmaLoop keeps in flight: two units of latency 4 need 8. With
// two factors, 12 still fit in the 16 registers of AVX2.
const fmaChains = 12

// fmaLoop writes a loop of fused multiply-adds and nothing else: n rounds of two multiply-adds for
// each chain. The numbers tend to 1 and stay normal, because zeros and denormals could take a
// different time than the numbers of real work.
func fmaLoop(s avxProgram) {
	n := pointer("n")
	factor, term := s.numReg(0.5), s.numReg(0.5)
	chains := as[reg.VecVirtual](copies(s, term, fmaChains))
	loop := label("loop")
	Label(loop)
	for range 2 {
		for _, v := range chains {
			VFMADD213PS(term, factor, v)
		}
	}
	SUBQ(U8(1), n)
	JNZ(LabelRef(loop))
	s.end()
}
