package main

import "math"

func (f *neonFunc) sum() {
	x := f.pointer("x")
	acc := f.accumulators(sumLanes)
	f.along("n", x).inLanes(len(acc), func(i int, p *part) {
		v := f.V()
		f.load(v, at(x, i), p)
		f.FADD(acc[i], acc[i], v)
	})
	f.returnFirst(f.fold(acc, f.FADD))
}

func (f *neonFunc) dot() {
	x, y := f.pointer("x"), f.pointer("y")
	acc := f.accumulators(sumLanes)
	f.along("n", x, y).inLanes(len(acc), func(i int, p *part) {
		xi, yi := f.V(), f.V()
		f.load(xi, at(x, i), p)
		f.load(yi, at(y, i), p)
		f.FMLA(acc[i], xi, yi)
	})
	f.returnFirst(f.fold(acc, f.FADD))
}

func (f *neonFunc) maximum() {
	x := f.pointer("x")
	f.constants()
	lowest := f.num(math.Inf(-1))
	acc := f.Vs(8)
	for _, v := range acc {
		f.MOV(v, lowest)
	}
	f.along("n", x).each(len(acc), func(i int, p *part) {
		v := f.V()
		f.load(v, at(x, i), p)
		if p != nil {
			f.BIF(v, lowest, f.ones(p))
		}
		f.FMAX(acc[i], acc[i], v)
	})
	f.returnFirst(f.fold(acc, f.FMAX))
}

// finite writes the loop that looks for x-x != 0, which is true for infinities and NaN.
func (f *neonFunc) finite() {
	x := f.pointer("x")
	seen := f.zero()
	f.along("n", x).each(4, func(i int, p *part) {
		v := f.V()
		f.load(v, at(x, i), p)
		f.FSUB(v, v, v)
		f.ORR(seen, seen, v)
	})
	f.returnNone(seen)
}
