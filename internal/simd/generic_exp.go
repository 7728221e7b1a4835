package simd

import "math"

// The functions of this file compute in float64. There, plain formulas are accurate enough that the
// only significant error is the rounding of the result to float32. On the processors that Go
// supports, a scalar float64 operation costs no more.

// exp64 returns exp(x) with a relative error of about 1e-9, for |x| up to 700,
// and NaN for NaN.
func exp64(x float64) float64 {
	m, p := expSplit(x)
	return m + m*p
}

// expSplit returns m = 2^n and p = exp(r)-1 where x = n·ln2 + r and |r| <= ln2/2, so that exp(x) =
// m + m·p. For tiny x, p keeps the relative accuracy that computing exp(x)-1 would lose.
func expSplit(x float64) (m, p float64) {
	const (
		// Adding and subtracting 1.5·2^52 rounds to an integer, and leaves that integer in the low
		// bits of the sum.
		magic = 3 << 51
		ln2   = math.Ln2
	)
	t := x*math.Log2E + magic
	n := t - magic
	r := x - n*ln2
	m = math.Float64frombits((math.Float64bits(t) + 1023) << 52)
	// The Taylor series of exp(r)-1: the first omitted term is below 0.35^9/9! = 2e-10.
	p = 1.0/5040 + r*(1.0/40320)
	p = 1.0/720 + r*p
	p = 1.0/120 + r*p
	p = 1.0/24 + r*p
	p = 1.0/6 + r*p
	p = 0.5 + r*p
	return m, r + r*r*p
}

// Arguments of exp at which float32 results round to 0 and overflow.
const (
	expLow  = -105
	expHigh = 89
)

func exp32(x float32) float32 {
	// A NaN fails both comparisons, and exp64 returns NaN for it.
	if x < expLow {
		return 0
	}
	if x > expHigh {
		return float32(math.Inf(1))
	}
	return float32(exp64(float64(x)))
}

func expGeneric(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = exp32(v)
	}
}

func expSumGeneric(dst, x []float32, shift float32) float32 {
	var lane [16]float32
	dst = dst[:len(x)]
	for i, v := range x {
		e := exp32(v - shift)
		dst[i] = e
		lane[i%16] += e
	}
	return sumOfLanes(&lane)
}

// sumOfLanes adds lanes in pairs, the furthest apart first. It changes them.
func sumOfLanes(lane *[16]float32) float32 {
	for half := 8; half > 0; half /= 2 {
		for i := range half {
			lane[i] += lane[i+half]
		}
	}
	return lane[0]
}

// tanh32 computes with E = exp(2|x|)-1: tanh|x| = E/(E+2).
func tanh32(x float32) float32 {
	a := math.Abs(float64(x))
	if a > 10 { // tanh rounds to 1 from 9.02 on
		return float32(math.Copysign(1, float64(x)))
	}
	m, p := expSplit(2 * a)
	e := m*p + (m - 1)
	return float32(math.Copysign(e/(e+2), float64(x)))
}

func tanhGeneric(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = tanh32(v)
	}
}

func sigmoidGeneric(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		// Beyond ±105 the result rounds to 0 or 1 in float32.
		a := min(max(-float64(v), expLow), -expLow)
		dst[i] = float32(1 / (1 + exp64(a)))
	}
}

// tailEnd is the end of the normal distribution in float32: below -tailEnd both Φ and x·Φ(x) round
// to 0.
const tailEnd = 15

// normal returns Φ(x), the normal distribution function, and φ(x), its
// derivative, for |x| up to tailEnd.
func normal(x float64) (cumulative, density float64) {
	density = exp64(-x*x/2) * (1 / (math.Sqrt2 * math.SqrtPi))
	return math.Erfc(-x*(1/math.Sqrt2)) / 2, density
}

func geluGeneric(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		if v < -tailEnd {
			dst[i] = 0
			continue
		}
		c, _ := normal(min(float64(v), tailEnd))
		dst[i] = float32(float64(v) * c)
	}
}

func geluGradGeneric(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		a := min(max(float64(v), -tailEnd), tailEnd)
		c, d := normal(a)
		dst[i] = float32(c + a*d)
	}
}
