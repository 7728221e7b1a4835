package flash

import (
	"math"

	"github.com/attn-go/attn/internal/simd"
)

// vectorStore is memory for vectors of numbers, in a layout that is the caller's.
type vectorStore struct {
	simd.Stored
	scale []float32 // of each vector, NaN for one that is not finite; nil for a format without scales
}

// newVectorStore returns memory for n numbers, of a number of vectors.
func newVectorStore(f simd.Format, n, vectors int) vectorStore {
	r := vectorStore{Stored: simd.Stored{Format: f, Memory: make([]byte, n*f.Size())}}
	if f.Scaled() {
		r.scale = make([]float32, vectors)
	}
	return r
}

// vectorLayout is where the elements of a vector are: in runs of numbers that follow one
// another at a distance of step, each run jump behind the last.
type vectorLayout struct{ at, run, step, jump int }

// runs calls f for each run of n elements: from element i of the vector on, at place at.
func (p vectorLayout) runs(n int, f func(i, at, n int)) {
	for i, at := 0, p.at; i < n; i, at = i+p.run, at+p.jump {
		f(i, at, min(p.run, n-i))
	}
}

// put writes vector number n, which lies at p.
func (r *vectorStore) put(n int, p vectorLayout, x []float32) {
	inverse := 1.0
	if r.scale != nil {
		inverse = r.measure(n, x)
	}
	p.runs(len(x), func(i, at, n int) { r.Round(at, p.step, x[i:i+n], inverse) })
}

// measure notes the scale of vector number n, and returns by what it is multiplied.
func (r *vectorStore) measure(n int, x []float32) (inverse float64) {
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

// get reads a vector, times its scale.
func (r *vectorStore) get(n int, p vectorLayout, x []float32) {
	p.runs(len(x), func(i, at, n int) { r.Read(x[i:i+n], at, p.step) })
	if r.scale != nil {
		simd.Scale(x, r.scale[n], x)
	}
}

// transpose sets the first n columns of a matrix that lies in the given layout, at at, to
// rows of x, which are numbers as they are stored.
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

// copyScales sets n scales from number at on to those of a store of the same format.
func (r *vectorStore) copyScales(at int, src *vectorStore, from, n int) {
	if r.scale != nil {
		copy(r.scale[at:at+n], src.scale[from:])
	}
}

// stored returns the matrix of the given layout that begins with number at, as it is.
func (r *vectorStore) stored(l simd.PanelLayout, at int) simd.StoredPanels {
	return simd.StoredPanels{PanelLayout: l, Stored: r.Part(at, at+l.Len())}
}

// scales returns by what the numbers of vectors lo to hi are multiplied; nil for 1.
func (r *vectorStore) scales(lo, hi int) []float32 {
	if r.scale == nil {
		return nil
	}
	return r.scale[lo:hi]
}

func (r *vectorStore) bytes() int { return len(r.Memory) + 4*len(r.scale) }
