package jinja

import "math"

// largest is the limit of integers, while Python's have none. Up to it, they are exact in float64, so integers can be
// compared with other numbers without rounding.
const largest = 1 << 53

// whole returns n. It fails if n is beyond the limit.
func whole(n int64) int64 {
	if n > largest || n < -largest {
		fail("integer %d is too large", n)
	}
	return n
}

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

func toFloat(number any) float64 {
	if n, ok := number.(int64); ok {
		return float64(n)
	}
	return number.(float64)
}

// arithmetic evaluates x op y for integers, as Python does. Chat templates count messages; none of them computes with
// fractions.
func arithmetic(op string, x, y any) int64 {
	m, isM := x.(int64)
	n, isN := y.(int64)
	if !isM || !isN {
		fail("%s with a fraction is not supported", op)
	}
	switch op {
	case "+":
		return whole(m + n)
	case "-":
		return whole(m - n)
	case "*":
		if math.Abs(float64(m)*float64(n)) > largest {
			fail("%d * %d is too large", m, n)
		}
		return whole(m * n)
	}
	if n == 0 {
		fail("division by zero")
	}
	rest := m % n
	if rest != 0 && (rest < 0) != (n < 0) { // Python's remainder has the sign of the divisor
		rest += n
	}
	return rest
}
