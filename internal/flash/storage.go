package flash

import (
	"math"

	"github.com/attn-go/attn/internal/simd"
)

// vectorStore is memory for vectors of numbers. The caller defines the layout.
type vectorStore struct {
	simd.Stored
	scale []float32 // of each vector, NaN for a vector that is not finite; nil for a format without scales
}

// newVectorStore returns memory for n numbers, which belong to the given number of vectors.
func newVectorStore(f simd.Format, n, vectors int) vectorStore {
	r := vectorStore{Stored: simd.Stored{Format: f, Memory: make([]byte, n*f.Size())}}
	if f.Scaled() {
		r.scale = make([]float32, vectors)
	}
	return r
}

// vectorLayout is the location of the elements of a vector. They are stored in runs of run numbers.
// The first run starts at index at, consecutive numbers of a run are step apart, and the starts of
// consecutive runs are jump apart.
type vectorLayout struct{ at, run, step, jump int }

// runs calls f for each run: its n elements are elements i to i+n of the vector, stored from index at.
func (p vectorLayout) runs(n int, f func(i, at, n int)) {
	for i, at := 0, p.at; i < n; i, at = i+p.run, at+p.jump {
		f(i, at, min(p.run, n-i))
	}
}

// put stores x as vector n, at location p.
func (r *vectorStore) put(n int, p vectorLayout, x []float32) {
	inverse := 1.0
	if r.scale != nil {
		inverse = r.measure(n, x)
	}
	p.runs(len(x), func(i, at, n int) { r.Round(at, p.step, x[i:i+n], inverse) })
}

// measure computes and stores the scale of vector n. It returns the factor by which the vector is
// multiplied before it is rounded: the inverse of the scale, or 0.
func (r *vectorStore) measure(n int, x []float32) (inverse float64) {
	largest := simd.Magnitude(x)
	scale := largest / 127
	if largest-largest != 0 {
		scale = float32(math.NaN())
	}
	r.scale[n] = scale
	if !(scale > 0) { // all zeros, tiny, or not finite
		return 0
	}
	return 1 / float64(scale)
}

// get reads vector n from location p and multiplies it by its scale.
func (r *vectorStore) get(n int, p vectorLayout, x []float32) {
	p.runs(len(x), func(i, at, n int) { r.Read(x[i:i+n], at, p.step) })
	if r.scale != nil {
		simd.Scale(x, r.scale[n], x)
	}
}

// copyScales copies n scales of src, from vector from on, to the scales from vector at on. Both stores
// have the same format.
func (r *vectorStore) copyScales(at int, src *vectorStore, from, n int) {
	if r.scale != nil {
		copy(r.scale[at:at+n], src.scale[from:])
	}
}

// scales returns the scales of vectors lo to hi; nil means 1.
func (r *vectorStore) scales(lo, hi int) []float32 {
	if r.scale == nil {
		return nil
	}
	return r.scale[lo:hi]
}

func (r *vectorStore) bytes() int { return len(r.Memory) + 4*len(r.scale) }
