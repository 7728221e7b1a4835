package main

func sumRows(p program) {
	dst, x, stride := p.pointer("dst"), p.pointer("x"), p.floats("stride")
	l := p.along("n", dst, x)
	l.blocks(p.by(4, 8, 4), func(vectors int, e extent) {
		// A block of columns passes all rows before the next one, so that its sums stay in registers.
		to, row := l.at(dst), p.place(l.at(x))
		sums := readAll(p, to, vectors, e)
		eachRow(p, func() {
			for i, v := range sums {
				p.add(v, v, p.read(row, i, e))
			}
			p.advance(row, stride)
		})
		writeAll(p, sums, to, e)
	})
	p.end()
}

func copyRows(p program) { toRows(p, false) }

func addRows(p program) { toRows(p, true) }

// toRows writes the loop that copies rows, or adds them to others.
func toRows(p program, sum bool) {
	dst, x := p.pointer("dst"), p.pointer("x")
	dstStride, stride := p.floats("dstStride"), p.floats("stride")
	l := p.along("n", dst, x)
	l.blocks(4, func(vectors int, e extent) {
		to, row := p.place(l.at(dst)), p.place(l.at(x))
		eachRow(p, func() {
			for i := range vectors {
				v := p.read(row, i, e)
				if sum {
					p.add(v, v, p.read(to, i, e))
				}
				p.write(v, to, i, e)
			}
			p.advance(to, dstStride)
			p.advance(row, stride)
		})
	})
	p.end()
}

func normGains(p program) {
	dgain, dshift, dy, x := p.pointer("dgain"), p.pointer("dshift"), p.pointer("dy"), p.pointer("x")
	zero, stride, l := p.zero(), p.floats("stride"), p.along("n", dgain, dshift, dy, x)
	l.blocks(p.by(4, 4, 2), func(vectors int, e extent) {
		gains, shifts := readAll(p, l.at(dgain), vectors, e), readAll(p, l.at(dshift), vectors, e)
		dyRow, xRow := p.place(l.at(dy)), p.place(l.at(x))
		mean, inv := p.place(p.pointer("mean")), p.place(p.pointer("inv"))
		eachRow(p, func() {
			u := unit{p, p.load(mean, 0), p.load(inv, 0)}
			for i := range gains {
				p.scope(func() {
					v, d := p.read(xRow, i, e), p.read(dyRow, i, e)
					u.apply(v)
					// an upstream gradient of 0 contributes nothing, even if x is infinite
					p.keep(p.nonzero(d, zero), v)
					p.add(shifts[i], shifts[i], d)
					p.addProduct(gains[i], v, d)
				})
			}
			p.advance(dyRow, stride)
			p.advance(xRow, stride)
			p.move(4, mean, inv)
		})
		writeAll(p, gains, l.at(dgain), e)
		writeAll(p, shifts, l.at(dshift), e)
	})
	p.end()
}

// readAll reads vectors, one after the other.
func readAll(p program, x ptr, vectors int, e extent) []vec {
	all := make([]vec, vectors)
	for i := range all {
		all[i] = p.read(x, i, e)
	}
	return all
}

// writeAll writes vectors, one after the other.
func writeAll(p program, all []vec, x ptr, e extent) {
	for i, v := range all {
		p.write(v, x, i, e)
	}
}
