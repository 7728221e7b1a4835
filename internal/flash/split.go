package flash

import (
	"sync"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// splitRows is up to how many queries of a head have long keys split among the
// processors: a decoder's step has too few queries to share out.
const splitRows = 4 * stripRows

// splitKeys computes every block of keys on its own and puts the results
// together. How the keys are cut depends on their number alone.
func (f *forward) splitKeys(rows int) {
	a := f.a
	blocks := (a.Lk + blockKeys - 1) / blockKeys
	heads, each := a.B*a.G*f.count, rows*(a.EV+2)
	parts := borrowFloats(heads * blocks * each)
	par.For(a.B*a.G*blocks, 1, func(lo, hi int) {
		w := f.worker()
		for u := lo; u < hi; u++ {
			z, block := u/blocks, u%blocks
			k0 := block * blockKeys
			k1 := min(k0+blockKeys, a.Lk)
			w.load(a, z/a.G, z%a.G, k0, k1)
			for i := range f.count {
				t := a.tall(z/a.G, z%a.G, i, f.count)
				p := f.part((*parts)[((z*f.count+i)*blocks+block)*each:], rows)
				w.band(a, t, 0, t.n, k0, k1)
				copy(p.shift, w.shift[:t.n])
				copy(p.sum, w.sum[:t.n])
				copy(p.acc, w.acc[:t.n*a.EV])
			}
		}
		w.release()
	})
	par.For(heads, max(1, 1<<12/(each*blocks)), func(lo, hi int) {
		for z := lo; z < hi; z++ {
			t := a.tall(z/f.count/a.G, z/f.count%a.G, z%f.count, f.count)
			f.join(t, (*parts)[z*blocks*each:], blocks, each)
		}
	})
	returnFloats(parts)
}

// part is what a block of keys makes of all queries of a head.
type part struct{ shift, sum, acc []float32 }

func (f *forward) part(x []float32, rows int) part {
	return part{x[:rows], x[rows : 2*rows], x[2*rows : rows*(2+f.a.EV)]}
}

// join adds up the parts of a head in their order, relative to the largest of
// their shifts.
func (f *forward) join(t tall, parts []float32, blocks, each int) {
	a := f.a
	dst := a.rows(f.out, t.b, t.h)
	c, _ := a.exponent()
	for r := range t.n {
		shift, any := float32(0), false
		for k := range blocks {
			if p := f.part(parts[k*each:], t.n); p.sum[r] != 0 { // NaN too
				if !any || p.shift[r] > shift || p.shift[r] != p.shift[r] {
					shift = p.shift[r]
				}
				any = true
			}
		}
		out := dst.Data[r*dst.Row:][:a.EV]
		clear(out)
		var sum float32
		for k := range blocks {
			p := f.part(parts[k*each:], t.n)
			if p.sum[r] == 0 {
				continue
			}
			factor := float32(1)
			if p.shift[r] != shift {
				factor = exp2((p.shift[r] - shift) * c)
			}
			sum += float32(factor * p.sum[r])
			simd.Axpy(factor, p.acc[r*a.EV:][:a.EV], out)
		}
		inverse := float32(0)
		if any {
			inverse = 1 / sum
		}
		simd.Scale(out, inverse, out)
		f.st.Shift[t.first+r], f.st.Inverse[t.first+r] = shift, inverse
		if f.weights != nil {
			f.joinWeights(t, r, parts, blocks, each)
		}
	}
}

// joinWeights makes the weights of row r, which each block has left relative to
// its own shift, relative to all.
func (f *forward) joinWeights(t tall, r int, parts []float32, blocks, each int) {
	a, row := f.a, t.first+r
	weights := f.weights[row*a.Lk:][:a.Lk]
	c, _ := a.exponent()
	if f.st.bad(row) {
		w := f.worker()
		w.look(a, row, 1, 0, a.Lk)
		w.spans[0].spoil(weights, 0)
		w.release()
		return
	}
	for k := range blocks {
		if p := f.part(parts[k*each:], t.n); p.sum[r] != 0 {
			x := weights[k*blockKeys : min((k+1)*blockKeys, a.Lk)]
			simd.Scale(x, exp2((p.shift[r]-f.st.Shift[row])*c)*f.st.Inverse[row], x)
		}
	}
}

// memories are for what outlives a task.
var memories = sync.Pool{New: func() any { return new([]float32) }}

func borrowFloats(n int) *[]float32 {
	m := memories.Get().(*[]float32)
	*m = grow(*m, n)
	return m
}

func returnFloats(m *[]float32) { memories.Put(m) }
