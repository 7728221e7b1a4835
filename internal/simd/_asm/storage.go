package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A stored is a kind of numbers in which a KV cache holds vectors, and models weights.
type stored struct{ bytes int }

var (
	float32s = stored{4}
	bfloat16 = stored{2}
	int8s    = stored{1}
)

// widen reads a vector of stored numbers as floats.
func (s isa) widen(n stored, from Mem, v reg.VecVirtual) {
	switch n.bytes {
	case 4:
		VMOVUPS(from, v)
	case 2:
		VPMOVZXWD(from, v)
		VPSLLD(U8(16), v, v)
	default:
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

// toBFloat16 writes the loop that rounds floats to the nearest bfloat16. It takes whole
// vectors.
func toBFloat16(s isa) {
	dst, x := pointer("dst"), pointer("x")
	one, half, quiet := s.integers(1), s.integers(0x7fff), s.integers(1<<6)
	st := s.along("n")
	st.steps(1, func(int, *mask) {
		v, up, bit := s.vec(), s.vec(), s.vec()
		VMOVUPS(st.at(x, 0), v)
		VPSRLD(U8(16), v, bit)
		VPANDD(one, bit, bit)
		VPADDD(half, v, up)
		VPADDD(bit, up, up)
		VPSRLD(U8(16), up, up)
		nan := K() // where v is: it keeps its upper half, and is quiet
		VCMPPS(U8(3), v, v, nan)
		VPSRLD(U8(16), v, v)
		VPORD(quiet, v, nan, up)
		VPMOVDW(up, Mem{Base: dst, Index: st.index, Scale: 2})
	})
	s.end()
}

// toInt8 writes the loop that rounds floats to integers of a byte. It takes whole vectors.
func toInt8(s isa) {
	dst, x := pointer("dst"), pointer("x")
	st := s.along("n")
	st.steps(1, func(int, *mask) {
		v := s.vec()
		VCVTPS2DQ(st.at(x, 0), v)
		VPMOVSDB(v, Mem{Base: dst, Index: st.index, Scale: 1})
	})
	s.end()
}

// integers returns a vector of integers that are all n.
func (s isa) integers(n int) reg.VecVirtual {
	x, v := GP32(), s.vec()
	MOVL(U32(n), x)
	VPBROADCASTD(x, v)
	return v
}
