package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

// wasmDistance writes the kernel for up to additiveRows rows and the given number of vectors of
// columns.
func wasmDistance(vectors int) func(f *wasmFunc) {
	return func(f *wasmFunc) { f.distance(vectors) }
}

func (f *wasmFunc) distance(vectors int) {
	field := f.fields(f.x("t"), distanceArg)
	b, bRow, w, last := field("b"), field("bRow"), field("w"), field("last")
	c, cRow := field("c"), field("cRow")
	f.eachHeight(field("rows"), func(rows int) {
		sums := make([][]wasm.V, rows)
		for r := range sums {
			sums[r] = f.Zeros(vectors)
		}
		a, factor := f.rowsFrom(field("a"), field("aRow"), rows), f.Num(1)
		f.repeat(field("depth"), func() {
			f.If(w, func() {
				factor.Set(f.LoadSplat(w, 0))
				w.Advance(4)
			})
			for v := range vectors {
				f.Scope(func() {
					y := f.load(b, v, nil)
					for r := range rows {
						f.Scope(func() {
							d := y.Sub(f.LoadSplat(a[r], 0)).Mul(factor)
							sums[r][v].Set(sums[r][v].Sub(d.Mul(d)))
						})
					}
				})
			}
			for _, p := range a {
				p.Advance(4)
			}
			b.AdvanceBy(bRow)
		})
		for _, row := range sums {
			for v, sum := range row {
				if v < vectors-1 {
					f.store(sum, c, v, nil)
				} else {
					f.store(sum, c, v, &last)
				}
			}
			c.AdvanceBy(cRow)
		}
		f.Return()
	})
}

// distanceGrad writes the kernel for the gradients of up to additiveRows queries and any number of
// keys, for one vector of features.
func (f *wasmFunc) distanceGrad() {
	field := f.fields(f.x("t"), gradArg)
	row, dsRow, k, dk, toDW := field("row"), field("dsRow"), field("f"), field("dk"), field("dw")
	f.eachHeight(field("rows"), func(rows int) {
		q, dq := f.vectorsFrom(field("e"), row, rows), f.vectorsFrom(field("dq"), row, rows)
		ds, dw := f.rowsFrom(field("ds"), dsRow, rows), f.Zeros(rows)
		f.If(toDW, func() {
			for r, v := range f.vectorsFrom(toDW, row, rows) {
				dw[r].Set(v)
			}
		})
		f.repeat(field("keys"), func() {
			kj, sum := f.LoadV(k, 0), f.LoadV(dk, 0)
			for r := range rows {
				f.Scope(func() {
					d, g := kj.Sub(q[r]), f.LoadSplat(ds[r], 0)
					step := d.Mul(g)
					dq[r].Accumulate(step)
					sum.Set(sum.Sub(step))
					dw[r].Accumulate(d.Mul(d).Mul(g))
				})
			}
			f.StoreV(sum, dk, 0)
			k.AdvanceBy(row)
			dk.AdvanceBy(row)
			for _, p := range ds {
				p.Advance(4)
			}
		})
		f.storeVectors(dq, field("dq"), row)
		f.If(toDW, func() { f.storeVectors(dw, toDW, row) })
		f.Return()
	})
}

// vectorsFrom returns the first vectors of n rows.
func (f *wasmFunc) vectorsFrom(first, distance wasm.X, n int) []wasm.V {
	var all []wasm.V
	for _, p := range f.rowsFrom(first, distance, n) {
		all = append(all, f.LoadV(p, 0))
	}
	return all
}

// storeVectors writes the first vectors of rows.
func (f *wasmFunc) storeVectors(all []wasm.V, first, distance wasm.X) {
	for i, p := range f.rowsFrom(first, distance, len(all)) {
		f.StoreV(all[i], p, 0)
	}
}
