package nn

import (
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// GRU is one layer of gated recurrent units. For every step, with input x and
// the state h before it,
//
//	r = σ(W_ir x + b_ir + W_hr h + b_hr)
//	z = σ(W_iz x + b_iz + W_hz h + b_hz)
//	n = tanh(W_in x + b_in + r∘(W_hn h + b_hn))
//	h' = (1−z)∘n + z∘h
//
// The three gates' weights are stacked in the order r, z, n, as PyTorch stores
// them.
//
// Source: Cho et al., "Learning Phrase Representations using RNN
// Encoder–Decoder", 2014, https://arxiv.org/abs/1406.1078; the reset gate acts
// behind the recurrent product, as in PyTorch and cuDNN.
type GRU struct {
	WeightIH *tensor.Tensor // [3H D]
	WeightHH *tensor.Tensor // [3H H]
	BiasIH   *tensor.Tensor // [3H]
	BiasHH   *tensor.Tensor // [3H]
}

// NewGRU returns a layer from in features to hidden units, initialised as
// PyTorch does: everything uniform in ±1/√hidden.
func NewGRU(in, hidden int, rng *rand.Rand) *GRU {
	return &GRU{
		WeightIH: torchInit(rng, hidden, 3*hidden, in),
		WeightHH: torchInit(rng, hidden, 3*hidden, hidden),
		BiasIH:   torchInit(rng, hidden, 3*hidden),
		BiasHH:   torchInit(rng, hidden, 3*hidden),
	}
}

// Params returns "weight_ih", "weight_hh", "bias_ih" and "bias_hh".
func (g *GRU) Params() Params {
	return Vars{
		{"weight_ih", g.WeightIH}, {"weight_hh", g.WeightHH}, {"bias_ih", g.BiasIH}, {"bias_hh", g.BiasHH},
	}.Params()
}

// Direction is the order in which a GRU reads a sequence.
type Direction bool

// The two directions. Outputs stand at the position of their input in both.
const (
	Forward  Direction = false
	Backward Direction = true
)

// Forward runs the layer over a batch of sequences, from the state h0 (nil for
// zeros). lens, if not nil, says how many steps of each sequence count: behind
// them the output is zero and the state stays as it was. lens must stay as they
// are until Backward.
//
// Shapes:
//
//	x     [B L D]
//	h0    [B H]
//	out   [B L H]  the state after each step
//	last  [B H]    the state after the last step that counts
func (g *GRU) Forward(t *tensor.Tape, x, h0 *tensor.Tensor, lens []int, dir Direction) (out, last *tensor.Tensor) {
	g.check(x, h0, lens)
	b, l := x.Dim(0), x.Dim(1)
	h := g.WeightHH.Dim(1)

	// The input's part of the gates does not depend on the state: one product.
	gates := tensor.Linear(t, x, g.WeightIH, g.BiasIH) // [B L 3H]
	if h0 == nil {
		h0 = t.Make(b, h)
		clear(h0.Data())
	}
	p := &gruPass{b: b, l: l, h: h, lens: lens, dir: dir, gates: gates.Data(), whh: g.WeightHH.Data()}
	p.bhh = g.BiasHH.Data()
	p.states = t.Floats((l + 1) * b * h)  // the state before step s of the run at s·B·H
	p.act = t.Floats(l * b * 3 * h)       // r, z and n of step s at s·B·3H
	p.recurrent = t.Floats(l * b * 3 * h) // W_hh h + b_hh of step s
	out, last = t.Make(b, l, h), t.Make(b, h)
	copy(p.states, h0.Data())
	for s := range l {
		p.forward(s, out.Data())
	}
	copy(last.Data(), p.states[l*b*h:])

	if t.Needs(gates, h0, g.WeightHH, g.BiasHH) {
		// One operation with two results. The step of last, which runs first,
		// hands its gradient over to the step of out, which does the work.
		dlast := t.Floats(b * h)
		clear(dlast)
		t.Record(out, func(dout []float32) {
			p.backward(t, dout, dlast, t.GradOf(gates), t.GradOf(h0), t.GradOf(g.WeightHH), t.GradOf(g.BiasHH))
		})
		t.Record(last, func(d []float32) {
			copy(dlast, d)
			t.GradOf(out) // so that the step of out runs even if only last is used
		})
	}
	return out, last
}

// check panics with a *tensor.ShapeError unless the arguments of Forward fit.
func (g *GRU) check(x, h0 *tensor.Tensor, lens []int) {
	bad := func(arg, what string, got []int, want string, args ...any) {
		panic(&tensor.ShapeError{Op: "nn: GRU", Arg: arg, What: what, Got: got, Want: fmt.Sprintf(want, args...)})
	}
	d, h := g.WeightIH.Dim(1), g.WeightHH.Dim(1)
	if x.Rank() != 3 || x.Dim(2) != d {
		bad("x", "", x.Shape(), "[B L D=%d]", d)
	}
	b, l := x.Dim(0), x.Dim(1)
	if h0 != nil && (h0.Rank() != 2 || h0.Dim(0) != b || h0.Dim(1) != h) {
		bad("h0", "", h0.Shape(), "[B=%d H=%d]", b, h)
	}
	if lens == nil {
		return
	}
	if len(lens) != b {
		bad("lens", "", []int{len(lens)}, "[B=%d]", b)
	}
	for _, n := range lens {
		if n < 0 || n > l {
			bad("lens", "lengths", lens, "0 to L=%d", l)
		}
	}
}

// gruPass is one run of a GRU over a batch, with what its backward pass needs.
type gruPass struct {
	b, l, h                int
	lens                   []int
	dir                    Direction
	gates, whh, bhh        []float32
	states, act, recurrent []float32
}

// position returns the place in the sequence of step s of the run.
func (p *gruPass) position(s int) int {
	if p.dir == Backward {
		return p.l - 1 - s
	}
	return s
}

// counts reports whether a position of sequence i counts.
func (p *gruPass) counts(i, pos int) bool { return p.lens == nil || pos < p.lens[i] }

// forward runs step s for the whole batch.
func (p *gruPass) forward(s int, out []float32) {
	b, h, pos := p.b, p.h, p.position(s)
	before := p.states[s*b*h : (s+1)*b*h]
	after := p.states[(s+1)*b*h : (s+2)*b*h]
	rec := p.recurrent[s*b*3*h : (s+1)*b*3*h]
	simd.Multiply(&simd.Product{
		M: b, N: 3 * h, K: h, A: simd.RowMajor(before, h), B: simd.RowMajor(p.whh, h).T(),
		C: simd.RowMajor(rec, 3*h), Bias: p.bhh,
	})
	for i := range b {
		h0, h1 := before[i*h:(i+1)*h], after[i*h:(i+1)*h]
		o := out[(i*p.l+pos)*h:][:h]
		if !p.counts(i, pos) {
			copy(h1, h0)
			clear(o)
			continue
		}
		in := p.gates[(i*p.l+pos)*3*h:][:3*h]
		hid := rec[i*3*h:][:3*h]
		act := p.act[(s*b+i)*3*h:][:3*h]
		simd.Add(act[:2*h], in[:2*h], hid[:2*h])
		simd.Sigmoid(act[:2*h], act[:2*h])
		r, z, n := act[:h], act[h:2*h], act[2*h:]
		for j := range n {
			n[j] = in[2*h+j] + float32(r[j]*hid[2*h+j])
		}
		simd.Tanh(n, n)
		for j, v := range n {
			h1[j] = v + float32(z[j]*(h0[j]-v)) // (1−z)∘n + z∘h
		}
		copy(o, h1)
	}
}

// backward runs all steps in reverse. dout is the gradient of the outputs,
// dlast that of the last state; the others are added to and may be nil.
func (p *gruPass) backward(t *tensor.Tape, dout, dlast, dgates, dh0, dwhh, dbhh []float32) {
	b, h := p.b, p.h
	dh := t.Floats(b * h) // gradient of the state after the current step
	copy(dh, dlast)
	drec := t.Floats(p.l * b * 3 * h) // gradient of W_hh h + b_hh, all steps
	for s := p.l - 1; s >= 0; s-- {
		pos := p.position(s)
		before := p.states[s*b*h : (s+1)*b*h]
		dr := drec[s*b*3*h : (s+1)*b*3*h]
		for i := range b {
			drow, dhi := dr[i*3*h:][:3*h], dh[i*h:(i+1)*h]
			if !p.counts(i, pos) {
				clear(drow)
				continue
			}
			simd.Add(dhi, dhi, dout[(i*p.l+pos)*h:][:h])
			act := p.act[(s*b+i)*3*h:][:3*h]
			hid := p.recurrent[(s*b+i)*3*h:][:3*h]
			h0 := before[i*h : (i+1)*h]
			for j := range h {
				r, z, n := act[j], act[h+j], act[2*h+j]
				d := dhi[j]
				dn := float32(d * (1 - z) * (1 - float32(n*n))) // before tanh
				dz := float32(d * (h0[j] - n) * z * (1 - z))    // before σ
				drow[j] = dn * hid[2*h+j] * r * (1 - r)
				drow[h+j] = dz
				drow[2*h+j] = dn * r
				if dgates != nil {
					g := dgates[(i*p.l+pos)*3*h:][:3*h]
					g[j] += drow[j]
					g[h+j] += dz
					g[2*h+j] += dn
				}
				dhi[j] = d * z
			}
		}
		// dh += drec·W_hh
		simd.Multiply(&simd.Product{
			M: b, N: h, K: 3 * h, A: simd.RowMajor(dr, 3*h), B: simd.RowMajor(p.whh, h),
			C: simd.RowMajor(dh, h), Accumulate: true,
		})
	}
	if dh0 != nil {
		simd.Add(dh0, dh0, dh)
	}
	if dwhh != nil { // dW_hh += drecᵀ·h over all steps at once
		simd.Multiply(&simd.Product{
			M: 3 * h, N: h, K: p.l * b, A: simd.RowMajor(drec, 3*h).T(), B: simd.RowMajor(p.states, h),
			C: simd.RowMajor(dwhh, h), Accumulate: true,
		})
	}
	if dbhh != nil && len(drec) > 0 {
		par.For(3*h, 64, func(lo, hi int) { // columns are independent
			simd.SumRows(dbhh[lo:hi], drec[lo:], p.l*b, 3*h)
		})
	}
}
