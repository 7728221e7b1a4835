package sha256

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"
)

// Hashes equal the standard library's at all lengths around a block, written in parts of any size.
func TestSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		var h Hash
		for rest := data; len(rest) > 0; {
			part := 1 + rng.IntN(len(rest))
			h.Write(rest[:part])
			rest = rest[part:]
			h.Sum() // changes nothing
		}
		if got, want := h.Sum(), sha256.Sum256(data); got != want {
			t.Fatalf("%d bytes: %x, want %x", n, got, want)
		}
	}
}
