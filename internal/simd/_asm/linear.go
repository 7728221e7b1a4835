package main

func axpy(p program) {
	a, x, y := p.broadcast("a"), p.pointer("x"), p.pointer("y")
	p.along("n", x, y).each(4, func(s step) {
		xi, yi := s.load(x), s.load(y)
		p.addProduct(yi, a, xi)
		s.store(yi, y)
	})
	p.end()
}

func scale(p program) {
	dst, a, x := p.pointer("dst"), p.broadcast("a"), p.pointer("x")
	unary(p, dst, x, 4, func(v vec) vec {
		p.mul(v, a, v)
		return v
	})
}

// b is an addend in every step, so mulAdd gets a copy where it overwrites it: see spare.
func scaleShift(p program) {
	dst, a, x := p.pointer("dst"), p.broadcast("a"), p.pointer("x")
	b := p.broadcast("b")
	unary(p, dst, x, 4, func(v vec) vec { return p.mulAdd(v, a, p.spare(b)) })
}

func add(p program) { zip(p, func(x, y vec) { p.add(x, x, y) }) }

func mul(p program) { zip(p, func(x, y vec) { p.mul(x, x, y) }) }

// zip writes the loop in which op sets x to the new value of dst.
func zip(p program, op func(x, y vec)) {
	dst, x, y := p.pointer("dst"), p.pointer("x"), p.pointer("y")
	p.along("n", dst, x, y).each(4, func(s step) {
		xi, yi := s.load(x), s.load(y)
		op(xi, yi)
		s.store(xi, dst)
	})
	p.end()
}

func mulAdd(p program) {
	dst, x, y := p.pointer("dst"), p.pointer("x"), p.pointer("y")
	p.along("n", dst, x, y).each(4, func(s step) {
		xi, yi, sum := s.load(x), s.load(y), s.load(dst)
		s.store(p.mulAdd(xi, yi, sum), dst)
	})
	p.end()
}
