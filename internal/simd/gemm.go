package simd

import (
	"context"
	"fmt"

	"github.com/attn-go/attn/internal/par"
)

// A Mat describes where the elements of a matrix are: element (i, j) is Data[i*Row+j*Col]. The
// numbers of rows and columns are passed separately.
type Mat struct {
	Data     []float32
	Row, Col int
}

// RowMajor returns the matrix whose rows are contiguous and start stride elements apart in data.
func RowMajor(data []float32, stride int) Mat { return Mat{Data: data, Row: stride, Col: 1} }

// T returns the transpose of m, which shares its elements.
func (m Mat) T() Mat { return Mat{Data: m.Data, Row: m.Col, Col: m.Row} }

// from returns the part of m that starts at element (i, j).
func (m Mat) from(i, j int) Mat { return Mat{m.Data[i*m.Row+j*m.Col:], m.Row, m.Col} }

// A Product describes one matrix product C = A·B, or Count products whose matrices are at fixed
// distances from one another.
type Product struct {
	M, N, K int
	A, B, C Mat // A is M×K, B is K×N, C is M×N and has C.Col == 1

	// Count is the number of products; 0 means 1. The matrices of product i
	// start StepA, StepB and StepC floats times i after those of product 0. A
	// step of 0 shares A or B among all products.
	Count               int
	StepA, StepB, StepC int

	// Accumulate adds the product to C instead of overwriting C.
	Accumulate bool

	// Bias, if not nil, has length N and is added to every row. It cannot be combined with
	// Accumulate.
	Bias []float32

	// Sparse guarantees that a zero in A or B contributes nothing to the sum, even against a NaN or
	// an infinity: values with weight zero do not leak.
	Sparse bool

	// Blocks splits the sum over k into blocks of sumBlock steps, each summed separately, because a
	// long sum has larger rounding errors. It is for sums over the features of a layer. In sums
	// over tokens, padding between tokens would move the boundaries.
	Blocks bool

	// Rounded rounds the elements of A and B to bfloat16, see reduced.go. Count must be 0 or 1.
	Rounded bool
	pairs   bool // A and B are words

	// Context ends a long product early: Multiply then panics, see par.Check. Nil never ends.
	Context context.Context
}

// Multiply computes the products that p describes, on all processors.
//
// An element of C is computed in the order of k, whatever the sizes:
//
//	acc = 0, or Bias[j], or C[i][j] when accumulating
//	for k := range K { acc += A[i][k] * B[k][j] }
//	C[i][j] = acc + 0
//
// where += rounds once on an implementation with fused multiply-add and twice on others, and adding
// 0 turns -0 into 0. With Blocks, this is the first block, and the other blocks are added one after
// the other:
//
//	for each of them { acc = 0; for k := range block { acc += A[i][k] * B[k][j] }; C[i][j] += acc }
//
// So the bits of an element depend neither on M, N or Count nor on the number of threads. Without
// Blocks, appending steps with a zero in A and a finite number in B does not change them.
//
// C must not overlap A, B or Bias. Its rows and products must not overlap one another. Multiply
// panics if the slices are too short for the sizes.
func Multiply(p *Product) {
	p.check()
	if p.M == 0 || p.N == 0 {
		return
	}
	par.Check(p.Context)
	if p.Rounded && p.K > 0 {
		multiplyRounded(p)
		return
	}
	m := newMultiplication(p)
	m.run()
	m.free()
}

// begin sets columns j0 to j1 of row i of C to the initial values of their sums.
func (p *Product) begin(i, j0, j1 int) {
	switch c := p.C.Data[i*p.C.Row:][j0:j1]; {
	case p.Bias != nil:
		copy(c, p.Bias[j0:j1])
	case !p.Accumulate:
		clear(c)
	}
}

// part returns the product of some rows and columns.
func (p *Product) part(i, rows, j, cols int) Product {
	part := *p
	part.M, part.N, part.A, part.B, part.C = rows, cols, p.A.from(i, 0), p.B.from(0, j), p.C.from(i, j)
	if p.Bias != nil {
		part.Bias = p.Bias[j : j+cols]
	}
	return part
}

// sumSteps is the largest number of steps in a block of a sum.
const sumSteps = 384

// sumBlock returns the number of steps in a block of a sum over depth steps: the same for all blocks
// but the last.
func sumBlock(depth int) int { return equalStep(depth, sumSteps) }

func (p *Product) check() {
	count := max(p.Count, 1)
	if p.M < 0 || p.N < 0 || p.K < 0 || p.Count < 0 {
		panic(fmt.Sprintf("simd: Multiply: M=%d, N=%d, K=%d, Count=%d", p.M, p.N, p.K, p.Count))
	}
	if p.C.Col != 1 {
		panic(fmt.Sprintf("simd: Multiply: C.Col=%d, want 1", p.C.Col))
	}
	if p.Bias != nil {
		if p.Accumulate {
			panic("simd: Multiply: Bias together with Accumulate")
		}
		sameLen("Multiply", "Bias", len(p.Bias), "row of C", p.N)
	}
	p.A.check("A", p.M, p.K, count, p.StepA)
	p.B.check("B", p.K, p.N, count, p.StepB)
	p.C.check("C", p.M, p.N, count, p.StepC)
}

// check panics unless count matrices of the given size, step apart, are inside m.Data.
func (m Mat) check(name string, rows, cols, count, step int) {
	if rows == 0 || cols == 0 {
		return
	}
	last := (rows-1)*m.Row + (cols-1)*m.Col + (count-1)*step
	if m.Row < 0 || m.Col < 0 || step < 0 || last >= len(m.Data) {
		panic(fmt.Sprintf("simd: Multiply: %s is %dx%d with Row=%d, Col=%d, %d of them %d apart: needs %d floats, has %d",
			name, rows, cols, m.Row, m.Col, count, step, last+1, len(m.Data)))
	}
}
