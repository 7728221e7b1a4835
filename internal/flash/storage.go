package flash

import (
	"math"

	"github.com/attn-go/attn/internal/simd"
)

// Storage is in which numbers pages hold keys and values.
type Storage interface {
	// Bytes returns how many bytes a vector of so many elements takes.
	Bytes(elements int) int
	// room returns memory for n numbers, of so many vectors.
	room(n, vectors int) room
}

// The storages.
type (
	Float32  struct{} // exact
	BFloat16 struct{} // the upper half of a float32: 8 bits of precision
	Int8     struct{} // -127 to 127 times a scale for each vector, its largest element/127
)

// Bytes returns 4 for each element.
func (Float32) Bytes(n int) int { return 4 * n }

// Bytes returns 2 for each element.
func (BFloat16) Bytes(n int) int { return 2 * n }

// Bytes returns 1 for each element and 4 for the scale.
func (Int8) Bytes(n int) int { return n + 4 }

func (Float32) room(n, _ int) room  { return floatRoom(make([]float32, n)) }
func (BFloat16) room(n, _ int) room { return bfloatRoom(make([]uint16, n)) }
func (Int8) room(n, vectors int) room {
	return &int8Room{make([]int8, n), make([]float32, vectors)}
}

// room is memory for vectors in a layout that is the caller's.
type room interface {
	// put writes vector number n, which lies at p.
	put(n int, p place, x []float32)
	// transpose sets the first n columns of a matrix that lies in the given layout, at at,
	// to rows of x, which are numbers as they are stored.
	transpose(at int, l simd.PanelLayout, x simd.Mat, n int)
	// get reads a vector, times its scale.
	get(n int, p place, x []float32)
	// copy sets n numbers from at on to those of a room of the same kind.
	copy(at int, src room, from, n int)
	copyScales(at int, src room, from, n int) // of vectors
	// floats returns numbers lo to hi as floats, in scratch unless they are floats already.
	floats(lo, hi int, scratch []float32) []float32
	// stored returns the matrix of the given layout that begins with number at, as it is.
	stored(l simd.PanelLayout, at int) simd.StoredPanels
	// scales returns by what the numbers of vectors lo to hi are multiplied; nil for 1.
	scales(lo, hi int) []float32
	bytes() int
}

// place is where the elements of a vector lie: in runs of so many, that follow one
// another at a distance of step, each run jump behind the last.
type place struct{ at, run, step, jump int }

// runs calls f for each run of n elements: from element i of the vector on, at place at.
func (p place) runs(n int, f func(i, at, n int)) {
	for i, at := 0, p.at; i < n; i, at = i+p.run, at+p.jump {
		f(i, at, min(p.run, n-i))
	}
}

// collect sets x to f of the numbers of a vector.
func collect[N any](from []N, p place, x []float32, f func(N) float32) {
	p.runs(len(x), func(i, at, n int) {
		for k := range n {
			x[i+k] = f(from[at+k*p.step])
		}
	})
}

// scatter writes the numbers of a vector that lie a step apart.
func scatter[N any](to []N, p place, x []N) {
	at := p.at
	for _, v := range x {
		to[at] = v
		at += p.step
	}
}

// roundAtATime is how many numbers are rounded at a time, in memory on the stack.
const roundAtATime = 128

// transposed calls set for the elements of the first n columns of a matrix, which are rows
// of x, with the place of each piece of a row in the layout.
func transposed(l simd.PanelLayout, x simd.Mat, n int, set func(at int, x []float32)) {
	memory := borrowFloats(l.Len())
	l.SetColumns(*memory, x, n)
	for j := 0; j < n; j += l.Width {
		for k := range l.K {
			at := l.At(k, j)
			set(at, (*memory)[at:][:min(l.Width, n-j)])
		}
	}
	returnFloats(memory)
}

type floatRoom []float32

func itself(v float32) float32 { return v }

func (r floatRoom) copy(at int, src room, from, n int) {
	copy(r[at:at+n], src.(floatRoom)[from:])
}

func (floatRoom) copyScales(int, room, int, int) {}

func (r floatRoom) put(_ int, p place, x []float32) {
	if p.step > 1 {
		scatter(r, p, x)
		return
	}
	p.runs(len(x), func(i, at, n int) { copy(r[at:at+n], x[i:]) })
}

func (r floatRoom) transpose(at int, l simd.PanelLayout, x simd.Mat, n int) {
	l.SetColumns(r[at:at+l.Len()], x, n)
}

func (r floatRoom) get(_ int, p place, x []float32)          { collect(r, p, x, itself) }
func (r floatRoom) floats(lo, hi int, _ []float32) []float32 { return r[lo:hi] }
func (r floatRoom) stored(l simd.PanelLayout, at int) simd.StoredPanels {
	return simd.StoredPanels{PanelLayout: l, Float32: r[at:][:l.Len()]}
}
func (floatRoom) scales(_, _ int) []float32 { return nil }
func (r floatRoom) bytes() int              { return 4 * len(r) }

type bfloatRoom []uint16

func widen(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

func (r bfloatRoom) copy(at int, src room, from, n int) {
	copy(r[at:at+n], src.(bfloatRoom)[from:])
}

func (bfloatRoom) copyScales(int, room, int, int) {}

func (r bfloatRoom) put(_ int, p place, x []float32) {
	if p.step > 1 {
		var some [roundAtATime]uint16
		for len(x) > 0 {
			n := min(len(x), len(some))
			simd.ToBFloat16(some[:n], x[:n])
			scatter(r, p, some[:n])
			p.at, x = p.at+n*p.step, x[n:]
		}
		return
	}
	p.runs(len(x), func(i, at, n int) { simd.ToBFloat16(r[at:at+n], x[i:i+n]) })
}

func (r bfloatRoom) transpose(at int, l simd.PanelLayout, x simd.Mat, n int) {
	transposed(l, x, n, func(to int, x []float32) { simd.ToBFloat16(r[at+to:][:len(x)], x) })
}

func (r bfloatRoom) get(_ int, p place, x []float32) { collect(r, p, x, widen) }

func (r bfloatRoom) floats(lo, hi int, scratch []float32) []float32 {
	simd.FromBFloat16(scratch[:hi-lo], r[lo:hi])
	return scratch[:hi-lo]
}

func (r bfloatRoom) stored(l simd.PanelLayout, at int) simd.StoredPanels {
	return simd.StoredPanels{PanelLayout: l, BFloat16: r[at:][:l.Len()]}
}
func (bfloatRoom) scales(_, _ int) []float32 { return nil }
func (r bfloatRoom) bytes() int              { return 2 * len(r) }

type int8Room struct {
	data  []int8
	scale []float32 // of each vector; NaN for one that is not finite
}

func (r *int8Room) copy(at int, src room, from, n int) {
	copy(r.data[at:at+n], src.(*int8Room).data[from:])
}

func (r *int8Room) copyScales(at int, src room, from, n int) {
	copy(r.scale[at:at+n], src.(*int8Room).scale[from:])
}

// measure notes the scale of vector number n, and returns by what it is multiplied.
func (r *int8Room) measure(n int, x []float32) (inverse float64) {
	largest := simd.Magnitude(x)
	scale := largest / 127
	if largest-largest != 0 {
		scale = float32(math.NaN())
	}
	r.scale[n] = scale
	if !(scale > 0) { // all zeros, or next to nothing, or not numbers
		return 0
	}
	return 1 / float64(scale)
}

func (r *int8Room) put(n int, p place, x []float32) {
	inverse := r.measure(n, x)
	if p.step > 1 {
		var some [roundAtATime]int8
		for len(x) > 0 {
			n := min(len(x), len(some))
			simd.ToInt8(some[:n], x[:n], inverse)
			scatter(r.data, p, some[:n])
			p.at, x = p.at+n*p.step, x[n:]
		}
		return
	}
	p.runs(len(x), func(i, at, n int) { simd.ToInt8(r.data[at:at+n], x[i:i+n], inverse) })
}

func (r *int8Room) transpose(at int, l simd.PanelLayout, x simd.Mat, n int) {
	transposed(l, x, n, func(to int, x []float32) { simd.ToInt8(r.data[at+to:][:len(x)], x, 1) })
}

func (r *int8Room) get(n int, p place, x []float32) {
	scale := r.scale[n]
	collect(r.data, p, x, func(v int8) float32 { return scale * float32(v) })
}

func (r *int8Room) floats(lo, hi int, scratch []float32) []float32 {
	simd.FromInt8(scratch[:hi-lo], r.data[lo:hi])
	return scratch[:hi-lo]
}

func (r *int8Room) stored(l simd.PanelLayout, at int) simd.StoredPanels {
	return simd.StoredPanels{PanelLayout: l, Int8: r.data[at:][:l.Len()]}
}
func (r *int8Room) scales(lo, hi int) []float32 { return r.scale[lo:hi] }
func (r *int8Room) bytes() int                  { return len(r.data) + 4*len(r.scale) }
