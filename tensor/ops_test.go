package tensor_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

func TestOps(t *testing.T) {
	golden := openOps(t)
	for _, c := range opCases() {
		t.Run(c.name, func(t *testing.T) {
			g := golden.On(t)
			x := c.operands(g)
			if c.want == nil {
				c.testGolden(t, g, x)
			} else {
				c.testFormula(t, x)
			}
		})
	}
}

func (c *opCase) testGolden(t *testing.T, g *tensortest.Golden, x []*tensor.Tensor) {
	tape := tensortest.Tape(tensor.Train)
	for _, x := range x {
		x.Param()
	}
	y := c.f(tape, x)
	shape := g.Shape(c.name + ".want")
	switch {
	case y.Rank() == 0: // the file cannot store tensors without axes
		shape = nil
	case c.ints > 0: // an embedding of [B L] numbers
		shape = []int{shape[0] * shape[1], shape[2]}
	}
	if !slices.Equal(y.Shape(), shape) {
		t.Errorf("shape %v, want %v", y.Shape(), shape)
	}
	g.Check(c.name+".want", y)
	tape.Backward(y, tensor.New(g.Tensor(c.name+".dout").Data(), y.Shape()...))
	for i, x := range x {
		g.CheckGrad(fmt.Sprintf("%s.grad%d", c.name, c.ints+i), x)
	}
}

func (c *opCase) testFormula(t *testing.T, x []*tensor.Tensor) {
	before := make([]*tensor.Tensor, len(x))
	for i := range x {
		before[i] = x[i].Clone()
	}
	y := c.f(tensortest.Tape(tensor.Train), x)
	if !slices.Equal(y.Shape(), c.shape) {
		t.Fatalf("shape %v, want %v", y.Shape(), c.shape)
	}
	var want []float64
	for i := range indices(c.shape) {
		want = append(want, c.want(x, i))
	}
	tensortest.Close(t, "result", y.Data(), want, 0)
	for i := range x {
		tensortest.Same(t, fmt.Sprintf("operand %d afterwards", i), x[i].Data(), before[i].Data())
	}
}

// indices yields all indices of an array of the given shape in order.
func indices(shape []int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		index := make([]int, len(shape))
		for e := range n {
			for a := len(shape) - 1; a >= 0; a-- {
				index[a], e = e%shape[a], e/shape[a]
			}
			if !yield(index) {
				return
			}
		}
	}
}

func TestOpGradients(t *testing.T) {
	golden := openOps(t)
	for _, c := range opCases() {
		t.Run(c.name, func(t *testing.T) {
			x := c.operands(golden)
			for _, x := range x {
				for i, v := range x.Data() {
					if a := math.Abs(float64(v)); a < float64(c.keep) {
						x.Data()[i] = float32(math.Copysign(float64(c.keep)+a, float64(v)))
					}
				}
			}
			tensortest.GradCheck(t, c.name, c.f, x)
		})
	}
}

// Work is divided by shape alone, so the number of threads does not change results.
func TestOpsOnAnyNumberOfThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: every operation again")
	}
	golden := openOps(t)
	for _, c := range opCases() {
		t.Run(c.name, func(t *testing.T) {
			x := c.large(golden)
			run := func(procs int) []*tensor.Tensor {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				tape := training()
				y := c.f(tape, x)
				all := []*tensor.Tensor{y.Clone()}
				tape.Backward(y, tensor.New(c.draw([][]int{{y.Len()}})[0].Data(), y.Shape()...))
				for _, x := range x {
					all = append(all, x.Grad().Clone())
					x.ZeroGrad()
				}
				return all
			}
			want := run(1)
			for _, procs := range []int{2, 3} {
				for i, got := range run(procs) {
					what := "result"
					if i > 0 {
						what = fmt.Sprintf("gradient %d", i-1)
					}
					tensortest.Same(t, fmt.Sprintf("%s on %d threads", what, procs), got.Data(), want[i].Data())
				}
			}
		})
	}
}

func BenchmarkOps(b *testing.B) {
	golden := openOps(b)
	for _, c := range opCases() {
		if c.bench == nil {
			continue
		}
		x := c.large(golden)
		floats := 0
		for _, x := range x {
			floats += x.Len()
		}
		b.Run(c.name+"/forward", func(b *testing.B) {
			b.SetBytes(4 * int64(floats))
			tape := tensor.NewTape(tensor.Infer)
			for b.Loop() {
				tape.Reset()
				c.f(tape, x)
			}
		})
		b.Run(c.name+"/both", func(b *testing.B) {
			b.SetBytes(4 * int64(floats))
			tape := training()
			dout := tensor.Full(1, c.f(nil, x).Shape()...)
			for b.Loop() {
				tape.Reset()
				tape.Backward(c.f(tape, x), dout)
			}
		})
	}
}
