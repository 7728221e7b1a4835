package main

// adamW writes the step of AdamW. The scalars are the fields of adamScalars in package simd, in the
// same order.
func adamW(p program) {
	x, g, m, v, scalars := p.pointer("p"), p.pointer("grad"), p.pointer("m"), p.pointer("v"), p.pointer("s")
	var c [8]vec
	for i := range c {
		c[i] = p.load(scalars, i)
	}
	keep, beta1, beta2, oneBeta1, oneBeta2, rate, rootScale, epsilon := c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
	p.along("n", x, g, m, v).each(p.by(1, 2, 1), func(s step) {
		gi, mi, vi, xi := s.load(g), s.load(m), s.load(v), s.load(x)
		p.mul(mi, mi, beta1)
		p.addProduct(mi, gi, oneBeta1)
		s.store(mi, m)
		p.mul(gi, gi, gi)
		p.mul(vi, vi, beta2)
		p.addProduct(vi, gi, oneBeta2)
		s.store(vi, v)
		p.sqrt(vi, vi)
		root := p.mulAdd(vi, rootScale, p.spare(epsilon))
		p.mul(mi, mi, rate)
		p.div(mi, mi, root)
		s.store(p.mulSub(xi, keep, mi), x)
	})
	p.end()
}
