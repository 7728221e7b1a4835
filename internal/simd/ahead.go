package simd

// Ahead is memory that will soon be read or written. Products with Panels prefetch it into the
// second-level cache while they compute. They prefetch little by little, because a processor with a
// dozen outstanding cache lines waits for them. Kernels that do not prefetch skip it.
//
// The zero value is empty. Its gain is in the row "sdpa B8 H12 L128 E64" of bench/RESULTS.md.
type Ahead struct {
	pieces [][]float32
	next   int // the first piece that is not prefetched completely
	step   int // bytes at each step of a tile
}

// Set sets x to the given pieces, to be prefetched during products of work multiply-adds in total.
func (x *Ahead) Set(work int, pieces ...[]float32) {
	x.Reset()
	bytes := 0
	for _, p := range pieces {
		if len(p) > 0 {
			x.pieces = append(x.pieces, p)
			bytes += 4 * len(p)
		}
	}
	steps := work / (6 * panelWidth())
	x.step = min(64, bytes/(steps+1)+1)
}

// Reset empties x.
func (x *Ahead) Reset() {
	clear(x.pieces)
	x.pieces, x.next = x.pieces[:0], 0
}

// empty reports whether everything is prefetched.
func (x *Ahead) empty() bool { return x.next == len(x.pieces) }

// take returns the part to prefetch next and n, the number of tiles of depth steps that will
// prefetch it. x must not be empty.
func (x *Ahead) take(tiles, depth int) (part []float32, n int) {
	each := max(1, depth*x.step/4)
	n = min(tiles, (len(x.pieces[x.next])+each-1)/each)
	return x.takeBytes(4 * n * each), n
}

// takeBytes removes the given number of bytes to prefetch and returns the slice that begins with
// them. x must not be empty.
func (x *Ahead) takeBytes(bytes int) []float32 {
	part := x.pieces[x.next]
	if n := bytes / 4; n < len(part) {
		x.pieces[x.next] = part[n:]
	} else {
		x.next++
	}
	return part
}
