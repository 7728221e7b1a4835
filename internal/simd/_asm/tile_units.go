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
	lowerTilesOfA       = reg.RDI // while there are sums in the tiles of C
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

func tileZero(t int) {
	emit(fmt.Sprintf("TILEZERO T%d", t), vex(0x7b, 0x49, 0xc0|byte(t)<<3))
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

// Products of integers. The integers of a group of a row take 128 bytes, as do the 32 columns of a panel.
const (
	tileRows  = 16
	quadBytes = 4 * groupWords
	quadSums  = 2 * tileRows * quadBytes // sums as floats follow those of integers
)

// quadTiles writes the kernel for integers, which computes blocks of up to 32 rows. Scaling the sums of a group takes as
// long as the products, so it goes between the instructions on tiles for the next group.
func quadTiles(s avxProgram) {
	args := pointer("t")
	p := quadTileProduct{avxProgram: s, at: func(field string) Mem { return Mem{Base: args, Disp: quadTileArg(field)} }}
	LEAQ(inMemory("wholeTiles", wholeTiles...), reg.RAX)
	emit("LDTILECFG (AX)", vex(0x78, 0x49, 0x00), reg.RAX)
	p.columns = s.twoVectors(p.field("cols"))
	p.rows, p.c, p.next = p.field("rows"), p.field("c"), p.field("next")
	MOVQ(p.at("aRow"), strideOfA)
	MOVQ(I32(quadBytes), strideOfB)
	MOVQ(p.at("memory"), tilesOfC)
	block, flat, end := label("block"), label("flat"), label("end")
	Label(block)
	CMPQ(p.rows, U8(tileRows))
	JLE(LabelRef(flat))
	p.block(2)
	SUBQ(U8(2*tileRows), p.rows)
	JG(LabelRef(block))
	JMP(LabelRef(end))
	Label(flat)
	p.block(1)
	Label(end)
	emit("TILERELEASE", vex(0x78, 0x49, 0xc0))
	s.end()
}

// wholeTiles is the configuration of eight tiles of 16 rows of 64 bytes.
var wholeTiles = []Constant{
	U64(1), U64(0), // palette 1
	U64(0x0040_0040_0040_0040), U64(0x0040_0040_0040_0040), U64(0), U64(0), // bytes
	U64(0x1010_1010_1010_1010), U64(0), // rows
}

// quadTileProduct is the state of the kernel.
type quadTileProduct struct {
	avxProgram
	at      func(field string) Mem
	columns [2]mask
	rows, c reg.GPVirtual // rows left, and the first of them
	next    reg.GPVirtual // to prefetch
}

// field returns an argument in a register.
func (p *quadTileProduct) field(name string) reg.GPVirtual {
	x := GP64()
	MOVQ(p.at(name), x)
	return x
}

// block writes the code for up to 16 or 32 rows.
func (p *quadTileProduct) block(high int) {
	first, scales, totals := p.vecs(2), p.vecs(2), p.vecs(2)
	start, groups, floats, row := p.field("first"), p.field("groups"), p.field("floats"), GP64()
	for v, x := range first {
		VMOVUPS(Mem{Base: start, Disp: 64 * v}, x)
	}
	MOVQ(p.at("a"), tilesOfA)
	MOVQ(strideOfA, lowerTilesOfA)
	SHLQ(U8(4), lowerTilesOfA)
	MOVQ(lowerTilesOfA, row)
	if high == 2 { // the next block
		ADDQ(row, row)
		ADDQ(row, p.at("a"))
		ADDQ(row, p.at("floats"))
	}
	ADDQ(tilesOfA, lowerTilesOfA)
	MOVQ(p.at("b"), tilesOfB)
	p.group(high, func(r int) {
		for v, x := range first {
			VMOVUPS(x, Mem{Base: tilesOfC, Disp: quadSums + r*quadBytes + 64*v})
		}
	})
	group, more, scaled := label("group"), label("more"), label("scaled")
	Label(group)
	for v := range scales {
		VMOVUPS(Mem{Base: tilesOfB, Disp: 64 * v}, scales[v])
		VMOVUPS(Mem{Base: tilesOfB, Disp: quadBytes + 64*v}, totals[v])
	}
	DECQ(groups)
	JZ(LabelRef(scaled))
	ADDQ(I32(quadBytes), tilesOfA)
	ADDQ(I32(quadBytes), lowerTilesOfA)
	ADDQ(I32((2+groupWords)*quadBytes), tilesOfB)
	CMPQ(groups, U8(1))
	JNE(LabelRef(more))
	MOVQ(p.at("last"), tilesOfB)
	Label(more)
	MOVQ(floats, row)
	p.group(high, func(r int) {
		p.scale(scales, totals, row, Mem{Base: tilesOfC, Disp: r * quadBytes}, func(v int, sum reg.VecVirtual) {
			VMOVUPS(sum, Mem{Base: tilesOfC, Disp: quadSums + r*quadBytes + 64*v})
		})
	})
	ADDQ(U8(8), floats)
	JMP(LabelRef(group))
	Label(scaled)
	sums, rows, cRow := GP64(), GP64(), p.field("cRow")
	MOVQ(tilesOfC, sums)
	MOVQ(U32(16*high), rows)
	CMPQ(p.rows, rows)
	CMOVQLT(p.rows, rows)
	p.repeat(rows, func() {
		p.scale(scales, totals, floats, Mem{Base: sums}, func(v int, sum reg.VecVirtual) {
			p.writeAt(sum, &p.columns[v], Mem{Base: p.c, Disp: 64 * v})
		})
		ADDQ(I32(quadBytes), sums)
		ADDQ(cRow, p.c)
	})
}

// quadPrefetches is how often the code of a group prefetches for each product of tiles.
const quadPrefetches = 3

// group writes the products of a group, and between them the code for each row of the sums before.
func (p *quadTileProduct) group(high int, between func(row int)) {
	for t := range 2 * high {
		tileZero(t)
	}
	row := 0
	for k := range 2 {
		for j := range 2 {
			tileLoad(6+j, (2+k*tileRows)*quadBytes+64*j, tilesOfB, strideOfB)
		}
		for i, from := range []reg.GPPhysical{tilesOfA, lowerTilesOfA}[:high] {
			tileLoad(4+i, 64*k, from, strideOfA)
			for j := range 2 {
				tileDotQuads(2*i+j, 4+i, 6+j)
				for range 4 {
					between(row)
					row++
				}
				for range quadPrefetches {
					PREFETCHT1(Mem{Base: p.next})
					ADDQ(p.at("nextStep"), p.next)
				}
			}
		}
	}
	for t := range 2 * high {
		tileStore(t, t/2*tileRows*quadBytes+t%2*64, tilesOfC, strideOfB)
	}
}

// scale writes the code that adds a row of sums of integers to floats, in the order of gemmQuads. It moves the row of A.
func (p *quadTileProduct) scale(scales, totals []reg.VecVirtual, row reg.GPVirtual, sums Mem, write func(v int, sum reg.VecVirtual)) {
	scale, zero := p.reg(), p.reg()
	VBROADCASTSS(Mem{Base: row}, scale)
	VBROADCASTSS(Mem{Base: row, Disp: 4}, zero)
	ADDQ(strideOfA, row)
	for v := range scales {
		sum, old := p.reg(), p.reg()
		VCVTDQ2PS(sums.Offset(64*v), sum)
		VMOVUPS(sums.Offset(quadSums+64*v), old)
		VMULPS(scales[v], sum, sum)
		VFMADD231PS(scale, sum, old)
		VFMADD231PS(totals[v], zero, old)
		write(v, old)
	}
}

// sortQuads writes the kernel that sorts a row for quadTiles.
func sortQuads(s avxProgram) {
	dst, floats, words, n := pointer("dst"), pointer("floats"), pointer("words"), pointer("n")
	group := func(masks [2]*mask) {
		two := GP64()
		MOVQ(Mem{Base: words}, two)
		MOVQ(two, Mem{Base: floats})
		for v, m := range masks {
			x := s.reg()
			s.readAt(Mem{Base: words, Disp: 8 + 64*v}, m, x)
			VMOVUPS(x, Mem{Base: dst, Disp: 64 * v})
		}
	}
	s.whole(n, groupWords, func() {
		group([2]*mask{})
		ADDQ(I32(8+quadBytes), words)
		ADDQ(I32(quadBytes), dst)
		ADDQ(U8(8), floats)
	})
	s.ifElse(notZero(n), func() {
		columns := s.twoVectors(n)
		group([2]*mask{&columns[0], &columns[1]})
	}, nil)
	s.end()
}
