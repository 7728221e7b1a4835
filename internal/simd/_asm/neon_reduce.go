package main

import "math"

func (f *neonFunc) maximum() {
	x := f.pointer("x")
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
