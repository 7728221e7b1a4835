package main

import (
	"fmt"
	"math"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// An avxProgram writes a kernel with AVX2 or AVX-512. Its methods hide the differences in masks; the
// arithmetic instructions have the same names for both. A vec is a register or, as the last operand
// of an operation only, memory.
type avxProgram struct{ *implementation }

func (s avxProgram) bytes() int { return 4 * s.lanes }

// end returns from the function. Dirty upper halves of registers would slow down SSE code, which Go
// itself compiles to.
func (s avxProgram) end() {
	VZEROUPPER()
	RET()
}

// reg returns a new vector register.
func (s avxProgram) reg() reg.VecVirtual {
	if s.lanes == 16 {
		return ZMM()
	}
	return YMM()
}

func (s avxProgram) vecs(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = s.reg()
	}
	return v
}

func (s avxProgram) setZero(v reg.VecVirtual) {
	if s.lanes == 16 {
		// The processor recognises this as zero, without waiting for the old value of v.
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
}

// A mask selects some lanes. One of its two registers is in use.
type mask struct {
	k reg.OpmaskVirtual
	y reg.VecVirtual

	others bool // y has ones in the other lanes; only for keep and addWhere
}

// twoVectors returns the masks of the first n of 32 floats.
func (s avxProgram) twoVectors(n reg.GPVirtual) [2]mask {
	bits, k0, k1 := GP64(), K(), K()
	MOVQ(I32(-1), bits)
	BZHIQ(n, bits, bits)
	KMOVW(bits.As32(), k0)
	SHRQ(U8(16), bits)
	KMOVW(bits.As32(), k1)
	return [2]mask{{k: k0}, {k: k1}}
}

// firstLanes returns the mask of the first n lanes, for 0 <= n <= lanes.
func (s avxProgram) firstLanes(n reg.GPVirtual) mask {
	if s.lanes == 16 {
		bits := GP32()
		MOVL(I32(-1), bits)
		BZHIL(n.As32(), bits, bits)
		k := K()
		KMOVW(bits, k)
		return mask{k: k}
	}
	table, y := GP64(), YMM()
	LEAQ(inMemory("masks", maskTable...), table)
	SHLQ(U8(2), n)
	SUBQ(n, table)
	// the caller still needs n
	SHRQ(U8(2), n)
	VMOVUPS(Mem{Base: table, Disp: 32}, y)
	return mask{y: y}
}

// maskTable is eight lanes of ones followed by eight of zeros: a vector read n lanes before the middle
// has n lanes of ones.
var maskTable = slices.Concat(slices.Repeat([]Constant{U32(math.MaxUint32)}, 8), slices.Repeat([]Constant{U32(0)}, 8))

// readAt reads the lanes of m, or all lanes if m is nil; other lanes become 0. It does not access the
// memory of lanes that are not selected.
func (s avxProgram) readAt(from Mem, m *mask, v reg.VecVirtual) {
	switch {
	case m == nil:
		VMOVUPS(from, v)
	case s.lanes == 16:
		VMOVUPS_Z(from, m.k, v)
	default:
		VMASKMOVPS(from, m.y, v)
	}
}

// writeAt writes the lanes of m, or all lanes if m is nil.
func (s avxProgram) writeAt(v reg.VecVirtual, m *mask, to Mem) {
	switch {
	case m == nil:
		VMOVUPS(v, to)
	case s.lanes == 16:
		VMOVUPS(v, m.k, to)
	default:
		VMASKMOVPS(v, m.y, to)
	}
}

// Predicates of compare. notEqual and notLess are true if an operand is NaN.
const (
	equal     = 0
	unordered = 3
	notEqual  = 4
	notLess   = 5
	less      = 17 // LT_OQ
	greater   = 30 // GT_OQ
)

// compare returns the mask of the lanes where "b predicate a" is true.
func (s avxProgram) compare(predicate int, a Op, b reg.VecVirtual) mask {
	if s.lanes == 16 {
		k := K()
		VCMPPS(U8(predicate), a, b, k)
		return mask{k: k}
	}
	y := YMM()
	VCMPPS(U8(predicate), a, b, y)
	return mask{y: y}
}

// testBits sets the zero flag if a and b have no bit in common.
func (s avxProgram) testBits(a Op, b reg.VecVirtual) {
	if s.lanes == 16 {
		k := K()
		VPTESTMD(a, b, k)
		KORTESTW(k, k)
	} else {
		VPTEST(a, b)
	}
}

// blend returns a in the lanes of m and b in the other lanes.
func (s avxProgram) blend(m mask, a, b reg.VecVirtual) reg.VecVirtual {
	v := s.reg()
	if s.lanes == 16 {
		VBLENDMPS(a, b, m.k, v)
	} else {
		VBLENDVPS(m.y, a, b, v)
	}
	return v
}

// constants contains the constants in memory, by name.
var constants = map[string]Mem{}

// inMemory returns words in memory, one after the other.
func inMemory(name string, words ...Constant) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m, at := GLOBL(name, RODATA|NOPTR), 0
	for _, word := range words {
		DATA(at, word)
		at += word.Bytes()
	}
	constants[name] = m
	return m
}

// constant returns sixteen copies in memory of a number given by its bits.
func constant(bits uint32) Mem {
	two := U64(uint64(bits)<<32 | uint64(bits))
	return inMemory(fmt.Sprintf("c%08x", bits), slices.Repeat([]Constant{two}, 8)...)
}

// bitsOp returns an operand with the number in all lanes. It can only be the first operand: on AVX2,
// which has few registers, it is in memory.
func (s avxProgram) bitsOp(b uint32) Op {
	if s.lanes == 16 {
		return s.bitsReg(b)
	}
	return constant(b)
}

func (s avxProgram) bitsReg(b uint32) reg.VecVirtual {
	v := s.reg()
	VBROADCASTSS(constant(b), v)
	return v
}

// num returns an operand with x in all lanes. It can only be the first operand.
func (s avxProgram) num(x float64) Op { return s.bitsOp(math.Float32bits(float32(x))) }

// numReg returns a register with x in all lanes.
func (s avxProgram) numReg(x float64) reg.VecVirtual { return s.bitsReg(math.Float32bits(float32(x))) }

// labels counts the labels, to make them unique.
var labels int

func label(name string) string {
	labels++
	return fmt.Sprintf("%s%d", name, labels)
}

// pointer loads a parameter into a general register.
func pointer(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// fold combines all lanes of the accumulators with op, the furthest apart first, and returns the
// result in the first lane.
func (s avxProgram) fold(acc []reg.VecVirtual, op func(a, b, dst Op)) reg.VecVirtual {
	// Halving needs as few dependent operations as possible: the logarithm of the number of lanes.
	for n := len(acc) / 2; n > 0; n /= 2 {
		for i := range n {
			op(acc[i+n], acc[i], acc[i])
		}
	}
	v := acc[0]
	if s.lanes == 16 {
		high := YMM()
		VEXTRACTF64X4(U8(1), v, high)
		op(high, v.AsY(), v.AsY())
	}
	t := XMM()
	if s.lanes == 16 {
		VEXTRACTF32X4(U8(1), v.AsY(), t) // the other instruction cannot use all registers
	} else {
		VEXTRACTF128(U8(1), v.AsY(), t)
	}
	op(t, v.AsX(), v.AsX())
	VMOVHLPS(v.AsX(), v.AsX(), t)
	op(t, v.AsX(), v.AsX())
	VMOVSHDUP(v.AsX(), t)
	op(t, v.AsX(), v.AsX())
	return v
}

func addPS(a, b, dst Op) { VADDPS(a, b, dst) }

// returnFirst stores the first lane of v as the result and returns.
func (s avxProgram) returnFirst(v reg.VecVirtual) {
	Store(v.AsX(), ReturnIndex(0))
	s.end()
}
