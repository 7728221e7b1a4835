package main

// Values of tileArg("start").
const (
	startZero = iota
	startBias
	startC
	startAdd
)

// gemm returns the kernel for panels of the given number of vectors. Loading with a mask costs
// nothing on AVX-512. Elsewhere it does, so full panels have separate kernels.
func gemm(vectors int) func(p program) {
	return func(p program) {
		t := newTiles(p, vectors)
		if p.impl() == avx512 {
			t.last = p.first(t.field("last"))
		}
		t.write()
	}
}

// gemmMasked returns the kernel for panels whose last vector is not full.
func gemmMasked(vectors int) func(p program) {
	return func(p program) {
		t := newTiles(p, vectors)
		t.last = p.few(t.field("last"))
		t.write()
	}
}

// gemmStored returns the kernel for whole panels of stored numbers, as in a KV cache. They are
// converted to floats in registers: they are read only once, so copying them would cost more than
// the products. The last vector of C may not be full, except on AVX2.
func gemmStored(n stored) func(p program) {
	return func(p program) {
		t := newTiles(p, p.impl().panel/p.impl().lanes)
		t.stored = &n
		if p.impl() != avx2 {
			t.last = p.first(t.field("last"))
		}
		t.write()
	}
}

// gemmPairs is gemm for pairs of bfloat16, each in the place of a float. With stream, panels are whole, and are read
// once and from memory instead of a cache.
func gemmPairs(vectors int, stream bool) code {
	return only(avx512, func(p avxProgram) {
		t := newTiles(p, vectors)
		t.pairs = true
		if stream {
			t.stored = &float32s
		}
		t.last = p.first(t.field("last"))
		t.write()
	})
}

// tiles computes a column of tiles, one below the other. Its fields are the state that the code of
// all tiles shares.
type tiles struct {
	arguments
	vectors int     // of a row of a tile
	stored  *stored // or nil for floats
	pairs   bool    // of bfloat16 instead of floats
	last    extent  // of the last vector of C, and of B unless it is stored

	a, aRow, aCol, b, bRow, c, cRow ptr
	product
}

func newTiles(p program, vectors int) *tiles {
	return &tiles{arguments: newArguments(p, tileArg), vectors: vectors}
}

// A product is the code of a tile that depends on registers and special instructions: its loop over
// k.
type product interface {
	begin(rows int)     // starts with tiles of this number of rows
	steps(sums [][]vec) // adds the products to the sums
	below()             // moves to the rows of A of the tile below
}

// write writes the kernel.
func (t *tiles) write() {
	t.a, t.aRow, t.aCol = t.field("a"), t.field("aRow"), t.field("aCol")
	t.b, t.bRow = t.field("b"), t.field("bRow")
	t.c, t.cRow = t.field("c"), t.field("cRow")
	count := t.field("tiles")
	t.product = t.p.product(t)
	most := t.p.impl().tiling().rows
	if t.vectors == 1 {
		most = t.p.impl().tiling().narrow
	}
	t.eachHeight(most, func(rows int) {
		t.begin(rows)
		t.p.repeat(count, func() {
			t.p.scope(func() { t.tile(rows) })
			t.below()
		})
		t.p.end()
	})
}

// part returns the lanes of vector v of a row.
func (t *tiles) part(v int) extent {
	if v == t.vectors-1 {
		return t.last
	}
	return nil
}

// tile writes the code for one tile and moves c below it.
func (t *tiles) tile(rows int) {
	sums := make([][]vec, rows)
	for r := range sums {
		for range t.vectors {
			sums[r] = append(sums[r], t.p.vec())
		}
	}
	t.start(sums)
	t.p.scope(func() { t.steps(sums) })
	t.finish(sums)
}

// start writes the code that initialises the sums.
func (t *tiles) start(sums [][]vec) {
	p := t.p
	p.ifElse(t.is("start", startC), func() {
		c := p.place(t.c)
		for r, row := range sums {
			for v := range row {
				p.readInto(row[v], c, v, t.part(v))
			}
			if r < len(sums)-1 {
				p.advance(c, t.cRow)
			}
		}
	}, func() {
		p.ifElse(t.is("start", startBias), func() {
			bias := t.field("bias")
			for v, first := range sums[0] {
				p.readInto(first, bias, v, t.part(v))
				for _, row := range sums[1:] {
					p.set(row[v], first)
				}
			}
		}, func() {
			for _, row := range sums {
				p.clear(row)
			}
		})
	})
}

// finish writes the code that stores the sums, or adds them to C if start says so, and moves c
// below the tile.
func (t *tiles) finish(sums [][]vec) {
	p := t.p
	store := func(addend func(v int) vec) {
		for _, row := range sums {
			for v, sum := range row {
				p.scope(func() {
					p.add(sum, sum, addend(v))
					p.write(sum, t.c, v, t.part(v))
				})
			}
			p.advance(t.c, t.cRow)
		}
	}
	p.ifElse(t.isNot("start", startAdd), func() {
		zero := p.zero() // turns -0 into 0
		store(func(int) vec { return zero })
	}, func() {
		store(func(v int) vec { return p.read(t.c, v, t.part(v)) })
	})
}
