package a64

import "fmt"

// The instructions are named as in the Arm Architecture Reference Manual, and their operands are in
// the same order, the destination first. Unless stated otherwise, a vector is four floats, or four
// integers of 32 bits. D in a name means two integers of 64 bits, H eight of 16, and B bytes.

// same writes an instruction whose registers all have the same arrangement.
func (f *Func) same(bits int, name, kind string, d, n, m V) {
	f.word(bits|int(m)<<16|int(n)<<5|int(d), "%s v%d.%s, v%d.%s, v%d.%s", name, d, kind, n, kind, m, kind)
}

// one writes an instruction with one source.
func (f *Func) one(bits int, name, to, from string, d, n V, more string) {
	f.word(bits|int(n)<<5|int(d), "%s v%d.%s, v%d.%s%s", name, d, to, n, from, more)
}

// Floats: d = n op m.
func (f *Func) FADD(d, n, m V)   { f.same(0x4e20d400, "fadd", "4s", d, n, m) }
func (f *Func) FSUB(d, n, m V)   { f.same(0x4ea0d400, "fsub", "4s", d, n, m) }
func (f *Func) FMUL(d, n, m V)   { f.same(0x6e20dc00, "fmul", "4s", d, n, m) }
func (f *Func) FDIV(d, n, m V)   { f.same(0x6e20fc00, "fdiv", "4s", d, n, m) }
func (f *Func) FMAX(d, n, m V)   { f.same(0x4e20f400, "fmax", "4s", d, n, m) }   // NaN if either is
func (f *Func) FMIN(d, n, m V)   { f.same(0x4ea0f400, "fmin", "4s", d, n, m) }   // NaN if either is
func (f *Func) FMAXNM(d, n, m V) { f.same(0x4e20c400, "fmaxnm", "4s", d, n, m) } // the number if one is NaN

// FMLA and FMLS set d to d + n·m and to d - n·m, rounded once.
func (f *Func) FMLA(d, n, m V) { f.same(0x4e20cc00, "fmla", "4s", d, n, m) }
func (f *Func) FMLS(d, n, m V) { f.same(0x4ea0cc00, "fmls", "4s", d, n, m) }

// FMLALane sets d to d + n·m[lane], rounded once. SDOTLane, of the dot-product extension, adds to each integer of d the
// products of four bytes of n and of the four bytes of m[lane], with sign.
func (f *Func) FMLALane(d, n, m V, lane int) { f.byLane(0x4f801000, "fmla", "4s", "s", d, n, m, lane) }
func (f *Func) SDOTLane(d, n, m V, lane int) {
	f.byLane(0x4f80e000, "sdot", "16b", "4b", d, n, m, lane)
}

func (f *Func) byLane(bits int, name, kind, of string, d, n, m V, lane int) {
	f.word(bits|lane&1<<21|lane>>1<<11|int(m)<<16|int(n)<<5|int(d), "%s v%d.4s, v%d.%s, v%d.%s[%d]", name, d, n, kind, m, of, lane)
}

// FRECPE sets d to 1/n, to eight bits. FRECPS sets d to 2 - n·m, rounded once. Multiplying an
// approximate reciprocal m of n by it improves the approximation.
func (f *Func) FRECPE(d, n V)    { f.one(0x4ea1d800, "frecpe", "4s", "4s", d, n, "") }
func (f *Func) FRECPS(d, n, m V) { f.same(0x4e20fc00, "frecps", "4s", d, n, m) }

func (f *Func) FNEG(d, n V)  { f.one(0x6ea0f800, "fneg", "4s", "4s", d, n, "") }
func (f *Func) FSQRT(d, n V) { f.one(0x6ea1f800, "fsqrt", "4s", "4s", d, n, "") }

// Comparisons set a lane to ones if the condition is true, and otherwise to zeros. For NaN it is
// false.
func (f *Func) FCMGT(d, n, m V) { f.same(0x6ea0e400, "fcmgt", "4s", d, n, m) }
func (f *Func) FCMGT0(d, n V)   { f.one(0x4ea0c800, "fcmgt", "4s", "4s", d, n, ", #0.0") }
func (f *Func) FCMLT0(d, n V)   { f.one(0x4ea0e800, "fcmlt", "4s", "4s", d, n, ", #0.0") }
func (f *Func) FCMEQ0(d, n V)   { f.one(0x4ea0d800, "fcmeq", "4s", "4s", d, n, ", #0.0") }
func (f *Func) CMHI(d, n, m V)  { f.same(0x6ea03400, "cmhi", "4s", d, n, m) } // n > m, without sign
func (f *Func) CMHS(d, n, m V)  { f.same(0x6ea03c00, "cmhs", "4s", d, n, m) } // n >= m, without sign
func (f *Func) CMEQ0B(d, n V)   { f.one(0x4e209800, "cmeq", "16b", "16b", d, n, ", #0") }
func (f *Func) UMAXV(d, n V)    { f.word(0x6eb0a800|int(n)<<5|int(d), "umaxv s%d, v%d.4s", d, n) } // the largest lane
func (f *Func) SCVTF(d, n V)    { f.one(0x4e21d800, "scvtf", "4s", "4s", d, n, "") }               // integers as floats
func (f *Func) FCVTNS(d, n V)   { f.one(0x4e21a800, "fcvtns", "4s", "4s", d, n, "") }              // the nearest integers
func (f *Func) SUB(d, n, m V)   { f.same(0x6ea08400, "sub", "4s", d, n, m) }
func (f *Func) MUL(d, n, m V)   { f.same(0x4ea09c00, "mul", "4s", d, n, m) }
func (f *Func) ADDD(d, n, m V)  { f.same(0x4ee08400, "add", "2d", d, n, m) }
func (f *Func) UADDLP(d, n V)   { f.one(0x6ea02800, "uaddlp", "2d", "4s", d, n, "") }  // sums of pairs
func (f *Func) UMLAL(d, n, m V) { f.long(0x2ea08000, "umlal", d, n, m) }               // d += n·m, of the lower halves
func (f *Func) XTN(d, n V)      { f.one(0x0ea12800, "xtn", "2s", "2d", d, n, "") }     // the lower half of each
func (f *Func) UQXTNH(d, n V)   { f.one(0x2e214800, "uqxtn", "8b", "8h", d, n, "") }   // at most 255
func (f *Func) UQXTNH2(d, n V)  { f.one(0x6e214800, "uqxtn2", "16b", "8h", d, n, "") } // to the upper half of d
func (f *Func) SHLL(d, n V)     { f.one(0x2e613800, "shll", "4s", "4h", d, n, ", #16") }
func (f *Func) SSHLLB(d, n V)   { f.one(0x0f08a400, "sxtl", "8h", "8b", d, n, "") } // with sign
func (f *Func) SSHLLB2(d, n V)  { f.one(0x4f08a400, "sxtl2", "8h", "16b", d, n, "") }
func (f *Func) SSHLLH(d, n V)   { f.one(0x0f10a400, "sxtl", "4s", "4h", d, n, "") }
func (f *Func) SSHLLH2(d, n V)  { f.one(0x4f10a400, "sxtl2", "4s", "8h", d, n, "") }

// Shifts.
func (f *Func) SHL(d, n V, by int)   { f.shift(0x4f005400|(32+by)<<16, "shl", "4s", d, n, by) }
func (f *Func) SHLD(d, n V, by int)  { f.shift(0x4f005400|(64+by)<<16, "shl", "2d", d, n, by) }
func (f *Func) USHRD(d, n V, by int) { f.shift(0x6f000400|(128-by)<<16, "ushr", "2d", d, n, by) }

func (f *Func) shift(bits int, name, kind string, d, n V, by int) {
	f.one(bits, name, kind, kind, d, n, fmt.Sprintf(", #%d", by))
}

func (f *Func) long(bits int, name string, d, n, m V) {
	f.word(bits|int(m)<<16|int(n)<<5|int(d), "%s v%d.2d, v%d.2s, v%d.2s", name, d, n, m)
}

// Bits. BIT copies to d the bits of n where m has ones, and BIF where m has zeros. BSL sets d to
// the bits of n where d has ones, and of m elsewhere. BIC is n and not m.
func (f *Func) AND(d, n, m V) { f.same(0x4e201c00, "and", "16b", d, n, m) }
func (f *Func) ORR(d, n, m V) { f.same(0x4ea01c00, "orr", "16b", d, n, m) }
func (f *Func) EOR(d, n, m V) { f.same(0x6e201c00, "eor", "16b", d, n, m) }
func (f *Func) BIC(d, n, m V) { f.same(0x4e601c00, "bic", "16b", d, n, m) }
func (f *Func) BSL(d, n, m V) { f.same(0x6e601c00, "bsl", "16b", d, n, m) }
func (f *Func) BIT(d, n, m V) { f.same(0x6ea01c00, "bit", "16b", d, n, m) }
func (f *Func) BIF(d, n, m V) { f.same(0x6ee01c00, "bif", "16b", d, n, m) }

// MOV copies a register.
func (f *Func) MOV(d, n V) {
	f.word(0x4ea01c00|int(n)<<16|int(n)<<5|int(d), "mov v%d.16b, v%d.16b", d, n)
}

// Clear sets d to zeros.
func (f *Func) Clear(d V) { f.word(0x4f000400|int(d), "movi v%d.4s, #0x0", d) }

// TopBits sets all bytes of d to 128.
func (f *Func) TopBits(d V) { f.word(0x4f04e400|int(d), "movi v%d.16b, #0x80", d) }

// Positions of lanes. EXT returns 16 bytes of the concatenation of n and m, starting at a byte of
// n.
func (f *Func) EXT(d, n, m V, at int) {
	f.word(0x6e000000|int(m)<<16|at<<11|int(n)<<5|int(d), "ext v%d.16b, v%d.16b, v%d.16b, #%d", d, n, m, at)
}
func (f *Func) TRN1(d, n, m V)  { f.same(0x4e802800, "trn1", "4s", d, n, m) }
func (f *Func) TRN2(d, n, m V)  { f.same(0x4e806800, "trn2", "4s", d, n, m) }
func (f *Func) TRN1D(d, n, m V) { f.same(0x4ec02800, "trn1", "2d", d, n, m) }
func (f *Func) TRN2D(d, n, m V) { f.same(0x4ec06800, "trn2", "2d", d, n, m) }
func (f *Func) UZP1H(d, n, m V) { f.same(0x4e401800, "uzp1", "8h", d, n, m) }
func (f *Func) UZP2(d, n, m V)  { f.same(0x4e805800, "uzp2", "4s", d, n, m) }

// DUP sets all lanes of d to one lane of n, DUPW to the lower half of x, DUPX to x.
func (f *Func) DUP(d, n V, lane int) {
	f.word(0x4e040400|lane<<19|int(n)<<5|int(d), "dup v%d.4s, v%d.s[%d]", d, n, lane)
}
func (f *Func) DUPW(d V, x X) { f.word(0x4e040c00|int(x)<<5|int(d), "dup v%d.4s, w%d", d, x) }
func (f *Func) DUPX(d V, x X) { f.word(0x4e080c00|int(x)<<5|int(d), "dup v%d.2d, x%d", d, x) }

// FMOVW sets x to the first lane of n.
func (f *Func) FMOVW(x X, n V) { f.word(0x1e260000|int(n)<<5|int(x), "fmov w%d, s%d", x, n) }

// Loads and stores of a whole vector, of two lanes and of one. Loads set other lanes to 0.
// Addresses are multiples of the size away from the base, and not before it.
func (f *Func) LDRQ(v V, m Mem) { f.move(0x3dc00000, 0x3ce06800, "ldr", "q", 16, v, m) }
func (f *Func) LDRD(v V, m Mem) { f.move(0xfd400000, 0xfc606800, "ldr", "d", 8, v, m) }
func (f *Func) LDRS(v V, m Mem) { f.move(0xbd400000, 0xbc606800, "ldr", "s", 4, v, m) }
func (f *Func) STRQ(v V, m Mem) { f.move(0x3d800000, 0x3ca06800, "str", "q", 16, v, m) }
func (f *Func) STRD(v V, m Mem) { f.move(0xfd000000, 0xfc206800, "str", "d", 8, v, m) }
func (f *Func) STRS(v V, m Mem) { f.move(0xbd000000, 0xbc206800, "str", "s", 4, v, m) }

func (f *Func) move(bits, indexed int, name, kind string, size int, v V, m Mem) {
	if m.Index != nil {
		f.word(indexed|int(*m.Index)<<16|int(m.Base)<<5|int(v), "%s %s%d, %s", name, kind, v, m.arm())
		return
	}
	if m.Disp < 0 || m.Disp%size != 0 || m.Disp/size >= 1<<12 {
		panic(fmt.Sprintf("%s: %s of %d bytes at %v", f.name, name, size, m))
	}
	f.word(bits|m.Disp/size<<10|int(m.Base)<<5|int(v), "%s %s%d, %s", name, kind, v, m.arm())
}

// LD1 loads a lane and leaves the others, ST1 stores one, and LD1R loads one number to all lanes.
func (f *Func) LD1(v V, lane int, base X) { f.lane(0x0d408000, "ld1", v, lane, base) }
func (f *Func) ST1(v V, lane int, base X) { f.lane(0x0d008000, "st1", v, lane, base) }
func (f *Func) LD1R(v V, base X) {
	f.word(0x4d40c800|int(base)<<5|int(v), "ld1r {v%d.4s}, [x%d]", v, base)
}

func (f *Func) lane(bits int, name string, v V, lane int, base X) {
	f.word(bits|lane>>1<<30|lane&1<<12|int(base)<<5|int(v), "%s {v%d.s}[%d], [x%d]", name, v, lane, base)
}
