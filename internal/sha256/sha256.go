// Package sha256 computes SHA-256 (FIPS 180-4), which identifies vocabularies and training data. It is slow, and not
// for secrets. The package of the standard library also links the self-tests of other algorithms, which makes a page
// that trains 33 kB larger, compressed.
package sha256

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Size is the number of bytes of a hash.
const Size = 32

const blockSize = 64

// initial and constants are the first 32 bits after the binary point of the square roots of the first 8 primes and of
// the cube roots of the first 64. None is close to the next number: an error of 1,000 units in the last place of a root
// would change nothing, so processors whose math rounds differently have the same constants.
var initial, constants = func() (h [8]uint32, k [64]uint32) {
	n := 2
	for i := range k {
		for !prime(n) {
			n++
		}
		if i < len(h) {
			h[i] = fraction(math.Sqrt(float64(n)))
		}
		k[i] = fraction(math.Cbrt(float64(n)))
		n++
	}
	return h, k
}()

func prime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return true
}

func fraction(x float64) uint32 { return uint32((x - math.Floor(x)) * (1 << 32)) }

// Hash is the SHA-256 of the bytes written to it so far. The zero value is ready for use.
type Hash struct {
	change [8]uint32 // of the initial state, so that zeros are the state before the first block
	block  [blockSize]byte
	n      uint64 // bytes written
}

// Write adds bytes. It returns no error.
func (h *Hash) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		at := int(h.n % blockSize)
		n := copy(h.block[at:], rest)
		h.n += uint64(n)
		rest = rest[n:]
		if at+n == blockSize {
			h.mix()
		}
	}
	return len(p), nil
}

// Sum returns the hash of all bytes written so far. More can be written afterwards.
func (h *Hash) Sum() (sum [Size]byte) {
	end := *h
	end.Write([]byte{0x80})
	for end.n%blockSize != blockSize-8 {
		end.Write([]byte{0})
	}
	end.Write(binary.BigEndian.AppendUint64(nil, 8*h.n))
	for i := range initial {
		binary.BigEndian.PutUint32(sum[4*i:], initial[i]+end.change[i])
	}
	return sum
}

// mix adds the block to the state.
func (h *Hash) mix() {
	var w [len(constants)]uint32
	for i := range w {
		if i < 16 {
			w[i] = binary.BigEndian.Uint32(h.block[4*i:])
			continue
		}
		x, y := w[i-15], w[i-2]
		w[i] = w[i-16] + w[i-7] +
			(bits.RotateLeft32(x, -7) ^ bits.RotateLeft32(x, -18) ^ x>>3) +
			(bits.RotateLeft32(y, -17) ^ bits.RotateLeft32(y, -19) ^ y>>10)
	}
	var s [8]uint32
	for i := range s {
		s[i] = initial[i] + h.change[i]
	}
	for i := range w {
		a, b, c, e, f, g := s[0], s[1], s[2], s[4], s[5], s[6]
		first := s[7] + constants[i] + w[i] + (e&f ^ ^e&g) +
			(bits.RotateLeft32(e, -6) ^ bits.RotateLeft32(e, -11) ^ bits.RotateLeft32(e, -25))
		second := (a&b ^ a&c ^ b&c) +
			(bits.RotateLeft32(a, -2) ^ bits.RotateLeft32(a, -13) ^ bits.RotateLeft32(a, -22))
		s = [8]uint32{first + second, a, b, c, s[3] + first, e, f, g}
	}
	for i := range s {
		h.change[i] += s[i]
	}
}
