package simd

// Ahead is memory that will soon be read or written. Products with Panels ask the
// second-level cache for it while they compute: little by little, for a processor that has
// asked for a dozen lines waits for them. Kernels that do not fetch ahead pass it over.
//
// The zero value is empty.
type Ahead struct {
	pieces [][]float32
	next   int // the first piece that has not been asked for as a whole
	step   int // bytes at each step of a tile
}

// Set makes x the given pieces, to be asked for during products of so many multiply-adds.
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

// empty reports whether everything has been asked for.
func (x *Ahead) empty() bool { return x.next == len(x.pieces) }

// take returns the part that tiles of depth steps each ask for, which is at least one step,
// and for how many of them it lasts. There has to be one.
func (x *Ahead) take(tiles, depth int) (part []float32, n int) {
	part = x.pieces[x.next]
	each := max(1, depth*x.step/4)
	n = min(tiles, (len(part)+each-1)/each)
	if n*each < len(part) {
		x.pieces[x.next] = part[n*each:]
	} else {
		x.next++
	}
	return part, n
}

// takeBytes returns the part from which on so many bytes are asked for. There has to be one.
func (x *Ahead) takeBytes(bytes int) []float32 {
	part := x.pieces[x.next]
	if n := bytes / 4; n < len(part) {
		x.pieces[x.next] = part[n:]
	} else {
		x.next++
	}
	return part
}
