package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

// additiveKeys writes the kernel that computes G and w·G for a panel of keys. A row of the panel
// has room for both, and contains k in the place of G. A NaN stays NaN.
func (f *neonFunc) additiveKeys() {
	panel, w, h := f.pointer("panel"), f.pointer("w"), f.pointer("h")
	high, low := f.num(additiveKeyIn), f.num(-additiveKeyIn)
	minusTwo, factor := f.num(-2), f.num(additiveKeyBy)
	exp := exponential(neonProgram{f})
	f.repeat("row", h, func() {
		wf, place, vectors, vector := f.V(), f.X(), f.pointer("vectors"), f.NewLabel("vector")
		f.spread(wf, w)
		f.Do("MOVD", panel, place)
		f.Bind(vector)
		v := f.V()
		f.load(v, a64.At(place, 0), nil)
		f.FMIN(v, v, high)
		f.FMAX(v, v, low)
		f.FMUL(v, v, minusTwo)
		v = exp(v).(a64.V)
		f.FMUL(v, v, factor)
		f.store(v, a64.At(place, 0), nil)
		f.FMUL(v, v, wf)
		f.store(v, a64.At(place, 4*f.additive), nil)
		f.Do("ADD", vectorBytes, place)
		f.countDown(vectors, vector)
		f.Do("ADD", 8*f.additive, panel)
		f.Do("ADD", 4, w)
	})
	f.Return()
}

// eachHeight calls body for every number of rows from additiveRows down to 1, to write its code.
func (f *neonFunc) eachHeight(rows a64.X, body func(rows int)) {
	for n := additiveRows; n > 1; n-- {
		next := f.NewLabel("rows")
		f.Do("CMP", n, rows)
		f.Do("BNE", next)
		f.Scope(func() { body(n) })
		f.Bind(next)
	}
	body(1)
}

// rowsFrom returns pointers to n rows that start at first, at the given distance.
func (f *neonFunc) rowsFrom(first, distance a64.X, n int) []a64.X {
	all := []a64.X{first}
	for len(all) < n {
		next := f.X()
		f.Do("ADD", distance, all[len(all)-1], next)
		all = append(all, next)
	}
	return all
}

// neonAdditiveTile writes the kernel for the scores of up to additiveRows queries and the given
// number of vectors of keys.
func neonAdditiveTile(vectors int) func(f *neonFunc) {
	return func(f *neonFunc) { f.additiveTile(vectors) }
}

func (f *neonFunc) additiveTile(vectors int) {
	args := f.pointer("t")
	field := f.fields(args, scoreArg)
	first, eRow := field("e"), field("eRow")
	panel, pairs := field("panel"), field("pairs")
	f.eachHeight(field("rows"), func(rows int) {
		e := f.rowsFrom(first, eRow, rows)
		acc := make([][]a64.V, rows)
		for r := range acc {
			acc[r] = f.accumulators(vectors * f.lanes)
		}
		f.repeat("pair", pairs, func() {
			// read returns G, or w·G, of one of two features.
			read := func(feature, half int) []a64.V {
				all := f.Vs(vectors)
				for v, x := range all {
					f.load(x, a64.At(panel, 4*f.additive*(2*feature+half)+v*vectorBytes), nil)
				}
				return all
			}
			g0, w0, g1, w1 := read(0, 0), read(0, 1), read(1, 0), read(1, 1)
			for r := range rows {
				f.Scope(func() {
					e0, e1 := f.V(), f.V()
					f.LDRD(e1, a64.At(e[r], 0))
					f.DUP(e0, e1, 0)
					f.DUP(e1, e1, 1)
					for v := range vectors {
						f.Scope(func() {
							// w0·G0/t0 + w1·G1/t1 with one reciprocal for both.
							t0, t1, n := f.V(), f.V(), f.V()
							f.FADD(t0, g0[v], e0)
							f.FADD(t1, g1[v], e1)
							f.FMUL(n, w0[v], t1)
							f.FMLA(n, w1[v], t0)
							f.FMUL(t0, t0, t1)
							f.addQuotient(acc[r][v], n, t0)
						})
					}
				})
			}
			for _, x := range e {
				f.Do("ADD", 8, x)
			}
			f.Do("ADD", 2*8*f.additive, panel)
		})

		factor, sum, at0 := f.V(), f.V(), f.X()
		f.Do("ADD", scoreArg("factor"), args, at0)
		f.spread(factor, at0)
		f.Do("ADD", scoreArg("sum"), args, at0)
		f.spread(sum, at0)
		last := &part{field("last"), true}
		c, cRow := field("c"), field("cRow")
		for _, row := range acc {
			for v, a := range row {
				f.Scope(func() {
					score := f.copy(sum)
					f.FMLA(score, a, factor)
					if v < vectors-1 {
						f.store(score, at(c, v), nil)
					} else {
						f.store(score, at(c, v), last)
					}
				})
			}
			f.Do("ADD", cRow, c)
		}
		f.Return()
	})
}

// addQuotient adds n/d to acc. It overwrites n. The reciprocal starts with eight bits; one step of
// Newton's method gives sixteen, and a second step full precision.
func (f *neonFunc) addQuotient(acc, n, d a64.V) {
	f.Scope(func() {
		r, c := f.V(), f.V()
		f.FRECPE(r, d)
		f.FRECPS(c, d, r)
		f.FMUL(r, r, c)
		f.FRECPS(c, d, r)
		f.FMUL(n, n, r)
		f.FMLA(acc, n, c)
	})
}

// additiveTileGrad writes the kernel for the gradients of up to additiveRows queries and any number
// of keys, for one vector of features.
func (f *neonFunc) additiveTileGrad() {
	args := f.pointer("t")
	field := f.fields(args, gradArg)
	row, dsRow := field("row"), field("dsRow")
	fk, dk, keys := field("f"), field("dk"), field("keys")
	half, one := f.num(0.5), f.num(1)
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
		dq, dw, e := f.Vs(rows), f.Vs(rows), f.Vs(rows)
		each("dq", dq, f.LDRQ)
		each("dw", dw, f.LDRQ)
		each("e", e, f.LDRQ)
		ds := f.rowsFrom(field("ds"), dsRow, rows)
		f.repeat("key", keys, func() {
			fj, sum := f.V(), f.V()
			f.LDRQ(fj, a64.At(fk, 0))
			f.LDRQ(sum, a64.At(dk, 0))
			for r := range rows {
				f.Scope(func() {
					x, d, g := f.copy(half), f.V(), f.copy(one)
					f.FMLA(x, e[r], fj)
					th := f.oneMinusInverse(x, one)
					f.FMLS(g, th, th)
					f.LDRS(d, a64.At(ds[r], 0))
					f.FMLALane(dq[r], g, d, 0)
					f.FMLALane(sum, g, d, 0)
					f.FMLALane(dw[r], th, d, 0)
				})
			}
			f.STRQ(sum, a64.At(dk, 0))
			f.Do("ADD", row, fk)
			f.Do("ADD", row, dk)
			for _, x := range ds {
				f.Do("ADD", 4, x)
			}
		})
		each("dq", dq, f.STRQ)
		each("dw", dw, f.STRQ)
		f.Return()
	})
}

// oneMinusInverse returns 1-1/x.
func (f *neonFunc) oneMinusInverse(x, one a64.V) a64.V {
	r, c, result := f.V(), f.V(), f.copy(one)
	f.FRECPE(r, x)
	f.FRECPS(c, x, r)
	f.FMUL(r, r, c)
	f.FRECPS(c, x, r)
	f.FMLS(result, r, c)
	return result
}
