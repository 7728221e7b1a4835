package jinja

import (
	"math"
	"math/big"
)

// numeric returns a number as int64 or float64, and nil for other values.
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

// exact is a limit: every integer up to it can be converted to float64 without rounding.
const exact = 1 << 53

// arithmetic evaluates x op y for numbers, as Python does. It fails if an integer does not fit in an int64,
// while Python's integers are unlimited. Powers are not supported: no chat template uses them.
func arithmetic(op string, x, y any) any {
	m, isM := x.(int64)
	n, isN := y.(int64)
	a, b := toFloat(x), toFloat(y)
	if (op == "/" || op == "//" || op == "%") && b == 0 {
		fail("division by zero")
	}
	if isM && isN && op != "/" {
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
	}
	quotient, rest := divide(a, b)
	if op == "%" {
		return rest
	}
	return quotient
}

// integers is arithmetic for integers, without rounding.
func integers(op string, m, n int64) int64 {
	x, y := big.NewInt(m), big.NewInt(n)
	switch op {
	case "+":
		x.Add(x, y)
	case "-":
		x.Sub(x, y)
	case "*":
		x.Mul(x, y)
	default: // Python rounds down; Div rounds down if the divisor is positive
		if n < 0 {
			x.Neg(x)
			y.Neg(y)
		}
		rest := new(big.Int)
		if x.DivMod(x, y, rest); op == "%" {
			x = rest
			if n < 0 {
				x.Neg(x)
			}
		}
	}
	if !x.IsInt64() {
		fail("%d %s %d is too large", m, op, n)
	}
	return x.Int64()
}

// divide returns a // b and a % b as CPython computes them: the remainder is exact, and the quotient follows from it.
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

// compareNumbers returns -1, 0 or 1. It compares an integer with a float64 without rounding. x and y must not be NaN.
func compareNumbers(x, y any) int {
	exactly := func(v any) *big.Float {
		if n, ok := v.(int64); ok {
			return new(big.Float).SetInt64(n)
		}
		return big.NewFloat(v.(float64))
	}
	return exactly(x).Cmp(exactly(y))
}

func isNaN(v any) bool {
	x, ok := v.(float64)
	return ok && math.IsNaN(x)
}
