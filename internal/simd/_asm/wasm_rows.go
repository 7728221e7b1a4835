package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

func (f *wasmFunc) sumRows() {
	dst, x, stride := f.x("dst"), f.x("x"), f.x("stride").Shl(2)
	f.along("n", dst, x).blocks(4, func(vectors int, n *wasm.X) {
		var sums []wasm.V
		for i := range vectors {
			sums = append(sums, f.load(dst, i, n))
		}
		row := x.Copy()
		f.downRows(func() {
			for i, sum := range sums {
				sum.Accumulate(f.load(row, i, n))
			}
			row.AdvanceBy(stride)
		})
		for i, sum := range sums {
			f.store(sum, dst, i, n)
		}
	})
	f.Return()
}

// downRows writes the loop over the rows of a matrix. The parameter rows, at least 1, is their
// number.
func (f *wasmFunc) downRows(body func()) { f.repeat(f.x("rows").Copy(), body) }

func (f *wasmFunc) copyRows() {
	f.toRows(func(_ wasm.X, _ int, _ *wasm.X, v wasm.V) wasm.V { return v })
}

func (f *wasmFunc) addRows() {
	f.toRows(func(to wasm.X, i int, n *wasm.X, v wasm.V) wasm.V { return f.load(to, i, n).Add(v) })
}

// toRows writes the loop that sets rows to op of other rows.
func (f *wasmFunc) toRows(op func(to wasm.X, i int, n *wasm.X, v wasm.V) wasm.V) {
	dst, x, dstStride, stride := f.x("dst"), f.x("x"), f.x("dstStride").Shl(2), f.x("stride").Shl(2)
	f.along("n", dst, x).blocks(4, func(vectors int, n *wasm.X) {
		to, row := dst.Copy(), x.Copy()
		f.downRows(func() {
			for i := range vectors {
				f.Scope(func() { f.store(op(to, i, n, f.load(row, i, n)), to, i, n) })
			}
			to.AdvanceBy(dstStride)
			row.AdvanceBy(stride)
		})
	})
	f.Return()
}

func (f *wasmFunc) normGains() {
	all, zero, stride := f.xs("dgain", "dshift", "dy", "x"), f.Zero(), f.x("stride").Shl(2)
	dgain, dshift := all[0], all[1]
	f.along("n", all...).blocks(2, func(vectors int, n *wasm.X) {
		var gains, shifts []wasm.V
		for i := range vectors {
			gains, shifts = append(gains, f.load(dgain, i, n)), append(shifts, f.load(dshift, i, n))
		}
		mean, inv, dy, x := f.x("mean").Copy(), f.x("inv").Copy(), all[2].Copy(), all[3].Copy()
		f.downRows(func() {
			u := unit{wasmProgram{f}, f.LoadSplat(mean, 0), f.LoadSplat(inv, 0)}
			for i := range gains {
				d := f.load(dy, i, n)
				v := f.load(x, i, n)
				u.apply(v)
				v = v.AndNot(d.Equal(zero))
				shifts[i].Accumulate(d)
				gains[i].Accumulate(d.Mul(v))
			}
			mean.Advance(4)
			inv.Advance(4)
			dy.AdvanceBy(stride)
			x.AdvanceBy(stride)
		})
		for i := range gains {
			f.store(gains[i], dgain, i, n)
			f.store(shifts[i], dshift, i, n)
		}
	})
	f.Return()
}
