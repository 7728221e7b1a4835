package jinja

import (
	"cmp"
	"math"
	"math/big"
)

// numeric returns a number as int64 or float64, and nil of anything else.
func numeric(v any) any {
	switch v := v.(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case int64, float64:
		return v
	}
	return nil
}

func toFloat(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	return v.(float64)
}

// exact is up to where every integer is a float64.
const exact = 1 << 53

// arithmetic returns "x op y" of Python, of numbers. Integers are as large as an int64;
// beyond, where Python goes on, it fails.
func arithmetic(op string, x, y any) any {
	m, isM := x.(int64)
	n, isN := y.(int64)
	a, b := toFloat(x), toFloat(y)
	if (op == "/" || op == "//" || op == "%") && b == 0 || op == "**" && a == 0 && b < 0 {
		fail("division by zero")
	}
	if isM && isN && op != "/" && (op != "**" || n >= 0) {
		return integers(op, m, n)
	}
	if op == "/" && (isM && (m > exact || m < -exact) || isN && (n > exact || n < -exact)) {
		fail("%v / %v is too large", x, y)
	}
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		return a / b
	case "**":
		v := power(a, b)
		if math.IsNaN(v) && !math.IsNaN(a) && !math.IsNaN(b) {
			fail("%v ** %v is no real number", x, y)
		}
		if math.IsInf(v, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
			fail("%v ** %v is too large", x, y)
		}
		return v
	}
	quotient, rest := divide(a, b)
	if op == "%" {
		return rest
	}
	return quotient
}

// integers is arithmetic of integers, without rounding.
func integers(op string, m, n int64) int64 {
	x, y, v := big.NewInt(m), big.NewInt(n), new(big.Int)
	switch op {
	case "+":
		v.Add(x, y)
	case "-":
		v.Sub(x, y)
	case "*":
		v.Mul(x, y)
	case "//", "%":
		rest := new(big.Int)
		v.QuoRem(x, y, rest)
		if rest.Sign() != 0 && rest.Sign() != y.Sign() { // Python rounds down
			v.Sub(v, big.NewInt(1))
			rest.Add(rest, y)
		}
		if op == "%" {
			v = rest
		}
	case "**":
		if n >= 64 && (m < -1 || m > 1) {
			fail("%d ** %d is too large", m, n)
		}
		v.Exp(x, y, nil)
	}
	if !v.IsInt64() {
		fail("%d %s %d is too large", m, op, n)
	}
	return v.Int64()
}

// power is math.Pow, rounded once: of more than one rounding the last digits would not be
// those of C, and so not Python's. Fractions as exponents, but for the square root, are not known.
func power(a, b float64) float64 {
	v := math.Pow(a, b)
	if a == 0 || b == 0 || a == 1 || b == 0.5 || v == 0 || v-v != 0 {
		return v // is exact, a root, or an error
	}
	if b != math.Trunc(b) || math.Abs(b) > 1024 {
		fail("%v ** %v is not known, want 0.5 or a whole exponent of at most 1024", a, b)
	}
	const bits = 256
	product, square := big.NewFloat(1).SetPrec(bits), big.NewFloat(a).SetPrec(bits)
	for n := int(math.Abs(b)); n > 0; n /= 2 {
		if n%2 == 1 {
			product.Mul(product, square)
		}
		square.Mul(square, square)
	}
	if b < 0 {
		product.Quo(big.NewFloat(1).SetPrec(bits), product)
	}
	v, _ = product.Float64()
	return v
}

// divide returns a // b and a % b as CPython computes them: the rest is exact, and the
// quotient follows from it.
func divide(a, b float64) (quotient, rest float64) {
	rest = math.Mod(a, b)
	quotient = (a - rest) / b
	if rest == 0 {
		rest = math.Copysign(0, b)
	} else if (rest < 0) != (b < 0) {
		rest += b
		quotient--
	}
	whole := math.Floor(quotient)
	switch {
	case quotient == 0:
		whole = math.Copysign(0, a/b)
	case quotient-whole > 0.5:
		whole++
	}
	return whole, rest
}

// compareNumbers returns -1, 0 or 1. It does not round an integer to compare it with a
// float64. NaN is not to be asked for.
func compareNumbers(x, y any) int {
	m, isM := x.(int64)
	n, isN := y.(int64)
	switch {
	case isM && isN:
		return cmp.Compare(m, n)
	case isM:
		return new(big.Float).SetInt64(m).Cmp(big.NewFloat(y.(float64)))
	case isN:
		return big.NewFloat(x.(float64)).Cmp(new(big.Float).SetInt64(n))
	}
	return cmp.Compare(x.(float64), y.(float64))
}

func isNaN(v any) bool {
	x, ok := v.(float64)
	return ok && math.IsNaN(x)
}
