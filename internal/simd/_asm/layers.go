package main

func relu(p program) {
	dst, x, zero := p.pointer("dst"), p.pointer("x"), p.zero()
	unary(p, dst, x, 4, func(v vec) vec {
		p.atLeast(v, zero)
		p.plusZero(v, zero)
		return v
	})
}

// Where x is not positive dx stays as it is, whatever dy is, and 0·NaN is added nowhere.
func reluGrad(p program) {
	dx, dy, x, zero := p.pointer("dx"), p.pointer("dy"), p.pointer("x"), p.zero()
	p.along("n", dx, dy, x).each(2, func(s step) {
		positive := p.positive(s.load(x), zero)
		old, d := s.load(dx), s.load(dy)
		p.addWhere(positive, d, old)
		s.store(old, dx)
	})
	p.end()
}

// A weight of exactly 0 contributes nothing, even if the gradient is NaN there: a hidden key has such a
// weight.
func softmaxMean(p program) {
	dy, y, zero, sums := p.pointer("dy"), p.pointer("y"), p.zero(), p.sums(32)
	p.along("n", dy, y).inLanes(len(sums), func(i int, s step) {
		w, d := s.load(y), s.load(dy)
		p.keep(p.nonzero(w, zero), d)
		p.addProduct(sums[i], d, w)
	})
	p.returnSums(sums)
}

func softmaxGrad(p program) {
	dx, dy, y := p.pointer("dx"), p.pointer("dy"), p.pointer("y")
	mean, zero := p.broadcast("mean"), p.zero()
	p.along("n", dx, dy, y).each(2, func(s step) {
		w, d, sum := s.load(y), s.load(dy), s.load(dx)
		p.sub(d, d, mean)
		p.mul(d, d, w)
		p.addWhere(p.nonzero(w, zero), d, sum)
		s.store(sum, dx)
	})
	p.end()
}
