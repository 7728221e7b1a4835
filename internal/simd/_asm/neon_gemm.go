package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

// neonProduct is a product of tiles of up to six rows by four vectors, which are 24 sums. Six
// registers contain four steps of k for each row of A. Their lanes are multiplied with vectors of B
// that stream through two registers. These are all 32 registers. Four steps of k take 22 loads and 96
// multiply-adds, fewer loads than tiles of 8 by 12. If A is not contiguous along k, every step takes
// six more loads.
type neonProduct struct {
	*neonProgram
	t *tiles
	a []a64.X // the rows of A

	// The current step.
	x                []a64.V // the loaded elements of each row
	y                []a64.V // the vectors of B in use
	b, offset, depth a64.X
}

func (f *neonProgram) product(t *tiles) product { return &neonProduct{neonProgram: f, t: t} }

func (p *neonProduct) begin(rows int) {
	p.a = []a64.X{p.t.a.(a64.X)}
	for len(p.a) < rows {
		p.a = append(p.a, p.X())
	}
	p.others()
}

func (p *neonProduct) below() {
	p.Do("ADD", p.t.aRow, p.a[len(p.a)-1], p.a[0])
	p.others()
}

// others sets the rows after the first.
func (p *neonProduct) others() {
	for r := 1; r < len(p.a); r++ {
		p.Do("ADD", p.t.aRow, p.a[r-1], p.a[r])
	}
}

func (p *neonProduct) steps(sums [][]vec) {
	done := p.NewLabel("sums")
	p.x, p.y = p.Vs(len(sums)), p.Vs(2)
	p.b, p.offset, p.depth = p.X(), p.X(), p.X()
	p.Do("MOVD", p.t.b, p.b)
	p.Do("MOVD", 0, p.offset)
	p.Do("MOVD", a64.At(p.t.t.(a64.X), tileArg("depth")), p.depth)
	p.Do("CBZ", p.depth, done)
	if p.t.last == nil || p.t.stored != nil {
		p.four(sums, done)
	}
	p.single(sums)
	p.Bind(done)
}

// four writes the loop over four steps at a time, for rows of A that are contiguous. If no steps
// are left, it jumps to done.
func (p *neonProduct) four(sums [][]vec, done a64.Label) {
	loop, few, single := p.NewLabel("four"), p.NewLabel("few"), p.NewLabel("scattered")
	// only contiguous rows have four steps in a vector
	p.Do("CMP", 4, p.t.aCol)
	p.Do("BNE", single)
	p.Do("SUBS", 4, p.depth, p.depth)
	p.Do("BLT", few)
	p.Bind(loop)
	for r, a := range p.a {
		p.LDRQ(p.x[r], a64.Indexed(a, p.offset))
	}
	for k := range 4 {
		p.step(sums, k)
	}
	p.Do("ADD", 16, p.offset)
	p.Do("SUBS", 4, p.depth, p.depth)
	p.Do("BGE", loop)
	p.Bind(few)
	p.Do("ADDS", 4, p.depth, p.depth)
	p.Do("BEQ", done)
	p.Bind(single)
}

// single writes the loop over single steps.
func (p *neonProduct) single(sums [][]vec) {
	loop := p.NewLabel("step")
	p.Bind(loop)
	for r, a := range p.a {
		p.LDRS(p.x[r], a64.Indexed(a, p.offset))
	}
	p.step(sums, 0)
	p.Do("ADD", p.t.aCol, p.offset)
	p.countDown(p.depth, loop)
}

// step writes a step of k, whose elements of A are in the given lane of x.
func (p *neonProduct) step(sums [][]vec, lane int) {
	for v := range p.t.vectors {
		// two registers in turn, so that a load does not wait for the products with the vector before
		y := p.y[v%2]
		if p.t.stored == nil {
			last, _ := p.t.part(v).(*part)
			p.readAt(y, at(p.b, v), last)
		} else {
			p.widenAt(*p.t.stored, y, a64.At(p.b, v*p.lanes*p.t.stored.bytes))
		}
		for r := range sums {
			p.FMLALane(sums[r][v].(a64.V), y, p.x[r], lane)
		}
	}
	p.Do("ADD", p.t.bRow, p.b)
}

// widenAt reads a vector of stored numbers as floats.
func (f *neonProgram) widenAt(n stored, v a64.V, from a64.Mem) {
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
