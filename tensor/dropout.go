package tensor

import (
	"math"

	"github.com/attn-go/attn/internal/par"
)

// Dropout sets each element to zero with probability p and multiplies the rest
// by 1/(1−p). On a tape that is not in mode Train it returns x itself.
//
// Which elements are dropped is a function of the tape's seed, of how many
// random operations the tape has run since Seed, and of the element's index alone,
// so the backward pass works it out again instead of keeping it.
//
// Source: Srivastava et al., "Dropout", 2014, JMLR 15.
func Dropout(t *Tape, x *Tensor, p float32) *Tensor {
	if !(p >= 0 && p < 1) {
		panic("tensor: Dropout: p is outside [0, 1)")
	}
	if !t.Training() || p == 0 {
		return x
	}
	key := t.Stream()
	threshold := uint32(math.Round(float64(p) * (1 << 32)))
	keep := 1 / (1 - p)
	y := t.Make(x.shape...)
	par.For(len(x.data), grain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y.data[i] = 0
			if draw(key, i) >= threshold {
				y.data[i] = x.data[i] * keep
			}
		}
	})
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx := t.GradOf(x)
			par.For(len(dx), grain, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					if draw(key, i) >= threshold {
						dx[i] += dy[i] * keep
					}
				}
			})
		})
	}
	return y
}

// draw returns number i of the random stream key, uniform over 32 bits.
func draw(key uint64, i int) uint32 { return uint32(mix64(key+uint64(i)*golden) >> 32) }

// golden is 2⁶⁴ divided by the golden ratio, odd: the step of SplitMix64.
const golden = 0x9e3779b97f4a7c15

// mix64 is the output function of SplitMix64, a bijection that makes successive
// multiples of golden pass for random numbers.
//
// Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014.
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
