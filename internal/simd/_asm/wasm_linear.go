package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

func (f *wasmFunc) axpy() {
	a, x, y := f.broadcast("a"), f.x("x"), f.x("y")
	f.along("n", x, y).each(4, func(i int, n *wasm.X) {
		f.store(f.load(y, i, n).Add(f.load(x, i, n).Mul(a)), y, i, n)
	})
	f.Return()
}

func (f *wasmFunc) scale() {
	a := f.broadcast("a")
	f.unary(4, func(v wasm.V) wasm.V { return v.Mul(a) })
}

func (f *wasmFunc) scaleShift() {
	a, b := f.broadcast("a"), f.broadcast("b")
	f.unary(4, func(v wasm.V) wasm.V { return v.Mul(a).Add(b) })
}

func (f *wasmFunc) add() { f.zip(wasm.V.Add) }

func (f *wasmFunc) mul() { f.zip(wasm.V.Mul) }

func (f *wasmFunc) zip(op func(x, y wasm.V) wasm.V) {
	dst, x, y := f.x("dst"), f.x("x"), f.x("y")
	f.along("n", dst, x, y).each(4, func(i int, n *wasm.X) {
		f.store(op(f.load(x, i, n), f.load(y, i, n)), dst, i, n)
	})
	f.Return()
}

func (f *wasmFunc) mulAdd() {
	dst, x, y := f.x("dst"), f.x("x"), f.x("y")
	f.along("n", dst, x, y).each(4, func(i int, n *wasm.X) {
		f.store(f.load(dst, i, n).Add(f.load(x, i, n).Mul(f.load(y, i, n))), dst, i, n)
	})
	f.Return()
}
