// Package exact adds floating-point numbers without rounding. A sum does not depend on the order
// of its terms, or on how they are split into consecutive parts that are added to the same Sum.
package exact

import (
	"math"
	"math/big"
)

// precision is the number of bits of the sum of 2^64 of the largest numbers, down to the bit of the smallest.
const precision = 1024 + 64 + 1074

// Sum is a sum of float64s. The zero value is an empty sum. A Sum must not be copied after the first Add.
type Sum struct {
	recent float64   // terms whose ordinary sum is exact; adding to it is 100 times faster than adding to rest
	rest   big.Float // the other finite terms
	other  float64   // the sum of the infinite and NaN terms
}

// Add adds a number.
func (s *Sum) Add(x float64) {
	// A rounded sum minus its larger term is not the smaller one.
	if sum := s.recent + x; sum-s.recent == x && sum-x == s.recent {
		s.recent = sum
		return
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		s.other += x
		return
	}
	s.rest.SetPrec(precision).Add(&s.rest, big.NewFloat(s.recent))
	s.recent = x
}

// finite returns the sum of the finite terms.
func (s *Sum) finite() *big.Float {
	sum := new(big.Float).SetPrec(precision)
	return sum.Add(&s.rest, big.NewFloat(s.recent))
}

// Float64 returns the sum, rounded once to nearest even, or an infinity if it is too large. With
// infinite or NaN terms it is the ordinary sum of those.
func (s *Sum) Float64() float64 {
	if s.other != 0 { // true for NaN too
		return s.other
	}
	sum, _ := s.finite().Float64()
	return sum
}

// Mean returns the sum divided by n, rounded once; NaN if n is 0.
func (s *Sum) Mean(n int64) float64 {
	switch {
	case n == 0:
		return math.NaN()
	case s.other != 0:
		return s.other / float64(n)
	}
	mean, _ := s.finite().Rat(nil)
	rounded, _ := mean.Quo(mean, new(big.Rat).SetInt64(n)).Float64()
	return rounded
}
