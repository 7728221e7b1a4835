package par

// least is the least cost of a chunk: a microsecond with AVX2, 70 times the time of claiming it.
const least = 6 << 10

// Chunk returns the length of the chunks of a loop over n indices, for For. cost is the work of an index in units of
// an addition of two elements of arrays into a third; an exponential costs about 3, GELU 7. Chunks are too long to be worth
// dividing further, and their number suits Threads.
func Chunk(n, cost int) int { return chunkOf(n, cost, 1) }

// ChunkOfNumbers is Chunk for a loop over the elements of arrays. Chunks are whole cache lines.
func ChunkOfNumbers(n, cost int) int { return chunkOf(n, cost, 16) }

// chunkOf is Chunk with a multiple of unit as its result.
func chunkOf(n, cost, unit int) int {
	short := max(1, least/max(cost, 1)) // indices of the shortest chunk
	if n < 2*short {
		return max(n, 1)
	}
	up := func(n, unit int) int { return (n + unit - 1) / unit }
	short = up(short, unit) * unit
	threads := Threads()
	chunks := max(1, n/short)
	if chunks > threads {
		chunks -= chunks % threads // so that all threads have the same number
	}
	even := up(up(n, chunks), unit) * unit
	most := func(chunk int) int { return up(up(n, chunk), threads) * chunk } // indices of one thread
	if most(even) <= most(short) {
		return even
	}
	return short
}
