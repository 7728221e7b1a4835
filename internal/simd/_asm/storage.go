package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// storage writes the loops that turn numbers as a KV cache stores them into floats. They
// take whole vectors: what is left over is the caller's.
func storage(s isa) {
	for _, from := range []struct {
		name, element string
		bytes         int
	}{{"fromBFloat16", "uint16", 2}, {"fromInt8", "int8", 1}} {
		s.begin(from.name, "func(dst *float32, x *"+from.element+", n int)")
		dst, x := pointer("dst"), pointer("x")
		st := s.along("n")
		body := func(vectors int, _ *mask) {
			for i := range vectors {
				v := s.vec()
				place := Mem{Base: x, Index: st.index, Scale: uint8(from.bytes), Disp: i * s.lanes * from.bytes}
				if from.bytes == 2 {
					VPMOVZXWD(place, v)
					VPSLLD(U8(16), v, v)
				} else {
					VPMOVSXBD(place, v)
					VCVTDQ2PS(v, v)
				}
				s.store(v, nil, st.at(dst, i))
			}
		}
		st.steps(4, body)
		st.steps(1, body)
		s.end()
	}
}
