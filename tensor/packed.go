package tensor

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/attn-go/attn/internal/pages"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Packed is a matrix [Out In] of weights in the order in which products read it, for
// inference: it is rearranged once, when it is set, and not by every product. A step of a
// decoder, which reads every weight once, is as fast as memory is read; so it takes half of
// the time with weights in bfloat16, and less with int8.
//
// Products of formats without a scale are those of the same numbers in a Tensor, to the bit,
// but for matrices that Linear multiplies on tile units, of 512 rows and columns or more,
// whose last digits differ. Those of int8 are sums of the same kind, of which each is
// multiplied by its scale.
type Packed struct{ w simd.Packed }

// NewPacked returns a matrix of zeros.
func NewPacked(out, in int, n Numbers) *Packed {
	if out < 1 || in < 1 {
		badShape("NewPacked", "matrix", []int{out, in}, "positive sizes")
	}
	if !n.known() {
		badValue("NewPacked", "numbers", n.String(), wantNumbers())
	}
	p := new(Packed)
	p.w.PanelLayout, p.w.Format = simd.NewPanelLayout(in, out), simd.Format(n)
	p.w.Memory = pages.Make[byte](p.w.Len() * p.w.Format.Size())
	if p.w.Format.Scaled() {
		p.w.Scales = make([]float32, out)
	}
	return p
}

// Shape returns [Out In].
func (p *Packed) Shape() []int { return []int{p.w.N, p.w.K} }

// Numbers returns the format.
func (p *Packed) Numbers() Numbers { return Numbers(p.w.Format) }

// Bytes returns how much memory the weights take.
func (p *Packed) Bytes() int { return len(p.w.Memory) + 4*len(p.w.Scales) }

// SetRows sets the weights of the outputs from i on, of which x has one row behind the
// other. It may be called for different rows at the same time, if each but the last call is
// for a multiple of Together rows, from a multiple on.
//
// It panics with a *ShapeError if there are no such rows.
func (p *Packed) SetRows(i int, x []float32) {
	p.w.Set(i, p.rowsOf("SetRows", i, len(x)), simd.RowMajor(x, p.w.K).T())
}

// SetRowsBFloat16 is SetRows for bfloat16, the upper halves of float32: weights become what
// those of the same values become.
func (p *Packed) SetRowsBFloat16(i int, x []uint16) {
	p.w.SetBFloat16(i, p.rowsOf("SetRowsBFloat16", i, len(x)), x)
}

// rowsOf returns how many rows so many elements are, which have room from row i on.
func (p *Packed) rowsOf(op string, i, length int) int {
	in := p.w.K
	n := length / in
	if i < 0 || i+n > p.w.N || n*in != length {
		panic(&ShapeError{
			Op: "tensor: Packed." + op, Arg: "rows", What: "first and number of elements", Got: []int{i, length},
			Want: fmt.Sprintf("rows of %d within 0 to %d", in, p.w.N-1),
		})
	}
	return n
}

// Together returns how many rows lie together.
func (p *Packed) Together() int { return p.w.Width }

// SetTransposed sets all weights to those of x, [In Out], of which a row begins stride elements
// behind the one before.
//
// It panics with a *ShapeError if x has too few elements, or stride is less than Out.
func (p *Packed) SetTransposed(x []float32, stride int) {
	in, out, width := p.w.K, p.w.N, p.w.Width
	if stride < out || len(x) < (in-1)*stride+out {
		panic(&ShapeError{
			Op: "tensor: Packed.SetTransposed", Arg: "matrix", What: "number of elements and stride", Got: []int{len(x), stride},
			Want: fmt.Sprintf("those of [In=%d Out=%d]", in, out),
		})
	}
	par.For((out+width-1)/width, max(1, grain/(in*width)), func(lo, hi int) {
		j := lo * width
		p.w.Set(j, min(hi*width, out)-j, simd.Mat{Data: x[j:], Row: stride, Col: 1})
	})
}

// Rows returns rows of the matrix: an embedding.
//
// Shapes: out [len(index) In].
//
// It panics with a *ShapeError if there is no such row.
func (p *Packed) Rows(t *Tape, index []int) *Tensor {
	in := p.w.K
	out := t.Make(len(index), in)
	for n, i := range index {
		if i < 0 || i >= p.w.N {
			panic(&ShapeError{Op: "tensor: Packed.Rows", Arg: "index", What: "row", Got: []int{i}, Want: fmt.Sprintf("0 to %d", p.w.N-1)})
		}
		p.w.Column(out.data[n*in:][:in], i)
	}
	return out
}

// Linear returns x·wᵀ + b, as the function Linear does. b is nil for none.
//
// Shapes: x [… In], out [… Out].
//
// It panics with a *ValueError if a gradient would have to flow to x or b.
func (p *Packed) Linear(t *Tape, x, b *Tensor) *Tensor {
	one := takeProduct(t, x)
	y := one.add(p, b)
	one.compute()
	return y
}

// Affine is the map x·wᵀ + b.
type Affine struct {
	Weight *Packed // [Out In]
	Bias   *Tensor // [Out], or nil for none
}

// Linears returns what several maps of the same inputs come to, as each alone would, in one
// go: the projections of attention, of which each is too small to be shared out evenly.
//
// Shapes: x [… In], out[i] [… Out of maps[i]].
//
// It panics with a *ValueError if a gradient would have to flow to x or a bias.
func Linears(t *Tape, x *Tensor, maps []Affine) []*Tensor {
	p := takeProduct(t, x)
	outs := make([]*Tensor, len(maps))
	for i, m := range maps {
		outs[i] = p.add(m.Weight, m.Bias)
	}
	p.compute()
	return outs
}

// opLinears is the name of a product with packed weights in errors.
const opLinears = "Linears"

// packedProduct is a call of Linears in progress. It is kept in a pool with its function value:
// a step of a decoder has a hundred of them, and allocates for none.
type packedProduct struct {
	t      *Tape
	x      *Tensor
	n, in  int // rows and columns of x
	each   int // rows of a block
	panels int // of all maps
	chunk  int // panels of a task
	turn   int // panels between two tasks of a processor, if all take turns
	maps   []mapped
	blocks func(lo, hi int)
}

// mapped is a map with the data of its bias and its result.
type mapped struct {
	w      *simd.Packed
	bias   []float32
	out    []float32
	panels int
}

var packedProducts = sync.Pool{New: func() any {
	p := new(packedProduct)
	p.blocks = p.doBlocks
	return p
}}

func takeProduct(t *Tape, x *Tensor) *packedProduct {
	n, in := rows(opLinears, x)
	p := packedProducts.Get().(*packedProduct)
	p.t, p.x, p.n, p.in, p.panels = t, x, n, in, 0
	return p
}

// add adds a map and returns its result, which compute fills in.
func (p *packedProduct) add(weight *Packed, bias *Tensor) *Tensor {
	w := &weight.w
	if p.in != w.K {
		badShape(opLinears, "x", p.x.shape, "[… In=%d]", w.K)
	}
	if p.t.Needs(p.x, bias) {
		badValue(opLinears, "tape", "one that records", "nil or one of mode Infer, as no gradient passes through packed weights")
	}
	m := mapped{w: w, panels: (w.N + w.Width - 1) / w.Width}
	if bias != nil {
		sameShape(opLinears, "b", bias, []int{w.N})
		m.bias = bias.data
	}
	y := p.t.makeRows(p.x.shape, w.N)
	m.out = y.data
	p.maps, p.panels = append(p.maps, m), p.panels+m.panels
	return y
}

// compute computes the results and hands p back.
func (p *packedProduct) compute() {
	if p.n > 0 && p.panels > 0 {
		// Many rows are cut as well, so that a part of them and of the weights stay in a cache.
		blocks := (p.n + blockRows - 1) / blockRows
		p.each = (p.n + blocks - 1) / blocks
		p.each = (p.each + 5) / 6 * 6 // rows of a tile
		blocks = (p.n + p.each - 1) / p.each
		width := p.maps[0].w.Width
		p.chunk = max(1, taskProducts/(min(p.n, p.each)*p.in*width))
		p.turn = p.chunk * (runtime.GOMAXPROCS(0) - 1)
		par.For(blocks*p.panels, p.chunk, p.blocks)
	}
	clear(p.maps) // which would keep the caller's memory
	p.t, p.x, p.maps = nil, nil, p.maps[:0]
	packedProducts.Put(p)
}

// doBlocks computes panels lo to hi of all blocks of rows.
func (p *packedProduct) doBlocks(lo, hi int) {
	for lo < hi {
		first := lo / p.panels * p.each
		from, to := lo%p.panels, min(lo%p.panels+hi-lo, p.panels)
		lo += to - from
		a := simd.Mat{Data: p.x.data[first*p.in:], Row: p.in, Col: 1}
		for i := range p.maps {
			m := &p.maps[i]
			if w := m.w; from < m.panels && to > 0 {
				c := simd.Mat{Data: m.out[first*w.N:], Row: w.N, Col: 1}
				last := min(to, m.panels)
				w.Multiply(c, a, min(p.each, p.n-first), max(from, 0)*w.Width, min(last*w.Width, w.N), m.bias, (last+p.turn)*w.Width)
			}
			from, to = from-m.panels, to-m.panels
		}
	}
}

const (
	// blockRows is how many rows of x a task has at most.
	blockRows = 192
	// taskProducts is how many products a task has, about: some microseconds' worth.
	taskProducts = 1 << 16
)
