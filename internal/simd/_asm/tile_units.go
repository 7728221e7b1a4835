package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The instructions on tiles, which neither avo nor Go's assembler supports, are written as bytes. Their operands in
// general registers are fixed.
var (
	tilesOfA, strideOfA = reg.RAX, reg.RCX // strides are in bytes, from row to row
	tilesOfB, strideOfB = reg.RBX, reg.RSI
	tilesOfC, strideOfC = reg.RDX, reg.RDI
	lowerTilesOfA       = reg.RDX // while there are sums in the tiles of C
)

// emit writes an instruction that reads the given registers.
func emit(text string, code []byte, uses ...Op) {
	Comment(text)
	for i, b := range code {
		// Avo must keep the registers until the whole instruction is written, so the last byte counts as
		// their reader.
		next := &ir.Instruction{Opcode: "BYTE", Operands: []Op{U8(b)}}
		if i == len(code)-1 {
			next.Inputs = uses
		}
		Instruction(next)
	}
}

// vex returns the code of an instruction on tiles. prefix is the last byte of its VEX prefix.
func vex(prefix, opcode byte, rest ...byte) []byte {
	// 0xe2 is the map 0F38 without high registers. The prefix byte has W0, the inverted number of a third
	// tile, and in its lowest bits the prefix: 0 none, 1 66, 2 F3, 3 F2.
	return append([]byte{0xc4, 0xe2, prefix, opcode}, rest...)
}

// sib returns ModRM, SIB and displacement for tile t at disp(base)(index*1).
func sib(t int, disp uint32, base, index reg.Physical) []byte {
	// An address of tiles always has SIB, whose index is the distance of rows; 0x84 says that four bytes of
	// displacement follow.
	return []byte{0x84 | byte(t)<<3, encoded(index)<<3 | encoded(base), byte(disp), byte(disp >> 8), byte(disp >> 16), byte(disp >> 24)}
}

// encoded returns the number of a general register in instructions.
func encoded(r reg.Physical) byte {
	return map[reg.Physical]byte{reg.RAX: 0, reg.RCX: 1, reg.RDX: 2, reg.RBX: 3, reg.RSI: 6, reg.RDI: 7}[r]
}

// tileLoad reads the tile at base+disp.
func tileLoad(t, disp int, base, stride reg.GPPhysical) {
	text := fmt.Sprintf("TILELOADD %d(%s)(%s*1), T%d", disp, base.Asm(), stride.Asm(), t)
	emit(text, vex(0x7b, 0x4b, sib(t, uint32(disp), base, stride)...), base, stride)
}

func tileStore(t, disp int, base, stride reg.GPPhysical) {
	text := fmt.Sprintf("TILESTORED T%d, %d(%s)(%s*1)", t, disp, base.Asm(), stride.Asm())
	emit(text, vex(0x7a, 0x4b, sib(t, uint32(disp), base, stride)...), base, stride)
}

// tileDot is an instruction that adds to tile c the products of words of tiles a and b.
type tileDot func(c, a, b int)

// tileDotPairs is for pairs of bfloat16.
func tileDotPairs(c, a, b int) {
	emit(fmt.Sprintf("TDPBF16PS T%d, T%d, T%d", b, a, c), vex(0x02|byte(^b&15)<<3, 0x5c, 0xc0|byte(c)<<3|byte(a)))
}

// tileDotQuads is for four bytes of A without and of B with a sign.
func tileDotQuads(c, a, b int) {
	emit(fmt.Sprintf("TDPBUSD T%d, T%d, T%d", b, a, c), vex(0x01|byte(^b&15)<<3, 0x5e, 0xc0|byte(c)<<3|byte(a)))
}

// apart is the number of other instructions between two instructions on tiles. Shared machines run
// tile units slowly for long periods: an instruction on tiles right after another takes 16 ns, and
// 10 ns after eight instructions of any kind; fewer than seven do not help. Where tile units run at
// full speed, 7 ns for each instruction, eight instructions cost nothing.
const apart = 8

// pause writes NOP instructions.
func pause() {
	for range apart {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{U8(0x90)}})
	}
}

// addTiles writes the kernel. Tiles 0 to 3 are sums: upper left, upper right, lower left, lower right. Tiles 4 and 5 are
// of A, 6 and 7 of B.
func addTiles(dot tileDot) func(avxProgram) {
	return func(avxProgram) {
		args := pointer("t")
		at := func(field string) Mem { return Mem{Base: args, Disp: tileUnitArg(field)} }
		LEAQ(at("config"), reg.RAX)
		emit("LDTILECFG (AX)", vex(0x78, 0x49, 0x00), reg.RAX)
		flat, narrow, narrowFlat := label("flat"), label("narrow"), label("narrow")
		CMPQ(at("high"), U8(1))
		JE(LabelRef(flat))
		CMPQ(at("wide"), U8(1))
		JE(LabelRef(narrow))
		addTilesOf(dot, at, 2, 2)
		Label(narrow)
		addTilesOf(dot, at, 2, 1)
		Label(flat)
		CMPQ(at("wide"), U8(1))
		JE(LabelRef(narrowFlat))
		addTilesOf(dot, at, 1, 2)
		Label(narrowFlat)
		addTilesOf(dot, at, 1, 1)
	}
}

// addTilesOf writes the kernel for a number of tiles of rows and of columns.
// With two by two tiles, four loads serve four products; a single sum would need two loads for each. All
// eight tiles are then in use.
func addTilesOf(dot tileDot, at func(field string) Mem, high, wide int) {
	eachSum := func(do func(t, disp int, base, stride reg.GPPhysical)) {
		MOVQ(at("c"), tilesOfC)
		MOVQ(at("cRow"), strideOfC)
		for i := range high {
			if i > 0 { // the next 16 rows
				SHLQ(U8(4), strideOfC)
				ADDQ(strideOfC, tilesOfC)
				SHRQ(U8(4), strideOfC)
			}
			for j := range wide {
				do(2*i+j, 64*j, tilesOfC, strideOfC)
			}
		}
	}
	eachSum(tileLoad)
	steps, next := GP64(), GP64()
	MOVQ(at("steps"), steps)
	MOVQ(at("a"), tilesOfA)
	MOVQ(at("aRow"), strideOfA)
	MOVQ(at("b"), tilesOfB)
	MOVQ(at("bRow"), strideOfB)
	MOVQ(strideOfB, next)
	SHLQ(U8(4), next)
	if high > 1 {
		MOVQ(strideOfA, lowerTilesOfA)
		SHLQ(U8(4), lowerTilesOfA)
		ADDQ(tilesOfA, lowerTilesOfA)
	}
	loop := label("step")
	Label(loop)
	for i, from := range []reg.GPPhysical{tilesOfA, lowerTilesOfA}[:high] {
		tileLoad(4+i, 0, from, strideOfA)
		pause()
	}
	for j := range wide {
		tileLoad(6+j, 64*j, tilesOfB, strideOfB)
		pause()
	}
	for i := range high {
		for j := range wide {
			dot(2*i+j, 4+i, 6+j)
			pause()
		}
	}
	ADDQ(I32(64), tilesOfA)
	if high > 1 {
		ADDQ(I32(64), lowerTilesOfA)
	}
	ADDQ(next, tilesOfB)
	DECQ(steps)
	JNZ(LabelRef(loop))
	eachSum(tileStore)
	emit("TILERELEASE", vex(0x78, 0x49, 0xc0))
	RET()
}

// addGroup writes the kernel that scales sums of integers and adds them to C, in the order of gemmQuads.
func addGroup(s avxProgram) {
	c, cRow, sums := pointer("c"), pointer("cRow"), pointer("sums")
	a, aRow, b, rows := pointer("a"), pointer("aRow"), pointer("b"), pointer("rows")
	columns := s.twoVectors(pointer("cols"))
	var scales, totals [2]reg.VecVirtual
	for v := range columns {
		scales[v], totals[v] = s.reg(), s.reg()
		VMOVUPS(Mem{Base: b, Disp: 64 * v}, scales[v])
		VMOVUPS(Mem{Base: b, Disp: 128 + 64*v}, totals[v])
	}
	s.repeat(rows, func() {
		scale, zero := s.reg(), s.reg()
		VBROADCASTSS(Mem{Base: a}, scale)
		VBROADCASTSS(Mem{Base: a, Disp: 4}, zero)
		for v := range columns {
			sum, old := s.reg(), s.reg()
			VCVTDQ2PS(Mem{Base: sums, Disp: 64 * v}, sum)
			VMULPS(scales[v], sum, sum)
			s.readAt(Mem{Base: c, Disp: 64 * v}, &columns[v], old)
			VFMADD231PS(scale, sum, old)
			VFMADD231PS(totals[v], zero, old)
			s.writeAt(old, &columns[v], Mem{Base: c, Disp: 64 * v})
		}
		ADDQ(I32(128), sums)
		ADDQ(cRow, c)
		ADDQ(aRow, a)
	})
	s.end()
}
