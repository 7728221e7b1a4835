package wasm

import (
	"encoding/binary"
	"math"
	"slices"
)

// A Func is a function to which instructions are appended.
type Func struct {
	name            string
	params, results []Type
	index           int
	module          *Module

	locals []Type
	free   []int // locals of ended scopes
	scope  []int // locals of the current scope
	code   []byte
	set    int // the index after an instruction that sets a local, if that is the last; otherwise 0
	depth  int // of blocks
}

// Name returns the function's name.
func (f *Func) Name() string { return f.name }

func (f *Func) emit(b ...byte) {
	f.code = append(f.code, b...)
	f.set = 0
}

// get pushes a local. After an instruction that sets the same local, it makes that instruction keep
// the value on the stack instead.
func (f *Func) get(local int) {
	n := unsigned(local)
	at := f.set - len(n) - 1
	if f.set == len(f.code) && at >= 0 && f.code[at] == opLocalSet && slices.Equal(f.code[at+1:], n) {
		f.code[at] = opLocalTee
		f.set = 0
		return
	}
	f.emit(opLocalGet)
	f.code = append(f.code, n...)
}

// pop sets a local to the value on the stack.
func (f *Func) pop(local int) {
	f.emit(opLocalSet)
	f.code = append(f.code, unsigned(local)...)
	f.set = len(f.code)
}

// local returns a local that is not in use. Its value is undefined.
func (f *Func) local(t Type) int {
	at := slices.IndexFunc(f.free, func(l int) bool { return f.locals[l-len(f.params)] == t })
	var l int
	if at >= 0 {
		l = f.free[at]
		f.free = slices.Delete(f.free, at, at+1)
	} else {
		l = len(f.params) + len(f.locals)
		f.locals = append(f.locals, t)
	}
	f.scope = append(f.scope, l)
	return l
}

// Scope calls body. The locals that it creates are free afterwards.
func (f *Func) Scope(body func()) {
	outer := f.scope
	f.scope = nil
	body()
	f.free = append(f.free, f.scope...)
	f.scope = outer
}

// signature returns the type of the function.
func (f *Func) signature() []byte {
	list := func(types []Type) []byte {
		b := unsigned(len(types))
		for _, t := range types {
			b = append(b, byte(t))
		}
		return b
	}
	return join([]byte{funcType}, list(f.params), list(f.results))
}

// entry returns the code of the function with its locals and its length.
func (f *Func) entry() []byte {
	var runs [][]byte // of locals of the same type
	for i := 0; i < len(f.locals); {
		n := i
		for n < len(f.locals) && f.locals[n] == f.locals[i] {
			n++
		}
		runs = append(runs, append(unsigned(n-i), byte(f.locals[i])))
		i = n
	}
	body := join(vector(runs), f.code, []byte{opEnd})
	return join(unsigned(len(body)), body)
}

// A Label is a block or a loop that contains the current instruction.
type Label int

func (f *Func) nested(op byte, body func(l Label)) {
	f.emit(op, voidBlock)
	f.depth++
	f.Scope(func() { body(Label(f.depth)) })
	f.depth--
	f.emit(opEnd)
}

// Block writes a block. A branch to its label continues after it.
func (f *Func) Block(body func(end Label)) { f.nested(opBlock, body) }

// Loop writes a block that runs once. A branch to its label runs it again.
func (f *Func) Loop(body func(again Label)) { f.nested(opLoop, body) }

// If writes a block that runs if x is not 0.
func (f *Func) If(x X, body func()) {
	f.get(x.local)
	f.nested(opIf, func(Label) { body() })
}

// IfElse writes two blocks, of which one runs.
func (f *Func) IfElse(x X, body, otherwise func()) {
	f.get(x.local)
	f.emit(opIf, voidBlock)
	f.depth++
	f.Scope(body)
	f.emit(opElse)
	f.Scope(otherwise)
	f.depth--
	f.emit(opEnd)
}

// Branch jumps to a label.
func (f *Func) Branch(l Label) {
	f.emit(opBr)
	f.code = append(f.code, unsigned(f.depth-int(l))...)
}

// BranchIf jumps to a label if x is not 0.
func (f *Func) BranchIf(l Label, x X) {
	f.get(x.local)
	f.emit(opBrIf)
	f.code = append(f.code, unsigned(f.depth-int(l))...)
}

// A value is a local.
type value interface{ at() int }

// Return ends the function with results.
func (f *Func) Return(results ...value) {
	for _, r := range results {
		f.get(r.at())
	}
	f.emit(opReturn)
}

// ReturnV ends the function with a vector as its result.
func (f *Func) ReturnV(v V) { f.Return(v) }

// call calls a function of the same module. Its result, if it has one, is left on the stack.
func (f *Func) call(g *Func, args ...value) {
	for _, a := range args {
		f.get(a.at())
	}
	f.emit(opCall)
	f.code = append(f.code, unsigned(g.index)...)
}

// Call calls a function without results of the same module.
func (f *Func) Call(g *Func, args ...value) { f.call(g, args...) }

// CallV calls a function of the same module whose result is a vector.
func (f *Func) CallV(g *Func, args ...value) V {
	f.call(g, args...)
	return f.popV()
}

// An X is a local integer of 32 bits, such as an address.
type X struct {
	f     *Func
	local int
}

func (x X) at() int { return x.local }

// ParamX returns a parameter.
func (f *Func) ParamX(i int) X { return X{f, i} }

// ParamF returns a parameter.
func (f *Func) ParamF(i int) F { return F{f, i} }

// ParamL returns a parameter.
func (f *Func) ParamL(i int) L { return L{f, i} }

// ParamV returns a parameter.
func (f *Func) ParamV(i int) V { return V{f, i} }

func (f *Func) popX() X {
	x := X{f, f.local(I32)}
	f.pop(x.local)
	return x
}

// Int returns a constant.
func (f *Func) Int(n int) X {
	f.pushInt(n)
	return f.popX()
}

func (f *Func) pushInt(n int) {
	f.emit(opI32Const)
	f.code = append(f.code, signed(n)...)
}

func (x X) with(op byte, y X) X {
	x.f.get(x.local)
	x.f.get(y.local)
	x.f.emit(op)
	return x.f.popX()
}

func (x X) constant(op byte, n int) X {
	x.f.get(x.local)
	x.f.pushInt(n)
	x.f.emit(op)
	return x.f.popX()
}

// Set sets x to y.
func (x X) Set(y X) {
	x.f.get(y.local)
	x.f.pop(x.local)
}

// Copy returns a local with the value of x.
func (x X) Copy() X {
	x.f.get(x.local)
	return x.f.popX()
}

// Add returns x + y.
func (x X) Add(y X) X { return x.with(opI32Add, y) }

// Plus returns x + n.
func (x X) Plus(n int) X { return x.constant(opI32Add, n) }

// Shl returns x << n.
func (x X) Shl(n int) X { return x.constant(opI32Shl, n) }

// Advance adds n to x.
func (x X) Advance(n int) { x.Set(x.Plus(n)) }

// AdvanceBy adds y to x.
func (x X) AdvanceBy(y X) { x.Set(x.Add(y)) }

// Is returns whether x equals n.
func (x X) Is(n int) X { return x.constant(opI32Eq, n) }

// AtLeast returns whether x, which is signed, is at least n.
func (x X) AtLeast(n int) X { return x.constant(opI32GeS, n) }

// Below returns whether x, which is signed, is less than n.
func (x X) Below(n int) X { return x.constant(opI32LtS, n) }

// Not returns whether x is 0.
func (x X) Not() X {
	x.f.get(x.local)
	x.f.emit(opI32Eqz)
	return x.f.popX()
}

// Load reads an integer.
func (f *Func) Load(p X, offset int) X {
	f.get(p.local)
	f.emit(opI32Load, 2)
	f.code = append(f.code, unsigned(offset)...)
	return f.popX()
}

// An F is a local float32.
type F struct {
	f     *Func
	local int
}

func (x F) at() int { return x.local }

// An L is a local integer of 64 bits.
type L struct {
	f     *Func
	local int
}

// A V is a local vector.
type V struct {
	f     *Func
	local int
}

func (v V) at() int { return v.local }

func (f *Func) popV() V {
	v := V{f, f.local(V128)}
	f.pop(v.local)
	return v
}

// vectorOp appends an instruction with the prefix of vectors.
func (f *Func) vectorOp(op int, immediate ...byte) {
	f.emit(opVector)
	f.code = append(f.code, unsigned(op)...)
	f.code = append(f.code, immediate...)
}

// Bits returns a vector of four constants.
func (f *Func) Bits(lanes [4]uint32) V {
	var b []byte
	for _, l := range lanes {
		b = binary.LittleEndian.AppendUint32(b, l)
	}
	f.vectorOp(v128Const, b...)
	return f.popV()
}

// Spread returns a vector with the bits x in all lanes.
func (f *Func) Spread(x uint32) V { return f.Bits([4]uint32{x, x, x, x}) }

// Num returns a vector with x in all lanes.
func (f *Func) Num(x float64) V { return f.Spread(math.Float32bits(float32(x))) }

// Wide returns a vector with two integers of 64 bits.
func (f *Func) Wide(a, b uint64) V {
	return f.Bits([4]uint32{uint32(a), uint32(a >> 32), uint32(b), uint32(b >> 32)})
}

// Zero returns a vector of zeros.
func (f *Func) Zero() V { return f.Spread(0) }

// Zeros returns n vectors of zeros.
func (f *Func) Zeros(n int) []V {
	var all []V
	for range n {
		all = append(all, f.Zero())
	}
	return all
}

// SplatF returns a vector with x in all lanes.
func (f *Func) SplatF(x F) V { return f.splat(f32x4Splat, x.local) }

// SplatX returns a vector with x in all four lanes.
func (f *Func) SplatX(x X) V { return f.splat(i32x4Splat, x.local) }

// SplatL returns a vector with x in both lanes.
func (f *Func) SplatL(x L) V { return f.splat(i64x2Splat, x.local) }

func (f *Func) splat(op, local int) V {
	f.get(local)
	f.vectorOp(op)
	return f.popV()
}

// load appends an instruction that reads a vector, or a part of one.
func (f *Func) load(op int, p X, offset int) V {
	f.get(p.local)
	f.vectorOp(op, append([]byte{0}, unsigned(offset)...)...)
	return f.popV()
}

// LoadV reads a vector.
func (f *Func) LoadV(p X, offset int) V { return f.load(v128Load, p, offset) }

// LoadSplat reads a float into all lanes.
func (f *Func) LoadSplat(p X, offset int) V { return f.load(v128Load32Splat, p, offset) }

// LoadOne reads a float; other lanes become 0.
func (f *Func) LoadOne(p X, offset int) V { return f.load(v128Load32Zero, p, offset) }

// LoadTwo reads two floats; other lanes become 0.
func (f *Func) LoadTwo(p X, offset int) V { return f.load(v128Load64Zero, p, offset) }

// LoadHalves reads four integers of 16 bits as integers of 32 bits.
func (f *Func) LoadHalves(p X, offset int) V { return f.load(v128Load16x4U, p, offset) }

// LoadLane returns v with a lane read from memory.
func (f *Func) LoadLane(v V, lane int, p X, offset int) V {
	f.get(p.local)
	f.get(v.local)
	f.vectorOp(v128Load32Lane, append(append([]byte{0}, unsigned(offset)...), byte(lane))...)
	return f.popV()
}

// StoreV writes a vector.
func (f *Func) StoreV(v V, p X, offset int) {
	f.get(p.local)
	f.get(v.local)
	f.vectorOp(v128Store, append([]byte{0}, unsigned(offset)...)...)
}

// StoreLane writes a lane of 32 bits.
func (f *Func) StoreLane(v V, lane int, p X, offset int) {
	f.storeLane(v128Store32Lane, v, lane, p, offset)
}

// StoreLow writes the first 64 bits.
func (f *Func) StoreLow(v V, p X, offset int) { f.storeLane(v128Store64Lane, v, 0, p, offset) }

func (f *Func) storeLane(op int, v V, lane int, p X, offset int) {
	f.get(p.local)
	f.get(v.local)
	f.vectorOp(op, append(append([]byte{0}, unsigned(offset)...), byte(lane))...)
}

// op1 returns the result of an instruction with one operand.
func (v V) op1(op int) V {
	v.f.get(v.local)
	v.f.vectorOp(op)
	return v.f.popV()
}

func (v V) op2(op int, w V) V {
	v.f.get(v.local)
	v.f.get(w.local)
	v.f.vectorOp(op)
	return v.f.popV()
}

func (v V) shift(op, n int) V {
	v.f.get(v.local)
	v.f.pushInt(n)
	v.f.vectorOp(op)
	return v.f.popV()
}

// Set sets v to w.
func (v V) Set(w V) {
	v.f.get(w.local)
	v.f.pop(v.local)
}

// Copy returns a local with the value of v.
func (v V) Copy() V {
	v.f.get(v.local)
	return v.f.popV()
}

// Accumulate adds w to v.
func (v V) Accumulate(w V) { v.Set(v.Add(w)) }

// Add returns v + w.
func (v V) Add(w V) V { return v.op2(f32x4Add, w) }

// Sub returns v − w.
func (v V) Sub(w V) V { return v.op2(f32x4Sub, w) }

// Mul returns v · w.
func (v V) Mul(w V) V { return v.op2(f32x4Mul, w) }

// Div returns v / w.
func (v V) Div(w V) V { return v.op2(f32x4Div, w) }

// Max returns the larger of each pair of floats, and NaN if either is NaN.
func (v V) Max(w V) V { return v.op2(f32x4Max, w) }

// PMin returns w where w < v, otherwise v.
func (v V) PMin(w V) V { return v.op2(f32x4PMin, w) }

// PMax returns w where v < w, otherwise v.
func (v V) PMax(w V) V { return v.op2(f32x4PMax, w) }

// Sqrt returns the square roots.
func (v V) Sqrt() V { return v.op1(f32x4Sqrt) }

// Neg returns −v.
func (v V) Neg() V { return v.op1(f32x4Neg) }

// Abs returns |v|.
func (v V) Abs() V { return v.op1(f32x4Abs) }

// Less returns ones in the lanes where v < w, zeros elsewhere.
func (v V) Less(w V) V { return v.op2(f32x4Lt, w) }

// Equal returns ones in the lanes where v = w.
func (v V) Equal(w V) V { return v.op2(f32x4Eq, w) }

// And returns v & w.
func (v V) And(w V) V { return v.op2(v128And, w) }

// AndNot returns v &^ w.
func (v V) AndNot(w V) V { return v.op2(v128AndNot, w) }

// Or returns v | w.
func (v V) Or(w V) V { return v.op2(v128Or, w) }

// Xor returns v ^ w.
func (v V) Xor(w V) V { return v.op2(v128Xor, w) }

// Where returns the bits of v where mask has ones, of w elsewhere.
func (v V) Where(mask, w V) V {
	v.f.get(v.local)
	v.f.get(w.local)
	v.f.get(mask.local)
	v.f.vectorOp(v128Bitselect)
	return v.f.popV()
}

// ShlInts shifts four integers to the left.
func (v V) ShlInts(n int) V { return v.shift(i32x4Shl, n) }

// MoreInts compares four signed integers.
func (v V) MoreInts(w V) V { return v.op2(i32x4GtS, w) }

// AtLeastInts compares four unsigned integers.
func (v V) AtLeastInts(w V) V { return v.op2(i32x4GeU, w) }

// EqualBytes compares sixteen integers.
func (v V) EqualBytes(w V) V { return v.op2(i8x16Eq, w) }

// LowBytes returns the first eight signed integers of 8 bits as integers of 16.
func (v V) LowBytes() V { return v.op1(i16x8ExtendLowS) }

// HighBytes returns the last eight signed integers of 8 bits as integers of 16.
func (v V) HighBytes() V { return v.op1(i16x8ExtendHighS) }

// LowHalves returns the first four signed integers of 16 bits as integers of 32.
func (v V) LowHalves() V { return v.op1(i32x4ExtendLowS) }

// HighHalves returns the last four signed integers of 16 bits as integers of 32.
func (v V) HighHalves() V { return v.op1(i32x4ExtendHighS) }

// Floats converts four signed integers.
func (v V) Floats() V { return v.op1(f32x4ConvertS) }

// AddWide adds two integers of 64 bits.
func (v V) AddWide(w V) V { return v.op2(i64x2Add, w) }

// MulWide multiplies two integers of 64 bits.
func (v V) MulWide(w V) V { return v.op2(i64x2Mul, w) }

// ShrWide shifts two unsigned integers of 64 bits to the right.
func (v V) ShrWide(n int) V { return v.shift(i64x2ShrU, n) }

// Any returns whether v has a bit that is not 0.
func (v V) Any() X {
	v.f.get(v.local)
	v.f.vectorOp(v128AnyTrue)
	return v.f.popX()
}

// Shuffle returns four lanes: 0 to 3 are those of v, 4 to 7 those of w.
func (v V) Shuffle(w V, lanes ...int) V {
	var bytes []byte
	for _, l := range lanes {
		for b := range 4 {
			bytes = append(bytes, byte(4*l+b))
		}
	}
	v.f.get(v.local)
	v.f.get(w.local)
	v.f.vectorOp(i8x16Shuffle, bytes...)
	return v.f.popV()
}

// First returns the first lane.
func (v V) First() F {
	v.f.get(v.local)
	v.f.vectorOp(f32x4ExtractLane, 0)
	x := F{v.f, v.f.local(F32)}
	v.f.pop(x.local)
	return x
}
