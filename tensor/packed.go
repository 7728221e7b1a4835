package tensor

import (
	"fmt"
	"strings"
	"sync"

	"github.com/attn-go/attn/internal/hugepages"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Packed is a matrix [Out In] of weights for inference, stored in the order in which products read them. The weights are
// rearranged once, when they are set, and not by every product. A step of a decoder reads every weight once, so its speed
// is limited by memory: weights of 2 bytes take half of the time of float32, and those of 1 byte less.
//
// With Float32 and BFloat16Weights, products equal the products of a Tensor with the same numbers, bit for bit.
//
// On an AMD EPYC with AVX-512, products in BFloat16 (AVX512-BF16) are twice as fast as in Float32, and in Int8
// (AVX512-VNNI) more than three times. With AVX-VNNI, Int8 is 2.3 to 2.9 times as fast as Float32, and on AVX2 1 to 1.2
// times, 2.8 times for one input; BFloat16 takes up to 1.1 times as long as Float32 on AVX2. On the tile units of an Intel
// Xeon (AMX), products with 128 inputs are five times as fast in BFloat16 as in Float32, and eight times in Int8. With the
// dot-product extension of arm64 they are tested under emulation, and their speed is not measured. On other processors
// both take longer. The rounded numbers are the same everywhere, and so is the result but for the last digits of sums.
//
// Sources: Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
// 2017, https://arxiv.org/abs/1712.05877; groups are from Dettmers et al., "8-bit Optimizers via Block-wise
// Quantization", 2021, https://arxiv.org/abs/2110.02861.
type Packed struct {
	w      *simd.Panels
	format Format
}

// NewPacked returns a matrix of zeros. It panics with a *ValueError or a *ShapeError if the format is unknown or a size
// is not positive.
func NewPacked(out, in int, f Format) *Packed {
	if err := f.Check(); err != nil {
		_, want, _ := strings.Cut(err.Error(), ", want ")
		badValue("NewPacked", "format", f.String(), want)
	}
	if out < 1 || in < 1 {
		badShape("NewPacked", "matrix", []int{out, in}, "positive sizes")
	}
	return &Packed{simd.NewPanels(in, out, formats[f].stored, formats[f].rounded, hugepages.Make[byte]), f}
}

// Shape returns [Out In].
func (p *Packed) Shape() []int { return []int{p.w.N, p.w.K} }

// Format returns the format.
func (p *Packed) Format() Format { return p.format }

// Bytes returns the memory of the weights, in bytes.
func (p *Packed) Bytes() int { return len(p.w.Memory) }

// SetRows sets the weights of outputs i, i+1, … to the rows in x, one row after another. It may be called for
// different rows concurrently if every call starts at a multiple of Together, and every call except the last one sets
// a multiple of Together rows.
//
// It panics with a *ShapeError if the rows are out of range.
func (p *Packed) SetRows(i int, x []float32) {
	p.w.Set(i, p.rowsOf("SetRows", i, len(x)), simd.RowMajor(x, p.w.K).T())
}

// SetRowsBFloat16 is SetRows for bfloat16, the upper halves of float32. It sets the same weights as SetRows does for
// the same values.
func (p *Packed) SetRowsBFloat16(i int, x []uint16) {
	p.w.SetBFloat16(i, p.rowsOf("SetRowsBFloat16", i, len(x)), x)
}

// rowsOf returns the number of rows in length elements. It panics if they do not fit from row i on.
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

// Together returns the number of rows that are stored together.
func (p *Packed) Together() int { return p.w.Width }

// SetTransposed sets all weights from x, a matrix [In Out] whose rows start stride elements apart.
//
// It panics with a *ShapeError if x has too few elements, or if stride is less than Out.
func (p *Packed) SetTransposed(x []float32, stride int) {
	in, out, width := p.w.K, p.w.N, p.w.Width
	if stride < out || len(x) < (in-1)*stride+out {
		panic(&ShapeError{
			Op: "tensor: Packed.SetTransposed", Arg: "matrix", What: "number of elements and stride", Got: []int{len(x), stride},
			Want: fmt.Sprintf("at least %d elements and a stride of at least %d for [In=%d Out=%d]", (in-1)*max(stride, out)+out, out, in, out),
		})
	}
	par.For((out+width-1)/width, par.Chunk((out+width-1)/width, in*width), func(lo, hi int) {
		j := lo * width
		p.w.Set(j, min(hi*width, out)-j, simd.RowMajor(x[j:], stride))
	})
}

// Rows returns rows of the matrix, as an embedding does.
//
// Shapes: out [len(index) In].
//
// It panics with a *ShapeError if an index is out of range.
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

// Linears applies several maps to the same inputs in one pass; the results are the same as from separate calls. It is
// for the projections of attention, each too small to be divided evenly among processors.
//
// Shapes: x [… In], out[i] [… Out], with Out from maps[i].
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

// packedProduct is a running call of Linears. It is kept in a pool together with its function value, because a step
// of a decoder makes a hundred of these calls and should not allocate for them.
type packedProduct struct {
	t      *Tape
	x      *Tensor
	n, in  int // rows and columns of x
	panels int // of all maps together
	cut    simd.Cut
	inputs simd.Inputs // if the maps are reduced
	maps   []mapped
	pieces func(lo, hi int)
}

// mapped is a map with the data of its bias and its result.
type mapped struct {
	w      *simd.Panels
	bias   []float32
	out    []float32
	panels int
}

var packedProducts = sync.Pool{New: func() any {
	p := new(packedProduct)
	p.pieces = p.doPieces
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
	w := weight.w
	if p.in != w.K {
		badShape(opLinears, "x", p.x.shape, "[… In=%d]", w.K)
	}
	if p.t.Needs(p.x, bias) {
		badValue(opLinears, "tape", "one that records", "nil or one of mode Infer: no gradient passes through packed weights; models.Options{Trainable: true} loads parameters")
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

// compute computes the results and puts p back into the pool.
func (p *packedProduct) compute() {
	if p.n > 0 && p.panels > 0 {
		w := p.maps[0].w
		p.cut = simd.NewCut(1, p.n, p.panels, w.Width, p.in, blockRows)
		if w.Rounded {
			p.inputs.Reset(w, simd.RowMajor(p.x.data, p.in), p.n)
		}
		par.For(p.cut.Pieces, 1, p.pieces)
		p.inputs.Free()
	}
	clear(p.maps) // otherwise they would keep the caller's memory alive
	p.t, p.x, p.maps = nil, nil, p.maps[:0]
	packedProducts.Put(p)
}

// blockRows is the largest number of rows of a piece. They and its part of the weights stay in a cache.
const blockRows = 192

// doPieces computes pieces lo to hi.
func (p *packedProduct) doPieces(lo, hi int) {
	par.Check(p.t.Context())
	for ; lo < hi; lo++ {
		_, first, end, from, to := p.cut.Piece(lo)
		next := p.cut.Next(lo) - to // from the last panel of a map to the first of the thread's next piece
		a := simd.RowMajor(p.x.data[first*p.in:], p.in)
		for i := range p.maps {
			m := &p.maps[i]
			if w := m.w; from < m.panels && to > 0 {
				c := simd.RowMajor(m.out[first*w.N:], w.N)
				last := min(to, m.panels)
				j0, j1, after := max(from, 0)*w.Width, min(last*w.Width, w.N), (last+next)*w.Width
				if shares := p.maps[0].w; w.Rounded && shares.Rounded && w.Format == shares.Format {
					w.MultiplyInputs(c, &p.inputs, first, end-first, j0, j1, m.bias, after)
				} else {
					w.Multiply(c, a, end-first, j0, j1, m.bias, after)
				}
			}
			from, to = from-m.panels, to-m.panels
		}
	}
}
