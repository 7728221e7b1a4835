package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Matrix products on tile units (AMX). Every float is the sum of three bfloat16, its limbs: high,
// middle and low. Of the nine products of limbs, the six largest are computed.
//
// Limbs are stored in the order in which the tile units read them. A step is 32 elements of k of 32
// rows of A, or of 32 columns of B: two tiles of 1 KiB for each limb. A row of a tile is 16 pairs.
// Pair i is elements i and i+16 of the step, so that both operands are packed with shifts alone.
const (
	tileBytes = 1 << 10
	limbBytes = 2 * tileBytes // from limb to limb
	stepBytes = 3 * limbBytes
)

// amxPrefetched is the number of bytes that each step of 32 rows prefetches.
const amxPrefetched = 4096

// The instructions on tiles, which neither avo nor Go's assembler supports, are written as bytes.
// Their operands in general registers are fixed.
var (
	amxPtrA, amxPtrB, amxPtrC = reg.RAX, reg.RBX, reg.RDX
	amxStride, amxStrideC     = reg.RCX, reg.RSI // in bytes, from row to row
)

// emit writes an instruction that reads the given registers.
func emit(text string, code []byte, uses ...Op) {
	Comment(text)
	for i, b := range code {
		next := &ir.Instruction{Opcode: "BYTE", Operands: []Op{U8(b)}}
		if i == len(code)-1 {
			next.Inputs = uses
		}
		Instruction(next)
	}
}

// vex returns the code of an AMX instruction on tile t. prefix is the last byte of its VEX prefix.
func vex(prefix, opcode byte, rest ...byte) []byte {
	return append([]byte{0xc4, 0xe2, prefix, opcode}, rest...)
}

// sib returns ModRM, SIB and displacement for tile t at disp(base)(index*1), given the numbers of
// the registers.
func sib(t int, disp uint32, base, index byte) []byte {
	return []byte{0x84 | byte(t)<<3, index<<3 | base, byte(disp), byte(disp >> 8), byte(disp >> 16), byte(disp >> 24)}
}

// encoded returns the number of a general register in instructions.
func encoded(r reg.Physical) byte {
	return map[reg.Physical]byte{reg.RAX: 0, reg.RCX: 1, reg.RDX: 2, reg.RBX: 3, reg.RSI: 6}[r]
}

func tileZero(t int) { emit(fmt.Sprintf("TILEZERO T%d", t), vex(0x7b, 0x49, 0xc0|byte(t)<<3)) }

// tileLoad reads the tile at base+disp.
func tileLoad(t, disp int, base, stride reg.GPPhysical) {
	text := fmt.Sprintf("TILELOADD %d(%s)(%s*1), T%d", disp, base.Asm(), stride.Asm(), t)
	emit(text, vex(0x7b, 0x4b, sib(t, uint32(disp), encoded(base), encoded(stride))...), base, stride)
}

func tileStore(t, disp int, base, stride reg.GPPhysical) {
	text := fmt.Sprintf("TILESTORED T%d, %d(%s)(%s*1)", t, disp, base.Asm(), stride.Asm())
	emit(text, vex(0x7a, 0x4b, sib(t, uint32(disp), encoded(base), encoded(stride))...), base, stride)
}

// tileDot adds to tile c the products of pairs of tiles a and b.
func tileDot(c, a, b int) {
	emit(fmt.Sprintf("TDPBF16PS T%d, T%d, T%d", b, a, c), vex(0x02|byte(^b&15)<<3, 0x5c, 0xc0|byte(c)<<3|byte(a)))
}

// apart is the number of other instructions between two instructions on tiles. Shared machines run
// tile units slowly for long periods: an instruction on tiles right after another takes 16 ns, and
// 10 ns after eight instructions of any kind; fewer than seven do not help. Where tile units run at
// full speed, 7 ns for each instruction, eight instructions cost nothing.
const apart = 8

// pause writes n NOP instructions.
func pause(n int) {
	for range n {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{U8(0x90)}})
	}
}

// amxMultiply writes the kernel: 32 rows of A, or up to 16, by panels of 32 columns of B.
func amxMultiply(s avxProgram) {
	args := pointer("t")
	field := arguments{s, args, amxArg}.general
	at := GP64()
	LEAQ(inMemory("tiles", amxConfig...), at)
	MOVQ(at, reg.RAX)
	emit("LDTILECFG (AX)", []byte{0xc4, 0xe2, 0x78, 0x49, 0x00}, reg.RAX)

	b, c, panels, bias := field("b"), field("c"), field("panels"), field("bias")
	cRow, masked := field("cRow"), field("masked")
	last := s.amxColumns(field("last"))
	full := GP64()
	MOVQ(I32(32), full)
	whole := s.amxColumns(full)
	MOVQ(I32(64), amxStride)

	high := label("high")
	CMPQ(Mem{Base: args, Disp: amxArg("rows")}, U8(16))
	JG(LabelRef(high))
	p := amxPanel{s: s, args: args, b: b, c: c, panels: panels, bias: bias, cRow: cRow, whole: whole, last: last,
		masked: masked, buffer: GP64(), bufferRow: GP64()}
	p.loop(1)
	Label(high)
	p.loop(2)
}

// amxConfig is the configuration of tiles: palette 1, eight tiles of 16 rows of 64 bytes.
var amxConfig = []Constant{
	U64(1), U64(0), U64(0x0040004000400040), U64(0x0040004000400040), U64(0), U64(0), U64(0x1010101010101010), U64(0),
}

// amxColumns returns the masks of the first n of 32 columns.
func (s avxProgram) amxColumns(n reg.GPVirtual) [2]mask {
	bits, k0, k1 := GP64(), K(), K()
	MOVQ(I32(-1), bits)
	BZHIQ(n, bits, bits)
	KMOVW(bits.As32(), k0)
	SHRQ(U8(16), bits)
	KMOVW(bits.As32(), k1)
	return [2]mask{{k: k0}, {k: k1}}
}

// amxPanel is the state that the code of all panels shares.
type amxPanel struct {
	s                              avxProgram
	args, b, c, panels, bias, cRow reg.GPVirtual
	masked, buffer, bufferRow      reg.GPVirtual
	whole, last                    [2]mask
}

// loop writes the loop over the panels, for one or two tiles of rows.
func (p *amxPanel) loop(high int) {
	next, narrow, wide := label("panel"), label("narrow"), label("wide")
	zero, masked, from, done := label("zero"), label("masked"), label("from"), label("done")
	Label(next)
	columns := [2]mask{{k: K()}, {k: K()}}
	CMPQ(p.panels, U8(1))
	JE(LabelRef(narrow))
	KMOVW(p.whole[0].k, columns[0].k)
	KMOVW(p.whole[1].k, columns[1].k)
	JMP(LabelRef(wide))
	Label(narrow)
	KMOVW(p.last[0].k, columns[0].k)
	KMOVW(p.last[1].k, columns[1].k)
	Label(wide)

	// The initial rows: rows of C, or the row of biases repeatedly.
	src, step := GP64(), GP64()
	MOVQ(p.bias, src)
	XORQ(step, step)
	CMPQ(Mem{Base: p.args, Disp: amxArg("start")}, U8(startBias))
	JE(LabelRef(from))
	MOVQ(p.c, src)
	MOVQ(p.cRow, step)
	Label(from)
	CMPQ(p.panels, p.masked)
	JLE(LabelRef(masked))
	p.tiles(high, src, step, p.c, p.cRow)
	JMP(LabelRef(done))
	Label(masked)
	// A tile that is only partly in C goes through the buffer.
	MOVQ(Mem{Base: p.args, Disp: amxArg("buffer")}, p.buffer)
	MOVQ(I32(4*32), p.bufferRow)
	CMPQ(Mem{Base: p.args, Disp: amxArg("start")}, U8(startZero))
	JE(LabelRef(zero))
	p.copy(src, step, p.buffer, p.bufferRow, columns)
	Label(zero)
	p.tiles(high, p.buffer, p.bufferRow, p.buffer, p.bufferRow)
	p.copy(p.buffer, p.bufferRow, p.c, p.cRow, columns)
	Label(done)

	ADDQ(Mem{Base: p.args, Disp: amxArg("bPanel")}, p.b)
	ADDQ(I32(128), p.c)
	ADDQ(I32(128), p.bias)
	DECQ(p.panels)
	JNZ(LabelRef(next))
	emit("TILERELEASE", []byte{0xc4, 0xe2, 0x78, 0x49, 0xc0})
	p.s.end()
}

// tiles writes the sums of a panel: tiles that start with zeros or with the rows at from, and are
// stored at to.
func (p *amxPanel) tiles(high int, from, fromRow, to, toRow Op) {
	zero, sums := label("zeros"), label("sums")
	move := func(at, row Op, tile func(t, disp int, base, stride reg.GPPhysical)) {
		MOVQ(at, amxPtrC)
		MOVQ(row, amxStrideC)
		for t := range 2 * high {
			if t == 2 { // the next 16 rows
				SHLQ(U8(4), amxStrideC)
				ADDQ(amxStrideC, amxPtrC)
				SHRQ(U8(4), amxStrideC)
			}
			tile(t, 64*(t%2), amxPtrC, amxStrideC)
		}
	}
	CMPQ(Mem{Base: p.args, Disp: amxArg("start")}, U8(startZero))
	JE(LabelRef(zero))
	move(from, fromRow, tileLoad)
	JMP(LabelRef(sums))
	Label(zero)
	for t := range 2 * high {
		tileZero(t)
	}
	Label(sums)
	p.sums(high)
	move(to, toRow, tileStore)
}

// copy writes the loop that copies the rows of a tile of C, in the given columns.
func (p *amxPanel) copy(from, fromRow, to, toRow Op, columns [2]mask) {
	loop := label("copy")
	src, dst, rows := GP64(), GP64(), GP64()
	MOVQ(from, src)
	MOVQ(to, dst)
	MOVQ(Mem{Base: p.args, Disp: amxArg("rows")}, rows)
	Label(loop)
	for v := range 2 {
		x := p.s.reg()
		p.s.readAt(Mem{Base: src, Disp: 64 * v}, &columns[v], x)
		p.s.writeAt(x, &columns[v], Mem{Base: dst, Disp: 64 * v})
	}
	ADDQ(fromRow, src)
	ADDQ(toRow, dst)
	DECQ(rows)
	JNZ(LabelRef(loop))
}

// sums writes the loop over the steps of k. Tiles 0 to 3 are sums, 4 and 5 are of A, 6 and 7 of B.
// Products with low limbs come first. The operands of the next product are loaded while one is
// computed.
func (p *amxPanel) sums(high int) {
	loop := label("step")
	steps := GP64()
	MOVQ(Mem{Base: p.args, Disp: amxArg("a")}, amxPtrA)
	MOVQ(p.b, amxPtrB)
	MOVQ(Mem{Base: p.args, Disp: amxArg("steps")}, steps)
	a := func(limb int) {
		for t := range high {
			tileLoad(4+t, limb*limbBytes+t*tileBytes, amxPtrA, amxStride)
			pause(apart)
		}
	}
	b := func(limb int) {
		for t := range 2 {
			tileLoad(6+t, limb*limbBytes+t*tileBytes, amxPtrB, amxStride)
			pause(apart)
		}
	}
	next := amxPtrC // free during the loop
	MOVQ(Mem{Base: p.args, Disp: amxArg("next")}, next)
	ahead, fetched := 0, 0
	products := func() {
		for t := range 2 * high {
			tileDot(t, 4+t/2, 6+t%2)
			others := apart
			for range 8 / high { // prefetches the next step of B into the first-level cache
				PREFETCHT0(Mem{Base: amxPtrB, Disp: stepBytes + 64*ahead})
				ahead++
				others--
			}
			for high == 2 && others > 1 && fetched < amxPrefetched {
				PREFETCHT1(Mem{Base: next, Disp: fetched})
				fetched += 64
				others--
			}
			pause(others)
		}
	}
	const low, middle, top = 2, 1, 0
	Label(loop)
	a(low)
	b(top)
	products()
	a(middle)
	products()
	b(middle)
	products()
	a(top)
	products()
	b(low)
	products()
	b(top)
	products()
	ADDQ(I32(stepBytes), amxPtrA)
	ADDQ(I32(stepBytes), amxPtrB)
	ADDQ(Mem{Base: p.args, Disp: amxArg("nextStep")}, next)
	DECQ(steps)
	JNZ(LabelRef(loop))
	MOVQ(next, Mem{Base: p.args, Disp: amxArg("next")})
}

// amxTiny writes the kernel that finds numbers that are not 0 but close to 0.
func amxTiny(s avxProgram) {
	x, row, rows, cols := pointer("x"), pointer("row"), pointer("rows"), pointer("cols")
	loop, vectors, tail, done := label("row"), label("vector"), label("tail"), label("next")
	one, least := s.bitsReg(1), s.bitsReg(2*math.Float32bits(0x1p-96)-1)
	found, bits := GP32(), GP32()
	XORL(found, found)
	last := GP64()
	MOVQ(cols, last)
	ANDQ(U8(15), last)
	rest := s.firstLanes(last)
	test := func(v reg.VecVirtual) {
		k := K()
		VPADDD(v, v, v)   // removes the sign
		VPSUBD(one, v, v) // 0 becomes the largest
		VPCMPUD(U8(1), least, v, k)
		KMOVW(k, bits)
		ORL(bits, found)
	}
	Label(loop)
	at, left := GP64(), GP64()
	MOVQ(x, at)
	MOVQ(cols, left)
	Label(vectors)
	SUBQ(U8(16), left)
	JL(LabelRef(tail))
	v := s.reg()
	VMOVUPS(Mem{Base: at}, v)
	test(v)
	ADDQ(U8(64), at)
	JMP(LabelRef(vectors))
	Label(tail)
	CMPQ(last, U8(0))
	JE(LabelRef(done))
	v = s.reg()
	s.readAt(Mem{Base: at}, &rest, v)
	test(v)
	Label(done)
	ADDQ(row, x)
	DECQ(rows)
	JNZ(LabelRef(loop))
	TESTL(found, found)
	tiny := GP8()
	SETNE(tiny)
	Store(tiny, ReturnIndex(0))
	s.end()
}
