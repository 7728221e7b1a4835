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

func (Float32) Bytes(n int) int  { return 4 * n }
func (BFloat16) Bytes(n int) int { return 2 * n }
func (Int8) Bytes(n int) int     { return n + 4 }

func (Float32) room(n, _ int) room  { return floatRoom(make([]float32, n)) }
func (BFloat16) room(n, _ int) room { return bfloatRoom(make([]uint16, n)) }
func (Int8) room(n, vectors int) room {
	return &int8Room{make([]int8, n), make([]float32, vectors)}
}

// room is memory for vectors in a layout that is the caller's.
type room interface {
	// put writes vector number n, which lies at p.
	put(n int, p place, x []float32)
	// get reads it.
	get(n int, p place, x []float32)
	// floats returns numbers lo to hi as floats, in scratch unless they are floats already.
	floats(lo, hi int, scratch []float32) []float32
	// stored returns numbers lo to hi as they are, which are not floats; else none.
	stored(lo, hi int) ([]uint16, []int8)
	// scales returns by what the numbers of vectors lo to hi are multiplied; nil for 1.
	scales(lo, hi int) []float32
	bytes() int
}

// place is where the elements of a vector lie: in runs of so many, that follow one
// another at a distance of step, each run jump behind the last.
type place struct{ at, run, step, jump int }

// scatter writes f(x[i]) for each element of a vector.
func scatter[N any](to []N, p place, x []float32, f func(float32) N) {
	for at := p.at; len(x) > 0; at += p.jump {
		n := min(p.run, len(x))
		for i, v := range x[:n] {
			to[at+i*p.step] = f(v)
		}
		x = x[n:]
	}
}

// collect is the opposite.
func collect[N any](from []N, p place, x []float32, f func(N) float32) {
	for at := p.at; len(x) > 0; at += p.jump {
		n := min(p.run, len(x))
		for i := range x[:n] {
			x[i] = f(from[at+i*p.step])
		}
		x = x[n:]
	}
}

type floatRoom []float32

func itself(v float32) float32 { return v }

func (r floatRoom) put(_ int, p place, x []float32)          { scatter(r, p, x, itself) }
func (r floatRoom) get(_ int, p place, x []float32)          { collect(r, p, x, itself) }
func (r floatRoom) floats(lo, hi int, _ []float32) []float32 { return r[lo:hi] }
func (floatRoom) stored(_, _ int) ([]uint16, []int8)         { return nil, nil }
func (floatRoom) scales(_, _ int) []float32                  { return nil }
func (r floatRoom) bytes() int                               { return 4 * len(r) }

type bfloatRoom []uint16

func widen(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

func (r bfloatRoom) put(_ int, p place, x []float32) { scatter(r, p, x, simd.BFloat16) }
func (r bfloatRoom) get(_ int, p place, x []float32) { collect(r, p, x, widen) }

func (r bfloatRoom) floats(lo, hi int, scratch []float32) []float32 {
	simd.FromBFloat16(scratch[:hi-lo], r[lo:hi])
	return scratch[:hi-lo]
}

func (r bfloatRoom) stored(lo, hi int) ([]uint16, []int8) { return r[lo:hi], nil }
func (bfloatRoom) scales(_, _ int) []float32              { return nil }
func (r bfloatRoom) bytes() int                           { return 2 * len(r) }

type int8Room struct {
	data  []int8
	scale []float32 // of each vector; NaN for one that is not finite
}

func (r *int8Room) put(n int, p place, x []float32) {
	var most float32
	for _, v := range x {
		if v-v != 0 {
			most = float32(math.NaN())
			break
		}
		most = max(most, v, -v)
	}
	scale := most / 127
	r.scale[n] = scale
	scatter(r.data, p, x, func(v float32) int8 {
		if !(scale > 0) { // all zeros, or next to nothing, or not numbers
			return 0
		}
		return int8(math.RoundToEven(float64(v) / float64(scale)))
	})
}

func (r *int8Room) get(n int, p place, x []float32) {
	scale := r.scale[n]
	collect(r.data, p, x, func(v int8) float32 { return scale * float32(v) })
}

func (r *int8Room) floats(lo, hi int, scratch []float32) []float32 {
	simd.FromInt8(scratch[:hi-lo], r.data[lo:hi])
	return scratch[:hi-lo]
}

func (r *int8Room) stored(lo, hi int) ([]uint16, []int8) { return nil, r.data[lo:hi] }
func (r *int8Room) scales(lo, hi int) []float32          { return r.scale[lo:hi] }
func (r *int8Room) bytes() int                           { return len(r.data) + 4*len(r.scale) }
