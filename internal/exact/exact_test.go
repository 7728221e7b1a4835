package exact

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// Sums and means equal those computed with arbitrary precision, bit for bit, in any order.
func TestSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 100 {
		numbers := make([]float64, rng.IntN(300))
		for i := range numbers {
			numbers[i] = math.Ldexp(rng.NormFloat64(), rng.IntN(80)-40)
			if trial%2 == 0 { // numbers whose sums are often exact
				numbers[i] = float64(float32(rng.NormFloat64()))
			}
			switch rng.IntN(30) {
			case 0:
				numbers[i] = math.Float64frombits(rng.Uint64() &^ (1 << 62)) // up to 2
			case 1:
				numbers[i] = math.SmallestNonzeroFloat64
			case 2:
				numbers[i] = math.Copysign(math.MaxFloat64, rng.NormFloat64())
			case 3: // a term that cancels another
				if i > 0 {
					numbers[i] = -numbers[i-1]
				}
			}
		}
		want := new(big.Rat)
		for _, x := range numbers {
			want.Add(want, new(big.Rat).SetFloat64(x))
		}
		sum, _ := want.Float64()
		for range 3 {
			rng.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
			var s Sum
			for _, x := range numbers {
				s.Add(x)
			}
			if got := s.Float64(); got != sum {
				t.Fatalf("the sum is %v, want %v", got, sum)
			}
			for _, n := range []int64{7, -3, 1 << 40, math.MaxInt64, math.MinInt64, 1 + rng.Int64N(1<<rng.IntN(63))} {
				mean, _ := new(big.Rat).Quo(want, new(big.Rat).SetInt64(n)).Float64()
				if got := s.Mean(n); math.Float64bits(got) != math.Float64bits(mean) {
					t.Fatalf("of %d numbers, the mean is %v, want %v", n, got, mean)
				}
			}
		}
	}
}

// A mean exactly between two float32 numbers is rounded to the even one, any other to the nearest.
func TestRounding(t *testing.T) {
	for _, unit := range []float64{0x1p-1074, 0x1p-1060, 0x1p-1022, 0x1p-500, 1, 0x1p900, 0x1p970} {
		for _, mantissa := range []float64{0, 1, 2, 3, 1<<52 - 1, 1 << 52, 1<<53 - 2, 1<<53 - 1} {
			for _, add := range []float64{-1, 0, 1} {
				for _, sign := range []float64{1, -1} {
					var s Sum
					want := new(big.Rat)
					for _, x := range []float64{mantissa * unit, mantissa * unit, unit, add * 0x1p-1074} {
						s.Add(sign * x)
						want.Add(want, new(big.Rat).SetFloat64(sign*x))
					}
					mean, _ := new(big.Rat).Quo(want, big.NewRat(2, 1)).Float64()
					if got := s.Mean(2); got != mean {
						t.Errorf("half of %v is %v, want %v", want, got, mean)
					}
				}
			}
		}
	}
}

func TestNotFinite(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		numbers []float64
		want    float64
	}{
		{nil, 0}, {[]float64{math.Copysign(0, -1)}, 0}, {[]float64{1, inf}, inf}, {[]float64{-inf, 1}, -inf},
		{[]float64{inf, -inf}, math.NaN()}, {[]float64{math.NaN(), 1}, math.NaN()},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, inf}, {[]float64{math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64}, math.MaxFloat64},
	} {
		var s Sum
		for _, x := range c.numbers {
			s.Add(x)
		}
		if got := s.Float64(); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("the sum of %v is %v, want %v", c.numbers, got, c.want)
		}
	}
	var s Sum
	for _, x := range []float64{3, inf} {
		s.Add(x)
		if got := s.Mean(0); !math.IsNaN(got) {
			t.Errorf("the mean of nothing is %v", got)
		}
	}
	if got := s.Mean(-2); got != -inf {
		t.Errorf("the mean of %v and -2 numbers is %v", inf, got)
	}
}
