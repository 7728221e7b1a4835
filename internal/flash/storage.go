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

// vectorLayout is the location of the elements of a vector. The first run of numbers starts at
// at; its numbers are step apart, and each run starts jump after the start of the run before.
type vectorLayout struct{ at, run, step, jump int }

// runs calls f for each run of n elements: from element i of the vector on, stored from at on.
func (p vectorLayout) runs(n int, f func(i, at, n int)) {
	for i, at := 0, p.at; i < n; i, at = i+p.run, at+p.jump {
		f(i, at, min(p.run, n-i))
	}
}

// put writes vector number n at location p.
func (r *vectorStore) put(n int, p vectorLayout, x []float32) {
	inverse := 1.0
	if r.scale != nil {
		inverse = r.measure(n, x)
	}
	p.runs(len(x), func(i, at, n int) { r.Round(at, p.step, x[i:i+n], inverse) })
}

// measure stores the scale of vector number n, and returns the factor by which the vector is
// multiplied.
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

// get reads a vector, times its scale.
func (r *vectorStore) get(n int, p vectorLayout, x []float32) {
	p.runs(len(x), func(i, at, n int) { r.Read(x[i:i+n], at, p.step) })
	if r.scale != nil {
		simd.Scale(x, r.scale[n], x)
	}
}

// transpose copies the first n columns of a matrix, stored in layout l at at, to the rows of x.
// It does not apply scales.
func (r *vectorStore) transpose(at int, l simd.PanelLayout, x simd.Mat, n int) {
	memory := borrowFloats(l.Len())
	l.SetColumns(*memory, x, n)
	for j := 0; j < n; j += l.Width {
		for k := range l.K {
			from := l.At(k, j)
			r.Round(at+from, 1, (*memory)[from:][:min(l.Width, n-j)], 1)
		}
	}
	returnFloats(memory)
}

// copyScales sets n scales from number at on to scales of a store of the same format.
func (r *vectorStore) copyScales(at int, src *vectorStore, from, n int) {
	if r.scale != nil {
		copy(r.scale[at:at+n], src.scale[from:])
	}
}

// stored returns the matrix with the given layout that starts at number at, without conversion.
func (r *vectorStore) stored(l simd.PanelLayout, at int) simd.StoredPanels {
	return simd.StoredPanels{PanelLayout: l, Stored: r.Part(at, at+l.Len())}
}

// scales returns the scales of vectors lo to hi; nil means 1.
func (r *vectorStore) scales(lo, hi int) []float32 {
	if r.scale == nil {
		return nil
	}
	return r.scale[lo:hi]
}

func (r *vectorStore) bytes() int { return len(r.Memory) + 4*len(r.scale) }
