package tokenizer

import (
	"math"
	"strconv"
	"strings"
	"sync"
)

// powersOfTen are 1e0 to 1e308, each correctly rounded.
var powersOfTen = sync.OnceValue(func() (table [309]float64) {
	for i := range table {
		table[i], _ = strconv.ParseFloat("1e"+strconv.Itoa(i), 64)
	}
	return table
})

// readNumber parses a JSON number like the reference, whose package serde_json is fast rather than exact: it reads the
// digits that fit into 64 bits, and multiplies or divides by one power of ten. The last bit matters because it decides
// between splits of a word with equal scores. readNumber reports whether the number is within the range of float64.
func readNumber(s string) (float64, bool) {
	s, negative := strings.CutPrefix(s, "-")
	s, power, scaled := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(s, ".")
	var digits uint64
	exponent, fits := 0, true
	for i, c := range []byte(whole + fraction) {
		if i == len(whole) {
			fits = true
		}
		d := uint64(c - '0')
		fits = fits && (digits < math.MaxUint64/10 || digits == math.MaxUint64/10 && d <= math.MaxUint64%10)
		if fits {
			digits = digits*10 + d
		}
		switch inWhole := i < len(whole); {
		case inWhole && !fits:
			exponent++
		case !inWhole && fits:
			exponent--
		}
	}
	if scaled {
		n, err := strconv.ParseInt(power, 10, 32)
		if err != nil && n > 0 { // the exponent has more than 32 bits
			return 0, digits == 0
		}
		exponent += int(n)
	}
	// Each step rounds, which is the point: strconv.ParseFloat rounds once, and differs in the last bit for some
	// scores.
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
