package jinja

import "math"

// whole returns n. It fails if n does not fit in 32 bits, while Python's integers have no limit. With this limit, a sum
// or product does not overflow before it is checked. There are no fractions: chat templates only count.
func whole(n int64) int64 {
	if n > math.MaxInt32 || n < math.MinInt32 {
		fail("integer %d is too large", n)
	}
	return n
}

// toInt returns the value of an integer, or of a truth value.
func toInt(v any) (n number, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return number{n: 1}, true
		}
		return number{}, true
	case number:
		return v, true
	}
	return number{}, false
}

// arithmetic evaluates m op n, as Python does.
func arithmetic(op string, m, n int64) int64 {
	switch op {
	case "+":
		return whole(m + n)
	case "-":
		return whole(m - n)
	case "*":
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
