package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

func (f *neonFunc) sumSquaresAbout() {
	x, mean := f.pointer("x"), f.broadcast("mean")
	f.constants()
	acc := f.accumulators(sumLanes)
	f.sumSquares(f.along("n", x), x, mean, acc)
	f.returnFirst(f.fold(acc, f.FADD))
}

// sumSquares writes the loop that adds (x-mean)² to the accumulators.
func (f *neonFunc) sumSquares(st neonStream, x a64.X, mean a64.V, acc []a64.V) {
	st.inLanes(len(acc), func(i int, p *part) {
		v := f.V()
		f.load(v, at(x, i), p)
		f.FSUB(v, v, mean)
		f.keep(p, v)
		f.FMLA(acc[i], v, v)
	})
}

func (f *neonFunc) norm() {
	all := f.pointers("dst", "x", "gain", "shift")
	f.normalise(f.along("n", all...), all, f.unit())
	f.Return()
}

// normalise writes the loop that sets dst = gain·u + shift.
func (f *neonFunc) normalise(st neonStream, all []a64.X, u neonUnit) {
	dst, x, gain, shift := all[0], all[1], all[2], all[3]
	st.each(2, func(i int, p *part) {
		v, g, y := f.V(), f.V(), f.V()
		f.load(v, at(x, i), p)
		f.load(g, at(gain, i), p)
		f.load(y, at(shift, i), p)
		u.apply(v)
		f.FMLA(y, v, g)
		f.store(y, at(dst, i), p)
	})
}

func (f *neonFunc) normSums() {
	all := f.pointers("dy", "x", "gain")
	u := f.unit()
	flat, along := f.accumulators(32), f.accumulators(32)
	f.gradSums(f.along("n", all...), all, u, flat, along, nil)
	f.Do("FMOVS", f.fold(flat, f.FADD), f.Result(0))
	f.Do("FMOVS", f.fold(along, f.FADD), f.Result(1))
	f.Return()
}

// gradSums writes the loop that adds gain·dy to flat and gain·dy·u to along. If seen is not nil,
// the loop ORs the bits of dy into it.
func (f *neonFunc) gradSums(st neonStream, all []a64.X, u neonUnit, flat, along []a64.V, seen *a64.V) {
	dy, x, gain := all[0], all[1], all[2]
	st.inLanes(len(flat), func(i int, p *part) {
		v, g, d := f.V(), f.V(), f.V()
		f.load(v, at(x, i), p)
		f.load(g, at(gain, i), p)
		f.load(d, at(dy, i), p)
		if seen != nil {
			f.ORR(*seen, *seen, d)
		}
		u.apply(v)
		f.FMUL(g, g, d)
		f.FADD(flat[i], flat[i], g)
		f.FMLA(along[i], g, v)
	})
}

func (f *neonFunc) normGrad() {
	all := f.pointers("dx", "dy", "x", "gain")
	u := f.unit()
	flat, along := f.broadcast("flat"), f.broadcast("along")
	f.normGradient(f.along("n", all...), all, u, flat, along)
	f.Return()
}

// normGradient writes the loop that adds inv·(gain·dy - flat - along·u) to dx. It overwrites flat.
func (f *neonFunc) normGradient(st neonStream, all []a64.X, u neonUnit, flat, along a64.V) {
	dx, dy, x, gain := all[0], all[1], all[2], all[3]
	f.FNEG(flat, flat)
	st.each(2, func(i int, p *part) {
		v, g, d, sum := f.V(), f.V(), f.V(), f.V()
		f.load(v, at(x, i), p)
		f.load(g, at(gain, i), p)
		f.load(d, at(dy, i), p)
		f.load(sum, at(dx, i), p)
		u.apply(v)
		t := f.copy(flat)
		f.FMLA(t, g, d)
		f.FMLS(t, v, along)
		f.FMLA(sum, t, u.inv)
		f.store(sum, at(dx, i), p)
	})
}

// layerNorm writes the normalisation of several short rows, one after the other.
func (f *neonFunc) layerNorm() {
	all := f.pointers("dst", "x", "gain", "shift")
	dst, x := all[0], all[1]
	mean, inv := f.pointer("mean"), f.pointer("inv")
	size, eps := f.broadcast("size"), f.broadcast("eps")
	f.constants()
	one := f.num(1)
	f.eachRow(func() {
		f.Scope(func() {
			acc := f.accumulators(32)
			st, here := f.alongCopies("d", x)
			st.inLanes(len(acc), func(i int, p *part) {
				v := f.V()
				f.load(v, at(here[0], i), p)
				f.FADD(acc[i], acc[i], v)
			})
			u := neonUnit{f, f.V(), f.V()}
			f.mean(u.mean, f.fold(acc, f.FADD), size)
			f.STRS(u.mean, a64.At(mean, 0))

			for _, v := range acc {
				f.Clear(v)
			}
			st, here = f.alongCopies("d", x)
			f.sumSquares(st, here[0], u.mean, acc)
			f.mean(u.inv, f.fold(acc, f.FADD), size)
			f.FADD(u.inv, u.inv, eps)
			f.FSQRT(u.inv, u.inv)
			f.FDIV(u.inv, one, u.inv)
			f.STRS(u.inv, a64.At(inv, 0))

			st, here = f.alongCopies("d", all...)
			f.normalise(st, here, u)
		})
		f.nextRows("d", dst, x)
		f.Do("ADD", 4, mean)
		f.Do("ADD", 4, inv)
	})
}

// mean sets all lanes of d to the first lane of sum divided by size.
func (f *neonFunc) mean(d, sum, size a64.V) {
	f.DUP(d, sum, 0)
	f.FDIV(d, d, size)
}

// nextRows advances pointers by the number of floats in the named parameter.
func (f *neonFunc) nextRows(length string, pointers ...a64.X) {
	f.Scope(func() {
		n := f.pointer(length)
		for _, x := range pointers {
			f.Do("ADD", n.String()+"<<2", x)
		}
	})
}

// layerNormGrad writes the gradient of layerNorm with respect to x.
func (f *neonFunc) layerNormGrad() {
	all := f.pointers("dx", "dy", "x", "gain")
	dx, dy, x := all[0], all[1], all[2]
	mean, inv := f.pointer("mean"), f.pointer("inv")
	size := f.broadcast("size")
	f.eachRow(func() {
		f.Scope(func() {
			next := f.NewLabel("next")
			u := neonUnit{f, f.V(), f.V()}
			f.spread(u.mean, mean)
			f.spread(u.inv, inv)
			flat, along, seen := f.accumulators(32), f.accumulators(32), f.zero()
			st, here := f.alongCopies("d", all[1:]...)
			f.gradSums(st, here, u, flat, along, &seen)
			f.SHL(seen, seen, 1) // only 0 and -0 have no bits other than the sign
			f.Do("CBZ", f.anyBit(seen), next)
			flatMean, alongMean := flat[1], along[1] // free after the folds
			f.mean(flatMean, f.fold(flat, f.FADD), size)
			f.mean(alongMean, f.fold(along, f.FADD), size)
			st, here = f.alongCopies("d", all...)
			f.normGradient(st, here, u, flatMean, alongMean)
			f.Bind(next)
		})
		f.nextRows("d", dx, dy, x)
		f.Do("ADD", 4, mean)
		f.Do("ADD", 4, inv)
	})
}

// A neonUnit computes u = (x-mean)·inv.
type neonUnit struct {
	f         *neonFunc
	mean, inv a64.V
}

func (f *neonFunc) unit() neonUnit { return neonUnit{f, f.broadcast("mean"), f.broadcast("inv")} }

// apply replaces x by u.
func (u neonUnit) apply(x a64.V) {
	u.f.FSUB(x, x, u.mean)
	u.f.FMUL(x, x, u.inv)
}
