package attn

import (
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// Keys to which every query attends, whatever the mask, stand in front of the keys of the
// call: there they have the same place however many keys follow, so that padding changes
// no bits. Sizes, and with them masks, biases and observers, know nothing of them; the
// kernels count them.

// extra returns how many such keys the layer has.
func (c *MultiHeadConfig) extra() int {
	n := 0
	for _, has := range []bool{c.BiasKV, c.ZeroKV} {
		if has {
			n++
		}
	}
	return n
}

// withExtra puts the layer's own key and value, and one of zeros, in front of those of
// each sequence.
func (m *MultiHead) withExtra(t *tensor.Tape, kv KV) KV {
	n := m.config.extra()
	if n == 0 {
		return kv
	}
	return KV{keys: kv.keys.behind(t, n, m.BiasK), values: kv.values.behind(t, n, m.BiasV), extra: n}
}

// behind returns heads behind n vectors in each sequence: first, unless it is nil, and
// zeros. The heads lie side by side, as in first.
func (h heads) behind(t *tensor.Tape, n int, first *tensor.Tensor) heads {
	b, l, width := h.batches(), h.length(), h.count*h.size
	shape := []int{b, n + l, width}
	if h.layout == SequenceFirst {
		shape = []int{n + l, b, width}
	}
	y := headLast(t.Make(shape...), h.layout, 0, h.size, h.count)
	row := func(x heads, data []float32, b, l int) []float32 { return data[x.at+b*x.batch+l*x.row:][:width] }
	each := max(1, grain/max(1, width))
	par.For(b*(n+l), each, func(lo, hi int) {
		for z := lo; z < hi; z++ {
			s, i := z/(n+l), z%(n+l)
			switch dst := row(y, y.x.Data(), s, i); {
			case i >= n:
				copy(dst, row(h, h.x.Data(), s, i-n))
			case i == 0 && first != nil:
				copy(dst, first.Data())
			default:
				clear(dst)
			}
		}
	})
	if t.Needs(h.x, first) {
		t.Record(y.x, func(dy []float32) {
			if dx := t.GradOf(h.x); dx != nil {
				par.For(b*l, each, func(lo, hi int) {
					for z := lo; z < hi; z++ {
						addTo(row(h, dx, z/l, z%l), row(y, dy, z/l, n+z%l))
					}
				})
			}
			if d := t.GradOf(first); d != nil {
				for s := range b {
					addTo(d, row(y, dy, s, 0))
				}
			}
		})
	}
	return y
}

// addTo adds x to dst.
func addTo(dst, x []float32) {
	for i, v := range x {
		dst[i] += v
	}
}
