package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

// wasmProduct is a product of tiles of up to four rows by two vectors, which are 8 sums. With two
// vectors of B, four elements of A and a product they take the 15 registers that V8 uses on amd64: it
// loads everything that a step needs before it multiplies. Higher tiles and loops over several steps
// of k keep numbers in memory, and are a third slower.
type wasmProduct struct {
	*wasmProgram
	t *tiles
	a []wasm.X // the rows of A
}

func (f *wasmProgram) product(t *tiles) product { return &wasmProduct{wasmProgram: f, t: t} }

func (p *wasmProduct) begin(rows int) {
	p.a = []wasm.X{p.t.a.(wasm.X).Copy()}
	for r := 1; r < rows; r++ {
		p.a = append(p.a, p.a[r-1].Add(p.t.aRow.(wasm.X)))
	}
}

func (p *wasmProduct) below() {
	above := p.a[len(p.a)-1]
	for _, a := range p.a {
		a.Set(above.Add(p.t.aRow.(wasm.X)))
		above = a
	}
}

func (p *wasmProduct) steps(sums [][]vec) {
	depth := p.Load(p.t.t.(wasm.X), tileArg("depth"))
	p.If(depth, func() {
		offset, b := p.Int(0), p.t.b.(wasm.X).Copy()
		p.repeat(depth, func() {
			p.step(sums, offset, b)
			offset.AdvanceBy(p.t.aCol.(wasm.X))
			b.AdvanceBy(p.t.bRow.(wasm.X))
		})
	})
}

// step writes a step of k, for the elements at an offset in the rows of A and the row b of the panel.
func (p *wasmProduct) step(sums [][]vec, offset, b wasm.X) {
	y := make([]wasm.V, p.t.vectors)
	for v := range y {
		last, partly := p.t.part(v).(*wasm.X)
		switch {
		case p.t.stored != nil && p.t.stored.bytes < 4:
			y[v] = p.widen(*p.t.stored, b, v).(wasm.V)
		case p.t.stored == nil && partly:
			y[v] = p.Zero()
			from := b.Plus(v * vectorBytes)
			partOf(p.Func, *last, func() { y[v].Set(p.readAt(from, 0, nil)) }, loadingPart(p.Func, from, y[v].Set))
		default:
			y[v] = p.readAt(b, v, nil)
		}
	}
	for r := range sums {
		p.Scope(func() {
			x := p.LoadSplat(p.a[r].Add(offset), 0)
			for v, sum := range sums[r] {
				p.Scope(func() { sum.(wasm.V).Accumulate(x.Mul(y[v])) })
			}
		})
	}
}
