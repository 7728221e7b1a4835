package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

func (f *neonFunc) relu() {
	dst, x, zero := f.pointer("dst"), f.pointer("x"), f.zero()
	f.unary(dst, x, 4, func(v a64.V) a64.V {
		f.FMAX(v, v, zero) // 0 for -0, NaN for NaN
		return v
	})
}

func (f *neonFunc) reluGrad() {
	dx, dy, x := f.pointer("dx"), f.pointer("dy"), f.pointer("x")
	f.along("n", dx, dy, x).each(2, func(i int, p *part) {
		v, d, sum := f.V(), f.V(), f.V()
		f.load(v, at(x, i), p)
		f.FCMGT0(v, v)
		f.load(d, at(dx, i), p)
		f.load(sum, at(dy, i), p)
		f.addWhere(v, sum, d)
		f.store(d, at(dx, i), p)
	})
	f.Return()
}

func (f *neonFunc) softmaxMean() {
	dy, y := f.pointer("dy"), f.pointer("y")
	acc := f.accumulators(32)
	f.along("n", dy, y).inLanes(len(acc), func(i int, p *part) {
		w, d, none := f.V(), f.V(), f.V()
		f.load(w, at(y, i), p)
		f.load(d, at(dy, i), p)
		f.FCMEQ0(none, w)
		f.BIC(d, d, none)
		f.FMLA(acc[i], w, d)
	})
	f.returnFirst(f.fold(acc, f.FADD))
}

func (f *neonFunc) softmaxGrad() {
	dx, dy, y := f.pointer("dx"), f.pointer("dy"), f.pointer("y")
	mean := f.broadcast("mean")
	f.along("n", dx, dy, y).each(2, func(i int, p *part) {
		w, d, old, sum := f.V(), f.V(), f.V(), f.V()
		f.load(w, at(y, i), p)
		f.load(d, at(dy, i), p)
		f.load(old, at(dx, i), p)
		f.FSUB(d, d, mean)
		f.FMUL(d, d, w)
		f.FADD(sum, old, d)
		f.FCMEQ0(w, w)
		f.BIT(sum, old, w)
		f.store(sum, at(dx, i), p)
	})
	f.Return()
}

// addWhere adds x to sum in the lanes that are ones in m. It overwrites x.
func (f *neonFunc) addWhere(m, x, sum a64.V) {
	f.FADD(x, x, sum)
	f.BIT(sum, x, m)
}
