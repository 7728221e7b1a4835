package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

func (f *neonFunc) axpy() {
	a := f.broadcast("a")
	x, y := f.pointer("x"), f.pointer("y")
	f.along("n", x, y).each(4, func(i int, p *part) {
		xi, yi := f.V(), f.V()
		f.load(xi, at(x, i), p)
		f.load(yi, at(y, i), p)
		f.FMLA(yi, xi, a)
		f.store(yi, at(y, i), p)
	})
	f.Return()
}

func (f *neonFunc) scale() {
	a := f.broadcast("a")
	dst, x := f.pointer("dst"), f.pointer("x")
	f.unary(dst, x, 4, func(v a64.V) a64.V {
		f.FMUL(v, v, a)
		return v
	})
}

func (f *neonFunc) scaleShift() {
	a, b := f.broadcast("a"), f.broadcast("b")
	dst, x := f.pointer("dst"), f.pointer("x")
	f.unary(dst, x, 4, func(v a64.V) a64.V {
		sum := f.copy(b)
		f.FMLA(sum, v, a)
		return sum
	})
}

func (f *neonFunc) add() { f.zip(false, func(x, y, _ a64.V) a64.V { f.FADD(x, x, y); return x }) }

func (f *neonFunc) mul() { f.zip(false, func(x, y, _ a64.V) a64.V { f.FMUL(x, x, y); return x }) }

func (f *neonFunc) mulAdd() {
	f.zip(true, func(x, y, dst a64.V) a64.V { f.FMLA(dst, x, y); return dst })
}

// zip writes a loop in which op returns the new value of dst. If read, dst has its old value.
func (f *neonFunc) zip(read bool, op func(x, y, dst a64.V) a64.V) {
	dst, x, y := f.pointer("dst"), f.pointer("x"), f.pointer("y")
	f.along("n", dst, x, y).each(4, func(i int, p *part) {
		xi, yi, di := f.V(), f.V(), f.V()
		f.load(xi, at(x, i), p)
		f.load(yi, at(y, i), p)
		if read {
			f.load(di, at(dst, i), p)
		}
		f.store(op(xi, yi, di), at(dst, i), p)
	})
	f.Return()
}
