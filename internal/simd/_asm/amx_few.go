package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Products of a few rows of A on tile units. B is read once. While a step of 32 elements of k is
// multiplied, the next step is split into limbs. So a product takes little longer than reading B.
//
// B is either panels of 64 columns of stored numbers, or it has contiguous columns, like the
// weights of a layer. In the second case the tiles of B are the left operands, and C is transposed.

// The fields of amxFewArgs before config, which only the kernel uses.
var (
	fewOwn      = fewArg("config") - 4*8
	amxFewPanel = fewOwn      // a panel of B,
	amxFewTo    = fewOwn + 8  // its columns in C,
	amxFewLeft  = fewOwn + 16 // the number of steps left in it,
	amxFewStrip = fewOwn + 24 // and the next step of A
)

const (
	fewColumns = 64 // columns of B that are processed together
	// fewStep is the size in bytes of a step of fewColumns columns as limbs: four tiles for each
	// limb.
	fewStep = 3 * fewColumns / 16 * tileBytes
	// fewAhead is the prefetch distance in bytes for the numbers of a panel, and fewColumnAhead for
	// the numbers of a column.
	fewAhead, fewColumnAhead = 8192, 1024
)

// amxFew writes a kernel. Tiles 0 to 3 are sums, 4 to 6 the limbs of A, low, middle and high, and 7
// is of B.
type amxFew struct {
	cutter
	n        stored
	columns  bool // the columns of B are contiguous
	args     reg.GPVirtual
	from, to reg.GPVirtual // the numbers to split next, and the destination of their limbs
}

// amxFewOf returns a function that writes the kernel for a number format.
func amxFewOf(n stored, columns bool) func(s avxProgram) {
	return func(s avxProgram) {
		k := amxFew{cutter: cutter{s: s}, n: n, columns: columns, args: pointer("t"), from: GP64(), to: GP64()}
		if n == float32s {
			k.cutter = s.cutter()
		}
		k.write()
	}
}

// rowStride returns the distance between rows of a panel in bytes.
func (k *amxFew) rowStride() int { return fewColumns * k.n.bytes }

func (k *amxFew) field(offset int) Mem { return Mem{Base: k.args, Disp: offset} }

// write writes the loop over the steps of all panels. The limbs of B for the current step are at
// amxPtrB, and the limbs for the next step are written to k.to.
func (k *amxFew) write() {
	begin, load, sums, within := label("begin"), label("load"), label("sums"), label("within")
	check, both, alone, turn := label("check"), label("both"), label("alone"), label("turn")
	cut, done := label("cut"), label("done")
	at := GP64()
	LEAQ(k.field(fewArg("config")), at)
	MOVQ(at, reg.RAX)
	emit("LDTILECFG (AX)", []byte{0xc4, 0xe2, 0x78, 0x49, 0x00}, reg.RAX)
	MOVQ(I32(64), amxStride)
	MOVQ(k.field(fewArg("scratch")), k.to)
	LEAQ(Mem{Base: k.to, Disp: fewStep}, at)
	MOVQ(at, amxPtrB)
	MOVQ(k.field(fewArg("b")), k.from)
	MOVQ(k.from, k.field(amxFewPanel))
	MOVQ(k.field(fewArg("c")), at)
	MOVQ(at, k.field(amxFewTo))
	left := GP64() // steps of the panel
	MOVQ(k.field(fewArg("steps")), left)
	MOVQ(left, k.field(amxFewLeft))
	JMP(LabelRef(cut))

	Label(begin)
	// The first step of a panel initialises its sums, and its last step stores them.
	MOVQ(k.field(amxFewLeft), left)
	CMPQ(left, k.field(fewArg("steps")))
	JNE(LabelRef(sums))
	MOVQ(k.field(fewArg("a")), at)
	MOVQ(at, k.field(amxFewStrip))
	CMPQ(k.field(fewArg("accumulate")), U8(0))
	JNE(LabelRef(load))
	for t := range 4 {
		tileZero(t)
	}
	JMP(LabelRef(sums))
	Label(load)
	k.sums(tileLoad)
	Label(sums)
	MOVQ(k.field(amxFewStrip), amxPtrA)
	ADDQ(I32(stepBytes), k.field(amxFewStrip))

	// The next step is a step of this panel, or the first step of another. If it is not a whole
	// step, it is split separately.
	CMPQ(left, U8(1))
	JNE(LabelRef(within))
	CMPQ(k.field(fewArg("panels")), U8(1))
	JE(LabelRef(alone))
	MOVQ(k.field(amxFewPanel), k.from)
	ADDQ(k.field(fewArg("bPanel")), k.from)
	MOVQ(k.from, k.field(amxFewPanel))
	MOVQ(k.field(fewArg("steps")), left)
	JMP(LabelRef(check))
	Label(within)
	if k.columns {
		ADDQ(I32(32*k.n.bytes), k.from)
	} else {
		ADDQ(I32(32*k.rowStride()), k.from)
	}
	DECQ(left)
	Label(check)
	CMPQ(left, U8(1))
	JNE(LabelRef(both))
	CMPQ(k.field(fewArg("last")), U8(32))
	JNE(LabelRef(alone))
	Label(both)
	k.step(true, left)
	DECQ(k.field(amxFewLeft))
	JNZ(LabelRef(turn))
	k.finish()
	JMP(LabelRef(turn))

	Label(alone)
	k.step(false, left)
	DECQ(k.field(amxFewLeft))
	JNZ(LabelRef(cut))
	k.finish()
	CMPQ(k.field(fewArg("panels")), U8(0))
	JE(LabelRef(done))
	Label(cut)
	k.cutStep()
	Label(turn)
	XCHGQ(k.to, amxPtrB)
	JMP(LabelRef(begin))
	Label(done)
	emit("TILERELEASE", []byte{0xc4, 0xe2, 0x78, 0x49, 0xc0})
	k.s.end()
}

// sums loads the tiles of sums from C or stores them to C.
func (k *amxFew) sums(move func(t, disp int, base, stride reg.GPPhysical)) {
	MOVQ(k.field(amxFewTo), amxPtrC)
	MOVQ(k.field(fewArg("cRow")), amxStrideC)
	apart := 64
	if k.columns { // one below the other, in consecutive rows
		apart = tileBytes
	}
	for t := range 4 {
		move(t, apart*t, amxPtrC, amxStrideC)
	}
}

// finish ends a panel.
func (k *amxFew) finish() {
	k.sums(tileStore)
	if k.columns {
		ADDQ(I32(4*tileBytes), k.field(amxFewTo))
	} else {
		ADDQ(I32(4*fewColumns), k.field(amxFewTo))
	}
	steps := GP64()
	MOVQ(k.field(fewArg("steps")), steps)
	MOVQ(steps, k.field(amxFewLeft))
	DECQ(k.field(fewArg("panels")))
}

// step writes the products of a step. If cuts, it also splits the next step meanwhile, one pair of
// vectors between two instructions on tiles, so that neither waits for the other. left is the
// number of steps left in the panel of that next step, including it.
func (k *amxFew) step(cuts bool, left reg.GPVirtual) {
	const low, middle, top = 0, 1, 2
	var tiles []func() // the instructions on tiles
	for limb := range 3 {
		tiles = append(tiles, func() { tileLoad(4+limb, (2-limb)*limbBytes, amxPtrA, amxStride) })
	}
	each := func(b int, limbs ...int) {
		for t := range 4 {
			tiles = append(tiles, func() { tileLoad(7, ((2-b)*4+t)*tileBytes, amxPtrB, amxStride) })
			for _, limb := range limbs {
				tiles = append(tiles, func() {
					if k.columns {
						tileDot(t, 7, 4+limb)
					} else {
						tileDot(t, 4+limb, 7)
					}
				})
			}
		}
	}
	if k.n == float32s {
		each(top, low, middle)
		each(middle, middle, top)
		each(low, top)
		each(top, top)
	} else { // the other limbs are 0
		each(top, low, middle, top)
	}
	if !cuts {
		for _, do := range tiles {
			do()
			pause(apart)
		}
		return
	}
	const pairs = 64
	done, column, ahead, near := 0, GP64(), GP64(), label("near")
	if k.columns {
		MOVQ(k.from, column)
		MOVQ(I32(fewColumnAhead), ahead)
		CMPQ(left, U8(fewColumnAhead/128))
		JG(LabelRef(near))
		MOVQ(k.field(fewArg("bAhead")), ahead) // the distance to the next columns
	} else {
		LEAQ(Mem{Base: k.from, Disp: fewAhead}, ahead)
	}
	Label(near)
	for i := range pairs {
		for ; done*pairs < (i+1)*len(tiles); done++ {
			tiles[done]()
		}
		if k.columns {
			k.pairOfColumn(column, ahead, i)
			ADDQ(k.field(fewArg("bRow")), column)
		} else {
			k.pair(ahead, i/4, i%4)
		}
	}
}

// pair splits 16 columns of rows i and i+16 of a step into limbs.
func (k *amxFew) pair(ahead reg.GPVirtual, i, columns int) {
	s, row := k.s, k.rowStride()
	from := Mem{Base: k.from, Disp: i*row + columns*16*k.n.bytes}
	upper := from
	upper.Disp += 16 * row
	to := Mem{Base: k.to, Disp: columns*tileBytes + 64*i}
	x, y := s.reg(), s.reg()
	k.read(from, x)
	k.read(upper, y)
	// Prefetch in the order of the addresses, which the processor recognises.
	each := 2 * 16 * k.n.bytes
	for at := (4*i + columns) * each; at%64 == 0 && at < (4*i+columns+1)*each; at += 64 {
		PREFETCHT0(Mem{Base: ahead, Disp: at})
	}
	k.limbs(x, y, to)
}

// pairOfColumn splits column i of a step into limbs.
func (k *amxFew) pairOfColumn(column, ahead reg.GPVirtual, i int) {
	x, y := k.s.reg(), k.s.reg()
	k.read(Mem{Base: column}, x)
	k.read(Mem{Base: column, Disp: 16 * k.n.bytes}, y)
	for at := 0; at < 32*k.n.bytes; at += 64 {
		// Columns map to few sets of the first-level cache, so prefetch into the second.
		PREFETCHT1(Mem{Base: column, Index: ahead, Scale: 1, Disp: at})
	}
	k.limbs(x, y, Mem{Base: k.to, Disp: 64 * i})
}

// read reads 16 numbers as floats.
func (k *amxFew) read(from Mem, v reg.VecVirtual) { k.s.widenAt(k.n, from, v) }

// limbs writes the limbs of x and y.
func (k *amxFew) limbs(x, y reg.VecVirtual, to Mem) {
	if k.n == float32s {
		k.cutter.cut(x, y, to, fewStep/3)
		return
	}
	VPSRLD(U8(16), x, x) // other formats are exact as a high limb
	VPORD(y, x, x)
	VMOVUPS(x, to)
}

// cutStep writes the loop that splits a step that may have fewer rows.
func (k *amxFew) cutStep() {
	whole, rows := label("whole"), GP64()
	MOVQ(I32(32), rows)
	CMPQ(k.field(amxFewLeft), U8(1))
	JNE(LabelRef(whole))
	MOVQ(k.field(fewArg("last")), rows)
	Label(whole)
	if k.columns {
		k.cutColumns(rows)
		return
	}
	loop, zero, half := label("pair"), label("zero"), label("half")
	from, to, i := GP64(), GP64(), GP64()
	MOVQ(k.from, from)
	MOVQ(k.to, to)
	XORQ(i, i)
	Label(loop)
	x, y := k.s.vecs(4), k.s.vecs(4)
	for c := range 4 {
		k.s.setZero(x[c])
		k.s.setZero(y[c])
	}
	CMPQ(i, rows)
	JGE(LabelRef(zero))
	for c := range 4 {
		k.read(Mem{Base: from, Disp: c * 16 * k.n.bytes}, x[c])
	}
	next := GP64()
	LEAQ(Mem{Base: i, Disp: 16}, next)
	CMPQ(next, rows)
	JGE(LabelRef(half))
	for c := range 4 {
		k.read(Mem{Base: from, Disp: 16*k.rowStride() + c*16*k.n.bytes}, y[c])
	}
	Label(half)
	Label(zero)
	for c := range 4 {
		k.limbs(x[c], y[c], Mem{Base: to, Disp: c * tileBytes})
	}
	ADDQ(I32(k.rowStride()), from)
	ADDQ(I32(64), to)
	INCQ(i)
	CMPQ(i, U8(16))
	JL(LabelRef(loop))
}

// cutColumns is the loop of cutStep for columns with the given number of elements.
func (k *amxFew) cutColumns(elements reg.GPVirtual) {
	loop := label("column")
	masks := k.s.amxColumns(elements)
	from, to, i := GP64(), GP64(), GP64()
	MOVQ(k.from, from)
	MOVQ(k.to, to)
	MOVQ(I32(fewColumns), i)
	Label(loop)
	x, y := k.s.reg(), k.s.reg()
	k.s.readAt(Mem{Base: from}, &masks[0], x)
	k.s.readAt(Mem{Base: from, Disp: 64}, &masks[1], y)
	k.limbs(x, y, Mem{Base: to})
	ADDQ(k.field(fewArg("bRow")), from)
	ADDQ(I32(64), to)
	DECQ(i)
	JNZ(LabelRef(loop))
}
