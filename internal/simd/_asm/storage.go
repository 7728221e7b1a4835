package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A stored is a kind of numbers in which a KV cache holds vectors.
type stored struct {
	name, element string
	bytes         int
}

var storedNumbers = []stored{{"BFloat16", "uint16", 2}, {"Int8", "int8", 1}}

// widen reads a vector of stored numbers as floats.
func (s isa) widen(n stored, from Mem, v reg.VecVirtual) {
	if n.bytes == 2 {
		VPMOVZXWD(from, v)
		VPSLLD(U8(16), v, v)
	} else {
		VPMOVSXBD(from, v)
		VCVTDQ2PS(v, v)
	}
}

// storage writes the loops that turn stored numbers into floats. They take whole
// vectors: what is left over is the caller's.
func storage(s isa) {
	for _, n := range storedNumbers {
		s.begin("from"+n.name, "func(dst *float32, x *"+n.element+", n int)")
		dst, x := pointer("dst"), pointer("x")
		st := s.along("n")
		body := func(vectors int, _ *mask) {
			for i := range vectors {
				v := s.vec()
				s.widen(n, Mem{Base: x, Index: st.index, Scale: uint8(n.bytes), Disp: i * s.lanes * n.bytes}, v)
				s.store(v, nil, st.at(dst, i))
			}
		}
		st.steps(4, body)
		st.steps(1, body)
		s.end()
	}
	gemmStored(s)
}
