package tensor

import (
	"math"
	"reflect"
	"slices"
	"sync"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// The costs of an element, for par.Chunk.
const (
	costAdd    = 1 // copying, adding, multiplying
	costNorm   = 2 // several passes through a row that is in the cache
	costExp    = 4 // functions computed with SIMD instructions, and random numbers
	costScalar = 8 // functions computed one by one

	costMiss = 512 // for a row at a random place, which is not in the cache
)

// unary implements all functions of one element: y = f(x), and dx += dy·f'(x), which back computes from x or y,
// whichever is cheaper.
func unary(t *Tape, op string, cost int, x *Tensor, f func(y, x []float32), back func(dx, dy, x, y []float32)) *Tensor {
	operand(op, "x", x)
	y := t.Make(x.shape...)
	switch n, chunk := len(x.data), par.ChunkOfNumbers(len(x.data), cost); {
	case n > chunk:
		par.For(n, chunk, func(lo, hi int) { f(y.data[lo:hi], x.data[lo:hi]) })
	case n > 0: // without a closure: a step of a decoder would allocate hundreds
		f(y.data, x.data)
	}
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx, fresh := t.FreshGradOf(x)
			par.For(len(dx), par.ChunkOfNumbers(len(dx), costAdd+cost), func(lo, hi int) {
				clearIf(fresh, dx[lo:hi])
				back(dx[lo:hi], dy[lo:hi], x.data[lo:hi], y.data[lo:hi])
			})
		})
	}
	return y
}

// clearIf clears a piece of a fresh gradient just before the caller adds to it, so that it is in the cache.
func clearIf(fresh bool, dx []float32) {
	if fresh {
		clear(dx)
	}
}

// backThrough adds dy·f'(x) to dx, where derivative computes f'(x).
func backThrough(derivative func(slope, x []float32), dx, dy, x []float32) {
	var slope [256]float32
	for len(x) > 0 {
		n := min(len(x), len(slope))
		derivative(slope[:n], x[:n])
		simd.MulAddSparse(dx[:n], dy[:n], slope[:n])
		x, dx, dy = x[n:], dx[n:], dy[n:]
	}
}

// Tanh returns tanh x, elementwise.
func Tanh(t *Tape, x *Tensor) *Tensor {
	return unary(t, "Tanh", costExp, x, simd.Tanh, func(dx, dy, _, y []float32) {
		for i, v := range y {
			if dy[i] != 0 {
				dx[i] += float32(dy[i] * (1 - float32(v*v)))
			}
		}
	})
}

// Sigmoid returns 1/(1+exp(−x)), elementwise.
func Sigmoid(t *Tape, x *Tensor) *Tensor {
	return unary(t, "Sigmoid", costExp, x, simd.Sigmoid, func(dx, dy, _, y []float32) {
		for i, v := range y {
			if dy[i] != 0 {
				dx[i] += float32(dy[i] * v * (1 - v))
			}
		}
	})
}

// ReLU returns max(x, 0), elementwise. Its gradient at 0 is 0.
func ReLU(t *Tape, x *Tensor) *Tensor {
	return unary(t, "ReLU", costAdd, x, simd.ReLU, func(dx, dy, x, _ []float32) { simd.ReLUGrad(dx, dy, x) })
}

// GELU returns x·Φ(x), elementwise, where Φ is the distribution function of
// the standard normal: the exact form, with erf.
//
// Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016,
// https://arxiv.org/abs/1606.08415.
func GELU(t *Tape, x *Tensor) *Tensor {
	return unary(t, "GELU", costExp, x, simd.GELU, func(dx, dy, x, _ []float32) { backThrough(simd.GELUGrad, dx, dy, x) })
}

// SiLU returns x·sigmoid(x), elementwise, also called swish.
//
// Source: Elfwing, Uchibe and Doya, "Sigmoid-Weighted Linear Units for Neural Network Function Approximation in
// Reinforcement Learning", 2017, https://arxiv.org/abs/1702.03118.
func SiLU(t *Tape, x *Tensor) *Tensor {
	return unary(t, "SiLU", costExp, x, silu, func(dx, dy, x, _ []float32) { // with s = sigmoid(x): dx += dy·s + dy·x·s·(1−s)
		var s, ds [256]float32
		for len(x) > 0 {
			n := min(len(x), len(s))
			simd.Sigmoid(s[:n], x[:n])
			simd.MulAddSparse(dx[:n], dy[:n], s[:n])
			clear(ds[:n])
			simd.MulAddSparse(ds[:n], dy[:n], x[:n])
			for i, v := range s[:n] {
				if ds[i] != 0 {
					dx[i] += float32(ds[i] * v * (1 - v))
				}
			}
			x, dx, dy = x[n:], dx[n:], dy[n:]
		}
	})
}

func silu(y, x []float32) {
	simd.Sigmoid(y, x)
	simd.Mul(y, x, y)
}

// QuickGELU returns x·sigmoid(1.702·x), elementwise: an approximation of GELU.
func QuickGELU(t *Tape, x *Tensor) *Tensor { return Mul(t, x, Sigmoid(t, Scale(t, x, 1.702))) }

// TanhGELU returns x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), elementwise: an approximation of GELU.
func TanhGELU(t *Tape, x *Tensor) *Tensor {
	return unary(t, "TanhGELU", 2*costExp, x, tanhGELU, func(dx, dy, x, _ []float32) {
		var f, s, ds, du, df [256]float32 // the factor, sigmoid(u), and gradients
		for len(x) > 0 {
			n := min(len(x), len(f))
			dx0, dy0, x0, f, s, ds, du, df := dx[:n], dy[:n], x[:n], f[:n], s[:n], ds[:n], du[:n], df[:n]
			tanhGELUFactor(f, x0)
			simd.Mul(s, x0, f)
			simd.Sigmoid(s, s)
			simd.MulAddSparse(dx0, dy0, s)
			clear(ds)
			simd.MulAddSparse(ds, dy0, x0)
			for i, v := range s {
				if du[i] = 0; ds[i] != 0 {
					du[i] = float32(ds[i] * v * (1 - v))
				}
			}
			simd.MulAddSparse(dx0, du, f)
			clear(df)
			simd.MulAddSparse(df, du, x0)
			simd.Scale(df, tanhGELUCube, df)
			for i, v := range df {
				if v != 0 {
					dx0[i] += float32(2 * x0[i] * v)
				}
			}
			x, dx, dy = x[n:], dx[n:], dy[n:]
		}
	})
}

// tanhGELU is x·sigmoid(u), where u = x·(c + k·x²) is twice the argument of tanh.
func tanhGELU(y, x []float32) {
	tanhGELUFactor(y, x)
	simd.Mul(y, x, y)
	simd.Sigmoid(y, y)
	simd.Mul(y, x, y)
}

const tanhGELUCube = 0.044715 * (2 * math.Sqrt2 / math.SqrtPi) // k

// tanhGELUFactor sets y to c + k·x².
func tanhGELUFactor(y, x []float32) {
	const c = 2 * math.Sqrt2 / math.SqrtPi
	simd.Mul(y, x, x)
	simd.Scale(y, tanhGELUCube, y)
	simd.ScaleShift(y, 1, y, c)
}

// Softplus returns log(1 + exp x), elementwise: a smooth max(x, 0). It is infinite only where x is.
func Softplus(t *Tape, x *Tensor) *Tensor {
	return unary(t, "Softplus", 2*costExp, x, func(y, x []float32) {
		var one, two, three [256]float32
		for len(x) > 0 { // max(x, 0) + log(1 + e) for e = exp −|x|, as 2·atanh s for s = e/(2 + e), at most ⅓
			n := min(len(x), len(one))
			s, square, sum := one[:n], two[:n], three[:n]
			notPositive(s, x[:n])
			simd.ReLU(y[:n], x[:n])
			simd.Axpy(-1, y[:n], s)
			simd.Exp(s, s)
			for i, e := range s {
				s[i] = e / (2 + e)
			}
			simd.Mul(square, s, s)
			clear(sum)
			for _, c := range [...]float32{2. / 15, 2. / 13, 2. / 11, 2. / 9, 2. / 7, 2. / 5, 2. / 3, 2} {
				simd.Mul(sum, sum, square)
				simd.ScaleShift(sum, 1, sum, c)
			}
			simd.MulAdd(y[:n], s, sum)
			x, y = x[n:], y[n:]
		}
	}, func(dx, dy, x, _ []float32) { backThrough(simd.Sigmoid, dx, dy, x) })
}

// ELU returns x where x > 0, exp x − 1 elsewhere, elementwise.
//
// Source: Clevert, Unterthiner and Hochreiter, "Fast and Accurate Deep Network Learning by Exponential Linear Units (ELUs)",
// 2015, https://arxiv.org/abs/1511.07289, with α = 1.
func ELU(t *Tape, x *Tensor) *Tensor {
	return unary(t, "ELU", 2*costExp, x, func(y, x []float32) {
		var low, e [256]float32
		for len(x) > 0 { // max(x, 0) + exp z − 1 for z = min(x, 0), as tanh(z/2)·(exp z + 1): near 0 the difference has few digits
			n := min(len(x), len(e))
			low, e := low[:n], e[:n]
			notPositive(low, x[:n])
			simd.Exp(e, low)
			simd.ScaleShift(e, 1, e, 1)
			simd.Scale(low, 0.5, low)
			simd.Tanh(low, low)
			simd.ReLU(y[:n], x[:n])
			simd.MulAdd(y[:n], low, e)
			x, y = x[n:], y[n:]
		}
	}, func(dx, dy, x, _ []float32) {
		backThrough(func(slope, x []float32) {
			notPositive(slope, x)
			simd.Exp(slope, slope)
		}, dx, dy, x)
	})
}

// notPositive sets y to min(x, 0).
func notPositive(y, x []float32) {
	simd.Scale(y, -1, x)
	simd.ReLU(y, y)
	simd.Scale(y, -1, y)
}

// GateOver returns f(x)·y, elementwise, where f is a function of each element: the gate of a feed-forward network. x and y
// have the same shape. It may write the result over x, so nothing may use x or a view of it afterwards. It does so on a tape
// of mode Infer on which x was made, if f is ReLU, GELU, TanhGELU, SiLU, Tanh or Sigmoid: in one pass over memory, and with
// the bits of Mul and f. The gain is in the row "prompt Llama 135M L512 int8" of bench/RESULTS.md.
//
// Source: Shazeer, "GLU Variants Improve Transformer", 2020, https://arxiv.org/abs/2002.05202.
func GateOver(t *Tape, f func(*Tape, *Tensor) *Tensor, x, y *Tensor) *Tensor {
	const op = "GateOver"
	operand(op, "x", x)
	sameShape(op, "y", y, x.shape)
	known := values[code(f)]
	if known == nil || t == nil || t.Recording() || x.home != t {
		return Mul(t, f(t, x), y)
	}
	g := gate{known, x.data, y.data}
	if n, chunk := len(x.data), par.ChunkOfNumbers(len(x.data), costExp); n > chunk {
		g.computeLong(chunk)
	} else { // without a closure, as in unary
		g.compute(0, n)
	}
	return x
}

// gate replaces x by f(x)·y.
type gate struct {
	f    func(y, x []float32)
	x, y []float32
}

func (g gate) computeLong(chunk int) { par.For(len(g.x), chunk, g.compute) }

// compute replaces elements lo to hi, in pieces that stay in a cache.
func (g *gate) compute(lo, hi int) {
	piece := pieces.Get().(*[1 << 10]float32)
	for ; lo < hi; lo += len(piece) {
		end := min(lo+len(piece), hi)
		g.f(piece[:end-lo], g.x[lo:end])
		simd.Mul(g.x[lo:end], piece[:end-lo], g.y[lo:end])
	}
	pieces.Put(piece)
}

var pieces = sync.Pool{New: func() any { return new([1 << 10]float32) }}

// values are functions of this package, for slices.
var values = map[uintptr]func(y, x []float32){
	code(ReLU): simd.ReLU, code(GELU): simd.GELU, code(TanhGELU): tanhGELU, code(SiLU): silu, code(Tanh): simd.Tanh, code(Sigmoid): simd.Sigmoid,
}

// code identifies a function that is not a closure.
func code(f func(*Tape, *Tensor) *Tensor) uintptr { return reflect.ValueOf(f).Pointer() }

// Exp returns exp x, elementwise.
func Exp(t *Tape, x *Tensor) *Tensor {
	return unary(t, "Exp", costExp, x, simd.Exp, func(dx, dy, _, y []float32) { simd.MulAddSparse(dx, dy, y) })
}

// Log returns the natural logarithm of x, elementwise.
func Log(t *Tape, x *Tensor) *Tensor {
	return oneByOne(t, "Log", x, math.Log, func(dy, x, _ float32) float32 { return dy / x })
}

// Log1p returns log(1 + x), elementwise, which is accurate for small x.
func Log1p(t *Tape, x *Tensor) *Tensor {
	return oneByOne(t, "Log1p", x, math.Log1p, func(dy, x, _ float32) float32 { return dy / (1 + x) })
}

// Sqrt returns the square root of x, elementwise.
func Sqrt(t *Tape, x *Tensor) *Tensor {
	return oneByOne(t, "Sqrt", x, math.Sqrt, func(dy, _, y float32) float32 { return dy / (2 * y) })
}

// oneByOne is unary for a function of package math, with dx += back(dy, x, y).
func oneByOne(t *Tape, op string, x *Tensor, f func(float64) float64, back func(dy, x, y float32) float32) *Tensor {
	return unary(t, op, costScalar, x, func(y, x []float32) {
		for i, v := range x {
			y[i] = float32(f(float64(v)))
		}
	}, func(dx, dy, x, y []float32) {
		for i, d := range dy {
			if d != 0 {
				dx[i] += back(d, x[i], y[i])
			}
		}
	})
}

// Square returns x², elementwise.
func Square(t *Tape, x *Tensor) *Tensor {
	return unary(t, "Square", costAdd, x, func(y, x []float32) { simd.Mul(y, x, x) }, func(dx, dy, x, _ []float32) {
		for i, v := range x {
			if dy[i] != 0 {
				dx[i] += float32(2 * v * dy[i])
			}
		}
	})
}

// Scale returns s·x.
func Scale(t *Tape, x *Tensor, s float32) *Tensor {
	return unary(t, "Scale", costAdd, x, func(y, x []float32) { simd.Scale(y, s, x) }, func(dx, dy, _, _ []float32) {
		simd.Axpy(s, dy, dx)
	})
}

// Shift returns x + c.
func Shift(t *Tape, x *Tensor, c float32) *Tensor {
	return unary(t, "Shift", costAdd, x, func(y, x []float32) { simd.ScaleShift(y, 1, x, c) }, func(dx, dy, _, _ []float32) { simd.Add(dx, dx, dy) })
}

// Add returns a + b, elementwise, after broadcasting: axes are aligned at the end, and an operand is repeated along a
// missing axis or an axis of size 1. The gradient of a repeated axis is the sum over it.
func Add(t *Tape, a, b *Tensor) *Tensor {
	plus := func(d, dy, _, _ []float32) { simd.Add(d, d, dy) }
	return binary(t, "Add", a, b, simd.Add, plus, plus)
}

// Sub returns a − b, elementwise, broadcasting as Add does.
func Sub(t *Tape, a, b *Tensor) *Tensor {
	return binary(t, "Sub", a, b, func(y, a, b []float32) {
		for i := range y {
			y[i] = a[i] - b[i]
		}
	}, func(da, dy, _, _ []float32) {
		simd.Add(da, da, dy)
	}, func(db, dy, _, _ []float32) {
		simd.Axpy(-1, dy, db)
	})
}

// Mul returns a·b, elementwise, broadcasting as Add does.
func Mul(t *Tape, a, b *Tensor) *Tensor {
	return binary(t, "Mul", a, b, simd.Mul, func(da, dy, _, b []float32) {
		simd.MulAddSparse(da, dy, b)
	}, func(db, dy, a, _ []float32) {
		simd.MulAddSparse(db, dy, a)
	})
}

// Div returns a/b, elementwise, broadcasting as Add does.
func Div(t *Tape, a, b *Tensor) *Tensor {
	return binary(t, "Div", a, b, func(y, a, b []float32) {
		for i := range y {
			y[i] = a[i] / b[i]
		}
	}, func(da, dy, _, b []float32) {
		for i := range da {
			if dy[i] != 0 {
				da[i] += dy[i] / b[i]
			}
		}
	}, func(db, dy, a, b []float32) {
		for i := range db {
			if dy[i] != 0 {
				db[i] -= dy[i] * a[i] / (b[i] * b[i])
			}
		}
	})
}

// binary implements all functions of two elements: y = f(a, b), with da += dy·∂f/∂a and db += dy·∂f/∂b.
func binary(t *Tape, op string, a, b *Tensor, f func(y, a, b []float32), backA, backB func(d, dy, a, b []float32)) *Tensor {
	operand(op, "a", a)
	operand(op, "b", b)
	switch {
	case slices.Equal(a.shape, b.shape):
	case repeats(a, b):
		return binaryRepeated(t, a, b, f, backA, backB)
	default:
		shape := broadcast(op, a, b)
		a, b = BroadcastTo(t, a, shape...), BroadcastTo(t, b, shape...)
	}
	y := t.Make(a.shape...)
	switch n, chunk := len(y.data), par.ChunkOfNumbers(len(y.data), costAdd); {
	case n > chunk:
		par.For(n, chunk, func(lo, hi int) { f(y.data[lo:hi], a.data[lo:hi], b.data[lo:hi]) })
	case n > 0: // as in unary
		f(y.data, a.data, b.data)
	}
	if t.Needs(a, b) {
		t.Record(y, func(dy []float32) {
			da, freshA := t.FreshGradOf(a)
			db, freshB := t.FreshGradOf(b) // the same as da if b is a
			par.For(len(dy), par.ChunkOfNumbers(len(dy), 2*costAdd), func(lo, hi int) {
				if da != nil {
					clearIf(freshA, da[lo:hi])
					backA(da[lo:hi], dy[lo:hi], a.data[lo:hi], b.data[lo:hi])
				}
				if db != nil {
					clearIf(freshB, db[lo:hi])
					backB(db[lo:hi], dy[lo:hi], a.data[lo:hi], b.data[lo:hi])
				}
			})
		})
	}
	return y
}

// repeats reports whether a consists of blocks of b's shape that are long enough to process one by one, which saves
// writing out b for each block.
func repeats(a, b *Tensor) bool {
	lead := len(a.shape) - len(b.shape)
	return lead > 0 && len(b.data) >= 32 && slices.Equal(a.shape[lead:], b.shape)
}

// binaryRepeated is binary where b is repeated for each block of a.
func binaryRepeated(t *Tape, a, b *Tensor, f func(y, a, b []float32), backA, backB func(d, dy, a, b []float32)) *Tensor {
	n := len(b.data)
	count := len(a.data) / n
	y := t.Make(a.shape...)
	blocks(count, n, costAdd, func(r, rows, lo, hi int) {
		for i := r; i < r+rows; i++ {
			at, end := i*n+lo, i*n+hi
			f(y.data[at:end], a.data[at:end], b.data[lo:hi])
		}
	})
	if t.Needs(a, b) {
		t.Record(y, func(dy []float32) {
			if da, fresh := t.FreshGradOf(a); da != nil {
				blocks(count, n, costAdd, func(r, rows, lo, hi int) {
					for i := r; i < r+rows; i++ {
						at, end := i*n+lo, i*n+hi
						clearIf(fresh, da[at:end])
						backA(da[at:end], dy[at:end], a.data[at:end], b.data[lo:hi])
					}
				})
			}
			if db := t.GradOf(b); db != nil {
				blocks(1, n, count*costAdd, func(_, _, lo, hi int) { // columns are independent
					for at := 0; at < len(dy); at += n {
						backB(db[lo:hi], dy[at+lo:at+hi], a.data[at+lo:at+hi], b.data[lo:hi])
					}
				})
			}
		})
	}
	return y
}
