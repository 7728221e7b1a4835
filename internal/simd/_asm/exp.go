package main

import "math"

// Adding magic rounds a number to an integer, and leaves that integer, plus the number added to
// magic, in the low bits of the sum. Shifted left by 23, these bits are the exponent of a power of
// two.
const (
	magic    = 3 << 22
	ln2High  = 0.693147182464599609375 // ln 2 as a float32
	ln2Low   = math.Ln2 - ln2High
	expHigh  = 89     // exp overflows
	expLow   = -86.98 // below, the exponent is too small for a power of two
	signBit  = 1 << 31
	notSign  = signBit - 1
	tanhHigh = 10 // tanh is 1 in float32 from 9.02 on
)

// expPoly approximates exp(r) for |r| <= ln2/2 by 1 + r + r²·(…) with a relative error of 3e-9. It
// is a minimax fit, like the other polynomials here.
var expPoly = []float64{1, 1, 0.4999999403953552, 0.1666652113199234, 0.04166838899254799,
	0.00836874544620514, 0.0013814540579915047}

// exponential returns a function that writes exp(x), and 0 for x below expLow. It overwrites x.
//
//	n = round(x/ln2);  r = x - n·ln2;  exp(x) = 2^(n-1) · 2·exp(r)
func exponential(p program) func(x vec) vec {
	// The polynomial gives 2·exp(r), and the power of two is halved to match. This gives correct
	// results up to the largest float32.
	var twice []float64
	for _, c := range expPoly {
		twice = append(twice, 2*c)
	}
	high, round := p.number(expHigh), p.number(magic+126)
	low, log2e := p.constant(expLow), p.constant(math.Log2E)
	first, second := p.ln2()
	ln2Hi, ln2Lo := p.constant(first), p.constant(second)
	polynomial := p.expPolynomial(twice)
	return func(x vec) vec {
		p.atMost(x, high)
		normal := p.notLess(x, low)
		t, n := p.copy(round), p.vec()
		p.addProduct(t, x, log2e)
		p.sub(n, t, round)
		p.subProduct(x, n, ln2Hi)
		p.subProduct(x, n, ln2Lo)
		y := polynomial(x)
		p.exponent(t)
		p.mulWhere(normal, y, t)
		return y
	}
}

func exp(p program) {
	dst, x := p.pointer("dst"), p.pointer("x")
	unary(p, dst, x, p.by(1, 2, 1), exponential(p))
}

func expSum(p program) {
	dst, x, shift := p.pointer("dst"), p.pointer("x"), p.broadcast("shift")
	exp, sums := exponential(p), p.sums(16)
	p.along("n", dst, x).inLanes(len(sums), func(i int, s step) {
		v := s.load(x)
		p.sub(v, v, shift)
		v = exp(v)
		s.store(v, dst)
		s.keep(v)
		p.add(sums[i], sums[i], v)
	})
	p.returnSums(sums)
}

func sigmoid(p program) {
	dst, x := p.pointer("dst"), p.pointer("x")
	exp, zero, one := exponential(p), p.zero(), p.number(1)
	unary(p, dst, x, p.by(1, 2, 1), func(v vec) vec {
		p.sub(v, zero, v)
		v = exp(v)
		p.add(v, v, one)
		p.div(v, one, v)
		return v
	})
}

// tanhPoly approximates (exp(r)-1-r)/r² for |r| <= ln2/2, such that the relative error of exp(r)-1
// is 1.3e-8.
var tanhPoly = []float64{0.5, 0.1666654348373413, 0.04166628047823906, 0.00836661085486412, 0.0013946497347205877}

// tanh writes the loop that computes, with a = |x|,
//
//	n = round(2a/ln2);  r = 2a - n·ln2;  q = exp(r)-1
//	e = 2^n·q + (2^n-1) = exp(2a)-1;  tanh(a) = e/(e+2)
//
// which is also accurate for small a, where n is 0.
func tanh(p program) {
	dst, x := p.pointer("dst"), p.pointer("x")
	high, round := p.number(tanhHigh), p.number(magic+127)
	one, two, log2e2 := p.constant(1), p.constant(2), p.constant(2*math.Log2E)
	first, second := p.ln2()
	ln2Hi, ln2Lo := p.constant(first), p.constant(second)
	positive, negative := p.bits(notSign), p.bits(signBit)
	polynomial := p.polynomial(tanhPoly)
	unary(p, dst, x, p.by(1, 2, 1), func(v vec) vec {
		a, n, square, less, sum := p.vec(), p.vec(), p.vec(), p.vec(), p.vec()
		p.and(a, v, positive)
		sign := p.sign(v, negative)
		p.atMost(a, high)
		t := p.copy(round)
		p.addProduct(t, a, log2e2)
		p.sub(n, t, round)
		p.add(a, a, a)
		p.subProduct(a, n, ln2Hi)
		p.subProduct(a, n, ln2Lo)
		q := polynomial(a)
		p.mul(square, a, a)
		q = p.mulAdd(q, square, a)
		p.exponent(t)
		p.sub(less, t, one)
		q = p.mulAdd(q, t, less)
		p.add(sum, q, two)
		p.div(q, q, sum)
		p.setSign(q, sign, negative)
		return q
	})
}
