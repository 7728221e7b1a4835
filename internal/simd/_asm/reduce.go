package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sumLanes is the number of parallel sums: enough to hide the latency of an addition.
const sumLanes = 64

func sum(p program) {
	x, sums := p.pointer("x"), p.sums(sumLanes)
	p.along("n", x).inLanes(len(sums), func(i int, s step) { p.add(sums[i], sums[i], s.load(x)) })
	p.returnSums(sums)
}

func dot(p program) {
	x, y, sums := p.pointer("x"), p.pointer("y"), p.sums(sumLanes)
	p.along("n", x, y).inLanes(len(sums), func(i int, s step) {
		xi, yi := s.load(x), s.load(y)
		p.addProduct(sums[i], yi, xi)
	})
	p.returnSums(sums)
}

// maximum writes a loop that separately records whether it has seen a NaN, because VMAXPS drops a
// NaN in one of its operands.
func maximum(s avxProgram) {
	x := pointer("x")
	lowest := s.numReg(math.Inf(-1))
	acc := as[reg.VecVirtual](copies(s, lowest, 32/s.lanes))
	nan := mask{}
	if s.lanes == 16 {
		nan.k = K()
		KXORW(nan.k, nan.k, nan.k)
	} else {
		nan.y = register(s.zero())
	}
	s.along("n", x).each(len(acc), func(t step) {
		v := register(t.load(x))
		if t.e != nil {
			v = s.blend(*t.e.(*mask), v, lowest)
		}
		VMAXPS(v, acc[t.i], acc[t.i])
		s.either(s.compare(unordered, v, v), &nan)
	})
	v := s.fold(acc, func(a, b, dst Op) { VMAXPS(a, b, dst) })
	clean := label("clean")
	if s.lanes == 16 {
		KORTESTW(nan.k, nan.k)
	} else {
		VPTEST(nan.y, nan.y)
	}
	JZ(LabelRef(clean))
	VMOVUPS(s.bitsReg(0x7fc00000), v)
	Label(clean)
	s.returnFirst(v)
}

// finite writes the loop that looks for x-x != 0, which is true for infinities and NaN.
func finite(p program) {
	x, seen := p.pointer("x"), p.zero()
	p.along("n", x).each(4, func(s step) {
		v := s.load(x)
		p.sub(v, v, v)
		p.or(seen, seen, v)
	})
	p.returnNone(seen)
}
