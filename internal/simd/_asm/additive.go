package main

// Sizes and constants that package simd also defines: see additive.go there.
const (
	additiveRows  = 4 // queries at a time
	additiveKeyIn = 25.25
	additiveKeyBy = 1.0 / (1 << 13)
)

// additiveExp writes the kernel for E and F. It reports whether no x was clamped. A NaN counts as
// clamped.
func additiveExp(p program) {
	dst, x := p.pointer("dst"), p.pointer("x")
	high, factor, low, moved := p.broadcast("limit"), p.broadcast("factor"), p.zero(), p.zero()
	p.sub(low, low, high)
	exp := exponential(p)
	p.along("n", dst, x).each(1, func(s step) {
		v, change := s.load(x), p.vec()
		c := p.limited(v, high, low)
		p.sub(change, v, c)
		p.or(moved, moved, change)
		p.add(c, c, c)
		c = exp(c)
		p.mul(c, c, factor)
		s.store(c, dst)
	})
	p.returnNone(moved)
}

// additiveKeys writes the kernel that computes G and w·G for a panel of keys. A row of the panel
// has room for both, and contains k in the place of G. A NaN stays NaN.
func additiveKeys(p program) {
	panel, w, width := p.pointer("panel"), p.pointer("w"), p.impl().additive
	high, twice := p.number(additiveKeyIn), p.number(2*additiveKeyIn)
	minusTwo, factor := p.constant(-2), p.constant(additiveKeyBy)
	exp := exponential(p)
	p.repeat(p.pointer("h"), func() {
		wf, at := p.load(w, 0), p.place(panel)
		p.repeat(p.pointer("vectors"), func() {
			v := p.read(at, 0, nil)
			p.atMost(v, high)
			p.mul(v, v, minusTwo) // which is exact, and makes a lower limit another upper one
			p.atMost(v, twice)
			v = exp(v)
			p.mul(v, v, factor)
			p.write(v, at, 0, nil)
			p.mul(v, wf, v)
			p.write(v, at, width/p.impl().lanes, nil)
			p.move(4*p.impl().lanes, at)
		})
		p.move(8*width, panel)
		p.move(4, w)
	})
	p.end()
}

// additiveTile returns the kernel for the scores of up to additiveRows queries and the given number
// of vectors of keys.
func additiveTile(vectors int) func(p program) {
	return func(p program) {
		args := newArguments(p, scoreArg)
		panel, pairs := args.field("panel"), args.field("pairs")
		width := p.impl().additive / p.impl().lanes // in vectors
		addQuotient := p.quotients()
		args.eachHeight(additiveRows, func(rows int) {
			e := p.rows(args.field("e"), args.field("eRow"), rows)
			tile := zeros(p, rows, vectors)
			p.repeat(pairs, func() {
				// WebAssembly has registers for one vector of keys at a time
				group := p.by(vectors, vectors, 1)
				for start := 0; start < vectors; start += group {
					p.scope(func() {
						// g and w are G and w·G of two features.
						var g, w [2][]vec
						for v := range group {
							for f := range 2 {
								at := 2*width*f + start + v
								g[f], w[f] = append(g[f], p.read(panel, at, nil)), append(w[f], p.operand(panel, at+width))
							}
						}
						for r := range rows {
							p.scope(func() {
								e0, e1 := p.load(e[r], 0), p.load(e[r], 1)
								for v := range group {
									p.scope(func() {
										// w0·G0/t0 + w1·G1/t1 with one reciprocal for both.
										t0, t1, n := p.vec(), p.vec(), p.vec()
										p.add(t0, e0, g[0][v])
										p.add(t1, e1, g[1][v])
										p.mul(n, t1, w[0][v])
										p.addProduct(n, t0, w[1][v])
										p.mul(t0, t1, t0)
										addQuotient(tile[r][start+v], n, t0)
									})
								}
							})
						}
					})
				}
				p.moveRows(8, e)
				p.move(2*8*p.impl().additive, panel)
			})
			factor, sum := args.spread("factor"), args.spread("sum")
			for _, row := range tile {
				for v := range row {
					row[v] = p.mulAdd(row[v], factor, p.spare(sum))
				}
			}
			args.storeTile(tile)
			p.end()
		})
	}
}

// additiveTileGrad writes the kernel for the gradients of up to additiveRows queries and any number
// of keys, for one vector of features.
func additiveTileGrad(p program) {
	args := newArguments(p, gradArg)
	row, one, half := args.field("row"), p.number(1), p.constant(0.5)
	oneMinusInverse := p.inverses(one)
	args.eachHeight(additiveRows, func(rows int) {
		dq, dw := readRows(p, args.field("dq"), row, rows), readRows(p, args.field("dw"), row, rows)
		e := operandRows(p, args.field("e"), row, rows)
		args.eachKey(rows, func(r int, key, dk, ds vec) {
			x, g := p.copy(half), p.copy(one)
			p.addProduct(x, key, e[r])
			tanh := oneMinusInverse(x)
			p.subProduct(g, tanh, tanh)
			p.addProduct(dq[r], ds, g)
			p.addProduct(dk, ds, g)
			p.addProduct(dw[r], ds, tanh)
		})
		writeRows(p, dq, args.field("dq"), row)
		writeRows(p, dw, args.field("dw"), row)
		p.end()
	})
}
