package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

// transpose writes the kernel that copies up to four rows, each depth long, to depth rows of four.
func (f *neonProgram) transpose() {
	dst, dstRow := f.pointer("dst").(a64.X), f.pointer("dstRow")
	rows := f.rowPointers(f.lanes, f.pointer("src"), f.pointer("srcRow"), f.pointer("rows"))
	f.columns(rows, f.pointer("depth"), func(int, a64.X) {}, func(_, _ int, column a64.V) {
		f.STRQ(column, a64.At(dst, 0))
		f.Do("ADD", dstRow, dst)
	})
	f.Return()
}

// gemvTransposed writes the kernel for a single contiguous row of A and contiguous columns of B.
// See the version for amd64.
func (f *neonProgram) gemvTransposed() {
	field := newArguments(f, tileArg).field
	acc := as[a64.V](f.sums(f.tiling().groups * f.lanes))
	f.eachGroup(field, acc, f.readAt)
	f.Scope(func() {
		rows := f.rowPointers(len(acc)*f.lanes, field("b"), field("bRow"), field("last"))
		a, x := field("a").(a64.X), f.V()
		f.columns(rows, field("depth"), func(steps int, offset a64.X) {
			if steps == 1 {
				f.LDRS(x, a64.Indexed(a, offset))
			} else {
				f.LDRQ(x, a64.Indexed(a, offset))
			}
		}, func(g, k int, column a64.V) { f.FMLALane(acc[g], column, x, k) })
	})
	zero := f.zero().(a64.V) // turns -0 into 0
	for _, v := range acc {
		f.FADD(v, v, zero)
	}
	f.eachGroup(field, acc, f.writeAt)
	f.Return()
}

// eachGroup calls do with every sum and its part of C.
func (f *neonProgram) eachGroup(field func(name string) ptr, acc []a64.V, do func(v a64.V, c a64.Mem, p *part)) {
	f.Scope(func() {
		c, left, end := field("c").(a64.X), field("last").(a64.X), f.NewLabel("groups")
		for g, v := range acc {
			few, next := f.NewLabel("few"), f.NewLabel("next")
			f.Do("CMP", f.lanes, left)
			f.Do("BLT", few)
			do(v, at(c, g), nil)
			f.Do("SUB", f.lanes, left)
			f.Do("JMP", next)
			f.Bind(few)
			f.Do("CBZ", left, end)
			do(v, at(c, g), &part{n: left})
			f.Do("JMP", end)
			f.Bind(next)
		}
		f.Bind(end)
	})
}

// rowPointers returns pointers to n rows. If there are fewer, the last row replaces the missing
// ones, whose results are not used.
func (f *neonProgram) rowPointers(n int, first, distance, rows ptr) []a64.X {
	all := []a64.X{first.(a64.X)}
	for len(all) < n {
		f.Do("SUBS", 1, rows, rows)
		// after the last row the distance is 0, so that the pointers stay at it
		f.Do("CSEL", "LE", "ZR", distance, distance)
		next := f.X()
		f.Do("ADD", distance, all[len(all)-1], next)
		all = append(all, next)
	}
	return all
}

// columns writes the loops that transpose groups of four rows: four steps of each at a time, and
// then single steps. It calls begin with the number of steps and their offset in bytes in the rows,
// and then use for the columns of each group g.
func (f *neonProgram) columns(rows []a64.X, depth ptr, begin func(steps int, offset a64.X),
	use func(g, k int, column a64.V)) {
	offset := f.X()
	f.Do("MOVD", 0, offset)
	f.whole(depth, f.lanes, func() {
		begin(f.lanes, offset)
		for g := range len(rows) / f.lanes {
			f.Scope(func() {
				square := f.Vs(f.lanes)
				for i, v := range square {
					f.LDRQ(v, a64.Indexed(rows[g*f.lanes+i], offset))
				}
				for k, c := range f.transposed(square) {
					use(g, k, c)
				}
			})
		}
		f.Do("ADD", vectorBytes, offset)
	})
	f.whole(depth, 1, func() {
		begin(1, offset)
		for g := range len(rows) / f.lanes {
			f.Scope(func() {
				v, at := f.V(), f.X()
				for i := range f.lanes {
					f.Do("ADD", offset, rows[g*f.lanes+i], at)
					f.LD1(v, i, at)
				}
				use(g, 0, v)
			})
		}
		f.Do("ADD", 4, offset)
	})
}

// transposed returns the columns of a square of four rows.
func (f *neonProgram) transposed(r []a64.V) []a64.V {
	// Squares of two by two floats first, then of pairs: eight instructions, each of which reads two
	// vectors.
	even, odd, columns := f.Vs(2), f.Vs(2), f.Vs(4)
	for i := range 2 {
		f.TRN1(even[i], r[2*i], r[2*i+1])
		f.TRN2(odd[i], r[2*i], r[2*i+1])
	}
	f.TRN1D(columns[0], even[0], even[1])
	f.TRN1D(columns[1], odd[0], odd[1])
	f.TRN2D(columns[2], even[0], even[1])
	f.TRN2D(columns[3], odd[0], odd[1])
	return columns
}
