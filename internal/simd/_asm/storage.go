package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A stored is a kind of numbers in which a KV cache holds vectors.
type stored struct{ bytes int }

var (
	bfloat16 = stored{2}
	int8s    = stored{1}
)

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

// fromStored writes the loop that turns stored numbers into floats. It takes whole
// vectors.
func fromStored(n stored) func(s isa) {
	return func(s isa) {
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
}
