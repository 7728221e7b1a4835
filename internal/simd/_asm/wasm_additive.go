package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

// additiveKeys writes the kernel that computes G and w·G for a panel of keys. A row of the panel
// has room for both, and contains k in the place of G. A NaN stays NaN.
func (f *wasmFunc) additiveKeys() {
	panel, w := f.x("panel"), f.x("w")
	high, low := f.Num(additiveKeyIn), f.Num(-additiveKeyIn)
	minusTwo, factor, exp := f.Num(-2), f.Num(additiveKeyBy), exponential(wasmProgram{f})
	f.repeat(f.x("h"), func() {
		wf, place := f.LoadSplat(w, 0), panel.Copy()
		f.repeat(f.x("vectors").Copy(), func() {
			g := exp(f.LoadV(place, 0).PMin(high).PMax(low).Mul(minusTwo)).(wasm.V).Mul(factor)
			f.StoreV(g, place, 0)
			f.StoreV(g.Mul(wf), place, 4*f.additive)
			place.Advance(vectorBytes)
		})
		panel.Advance(8 * f.additive)
		w.Advance(4)
	})
	f.Return()
}

// eachHeight calls body for every number of rows from additiveRows down to 1, to write its code,
// which returns.
func (f *wasmFunc) eachHeight(rows wasm.X, body func(rows int)) {
	for n := additiveRows; n > 1; n-- {
		f.If(rows.Is(n), func() { body(n) })
	}
	f.Scope(func() { body(1) })
}

// rowsFrom returns pointers to n rows that start at first, at the given distance.
func (f *wasmFunc) rowsFrom(first, distance wasm.X, n int) []wasm.X {
	all := []wasm.X{first}
	for len(all) < n {
		all = append(all, all[len(all)-1].Add(distance))
	}
	return all
}

// wasmAdditiveTile writes the kernel for the scores of up to additiveRows queries and the given
// number of vectors of keys.
func wasmAdditiveTile(vectors int) func(f *wasmFunc) {
	return func(f *wasmFunc) { f.additiveTile(vectors) }
}

func (f *wasmFunc) additiveTile(vectors int) {
	args := f.x("t")
	field := f.fields(args, scoreArg)
	panel, last, c, cRow := field("panel"), field("last"), field("c"), field("cRow")
	f.eachHeight(field("rows"), func(rows int) {
		e := f.rowsFrom(field("e"), field("eRow"), rows)
		sums := make([][]wasm.V, rows)
		for r := range sums {
			sums[r] = f.Zeros(vectors)
		}
		f.repeat(field("pairs"), func() {
			for v := range vectors {
				f.Scope(func() {
					// read returns G, or w·G, of one of two features.
					read := func(feature, half int) wasm.V {
						return f.LoadV(panel, 4*f.additive*(2*feature+half)+v*vectorBytes)
					}
					g0, w0, g1, w1 := read(0, 0), read(0, 1), read(1, 0), read(1, 1)
					for r := range rows {
						f.Scope(func() {
							// w0·G0/t0 + w1·G1/t1 with one division for both.
							t0, t1 := g0.Add(f.LoadSplat(e[r], 0)), g1.Add(f.LoadSplat(e[r], 4))
							sums[r][v].Accumulate(w0.Mul(t1).Add(w1.Mul(t0)).Div(t0.Mul(t1)))
						})
					}
				})
			}
			for _, p := range e {
				p.Advance(8)
			}
			panel.Advance(2 * 8 * f.additive)
		})
		factor, sum := f.LoadSplat(args, scoreArg("factor")), f.LoadSplat(args, scoreArg("sum"))
		for _, row := range sums {
			for v, s := range row {
				score := sum.Add(s.Mul(factor))
				if v < vectors-1 {
					f.store(score, c, v, nil)
				} else {
					f.store(score, c, v, &last)
				}
			}
			c.AdvanceBy(cRow)
		}
		f.Return()
	})
}

// additiveTileGrad writes the kernel for the gradients of up to additiveRows queries and any number
// of keys, for one vector of features.
func (f *wasmFunc) additiveTileGrad() {
	field := f.fields(f.x("t"), gradArg)
	row, dsRow, fk, dk := field("row"), field("dsRow"), field("f"), field("dk")
	half, one := f.Num(0.5), f.Num(1)
	f.eachHeight(field("rows"), func(rows int) {
		dq, dw := f.vectorsFrom(field("dq"), row, rows), f.vectorsFrom(field("dw"), row, rows)
		e := f.vectorsFrom(field("e"), row, rows)
		ds := f.rowsFrom(field("ds"), dsRow, rows)
		f.repeat(field("keys"), func() {
			fj, sum := f.LoadV(fk, 0), f.LoadV(dk, 0)
			for r := range rows {
				f.Scope(func() {
					th := one.Sub(one.Div(half.Add(e[r].Mul(fj))))
					d := f.LoadSplat(ds[r], 0)
					g := one.Sub(th.Mul(th)).Mul(d)
					dq[r].Accumulate(g)
					sum.Accumulate(g)
					dw[r].Accumulate(th.Mul(d))
				})
			}
			f.StoreV(sum, dk, 0)
			fk.AdvanceBy(row)
			dk.AdvanceBy(row)
			for _, p := range ds {
				p.Advance(4)
			}
		})
		f.storeVectors(dq, field("dq"), row)
		f.storeVectors(dw, field("dw"), row)
		f.Return()
	})
}
