package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

// A wasmProgram writes for WebAssembly.
type wasmProgram struct{ *wasmFunc }

// wasmLanes are the lanes where bits are ones, or zeros if inverted.
type wasmLanes struct {
	bits     wasm.V
	inverted bool
}

func (f wasmProgram) pointer(name string) ptr   { return f.x(name) }
func (f wasmProgram) broadcast(name string) vec { return f.wasmFunc.broadcast(name) }
func (f wasmProgram) vec() vec                  { return f.NewV() }
func (f wasmProgram) zero() vec                 { return f.Zero() }
func (f wasmProgram) sums(int) []vec            { return vecs(f.Zeros(wasmSums)) }

// to returns a, and makes d the place of the next result.
func (f wasmProgram) to(d, a vec) wasm.V {
	f.Into(d.(wasm.V))
	return a.(wasm.V)
}

func (f wasmProgram) add(d, a, b vec)        { f.to(d, a).Add(b.(wasm.V)) }
func (f wasmProgram) sub(d, a, b vec)        { f.to(d, a).Sub(b.(wasm.V)) }
func (f wasmProgram) mul(d, a, b vec)        { f.to(d, a).Mul(b.(wasm.V)) }
func (f wasmProgram) div(d, a, b vec)        { f.to(d, a).Div(b.(wasm.V)) }
func (f wasmProgram) sqrt(d, a vec)          { f.to(d, a).Sqrt() }
func (f wasmProgram) addProduct(d, a, b vec) { f.add(d, d, a.(wasm.V).Mul(b.(wasm.V))) }
func (f wasmProgram) mulAdd(a, b, c vec) vec { f.add(a, c, a.(wasm.V).Mul(b.(wasm.V))); return a }
func (f wasmProgram) mulSub(a, b, c vec) vec { f.sub(a, a.(wasm.V).Mul(b.(wasm.V)), c); return a }
func (f wasmProgram) atLeast(d, a vec)       { f.to(d, d).Max(a.(wasm.V)) }
func (f wasmProgram) plusZero(d, zero vec)   {}
func (f wasmProgram) or(d, a vec)            { f.to(d, d).Or(a.(wasm.V)) }
func (f wasmProgram) spare(c vec) vec        { return c }

func (f wasmProgram) nonzero(a, zero vec) lanes {
	return wasmLanes{a.(wasm.V).Equal(zero.(wasm.V)), true}
}

func (f wasmProgram) positive(a, zero vec) lanes {
	return wasmLanes{zero.(wasm.V).Less(a.(wasm.V)), false}
}

func (f wasmProgram) keep(l lanes, d vec) {
	if m := l.(wasmLanes); m.inverted {
		f.to(d, d).AndNot(m.bits)
	} else {
		f.to(d, d).And(m.bits)
	}
}

func (f wasmProgram) addWhere(l lanes, a, d vec) {
	sum, old, m := d.(wasm.V).Add(a.(wasm.V)), d.(wasm.V), l.(wasmLanes)
	if m.inverted {
		sum, old = old, sum
	}
	f.to(d, sum).Where(m.bits, old)
}

func (f wasmProgram) load(x ptr, i int) vec { return f.LoadSplat(x.(wasm.X), 4*i) }

func (f wasmProgram) returnSum(sums []vec) {
	all := make([]wasm.V, len(sums))
	for i, v := range sums {
		all[i] = v.(wasm.V)
	}
	f.Return(f.total(all).First())
}

func (f wasmProgram) returnNone(v vec) { f.Return(v.(wasm.V).Any().Not()) }

func (f wasmProgram) end() { f.Return() }

func (f wasmProgram) by(_, _, wasm int) int { return wasm }

func (f wasmProgram) along(length string, slices ...ptr) loop {
	st := f.wasmFunc.along(length)
	for _, x := range slices {
		st.slices = append(st.slices, x.(wasm.X))
	}
	return wasmLoop{st}
}

type wasmLoop struct{ wasmStream }

func (l wasmLoop) each(unroll int, body func(s step)) {
	l.wasmStream.each(unroll, func(i int, n *wasm.X) { body(wasmStep{l.f, i, n}) })
}

func (l wasmLoop) inLanes(count int, body func(i int, s step)) {
	l.wasmStream.inLanes(count, func(j, i int, n *wasm.X) { body(j, wasmStep{l.f, i, n}) })
}

type wasmStep struct {
	f *wasmFunc
	i int
	n *wasm.X
}

func (t wasmStep) load(x ptr) vec { return t.f.load(x.(wasm.X), t.i, t.n) }

func (t wasmStep) store(v vec, x ptr) { t.f.store(v.(wasm.V), x.(wasm.X), t.i, t.n) }
