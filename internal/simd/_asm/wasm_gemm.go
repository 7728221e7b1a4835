package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

// Tiles of four rows by two vectors are 8 sums. With two vectors of B, four elements of A and a
// product they take the 15 registers that V8 uses on amd64: it loads everything that a step needs
// before it multiplies. Higher tiles and loops over several steps of k keep numbers in memory, and
// are a third slower.

// wasmRows returns the height of the largest tile.
func wasmRows(vectors int) int {
	if vectors == 1 {
		return 6
	}
	return 4
}

// wasmGEMM writes the kernel for whole panels of the given number of vectors.
func wasmGEMM(vectors int) func(f *wasmFunc) {
	return func(f *wasmFunc) { f.tiles(wasmPanel{vectors: vectors}) }
}

// wasmGEMMMasked writes the kernel for panels whose last vector is not full.
func wasmGEMMMasked(vectors int) func(f *wasmFunc) {
	return func(f *wasmFunc) { f.tiles(wasmPanel{vectors: vectors, masked: true}) }
}

// wasmGEMMStored writes the kernel for whole panels of stored numbers. The last vector of C may not
// be full.
func wasmGEMMStored(n stored) func(f *wasmFunc) {
	return func(f *wasmFunc) { f.tiles(wasmPanel{vectors: 2, masked: true, stored: &n}) }
}

// A wasmPanel is the state that the code of all tiles of a panel shares.
type wasmPanel struct {
	f       *wasmFunc
	vectors int
	masked  bool    // the last vector of C is a part, and so is the last of B unless it is stored
	stored  *stored // or nil for floats

	args, b, bRow, c, cRow, aRow, aCol wasm.X
	last                               *wasm.X
}

// tiles writes the kernel that computes a column of tiles, one below the other.
func (f *wasmFunc) tiles(p wasmPanel) {
	p.f, p.args = f, f.x("t")
	field := f.fields(p.args, tileArg)
	p.aRow, p.aCol, p.b, p.bRow = field("aRow"), field("aCol"), field("b"), field("bRow")
	p.c, p.cRow = field("c"), field("cRow")
	if p.masked {
		last := field("last")
		p.last = &last
	}
	height := field("rows")
	for rows := wasmRows(p.vectors); rows > 1; rows-- {
		f.If(height.Is(rows), func() { p.column(rows) })
	}
	p.column(1)
}

// column writes the loop over tiles of the given number of rows, and returns.
func (p *wasmPanel) column(rows int) {
	f := p.f
	f.Scope(func() {
		a := []wasm.X{f.Load(p.args, tileArg("a"))} // the addresses of the rows of A
		for r := 1; r < rows; r++ {
			a = append(a, a[r-1].Add(p.aRow))
		}
		f.repeat(f.Load(p.args, tileArg("tiles")), func() {
			f.Scope(func() { p.tile(a) })
			a[0].Set(a[rows-1].Add(p.aRow))
			for r := 1; r < rows; r++ {
				a[r].Set(a[r-1].Add(p.aRow))
			}
		})
		f.Return()
	})
}

// lastOf returns the number of floats of vector v of a row of C, nil for all four.
func (p *wasmPanel) lastOf(v int) *wasm.X {
	if v == p.vectors-1 {
		return p.last
	}
	return nil
}

// tile writes the code for one tile and moves c below it.
func (p *wasmPanel) tile(a []wasm.X) {
	f := p.f
	sums := make([][]wasm.V, len(a))
	for r := range sums {
		sums[r] = f.Zeros(p.vectors) // turns -0 into 0 at the end
	}
	start := f.Load(p.args, tileArg("start"))
	p.start(start, sums)
	depth := f.Load(p.args, tileArg("depth"))
	f.If(depth, func() {
		offset, b := f.Int(0), p.b.Copy()
		f.repeat(depth, func() {
			p.step(sums, a, offset, b)
			offset.AdvanceBy(p.aCol)
			b.AdvanceBy(p.bRow)
		})
	})
	p.finish(start, sums)
}

// step writes a step of k, for the elements at an offset in the rows of A and the row b of the panel.
func (p *wasmPanel) step(sums [][]wasm.V, a []wasm.X, offset, b wasm.X) {
	f := p.f
	y := make([]wasm.V, p.vectors)
	for v := range y {
		switch {
		case p.stored != nil && p.stored.bytes == 2:
			y[v] = f.LoadHalves(b, v*f.lanes*2).ShlInts(16)
		case p.stored != nil && p.stored.bytes == 1:
			y[v] = f.bytes(b, v)
		case p.stored == nil && p.lastOf(v) != nil:
			y[v] = f.Zero()
			from := b.Plus(v * vectorBytes)
			partOf(f.Func, *p.last, func() { y[v].Set(f.load(from, 0, nil)) }, loadingPart(f.Func, from, y[v].Set))
		default:
			y[v] = f.load(b, v, nil)
		}
	}
	for r := range sums {
		f.Scope(func() {
			x := f.LoadSplat(a[r].Add(offset), 0)
			for v, sum := range sums[r] {
				f.Scope(func() { sum.Accumulate(x.Mul(y[v])) })
			}
		})
	}
}

// bytes reads four integers of 8 bits as floats: vector v of a row.
func (f *wasmFunc) bytes(p wasm.X, v int) wasm.V {
	return f.LoadOne(p, v*f.lanes).LowBytes().LowHalves().Floats()
}

// start writes the code that initialises the sums, which are 0.
func (p *wasmPanel) start(start wasm.X, sums [][]wasm.V) {
	f := p.f
	f.If(start.Is(startC), func() {
		c := p.c.Copy()
		for _, row := range sums {
			for v, sum := range row {
				sum.Set(f.load(c, v, p.lastOf(v)))
			}
			c.AdvanceBy(p.cRow)
		}
	})
	f.If(start.Is(startBias), func() {
		bias := f.Load(p.args, tileArg("bias"))
		for v := range p.vectors {
			x := f.load(bias, v, p.lastOf(v))
			for _, row := range sums {
				row[v].Set(x)
			}
		}
	})
}

// finish writes the code that stores the sums, or adds them to C if start says so, and moves c
// below the tile. Adding 0 turns -0 into 0.
func (p *wasmPanel) finish(start wasm.X, sums [][]wasm.V) {
	f := p.f
	f.IfElse(start.Is(startAdd), func() {
		c := p.c.Copy()
		for _, row := range sums {
			for v, sum := range row {
				sum.Accumulate(f.load(c, v, p.lastOf(v)))
			}
			c.AdvanceBy(p.cRow)
		}
	}, func() {
		zero := f.Zero()
		for _, row := range sums {
			for _, sum := range row {
				sum.Accumulate(zero)
			}
		}
	})
	for _, row := range sums {
		for v, sum := range row {
			f.store(sum, p.c, v, p.lastOf(v))
		}
		p.c.AdvanceBy(p.cRow)
	}
}
