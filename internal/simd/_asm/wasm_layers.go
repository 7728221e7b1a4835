package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

func (f *wasmFunc) relu() {
	zero := f.Zero()
	f.unary(4, func(v wasm.V) wasm.V { return v.Max(zero) }) // 0 for -0, NaN for NaN
}

func (f *wasmFunc) reluGrad() {
	dx, dy, x, zero := f.x("dx"), f.x("dy"), f.x("x"), f.Zero()
	f.along("n", dx, dy, x).each(2, func(i int, n *wasm.X) {
		old := f.load(dx, i, n)
		f.store(old.Add(f.load(dy, i, n)).Where(zero.Less(f.load(x, i, n)), old), dx, i, n)
	})
	f.Return()
}

func (f *wasmFunc) softmaxMean() {
	dy, y, zero, sums := f.x("dy"), f.x("y"), f.Zero(), f.Zeros(wasmSums)
	f.along("n", dy, y).inLanes(len(sums), func(j, i int, n *wasm.X) {
		w := f.load(y, i, n)
		sums[j].Accumulate(w.Mul(f.load(dy, i, n).AndNot(w.Equal(zero))))
	})
	f.Return(f.total(sums).First())
}

func (f *wasmFunc) softmaxGrad() {
	dx, dy, y, mean, zero := f.x("dx"), f.x("dy"), f.x("y"), f.broadcast("mean"), f.Zero()
	f.along("n", dx, dy, y).each(2, func(i int, n *wasm.X) {
		w, old := f.load(y, i, n), f.load(dx, i, n)
		sum := old.Add(f.load(dy, i, n).Sub(mean).Mul(w))
		f.store(old.Where(w.Equal(zero), sum), dx, i, n)
	})
	f.Return()
}

// adamW writes the step of AdamW. The scalars are the fields of adamScalars in package simd, in the
// same order.
func (f *wasmFunc) adamW() {
	p, g, m, v, scalars := f.x("p"), f.x("grad"), f.x("m"), f.x("v"), f.x("s")
	var c [8]wasm.V
	for i := range c {
		c[i] = f.LoadSplat(scalars, 4*i)
	}
	keep, beta1, beta2, oneBeta1, oneBeta2, rate, rootScale, epsilon := c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
	f.along("n", p, g, m, v).each(1, func(i int, n *wasm.X) {
		gi := f.load(g, i, n)
		mi := f.load(m, i, n).Mul(beta1).Add(gi.Mul(oneBeta1))
		f.store(mi, m, i, n)
		vi := f.load(v, i, n).Mul(beta2).Add(gi.Mul(gi).Mul(oneBeta2))
		f.store(vi, v, i, n)
		root := vi.Sqrt().Mul(rootScale).Add(epsilon)
		f.store(f.load(p, i, n).Mul(keep).Sub(mi.Mul(rate).Div(root)), p, i, n)
	})
	f.Return()
}

// fmaLoop writes a loop of multiplications and additions, and nothing else: n rounds of one of each
// for each chain of the version for amd64, half of them at a time because of the registers. The
// numbers stay positive. The branch that is never taken makes the engine compute them.
func (f *wasmFunc) fmaLoop() {
	n, one, tiny, zero := f.x("n"), f.Num(1), f.Num(0x1p-30), f.Zero()
	var chains []wasm.V
	for range fmaChains {
		chains = append(chains, one.Copy())
	}
	f.Loop(func(again wasm.Label) {
		f.repeat(n, func() {
			for range 2 {
				for _, v := range chains {
					v.Set(v.Mul(one).Add(tiny))
				}
			}
		})
		least := chains[0]
		for _, v := range chains[1:] {
			least = least.PMin(v)
		}
		f.BranchIf(again, least.Less(zero).Any())
	})
	f.Return()
}
