package main

func sumSquaresAbout(p program) {
	x, mean, sums := p.pointer("x"), p.broadcast("mean"), p.sums(sumLanes)
	sumSquares(p, p.along("n", x), x, mean, sums)
	p.returnSums(sums)
}

// sumSquares writes the loop that adds (x-mean)² to the sums.
func sumSquares(p program, l loop, x ptr, mean vec, sums []vec) {
	l.inLanes(len(sums), func(i int, s step) {
		v := s.load(x)
		p.sub(v, v, mean)
		s.keep(v)
		p.addProduct(sums[i], v, v)
	})
}

func norm(p program) {
	dst, x, gain, shift := p.pointer("dst"), p.pointer("x"), p.pointer("gain"), p.pointer("shift")
	newUnit(p).normalise(p.along("n", dst, x, gain, shift), dst, x, gain, shift)
	p.end()
}

// normalise writes the loop that sets dst = gain·u + shift.
func (u unit) normalise(l loop, dst, x, gain, shift ptr) {
	l.each(2, func(s step) {
		v, g, y := s.load(x), s.load(gain), s.load(shift)
		u.apply(v)
		u.p.addProduct(y, g, v)
		s.store(y, dst)
	})
}

func normSums(p program) {
	dy, x, gain := p.pointer("dy"), p.pointer("x"), p.pointer("gain")
	u, flat, along := newUnit(p), p.sums(32), p.sums(32)
	u.sums(p.along("n", dy, x, gain), dy, x, gain, flat, along, nil)
	p.returnSums(flat, along)
}

// sums writes the loop that adds gain·dy to flat and gain·dy·u to along. If seen is not nil, the
// loop ORs the bits of dy into it.
func (u unit) sums(l loop, dy, x, gain ptr, flat, along []vec, seen vec) {
	l.inLanes(len(flat), func(i int, s step) {
		v, g, d := s.load(x), s.load(gain), s.load(dy)
		if seen != nil {
			u.p.or(seen, seen, d)
		}
		u.apply(v)
		u.p.mul(g, g, d)
		u.p.add(flat[i], flat[i], g)
		u.p.addProduct(along[i], g, v)
	})
}

func normGrad(p program) {
	dx, dy, x, gain := p.pointer("dx"), p.pointer("dy"), p.pointer("x"), p.pointer("gain")
	u, flat, along := newUnit(p), p.broadcast("flat"), p.broadcast("along")
	u.gradient(p.along("n", dx, dy, x, gain), dx, dy, x, gain, flat, along)
	p.end()
}

// gradient writes the loop that adds inv·(gain·dy - flat - along·u) to dx.
func (u unit) gradient(l loop, dx, dy, x, gain ptr, flat, along vec) {
	l.each(u.p.by(2, 2, 1), func(s step) {
		v, g, d, sum := s.load(x), s.load(gain), s.load(dy), s.load(dx)
		u.apply(v)
		g = u.p.mulSub(g, d, flat)
		u.p.subProduct(g, v, along)
		u.p.addProduct(sum, g, u.inv)
		s.store(sum, dx)
	})
}

// layerNorm writes the normalisation of several short rows, one after the other. While the sums of
// one row wait for each other, the processor starts with the next row.
func layerNorm(p program) {
	size, eps, one := p.broadcast("size"), p.broadcast("eps"), p.number(1)
	dst, x, gain, shift := p.pointer("dst"), p.pointer("x"), p.pointer("gain"), p.pointer("shift")
	mean, inv := p.pointer("mean"), p.pointer("inv")
	eachRow(p, func() {
		sums := p.sums(32)
		p.along("d", x).inLanes(len(sums), func(i int, s step) { p.add(sums[i], sums[i], s.load(x)) })
		u := unit{p: p, mean: p.meanOf(sums, size, mean)}
		p.clear(sums)
		// about the mean, in a second pass: Σx² - mean² would cancel
		sumSquares(p, p.along("d", x), x, u.mean, sums)
		u.inv = p.inverseOf(sums, size, eps, one, inv)
		u.normalise(p.along("d", dst, x, gain, shift), dst, x, gain, shift)
		p.advanceBy("d", x, dst)
		p.move(4, mean, inv)
	})
	p.end()
}

// layerNormGrad writes the gradient of layerNorm with respect to x.
func layerNormGrad(p program) {
	size := p.broadcast("size")
	dx, dy, x, gain := p.pointer("dx"), p.pointer("dy"), p.pointer("x"), p.pointer("gain")
	mean, inv := p.pointer("mean"), p.pointer("inv")
	eachRow(p, func() {
		u := unit{p, p.load(mean, 0), p.load(inv, 0)}
		// A row whose dy is all zero adds nothing, not even where x is infinite and 0·Inf would be NaN:
		// seen has its bits.
		flat, along, seen := p.sums(32), p.sums(32), p.zero()
		u.sums(p.along("d", dy, x, gain), dy, x, gain, flat, along, seen)
		p.ifElse(condition{v: seen}, func() {
			flatMean, alongMean := p.meanOf(flat, size, nil), p.meanOf(along, size, nil)
			u.gradient(p.along("d", dx, dy, x, gain), dx, dy, x, gain, flatMean, alongMean)
		}, nil)
		p.advanceBy("d", dx, dy, x)
		p.move(4, mean, inv)
	})
	p.end()
}

// unit computes u = (x-mean)·inv.
type unit struct {
	p         program
	mean, inv vec
}

// newUnit returns the unit of the parameters mean and inv.
func newUnit(p program) unit { return unit{p, p.broadcast("mean"), p.broadcast("inv")} }

// apply replaces x by u.
func (u unit) apply(x vec) {
	u.p.sub(x, x, u.mean)
	u.p.mul(x, x, u.inv)
}
