// Package exact adds floating-point numbers without rounding. A sum does not depend on the order
// of its terms, or on how they are split into consecutive parts that are added to the same Sum.
package exact

import (
	"math"
	"math/bits"
)

// A number is an integer times 2^lowest; each limb has limbBits bits of the integer.
const (
	lowest   = -1074
	limbBits = 32
	// limbs are enough for the sum of 2^64 of the largest numbers.
	limbs = (1024-lowest+64)/limbBits + 1
	// mostAdded is how many numbers are added before carries are propagated: each changes a limb
	// by less than 2^limbBits.
	mostAdded = 1 << 30
)

// Sum is a sum of float64s. The zero value is an empty sum.
type Sum struct {
	limbs [limbs]int64
	added int     // numbers since the last carry
	other float64 // the sum of the infinite and NaN terms
}

// Add adds a number.
func (s *Sum) Add(x float64) {
	b := math.Float64bits(x)
	exponent, mantissa := int(b>>52&0x7ff), b&(1<<52-1)
	switch exponent {
	case 0x7ff:
		s.other += x
		return
	case 0:
		exponent = 1 // subnormal
	default:
		mantissa |= 1 << 52
	}
	at, shift := (exponent-1)/limbBits, uint((exponent-1)%limbBits)
	rest := mantissa >> (limbBits - shift)
	l := s.limbs[at : at+3 : at+3]
	low, middle, high := int64(uint32(mantissa<<shift)), int64(uint32(rest)), int64(rest>>limbBits)
	if b>>63 == 0 {
		l[0], l[1], l[2] = l[0]+low, l[1]+middle, l[2]+high
	} else {
		l[0], l[1], l[2] = l[0]-low, l[1]-middle, l[2]-high
	}
	if s.added++; s.added == mostAdded {
		s.carry()
	}
}

// carry propagates carries: it leaves limbBits bits in each limb except the last, which has the
// sign.
func (s *Sum) carry() {
	for i := range limbs - 1 {
		over := s.limbs[i] >> limbBits
		s.limbs[i] -= over << limbBits
		s.limbs[i+1] += over
	}
	s.added = 0
}

// Float64 returns the sum, rounded once to nearest even, or an infinity if it is too large. With
// infinite or NaN terms it is the ordinary sum of those.
func (s *Sum) Float64() float64 { return s.Mean(1) }

// Mean returns the sum divided by n; NaN if n is 0.
func (s *Sum) Mean(n int64) float64 {
	if n == 0 {
		return math.NaN()
	}
	if s.other != 0 { // true for NaN too
		return s.other / float64(n)
	}
	digits, negative := s.absolute()
	if digits == (number{}) {
		return 0
	}
	divisor := uint64(n)
	if n < 0 {
		divisor, negative = -divisor, !negative
	}
	rest := digits.divide(divisor)
	mean := digits.round(rest, divisor)
	if negative {
		mean = -mean
	}
	return mean
}

// number is a number that is not negative, by limbs of limbBits bits. Two more than those of a Sum are zero, so that
// 53 bits can be read from anywhere.
type number [limbs + 2]uint64

// absolute returns the absolute value of the finite terms, and whether they are negative.
func (s *Sum) absolute() (n number, negative bool) {
	t := *s
	t.carry()
	if negative = t.limbs[limbs-1] < 0; negative {
		for i := range t.limbs {
			t.limbs[i] = -t.limbs[i]
		}
		t.carry()
	}
	for i, l := range t.limbs {
		n[i] = uint64(l)
	}
	return n, negative
}

// divide divides n, and returns the remainder.
func (n *number) divide(by uint64) (rest uint64) {
	for i := limbs - 1; i >= 0; i-- {
		n[i], rest = bits.Div64(rest>>limbBits, rest<<limbBits|n[i], by)
	}
	return rest
}

// round returns n + rest/of, which is counted in units of the least float64, rounded to nearest even.
func (n *number) round(rest, of uint64) float64 {
	const precision, infinite = 53, 0x7fe
	last := limbs - 1
	for last > 0 && n[last] == 0 {
		last--
	}
	shift := max(0, last*limbBits+bits.Len64(n[last])-precision)
	if shift >= infinite {
		return math.Inf(1)
	}
	at, by := shift/limbBits, shift%limbBits
	mantissa := n[at]>>by | n[at+1]<<(limbBits-by) | n[at+2]<<(2*limbBits-by)
	var half, more bool // whether the part that is cut off is at least half a unit, and whether it is not exactly that
	if shift == 0 {
		half, more = rest >= of-rest, rest != of-rest
	} else {
		at, by := (shift-1)/limbBits, (shift-1)%limbBits
		half, more = n[at]>>by&1 == 1, rest != 0 || n[at]&(1<<by-1) != 0
		for _, l := range n[:at] {
			more = more || l != 0
		}
	}
	// The bits of a float64 are its mantissa, whose leading bit counts as an exponent of 1, and the rest of its exponent.
	b := uint64(shift)<<(precision-1) + mantissa
	if half && (more || b&1 == 1) {
		b++ // to infinity after the largest number
	}
	return math.Float64frombits(b)
}
