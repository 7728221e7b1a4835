package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

// Tiles of six rows by four vectors are 24 sums. Six registers contain four steps of k for each row
// of A. Their lanes are multiplied with vectors of B that stream through two registers. These are
// all 32 registers. Four steps of k take 22 loads and 96 multiply-adds, fewer loads than tiles of 8
// by 12. If A is not contiguous along k, every step takes six more loads.

// neonGEMM writes the kernel for whole panels of the given number of vectors.
func neonGEMM(vectors int) func(f *neonFunc) {
	return func(f *neonFunc) { f.tiles(neonPanel{vectors: vectors}) }
}

// neonGEMMMasked writes the kernel for panels whose last vector is not full.
func neonGEMMMasked(vectors int) func(f *neonFunc) {
	return func(f *neonFunc) { f.tiles(neonPanel{vectors: vectors, masked: true}) }
}

// neonGEMMStored writes the kernel for whole panels of stored numbers. The last vector of C may not
// be full.
func neonGEMMStored(n stored) func(f *neonFunc) {
	return func(f *neonFunc) { f.tiles(neonPanel{vectors: 4, masked: true, stored: &n}) }
}

// A neonPanel is the state that the code of all tiles of a panel shares.
type neonPanel struct {
	f       *neonFunc
	vectors int
	masked  bool    // the last vector of C is a part, and so is the last of B unless it is stored
	stored  *stored // or nil for floats

	args, b, bRow, c, cRow, aRow, aCol, tiles a64.X
	last                                      *part
}

func (f *neonFunc) field(args a64.X, offset int) a64.X {
	x := f.X()
	f.Do("MOVD", a64.At(args, offset), x)
	return x
}

// fields returns a function that loads the fields of the arguments at args, which have the given
// layout.
func (f *neonFunc) fields(args a64.X, layout func(field string) int) func(name string) a64.X {
	return func(name string) a64.X { return f.field(args, layout(name)) }
}

// tiles writes the kernel that computes a column of tiles, one below the other.
func (f *neonFunc) tiles(p neonPanel) {
	p.f, p.args = f, f.pointer("t")
	p.aRow, p.aCol = f.field(p.args, tileArg("aRow")), f.field(p.args, tileArg("aCol"))
	p.b, p.bRow = f.field(p.args, tileArg("b")), f.field(p.args, tileArg("bRow"))
	p.c, p.cRow = f.field(p.args, tileArg("c")), f.field(p.args, tileArg("cRow"))
	p.tiles = f.field(p.args, tileArg("tiles"))
	if p.masked {
		p.last = &part{f.field(p.args, tileArg("last")), p.stored != nil}
	}
	for rows := maxRows(p.vectors); rows > 1; rows-- {
		next := f.NewLabel("rows")
		f.Scope(func() { f.Do("CMP", rows, f.field(p.args, tileArg("rows"))) })
		f.Do("BNE", next)
		p.column(rows)
		f.Bind(next)
	}
	p.column(1)
}

// column writes the loop over tiles of the given number of rows.
func (p *neonPanel) column(rows int) {
	f := p.f
	f.Scope(func() {
		a := make([]a64.X, rows) // the addresses of the rows of A
		a[0] = f.field(p.args, tileArg("a"))
		for r := 1; r < rows; r++ {
			a[r] = f.X()
			f.Do("ADD", p.aRow, a[r-1], a[r])
		}
		f.repeat("tile", p.tiles, func() {
			f.Scope(func() { p.tile(a) })
			f.Do("ADD", p.aRow, a[rows-1], a[0])
			for r := 1; r < rows; r++ {
				f.Do("ADD", p.aRow, a[r-1], a[r])
			}
		})
		f.Return()
	})
}

// partOf returns the part of vector v of a row of C, nil for all of it.
func (p *neonPanel) partOf(v int) *part {
	if v == p.vectors-1 {
		return p.last
	}
	return nil
}

// tile writes the code for one tile and moves c below it.
func (p *neonPanel) tile(a []a64.X) {
	f := p.f
	acc := make([][]a64.V, len(a))
	for r := range acc {
		acc[r] = f.Vs(p.vectors)
	}
	p.start(acc)
	x := f.Vs(len(a))
	done := f.NewLabel("sums")
	f.Scope(func() {
		s := neonSteps{p, acc, a, x, f.Vs(2), f.X(), f.X(), f.X()}
		f.Do("MOVD", p.b, s.b)
		f.Do("MOVD", 0, s.offset)
		f.Do("MOVD", a64.At(p.args, tileArg("depth")), s.depth)
		f.Do("CBZ", s.depth, done)
		if !p.masked || p.stored != nil {
			s.four(done)
		}
		s.single()
	})
	f.Bind(done)
	p.finish(acc, x[0])
}

// finish writes the code that stores the sums, or adds them to C if start says so, and moves c
// below the tile. It overwrites x.
func (p *neonPanel) finish(acc [][]a64.V, x a64.V) {
	f := p.f
	add, end := f.NewLabel("add"), f.NewLabel("end")
	store := func(addend func(v int)) {
		for r := range acc {
			for v, sum := range acc[r] {
				addend(v)
				f.FADD(sum, sum, x)
				f.store(sum, at(p.c, v), p.partOf(v))
			}
			f.Do("ADD", p.cRow, p.c)
		}
	}
	f.Scope(func() { f.Do("CMP", startAdd, f.field(p.args, tileArg("start"))) })
	f.Do("BEQ", add)
	f.Clear(x) // turns -0 into 0
	store(func(int) {})
	f.Do("JMP", end)
	f.Bind(add)
	store(func(v int) { f.load(x, at(p.c, v), p.partOf(v)) })
	f.Bind(end)
}

// neonSteps are the steps of k of a tile.
type neonSteps struct {
	p                *neonPanel
	acc              [][]a64.V
	a                []a64.X // rows of A
	x                []a64.V // the loaded elements of each row
	y                []a64.V // the vectors of B in use
	b, offset, depth a64.X
}

// four writes the loop over four steps at a time, for rows of A that are contiguous. If no steps
// are left, it jumps to done.
func (s *neonSteps) four(done a64.Label) {
	f := s.p.f
	loop, few, single := f.NewLabel("four"), f.NewLabel("few"), f.NewLabel("scattered")
	f.Do("CMP", 4, s.p.aCol)
	f.Do("BNE", single)
	f.Do("SUBS", 4, s.depth, s.depth)
	f.Do("BLT", few)
	f.Bind(loop)
	for r, a := range s.a {
		f.LDRQ(s.x[r], a64.Indexed(a, s.offset))
	}
	for k := range 4 {
		s.step(k)
	}
	f.Do("ADD", 16, s.offset)
	f.Do("SUBS", 4, s.depth, s.depth)
	f.Do("BGE", loop)
	f.Bind(few)
	f.Do("ADDS", 4, s.depth, s.depth)
	f.Do("BEQ", done)
	f.Bind(single)
}

// single writes the loop over single steps.
func (s *neonSteps) single() {
	f, loop := s.p.f, s.p.f.NewLabel("step")
	f.Bind(loop)
	for r, a := range s.a {
		f.LDRS(s.x[r], a64.Indexed(a, s.offset))
	}
	s.step(0)
	f.Do("ADD", s.p.aCol, s.offset)
	f.countDown(s.depth, loop)
}

// step writes a step of k, whose elements of A are in the given lane of x.
func (s *neonSteps) step(lane int) {
	p, f := s.p, s.p.f
	for v := range p.vectors {
		y := s.y[v%2]
		switch {
		case p.stored == nil:
			f.load(y, at(s.b, v), p.partOf(v))
		default:
			f.widen(*p.stored, y, a64.At(s.b, v*f.lanes*p.stored.bytes))
		}
		for r := range s.acc {
			f.FMLALane(s.acc[r][v], y, s.x[r], lane)
		}
	}
	f.Do("ADD", p.bRow, s.b)
}

// start writes the code that initialises the sums.
func (p *neonPanel) start(acc [][]a64.V) {
	f := p.f
	f.Scope(func() {
		notC, notBias, done := f.NewLabel("notC"), f.NewLabel("notBias"), f.NewLabel("begin")
		how := f.field(p.args, tileArg("start"))
		f.Do("CMP", startC, how)
		f.Do("BNE", notC)
		c := f.X()
		f.Do("MOVD", p.c, c)
		for r := range acc {
			for v := range acc[r] {
				f.load(acc[r][v], at(c, v), p.partOf(v))
			}
			if r < len(acc)-1 {
				f.Do("ADD", p.cRow, c)
			}
		}
		f.Do("JMP", done)
		f.Bind(notC)
		f.Do("CMP", startBias, how)
		f.Do("BNE", notBias)
		bias := c
		f.Do("MOVD", a64.At(p.args, tileArg("bias")), bias)
		for v := range p.vectors {
			f.load(acc[0][v], at(bias, v), p.partOf(v))
			for _, row := range acc[1:] {
				f.MOV(row[v], acc[0][v])
			}
		}
		f.Do("JMP", done)
		f.Bind(notBias)
		for _, row := range acc {
			for _, v := range row {
				f.Clear(v)
			}
		}
		f.Bind(done)
	})
}

// widen reads a vector of stored numbers as floats.
func (f *neonFunc) widen(n stored, v a64.V, from a64.Mem) {
	if n.bytes == 2 {
		f.LDRD(v, from)
		f.SHLL(v, v)
		return
	}
	f.LDRS(v, from)
	f.SSHLLB(v, v)
	f.SSHLLH(v, v)
	f.SCVTF(v, v)
}
