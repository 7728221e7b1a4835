package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

func (f *neonFunc) sumRows() {
	dst, x := f.pointer("dst"), f.pointer("x")
	f.along("n", dst, x).blocks(8, func(vectors int, p *part) {
		sum := f.Vs(vectors)
		for i, v := range sum {
			f.load(v, at(dst, i), p)
		}
		f.downRows("stride", x, func(row a64.X) {
			for i, v := range sum {
				f.Scope(func() {
					xi := f.V()
					f.load(xi, at(row, i), p)
					f.FADD(v, v, xi)
				})
			}
		})
		for i, v := range sum {
			f.store(v, at(dst, i), p)
		}
	})
	f.Return()
}

func (f *neonFunc) copyRows() { f.toRows(false) }

func (f *neonFunc) addRows() { f.toRows(true) }

// toRows writes the loop that copies rows, or adds them to others.
func (f *neonFunc) toRows(sum bool) {
	dst, x, dstStride := f.pointer("dst"), f.pointer("x"), f.pointer("dstStride")
	f.along("n", dst, x).blocks(4, func(vectors int, p *part) {
		to := f.X()
		f.Do("MOVD", dst, to)
		f.downRows("stride", x, func(row a64.X) {
			for i := range vectors {
				v := f.V()
				f.load(v, at(row, i), p)
				if sum {
					d := f.V()
					f.load(d, at(to, i), p)
					f.FADD(v, v, d)
				}
				f.store(v, at(to, i), p)
			}
			f.Do("ADD", dstStride.String()+"<<2", to)
		})
	})
	f.Return()
}

func (f *neonFunc) normGains() {
	all := f.pointers("dgain", "dshift", "dy", "x")
	dgain, dshift, dy, x := all[0], all[1], all[2], all[3]
	f.along("n", all...).blocks(4, func(vectors int, p *part) {
		gains, shifts := f.Vs(vectors), f.Vs(vectors)
		for i := range gains {
			f.load(gains[i], at(dgain, i), p)
			f.load(shifts[i], at(dshift, i), p)
		}
		mean, inv, d := f.pointer("mean"), f.pointer("inv"), f.X()
		f.Do("MOVD", dy, d)
		stride := f.pointer("stride")
		f.downRows("stride", x, func(row a64.X) {
			u := unit{neonProgram{f}, f.V(), f.V()}
			f.spread(u.mean.(a64.V), mean)
			f.spread(u.inv.(a64.V), inv)
			for i := range gains {
				f.Scope(func() {
					v, di, none := f.V(), f.V(), f.V()
					f.load(v, at(row, i), p)
					f.load(di, at(d, i), p)
					u.apply(v)
					f.FCMEQ0(none, di)
					f.BIC(v, v, none)
					f.FADD(shifts[i], shifts[i], di)
					f.FMLA(gains[i], di, v)
				})
			}
			f.Do("ADD", 4, mean)
			f.Do("ADD", 4, inv)
			f.Do("ADD", stride.String()+"<<2", d)
		})
		for i := range gains {
			f.store(gains[i], at(dgain, i), p)
			f.store(shifts[i], at(dshift, i), p)
		}
	})
	f.Return()
}

// downRows writes the loop over the rows of a matrix, in the columns that start at a pointer. The
// parameter rows, at least 1, is their number, and the parameter named by stride is their distance
// in floats.
func (f *neonFunc) downRows(stride string, first a64.X, body func(row a64.X)) {
	f.Scope(func() {
		rows, step, row, loop := f.pointer("rows"), f.pointer(stride), f.X(), f.NewLabel("row")
		f.Do("MOVD", first, row)
		f.Bind(loop)
		f.Scope(func() { body(row) })
		f.Do("ADD", step.String()+"<<2", row)
		f.countDown(rows, loop)
	})
}
