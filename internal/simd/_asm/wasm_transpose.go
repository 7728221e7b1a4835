package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

// transpose writes the kernel that copies up to four rows, each depth long, to depth rows of four.
func (f *wasmProgram) transpose() {
	dst, dstRow := f.x("dst"), f.x("dstRow")
	rows := f.rowPointers(f.lanes, f.x("src"), f.x("srcRow"), f.x("rows"))
	f.columns(rows, f.x("depth"), func(_, _ int, column wasm.V) {
		f.StoreV(column, dst, 0)
		dst.AdvanceBy(dstRow)
	})
	f.Return()
}

// gemvTransposed writes the kernel for a single contiguous row of A and contiguous columns of B.
// See the version for amd64.
func (f *wasmProgram) gemvTransposed() {
	args := newArguments(f, tileArg)
	field := func(name string) wasm.X { return args.field(name).(wasm.X) }
	c, last, a := field("c"), field("last"), field("a")
	rest := last.Plus(-f.lanes) // columns of the second vector
	both := rest.AtLeast(1)
	sums := f.Zeros(f.tiling().groups)
	sums[0].Set(f.readAt(c, 0, &last))
	f.If(both, func() { sums[1].Set(f.readAt(c, 1, &rest)) })
	rows := f.rowPointers(len(sums)*f.lanes, field("b"), field("bRow"), last.Copy())
	f.columns(rows, field("depth"), func(g, k int, column wasm.V) {
		sums[g].Accumulate(f.LoadSplat(a, 4*k).Mul(column))
	}, a)
	zero := f.Zero() // turns -0 into 0
	f.writeAt(sums[0].Add(zero), c, 0, &last)
	f.If(both, func() { f.writeAt(sums[1].Add(zero), c, 1, &rest) })
	f.Return()
}

// rowPointers returns pointers to n rows. If there are fewer, the last row replaces the missing
// ones, whose results are not used.
func (f *wasmProgram) rowPointers(n int, first, distance, rows wasm.X) []wasm.X {
	all := []wasm.X{first}
	for i := 1; i < n; i++ {
		next := all[i-1].Copy()
		f.If(rows.AtLeast(i+1), func() { next.AdvanceBy(distance) })
		all = append(all, next)
	}
	return all
}

// columns writes the loops that transpose groups of four rows: four steps of each at a time, and
// then single steps. It calls use for column k of each group g, and advances the pointers to the
// rows and those in along.
func (f *wasmProgram) columns(rows []wasm.X, depth wasm.X, use func(g, k int, column wasm.V), along ...wasm.X) {
	along = append(along, rows...)
	block := func(steps int) {
		for g := range len(rows) / f.lanes {
			f.Scope(func() {
				four := rows[g*f.lanes:][:f.lanes]
				// the last steps of a row are read element by element: a vector would reach beyond its end
				if steps == 1 {
					v := f.LoadOne(four[0], 0)
					for i := 1; i < f.lanes; i++ {
						v = f.LoadLane(v, i, four[i], 0)
					}
					use(g, 0, v)
					return
				}
				var square []wasm.V
				for _, p := range four {
					square = append(square, f.readAt(p, 0, nil))
				}
				for k, c := range transposed(square) {
					use(g, k, c)
				}
			})
		}
		for _, p := range along {
			p.Advance(4 * steps)
		}
	}
	f.whole(depth, f.lanes, func() { block(f.lanes) })
	f.whole(depth, 1, func() { block(1) })
}

// transposed returns the columns of a square of four rows.
func transposed(r []wasm.V) []wasm.V {
	low := []wasm.V{r[0].Shuffle(r[1], 0, 4, 1, 5), r[2].Shuffle(r[3], 0, 4, 1, 5)}
	high := []wasm.V{r[0].Shuffle(r[1], 2, 6, 3, 7), r[2].Shuffle(r[3], 2, 6, 3, 7)}
	return []wasm.V{
		low[0].Shuffle(low[1], 0, 1, 4, 5), low[0].Shuffle(low[1], 2, 3, 6, 7),
		high[0].Shuffle(high[1], 0, 1, 4, 5), high[0].Shuffle(high[1], 2, 3, 6, 7),
	}
}
