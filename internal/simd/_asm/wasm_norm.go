package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

func (f *wasmFunc) sumSquaresAbout() {
	x, mean, sums := f.x("x"), f.broadcast("mean"), f.Zeros(wasmSums)
	f.sumSquares(f.along("n", x), x, mean, sums)
	f.Return(f.total(sums).First())
}

// sumSquares writes the loop that adds (x-mean)² to sums.
func (f *wasmFunc) sumSquares(st wasmStream, x wasm.X, mean wasm.V, sums []wasm.V) {
	st.inLanes(len(sums), func(j, i int, n *wasm.X) {
		v := f.keep(n, f.load(x, i, n).Sub(mean))
		sums[j].Accumulate(v.Mul(v))
	})
}

// A wasmUnit computes u = (x-mean)·inv.
type wasmUnit struct{ mean, inv wasm.V }

func (f *wasmFunc) unit() wasmUnit { return wasmUnit{f.broadcast("mean"), f.broadcast("inv")} }

func (u wasmUnit) of(x wasm.V) wasm.V { return x.Sub(u.mean).Mul(u.inv) }

func (f *wasmFunc) norm() {
	all := f.xs("dst", "x", "gain", "shift")
	f.normalise(f.along("n", all...), all, f.unit())
	f.Return()
}

// normalise writes the loop that sets dst = gain·u + shift.
func (f *wasmFunc) normalise(st wasmStream, all []wasm.X, u wasmUnit) {
	dst, x, gain, shift := all[0], all[1], all[2], all[3]
	st.each(2, func(i int, n *wasm.X) {
		f.store(u.of(f.load(x, i, n)).Mul(f.load(gain, i, n)).Add(f.load(shift, i, n)), dst, i, n)
	})
}

func (f *wasmFunc) normSums() {
	all, u := f.xs("dy", "x", "gain"), f.unit()
	flat, along := f.Zeros(wasmSums), f.Zeros(wasmSums)
	f.gradSums(f.along("n", all...), all, u, flat, along, nil)
	results := f.ParamX(len(f.params))
	f.StoreLane(f.total(flat), 0, results, 0)
	f.StoreLane(f.total(along), 0, results, 4)
	f.Return()
}

// gradSums writes the loop that adds gain·dy to flat and gain·dy·u to along. If seen is not nil,
// the loop ORs the bits of dy into it.
func (f *wasmFunc) gradSums(st wasmStream, all []wasm.X, u wasmUnit, flat, along []wasm.V, seen *wasm.V) {
	dy, x, gain := all[0], all[1], all[2]
	st.inLanes(len(flat), func(j, i int, n *wasm.X) {
		d := f.load(dy, i, n)
		if seen != nil {
			seen.Set(seen.Or(d))
		}
		g := f.load(gain, i, n).Mul(d)
		flat[j].Accumulate(g)
		along[j].Accumulate(g.Mul(u.of(f.load(x, i, n))))
	})
}

func (f *wasmFunc) normGrad() {
	all := f.xs("dx", "dy", "x", "gain")
	f.normGradient(f.along("n", all...), all, f.unit(), f.broadcast("flat"), f.broadcast("along"))
	f.Return()
}

// normGradient writes the loop that adds inv·(gain·dy - flat - along·u) to dx.
func (f *wasmFunc) normGradient(st wasmStream, all []wasm.X, u wasmUnit, flat, along wasm.V) {
	dx, dy, x, gain := all[0], all[1], all[2], all[3]
	st.each(1, func(i int, n *wasm.X) {
		t := f.load(gain, i, n).Mul(f.load(dy, i, n)).Sub(flat).Sub(u.of(f.load(x, i, n)).Mul(along))
		f.store(f.load(dx, i, n).Add(t.Mul(u.inv)), dx, i, n)
	})
}

// layerNorm writes the normalisation of several short rows, one after the other.
func (f *wasmFunc) layerNorm() {
	all, mean, inv := f.xs("dst", "x", "gain", "shift"), f.x("mean"), f.x("inv")
	dst, x := all[0], all[1]
	size, eps, one, row := f.broadcast("size"), f.broadcast("eps"), f.Num(1), f.x("d").Shl(2)
	f.eachRow(func() {
		sums := f.Zeros(wasmSums)
		st, here := f.alongCopies("d", x)
		st.inLanes(len(sums), func(j, i int, n *wasm.X) { sums[j].Accumulate(f.load(here[0], i, n)) })
		u := wasmUnit{mean: f.total(sums).Div(size)}
		f.StoreLane(u.mean, 0, mean, 0)

		sums = f.Zeros(wasmSums)
		st, here = f.alongCopies("d", x)
		f.sumSquares(st, here[0], u.mean, sums)
		u.inv = one.Div(f.total(sums).Div(size).Add(eps).Sqrt())
		f.StoreLane(u.inv, 0, inv, 0)

		st, here = f.alongCopies("d", all...)
		f.normalise(st, here, u)
		dst.AdvanceBy(row)
		x.AdvanceBy(row)
		mean.Advance(4)
		inv.Advance(4)
	})
}

// layerNormGrad writes the gradient of layerNorm with respect to x.
func (f *wasmFunc) layerNormGrad() {
	all, mean, inv := f.xs("dx", "dy", "x", "gain"), f.x("mean"), f.x("inv")
	size, row := f.broadcast("size"), f.x("d").Shl(2)
	f.eachRow(func() {
		u := wasmUnit{f.LoadSplat(mean, 0), f.LoadSplat(inv, 0)}
		flat, along, seen := f.Zeros(wasmSums), f.Zeros(wasmSums), f.Zero()
		st, here := f.alongCopies("d", all[1:]...)
		f.gradSums(st, here, u, flat, along, &seen)
		f.If(seen.ShlInts(1).Any(), func() { // only 0 and -0 have no bits other than the sign
			st, here := f.alongCopies("d", all...)
			f.normGradient(st, here, u, f.total(flat).Div(size), f.total(along).Div(size))
		})
		all[0].AdvanceBy(row)
		all[1].AdvanceBy(row)
		all[2].AdvanceBy(row)
		mean.Advance(4)
		inv.Advance(4)
	})
}
