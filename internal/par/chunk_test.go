package par

import (
	"fmt"
	"testing"
)

// chunks returns the number of chunks of a loop.
func chunks(n, chunk int) int { return (n + chunk - 1) / chunk }

func TestChunk(t *testing.T) {
	for _, c := range []struct{ threads, n, cost, want int }{
		{16, 0, 1, 0},
		{16, 1, 1 << 20, 1},
		{16, 128, 384, 8},         // a sum of 128 vectors: 2 µs each
		{16, 128, 3 * 384, 16},    // with a norm
		{16, 100_000, 1, 16},      // not fewer than threads
		{16, 1 << 20, 1, 160},     // a multiple of the threads
		{1, 100_000, 1, 16},       // a chunk stays in a cache
		{3, 100, 1 << 20, 50},     // an index is not divided
		{32, 65, 1 << 20, 65},     // which 64 chunks would not improve
		{64, 196_608, 3, 64},      // an activation
		{2, least - 1, 1, 1},      // too short to divide
		{2, 2 * least, 1, 2},      //
		{2, 16, least, 16},        //
		{16, 320, least / 2, 160}, //
		{16, 30, least / 2, 15},   // fewer than threads
	} {
		var got int
		Trace(c.threads, 1, func() { got = chunks(c.n, Chunk(c.n, c.cost)) })
		if got != c.want {
			t.Errorf("%+v: %d chunks", c, got)
		}
	}
}

func TestChunkLaws(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 16, 64, 100} {
		for _, cost := range []int{0, 1, 7, 1000, least, 1 << 40} {
			for n := 0; n < 1<<20; n += 1 + n/3 {
				name := fmt.Sprintf("threads %d, n %d, cost %d", threads, n, cost)
				var one, numbers int
				Trace(threads, 1, func() { one, numbers = Chunk(n, cost), ChunkOfNumbers(n, cost) })
				if one < 1 || numbers < 1 || numbers < n && numbers%16 != 0 {
					t.Fatalf("%s: chunks of %d and %d", name, one, numbers)
				}
				if one < n && one*max(cost, 1) < least/2 {
					t.Fatalf("%s: chunks of %d are too short", name, one)
				}
				if c := chunks(n, one); cost < 1<<30 && n*cost >= 2*threads*least && c < min(threads, n/2) {
					t.Fatalf("%s: %d chunks", name, c)
				}
			}
		}
	}
}
