package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

// adamW writes the step of AdamW. The scalars are the fields of adamScalars in package simd, in the
// same order.
func (f *neonFunc) adamW() {
	p, g, m, v, scalars := f.pointer("p"), f.pointer("grad"), f.pointer("m"), f.pointer("v"), f.pointer("s")
	var c [8]a64.V
	for i := range c {
		c[i] = f.V()
		f.spread(c[i], scalars)
		f.Do("ADD", 4, scalars)
	}
	keep, beta1, beta2, oneBeta1, oneBeta2, rate, rootScale, epsilon := c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
	f.along("n", p, g, m, v).each(2, func(i int, k *part) {
		gi, mi, vi, pi := f.V(), f.V(), f.V(), f.V()
		f.load(gi, at(g, i), k)
		f.load(mi, at(m, i), k)
		f.load(vi, at(v, i), k)
		f.load(pi, at(p, i), k)
		f.FMUL(mi, mi, beta1)
		f.FMLA(mi, gi, oneBeta1)
		f.store(mi, at(m, i), k)
		f.FMUL(gi, gi, gi)
		f.FMUL(vi, vi, beta2)
		f.FMLA(vi, gi, oneBeta2)
		f.store(vi, at(v, i), k)
		f.FSQRT(vi, vi)
		root := f.copy(epsilon)
		f.FMLA(root, vi, rootScale)
		f.FMUL(mi, mi, rate)
		f.FDIV(mi, mi, root)
		f.FNEG(mi, mi)
		f.FMLA(mi, pi, keep) // p·keep - step
		f.store(mi, at(p, i), k)
	})
	f.Return()
}
