package tensor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/hugepages"
)

// Tensor is a dense row-major array of float32. After a backward pass has reached it, it also has a gradient of the
// same shape.
//
// A Tensor made on a tape is valid until Reset or Release of that tape frees it; using it afterwards panics with a
// *ValueError. The zero value is not useful; use New, Zeros or an operation.
type Tensor struct {
	data  []float32
	shape []int

	needs bool    // a gradient flows to this tensor
	later bool    // Materialize allocates its elements
	grad  *Tensor // nil until a backward step needs it
	base  *Tensor // the tensor whose memory this one views (Reshape, Rows), else nil
	at    int     // where in the base the view starts
	home  *Tape   // the tape that owns the memory, nil for leaves
	life  uint64  // the life of home when the tensor was made
}

// New returns a tensor of the given shape that shares data. It panics with a *ShapeError if the size of the shape is
// not len(data).
func New(data []float32, shape ...int) *Tensor {
	if n := checkSize("New", shape); n != len(data) {
		panic(&ShapeError{
			Op: "tensor: New", Arg: "data", What: "number of values", Got: []int{len(data)},
			Want: fmt.Sprintf("%d for shape %v", n, shape),
		})
	}
	return &Tensor{data: data, shape: slices.Clone(shape)}
}

// Zeros returns a new tensor of zeros. It panics with a *ShapeError if the shape is invalid, or larger than memory
// could be.
func Zeros(shape ...int) *Tensor {
	return &Tensor{data: hugepages.Make[float32](checkSize("Zeros", shape)), shape: slices.Clone(shape)}
}

// Full returns a new tensor whose elements all equal value.
func Full(value float32, shape ...int) *Tensor {
	x := Zeros(shape...)
	for i := range x.data {
		x.data[i] = value
	}
	return x
}

// Randn returns a tensor of independent standard normal numbers.
func Randn(rng *rand.Rand, shape ...int) *Tensor {
	checkRand("Randn", rng)
	x := Zeros(shape...)
	for i := range x.data {
		x.data[i] = float32(rng.NormFloat64())
	}
	return x
}

// Uniform returns a tensor of independent numbers, uniform in [lo, hi).
func Uniform(rng *rand.Rand, lo, hi float32, shape ...int) *Tensor {
	checkRand("Uniform", rng)
	x := Zeros(shape...)
	for i := range x.data {
		x.data[i] = lo + float32((hi-lo)*rng.Float32())
	}
	return x
}

// Param marks x as a parameter, a leaf that gradients flow to, and returns x. The gradients of successive backward
// passes add up until ZeroGrad.
func (x *Tensor) Param() *Tensor {
	x.needs = true
	return x
}

// Uninitialized returns a parameter with some sizes unknown, given as -1. It has no elements, and no gradient flows
// to it, until Materialize. Layers that take their widths from the first batch or from a file start with such
// parameters.
func Uninitialized(shape ...int) *Tensor { return &Tensor{shape: slices.Clone(shape), later: true} }

// Initialized reports whether x has elements. It is false only between Uninitialized and Materialize.
func (x *Tensor) Initialized() bool { return !x.later }

// Materialize gives an Uninitialized parameter its shape and sets its elements to 0. It panics with a *ShapeError if
// x already has elements, or if shape differs from a size that is already known.
func (x *Tensor) Materialize(shape ...int) {
	fits := slices.EqualFunc(shape, x.shape, func(n, own int) bool { return n == own || own < 0 })
	if !x.later || !fits {
		badShape("Materialize", "shape", shape, "%v of a parameter without elements, where -1 is any size", x.shape)
	}
	x.data, x.shape, x.needs, x.later = Zeros(shape...).data, slices.Clone(shape), true, false
}

// Rows returns rows lo to hi along the first axis as a view, which shares the elements and the gradient of x. Layers
// use it to name the parts of a parameter that they multiply as one. It panics with a *ShapeError if the rows are out
// of range.
func (x *Tensor) Rows(lo, hi int) *Tensor {
	checkAxis("Rows", x, 0)
	if lo < 0 || hi < lo || hi > x.shape[0] {
		badShape("Rows", "x", x.shape, "rows %d to %d", lo, hi)
	}
	shape := slices.Clone(x.shape)
	shape[0] = hi - lo
	step := size(x.shape[1:])
	return &Tensor{
		data: x.data[lo*step : hi*step : hi*step], shape: shape, needs: x.needs, base: x, at: lo * step,
		home: x.home, life: x.life,
	}
}

// stale reports whether the tape of x has freed its memory.
func (x *Tensor) stale() bool {
	if x.home == nil || x.life >= x.home.alive {
		return false
	}
	_, lost := x.home.lost(x.life)
	return lost
}

// live panics if x is stale.
func (x *Tensor) live(op string) {
	if x.stale() {
		badStale(op, "x")
	}
}

func badStale(op, arg string) {
	badValue(op, arg, "a tensor that its tape has freed by Reset or Release", "a tensor made later, or a Clone made before")
}

// Data returns the elements in row-major order, shared with x.
func (x *Tensor) Data() []float32 {
	x.live("Data")
	return x.data
}

// Shape returns the sizes of the axes. The caller must not change them.
func (x *Tensor) Shape() []int {
	x.live("Shape")
	return x.shape
}

// Rank returns the number of axes.
func (x *Tensor) Rank() int { return len(x.shape) }

// Dim returns the size of an axis; a negative axis counts from the end. It panics
// with a *ShapeError if there is no such axis.
func (x *Tensor) Dim(axis int) int {
	x.live("Dim")
	a := axis
	if a < 0 {
		a += len(x.shape)
	}
	if uint(a) >= uint(len(x.shape)) {
		badShape("Dim", "x", x.shape, "an axis %d", axis)
	}
	return x.shape[a]
}

// Len returns the number of elements.
func (x *Tensor) Len() int { return len(x.data) }

// At returns the element at the given indices, one for each axis.
func (x *Tensor) At(index ...int) float32 {
	x.live("At")
	if len(index) != len(x.shape) {
		badShape("At", "x", x.shape, "%d axes", len(index))
	}
	at := 0
	for a, i := range index {
		if i < 0 || i >= x.shape[a] {
			badShape("At", "x", x.shape, "an element %v", index)
		}
		at = at*x.shape[a] + i
	}
	return x.data[at]
}

// Item returns the only element of a tensor with one element, such as a loss.
func (x *Tensor) Item() float32 {
	x.live("Item")
	if len(x.data) != 1 {
		badShape("Item", "x", x.shape, "one element")
	}
	return x.data[0]
}

// Grad returns the gradient that backward passes have added up for x, or nil if none has reached it. It shares the
// memory of x's gradient.
func (x *Tensor) Grad() *Tensor {
	x.live("Grad")
	if x.base != nil {
		if g := x.base.Grad(); g != nil {
			return &Tensor{data: g.data[x.at:][:len(x.data)], shape: x.shape, home: x.home, life: x.life}
		}
		return nil
	}
	return x.grad
}

// NeedsGrad reports whether gradients flow to x.
func (x *Tensor) NeedsGrad() bool { return x.needs }

// ZeroGrad clears the gradient of a parameter before the next backward pass.
func (x *Tensor) ZeroGrad() {
	if g := x.Grad(); g != nil {
		zeroAll(g.data)
	}
}

// Clone returns a copy in new memory, to which no gradient flows. Clone a tensor that must outlive Reset or Release
// of its tape.
func (x *Tensor) Clone() *Tensor {
	x.live("Clone")
	return &Tensor{data: slices.Clone(x.data), shape: slices.Clone(x.shape)}
}

// Detach returns a view of x through which no gradient flows.
func (x *Tensor) Detach() *Tensor {
	x.live("Detach")
	return &Tensor{data: x.data, shape: x.shape, home: x.home, life: x.life}
}

// String formats a small tensor with nested brackets, and a large one as its shape only.
func (x *Tensor) String() string {
	if x.stale() {
		return "tensor that its tape has taken back"
	}
	if len(x.data) > 200 || x.later {
		return fmt.Sprintf("tensor%v", x.shape)
	}
	var b strings.Builder
	var write func(data []float32, shape []int)
	write = func(data []float32, shape []int) {
		if len(shape) == 0 {
			fmt.Fprintf(&b, "%.4g", data[0])
			return
		}
		b.WriteByte('[')
		for i := range shape[0] {
			if i > 0 {
				b.WriteByte(' ')
			}
			step := size(shape[1:])
			write(data[i*step:(i+1)*step], shape[1:])
		}
		b.WriteByte(']')
	}
	write(x.data, x.shape)
	return b.String()
}
