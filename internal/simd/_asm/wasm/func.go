package wasm

import (
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
	into   *V  // the local of the next vector, if not a new one
	depth  int // of blocks
}

// Name returns the function's name.
func (f *Func) Name() string { return f.name }

func (f *Func) emit(op byte, immediate ...byte) {
	f.code = append(append(f.code, op), immediate...)
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
	f.emit(opLocalGet, n...)
}

// pop sets a local to the value on the stack.
func (f *Func) pop(local int) {
	f.emit(opLocalSet, unsigned(local)...)
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
	f.emit(opBr, unsigned(f.depth-int(l))...)
}

// BranchIf jumps to a label if x is not 0.
func (f *Func) BranchIf(l Label, x X) {
	f.get(x.local)
	f.emit(opBrIf, unsigned(f.depth-int(l))...)
}

// A value is a local.
type value struct {
	f     *Func
	local int
}

func (v value) at() int { return v.local }

// An operand is a value of some type.
type operand interface{ at() int }

// push pushes operands.
func (f *Func) push(operands ...operand) {
	for _, o := range operands {
		f.get(o.at())
	}
}

// Return ends the function with results.
func (f *Func) Return(results ...operand) {
	f.push(results...)
	f.emit(opReturn)
}

// ReturnV ends the function with a vector as its result.
func (f *Func) ReturnV(v V) { f.Return(v) }

// call calls a function of the same module. Its result, if it has one, is left on the stack.
func (f *Func) call(g *Func, args ...operand) {
	f.push(args...)
	f.emit(opCall, unsigned(g.index)...)
}

// Call calls a function without results of the same module.
func (f *Func) Call(g *Func, args ...operand) { f.call(g, args...) }

// CallV calls a function of the same module whose result is a vector.
func (f *Func) CallV(g *Func, args ...operand) V {
	f.call(g, args...)
	return f.popV()
}

// An X is a local integer of 32 bits, such as an address.
type X struct{ value }

// A Scalar is a local float32 or integer of 64 bits.
type Scalar struct{ value }

// ParamX returns a parameter.
func (f *Func) ParamX(i int) X { return X{value{f, i}} }

// ParamScalar returns a parameter.
func (f *Func) ParamScalar(i int) Scalar { return Scalar{value{f, i}} }

// ParamV returns a parameter.
func (f *Func) ParamV(i int) V { return V{value{f, i}} }

func (f *Func) popX() X {
	x := X{value{f, f.local(I32)}}
	f.pop(x.local)
	return x
}

// Int returns a constant.
func (f *Func) Int(n int) X {
	f.pushInt(n)
	return f.popX()
}

func (f *Func) pushInt(n int) {
	f.emit(opI32Const, signed(n)...)
}

func (x X) with(op byte, y X) X {
	x.f.push(x, y)
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
	f.emit(opI32Load, append([]byte{2}, unsigned(offset)...)...)
	return f.popX()
}
