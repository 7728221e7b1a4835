package tokenizer

import (
	"math"
	"strconv"
	"strings"
	"sync"
)

// powersOfTen are 1e0 to 1e308, each rounded once.
var powersOfTen = sync.OnceValue(func() (table [309]float64) {
	for i := range table {
		table[i], _ = strconv.ParseFloat("1e"+strconv.Itoa(i), 64)
	}
	return table
})

// readNumber reads a JSON number as the reference does, whose package serde_json is quick rather than exact:
// as many digits as fit into 64 bits, times or by one power of ten. The last bit decides between cuts of
// words that have the same score. It reports whether the number is within the range of float64.
func readNumber(s string) (float64, bool) {
	s, negative := strings.CutPrefix(s, "-")
	var digits uint64
	exponent, at := 0, 0
	// push takes a digit, unless it is too much, and moves on.
	push := func() bool {
		d := uint64(s[at] - '0')
		if digits > math.MaxUint64/10 || digits == math.MaxUint64/10 && d > math.MaxUint64%10 {
			return false
		}
		digits = digits*10 + d
		return true
	}
	isDigit := func() bool { return at < len(s) && '0' <= s[at] && s[at] <= '9' }
	for fits := true; isDigit(); at++ {
		if fits = fits && push(); !fits {
			exponent++
		}
	}
	if at < len(s) && s[at] == '.' {
		at++
		for fits := true; isDigit(); at++ {
			if fits = fits && push(); fits {
				exponent--
			}
		}
	}
	if at < len(s) { // e or E
		n, err := strconv.ParseInt(s[at+1:], 10, 32)
		if err != nil && n > 0 { // more than 32 bits
			return 0, digits == 0
		}
		exponent += int(n)
	}
	x := float64(digits)
	for ; exponent < -308; exponent += 308 {
		if x == 0 {
			exponent = 0
			break
		}
		x /= 1e308
	}
	switch {
	case exponent < 0:
		x /= powersOfTen()[-exponent]
	case exponent <= 308:
		x *= powersOfTen()[exponent]
	default:
		return 0, digits == 0
	}
	if negative {
		x = -x
	}
	return x, !math.IsInf(x, 0)
}
