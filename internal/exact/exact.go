// Package exact adds floating-point numbers without rounding. A sum does not depend on the order
// of its terms, or on how they are split into consecutive parts that are added to the same Sum.
package exact

import (
	"math"
	"math/big"
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
	all := new(big.Int)
	for i := limbs - 1; i >= 0; i-- {
		all.Lsh(all, limbBits).Add(all, big.NewInt(s.limbs[i]))
	}
	if all.Sign() == 0 {
		return 0
	}
	num, den := all, big.NewInt(n)
	den.Lsh(den, -lowest)
	mean, _ := new(big.Rat).SetFrac(num, den).Float64()
	return mean
}
