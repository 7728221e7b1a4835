package nn

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// Direction is the order in which a recurrent layer reads a sequence.
type Direction bool

// The two directions. In both, each output is at the position of its input.
const (
	Forward  Direction = false
	Backward Direction = true
)

// A cell is the part in which recurrent layers differ: the arithmetic of one step of one sequence. Sizes are in units
// of vectors of H numbers.
type cell struct {
	op     string // the layer, for error messages
	gates  int    // in the rows in and rec
	states int    // in before and after; the first is the output
	kept   int    // in kept
	// forward sets s.after. It may overwrite s.rec.
	forward func(s cellStep)
	// backward receives the gradient d of s.after, and s as forward left it; it does not change s. It sets the
	// gradients of s.rec and s.in, and turns d into the part of the gradient of s.before that does not flow through
	// s.rec. A gradient of zero contributes nothing, even if numbers in s are not finite.
	backward func(s cellStep, d, drec, din []float32)
}

// cellStep contains the rows of numbers of one step of one sequence.
type cellStep struct {
	before, after []float32 // the states
	in            []float32 // W_ih x + b_ih
	rec           []float32 // W_hh h + b_hh, where h is the first vector of before
	kept          []float32 // written by forward for backward
}

// CellWeights are the parameters of a recurrent layer. The rows of its gates are stacked as in PyTorch: a GRU has three
// gates, an LSTM four, and an RNN one.
type CellWeights struct {
	WeightIH *tensor.Tensor // [gates·H D]
	WeightHH *tensor.Tensor // [gates·H H]
	BiasIH   *tensor.Tensor // [gates·H], or nil for none
	BiasHH   *tensor.Tensor // [gates·H], or nil for none
}

// newCellWeights initialises as PyTorch does: all parameters uniform in ±1/√hidden.
func newCellWeights(in, hidden, gates int, rng *rand.Rand) CellWeights {
	return CellWeights{
		WeightIH: torchInit(rng, hidden, gates*hidden, in),
		WeightHH: torchInit(rng, hidden, gates*hidden, hidden),
		BiasIH:   torchInit(rng, hidden, gates*hidden),
		BiasHH:   torchInit(rng, hidden, gates*hidden),
	}
}

func (w *CellWeights) vars() Vars {
	return Vars{{"weight_ih", w.WeightIH}, {"weight_hh", w.WeightHH}, {"bias_ih", w.BiasIH}, {"bias_hh", w.BiasHH}}
}

// Params returns "weight_ih", "weight_hh", "bias_ih" and "bias_hh".
func (w *CellWeights) Params() Params { return w.vars().Params() }

// TorchState returns the table of torch.nn.GRU, LSTM or RNN with one layer. For more, see TorchRecurrent. The file does
// not contain the nonlinearity of an RNN.
func (w *CellWeights) TorchState() (StateDict, error) { return TorchRecurrent(w, 0, Forward) }

// unroll runs a cell over a batch of sequences and returns the outputs [B L H] and the last states. start contains a
// state [B H], or nil for zeros, for each state of the cell; its names are for error messages.
func (w *CellWeights) unroll(t *tensor.Tape, c cell, x *tensor.Tensor, start []Var, lens []int, dir Direction) (out *tensor.Tensor, last []*tensor.Tensor) {
	w.check(c, x, start, lens)
	b, l, h := x.Dim(0), x.Dim(1), w.WeightHH.Dim(1)

	// The input's part of the gates does not depend on the state: one product.
	gates := tensor.Linear(t, x, w.WeightIH, w.BiasIH) // [B L gates·H]
	p := &cellPass{cell: c, b: b, l: l, h: h, g: c.gates * h, s: c.states * h, k: c.kept * h}
	p.lens, p.dir, p.in, p.whh = lens, dir, gates.Data(), w.WeightHH.Data()
	if w.BiasHH != nil {
		p.bhh = w.BiasHH.Data()
	}
	p.states = t.Floats((l + 1) * b * p.s)
	p.rec = t.Floats(l * b * p.g)
	p.kept = t.Floats(l * b * p.k)
	for v, s := range start {
		for i := range b {
			if row := p.states[i*p.s+v*h:][:h]; s.Tensor != nil {
				copy(row, s.Tensor.Data()[i*h:])
			} else {
				clear(row)
			}
		}
	}
	out = t.Make(b, l, h)
	for s := range l {
		par.Check(t.Context())
		p.forward(s, out.Data())
	}
	for v := range start {
		y := t.Make(b, h)
		for i := range b {
			copy(y.Data()[i*h:][:h], p.states[(l*b+i)*p.s+v*h:])
		}
		last = append(last, y)
	}

	leaves := []*tensor.Tensor{gates, w.WeightHH, w.BiasHH}
	for _, s := range start {
		leaves = append(leaves, s.Tensor)
	}
	if t.Needs(leaves...) {
		// This is one operation with several results. The backward steps of the last states run first and pass their
		// gradients to the step of out, which does the work.
		dlast := t.Floats(b * p.s)
		clear(dlast)
		t.Record(out, func(dout []float32) {
			dstart := make([][]float32, len(start))
			for v, s := range start {
				dstart[v] = t.GradOf(s.Tensor)
			}
			p.backward(t, dout, dlast, t.GradOf(gates), t.GradOf(w.WeightHH), t.GradOf(w.BiasHH), dstart)
			clear(dlast) // the next pass may not start at a last state
		})
		for v, y := range last {
			t.Record(y, func(d []float32) {
				for i := range b {
					copy(dlast[i*p.s+v*h:][:h], d[i*h:])
				}
				t.GradOf(out) // so that the step of out runs even if only a last state is used
			})
		}
	}
	return out, last
}

// check panics with a *tensor.ShapeError unless the parameters of the layer and the arguments of Forward match.
func (w *CellWeights) check(c cell, x *tensor.Tensor, start []Var, lens []int) {
	bad := func(arg, what string, got []int, want string, args ...any) {
		panic(&tensor.ShapeError{Op: c.op, Arg: arg, What: what, Got: got, Want: fmt.Sprintf(want, args...)})
	}
	params := w.vars()
	for _, v := range append(params[:2:2], Var{"x", x}) {
		tensor.Want(c.op, v.Name, v.Tensor)
	}
	gates, hh, ih := c.gates, w.WeightHH.Shape(), w.WeightIH.Shape()
	if len(hh) != 2 || hh[0] != gates*hh[1] {
		bad("weight_hh", "", hh, "[%d·H H]", gates)
	}
	h := hh[1]
	if len(ih) != 2 || ih[0] != gates*h {
		bad("weight_ih", "", ih, "[%d D] for H=%d", gates*h, h)
	}
	for _, v := range params[2:] {
		if bias := v.Tensor; bias != nil && !slices.Equal(bias.Shape(), []int{gates * h}) {
			bad(v.Name, "", bias.Shape(), "[%d] for H=%d", gates*h, h)
		}
	}
	in := x.Shape()
	if len(in) != 3 || in[2] != ih[1] {
		bad("x", "", in, "[B L D=%d]", ih[1])
	}
	b, l := in[0], in[1]
	for _, s := range start {
		if h0 := s.Tensor; h0 != nil && !slices.Equal(h0.Shape(), []int{b, h}) {
			bad(s.Name, "", h0.Shape(), "[B=%d H=%d]", b, h)
		}
	}
	if lens == nil {
		return
	}
	if len(lens) != b {
		bad("lens", "number of lengths", []int{len(lens)}, "B=%d", b)
	}
	for _, n := range lens {
		if n < 0 || n > l {
			bad("lens", "lengths", lens, "0 to L=%d", l)
		}
	}
}

// cellPass is one run of a cell over a batch, with the data for its backward pass.
type cellPass struct {
	cell
	b, l, h      int // H is the size of a state
	g, s, k      int // row sizes of a step: gates, states and kept numbers
	lens         []int
	dir          Direction
	in, whh, bhh []float32
	states       []float32 // the states before step s start at s·B·p.s
	rec, kept    []float32 // of step s
}

// position returns the position in the sequence of step s of the run.
func (p *cellPass) position(s int) int {
	if p.dir == Backward {
		return p.l - 1 - s
	}
	return s
}

// counts reports whether a position is within the length of sequence i.
func (p *cellPass) counts(i, pos int) bool { return p.lens == nil || pos < p.lens[i] }

// step returns the rows of step s of sequence i.
func (p *cellPass) step(s, i int) cellStep {
	at := s*p.b + i
	return cellStep{
		before: p.states[at*p.s:][:p.s],
		after:  p.states[(at+p.b)*p.s:][:p.s],
		in:     p.in[(i*p.l+p.position(s))*p.g:][:p.g],
		rec:    p.rec[at*p.g:][:p.g],
		kept:   p.kept[at*p.k:][:p.k],
	}
}

// forward runs step s for the whole batch.
func (p *cellPass) forward(s int, out []float32) {
	b, h, pos := p.b, p.h, p.position(s)
	simd.Multiply(&simd.Product{
		M: b, N: p.g, K: h, A: simd.RowMajor(p.states[s*b*p.s:], p.s), B: simd.RowMajor(p.whh, h).T(),
		C: simd.RowMajor(p.rec[s*b*p.g:], p.g), Bias: p.bhh, Blocks: true,
	})
	for i := range b {
		step, y := p.step(s, i), out[(i*p.l+pos)*h:][:h]
		if !p.counts(i, pos) {
			copy(step.after, step.before)
			clear(y)
			continue
		}
		p.cell.forward(step)
		copy(y, step.after)
	}
}

// backward runs all steps in reverse. dout is the gradient of the outputs and dlast that of the last states. The
// function adds to the other gradients, which may be nil.
func (p *cellPass) backward(t *tensor.Tape, dout, dlast, dgates, dwhh, dbhh []float32, dstart [][]float32) {
	b, h := p.b, p.h
	d := t.Floats(b * p.s) // gradient of the states after the current step
	copy(d, dlast)
	drec := t.Floats(p.l * b * p.g) // gradient of W_hh h + b_hh, all steps
	din := t.Floats(p.g)
	for s := p.l - 1; s >= 0; s-- {
		par.Check(t.Context())
		pos := p.position(s)
		for i := range b {
			di, dr := d[i*p.s:][:p.s], drec[(s*b+i)*p.g:][:p.g]
			if !p.counts(i, pos) {
				clear(dr)
				continue
			}
			simd.Add(di[:h], di[:h], dout[(i*p.l+pos)*h:][:h])
			p.cell.backward(p.step(s, i), di, dr, din)
			if dgates != nil {
				g := dgates[(i*p.l+pos)*p.g:][:p.g]
				simd.Add(g, g, din)
			}
		}
		// dh += drec·W_hh
		simd.Multiply(&simd.Product{
			M: b, N: h, K: p.g, A: simd.RowMajor(drec[s*b*p.g:], p.g), B: simd.RowMajor(p.whh, h),
			C: simd.RowMajor(d, p.s), Accumulate: true, Blocks: true,
		})
	}
	for v, dst := range dstart {
		if dst != nil {
			for i := range b {
				simd.Add(dst[i*h:][:h], dst[i*h:][:h], d[i*p.s+v*h:][:h])
			}
		}
	}
	if dwhh != nil { // dW_hh += drecᵀ·h over all steps at once
		simd.Multiply(&simd.Product{
			M: p.g, N: h, K: p.l * b, A: simd.RowMajor(drec, p.g).T(), B: simd.RowMajor(p.states, p.s),
			C: simd.RowMajor(dwhh, h), Accumulate: true, Sparse: true,
		})
	}
	if dbhh != nil && len(drec) > 0 {
		par.For(p.g, 64, func(lo, hi int) { // columns are independent
			simd.SumRows(dbhh[lo:hi], drec[lo:], p.l*b, p.g)
		})
	}
}

// times returns d·x for a gradient d. A d of zero gives zero for any x.
func times(d, x float32) float32 {
	if d == 0 {
		return 0
	}
	return float32(d * x) // rounded even if inlined into a sum
}
