package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

// neonDistance writes the kernel for up to additiveRows rows and the given number of vectors of
// columns.
func neonDistance(vectors int) func(f *neonFunc) {
	return func(f *neonFunc) { f.distance(vectors) }
}

func (f *neonFunc) distance(vectors int) {
	args := f.pointer("t")
	field := f.fields(args, distanceArg)
	b, bRow, w, depth := field("b"), field("bRow"), field("w"), field("depth")
	f.eachHeight(field("rows"), func(rows int) {
		acc := make([][]a64.V, rows)
		for r := range acc {
			acc[r] = f.accumulators(vectors * f.lanes)
		}
		a := f.rowsFrom(field("a"), field("aRow"), rows)
		steps := func(factors bool) {
			f.repeat("step", depth, func() {
				factor, x := f.V(), f.Vs(rows)
				if factors {
					f.spread(factor, w)
					f.Do("ADD", 4, w)
				}
				for r := range rows {
					f.spread(x[r], a[r])
					f.Do("ADD", 4, a[r])
				}
				for v := range vectors {
					f.Scope(func() {
						y := f.V()
						f.LDRQ(y, at(b, v))
						for r := range rows {
							f.Scope(func() {
								d := f.V()
								f.FSUB(d, y, x[r])
								if factors {
									f.FMUL(d, d, factor)
								}
								f.FMLS(acc[r][v], d, d)
							})
						}
					})
				}
				f.Do("ADD", bRow, b)
			})
		}
		plain, done := f.NewLabel("plain"), f.NewLabel("sums")
		f.Do("CBZ", w, plain)
		steps(true)
		f.Do("JMP", done)
		f.Bind(plain)
		steps(false)
		f.Bind(done)
		last := &part{field("last"), true}
		c, cRow := field("c"), field("cRow")
		for _, row := range acc {
			for v, sum := range row {
				if v < vectors-1 {
					f.store(sum, at(c, v), nil)
				} else {
					f.store(sum, at(c, v), last)
				}
			}
			f.Do("ADD", cRow, c)
		}
		f.Return()
	})
}

// distanceGrad writes the kernel for the gradients of up to additiveRows queries and any number of
// keys, for one vector of features.
func (f *neonFunc) distanceGrad() {
	args := f.pointer("t")
	field := f.fields(args, gradArg)
	row, dsRow := field("row"), field("dsRow")
	k, dk, keys := field("f"), field("dk"), field("keys")
	// each calls do with the vectors of the rows that start at a pointer in args.
	each := func(name string, vectors []a64.V, do func(v a64.V, m a64.Mem)) {
		f.Scope(func() {
			x := field(name)
			for _, v := range vectors {
				do(v, a64.At(x, 0))
				f.Do("ADD", row, x)
			}
		})
	}
	f.eachHeight(field("rows"), func(rows int) {
		dq, dw, q := f.Vs(rows), f.Vs(rows), f.Vs(rows)
		each("dq", dq, f.LDRQ)
		each("e", q, f.LDRQ)
		ds := f.rowsFrom(field("ds"), dsRow, rows)
		loops := func(factors bool) {
			if factors {
				each("dw", dw, f.LDRQ)
			}
			f.repeat("key", keys, func() {
				kj, sum := f.V(), f.V()
				f.LDRQ(kj, a64.At(k, 0))
				f.LDRQ(sum, a64.At(dk, 0))
				for r := range rows {
					f.Scope(func() {
						d, g := f.V(), f.V()
						f.spread(g, ds[r])
						f.FSUB(d, kj, q[r])
						f.FMLA(dq[r], d, g)
						f.FMLS(sum, d, g)
						if factors {
							f.FMUL(d, d, d)
							f.FMLA(dw[r], d, g)
						}
					})
				}
				f.STRQ(sum, a64.At(dk, 0))
				f.Do("ADD", row, k)
				f.Do("ADD", row, dk)
				for _, x := range ds {
					f.Do("ADD", 4, x)
				}
			})
			each("dq", dq, f.STRQ)
			if factors {
				each("dw", dw, f.STRQ)
			}
			f.Return()
		}
		plain := f.NewLabel("plain")
		f.Scope(func() { f.Do("CBZ", field("dw"), plain) })
		loops(true)
		f.Bind(plain)
		loops(false)
	})
}
