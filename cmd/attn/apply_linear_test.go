package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// recur computes linear attention for a sequence and a head in float64: out [L V] and the last state [E V]. The state
// begins again with 0 at each end of a document but the last, behind which tokens are padding. decay has an element of
// each key, or is nil; beta may be nil.
func recur(q, k, v, decay, beta, state []float64, l, e, size int, ends []int, scale float64) (out, last []float64) {
	out, last = make([]float64, l*size), append([]float64{}, state...)
	for t := range ends[len(ends)-1] {
		for _, end := range ends[:len(ends)-1] {
			if t == end {
				clear(last)
			}
		}
		for c := range size {
			u := v[t*size+c]
			for i := range e {
				if decay != nil {
					last[i*size+c] *= math.Exp(decay[t*e+i])
				}
				if beta != nil {
					u -= last[i*size+c] * k[t*e+i]
				}
			}
			if beta != nil {
				u *= beta[t]
			}
			for i := range e {
				last[i*size+c] += k[t*e+i] * u
				out[t*size+c] += scale * q[t*e+i] * last[i*size+c]
			}
		}
	}
	return out, last
}

// Each rule computes its recurrence, with two heads of queries for each state, and has the gradients of the library bit
// for bit.
func TestApplyRules(t *testing.T) {
	const b, h, g, l, e, size = 2, 4, 2, 9, 5, 6
	for _, c := range []struct {
		flags  string
		decay  []int // shape, with the heads
		beta   bool
		state  bool
		lens   []int
		ends   [][]int
		inFile bool // documents
		flat   bool
	}{
		{flags: "--rule linear"},
		{flags: "--rule linear --scale -0.7", state: true, flat: true},
		{flags: "--rule gated", decay: []int{b, g, l}, state: true},
		{flags: "--rule gated", decay: []int{g}},
		{flags: "--rule gated", decay: []int{b, 1, l, e}, flat: true},
		{flags: "--rule delta", beta: true, state: true, lens: []int{9, 4}},
		{flags: "--rule delta", beta: true, flat: true, state: true},
		{flags: "--rule gated_delta", decay: []int{b, g, l, e}, beta: true, state: true, ends: [][]int{{3, 9}, {5, 7}}, inFile: true},
		{flags: "--rule gated_delta --documents 2,8", decay: []int{b, g, l}, beta: true, state: true, ends: [][]int{{2, 8}}},
	} {
		name := c.flags
		if c.flat {
			name += " without heads"
		}
		t.Run(name, func(t *testing.T) {
			h, g := h, g
			if c.flat {
				h, g = 1, 1
			}
			rng := rand.New(rand.NewPCG(5, 9))
			given, in := map[string]*tensor.Tensor{}, &safetensors.File{}
			add := func(name string, of func(float64) float64, shape ...int) {
				x := tensor.Randn(rng, shape...)
				for i, y := range x.Data() {
					x.Data()[i] = float32(of(float64(y)))
				}
				if c.flat { // the axis of heads goes
					shape = append(shape[:1:1], shape[2:]...)
				}
				given[name] = tensor.New(x.Data(), shape...)
				in.Tensors = append(in.Tensors, safetensors.FromFloat32s(name, shape, x.Data()))
			}
			same := func(x float64) float64 { return x }
			half := func(x float64) float64 { return x / 2 }
			add("q", same, b, h, l, e)
			add("k", half, b, g, l, e)
			add("v", same, b, g, l, size)
			add("dout", same, b, h, l, size)
			add("dstate", same, b, g, e, size)
			if c.decay != nil {
				add("decay", func(x float64) float64 { return -math.Abs(x) / 3 }, c.decay...)
			}
			if c.beta {
				add("beta", func(x float64) float64 { return 1 / (1 + math.Exp(x)) }, b, g, l)
			}
			if c.state {
				add("state", same, b, g, e, size)
			}
			bytes := func(name string, shape []int, rows ...[]int) {
				x := safetensors.Tensor{Name: name, DType: safetensors.U8, Shape: shape}
				for _, row := range rows {
					for _, n := range row {
						x.Data = append(x.Data, byte(n))
					}
				}
				in.Tensors = append(in.Tensors, x)
			}
			if c.lens != nil {
				bytes("valid_lens", []int{b}, c.lens)
			}
			if c.inFile {
				bytes("documents", []int{len(c.ends), len(c.ends[0])}, c.ends...)
			}
			got := results(t, runApply(t, in, append(strings.Fields(c.flags), "--weights")...))

			o := linear.Options{Lens: c.lens, Documents: c.ends}
			if strings.Contains(c.flags, "--scale") {
				o.Scale = -0.7
			}
			tape, leaves := tensor.NewTape(tensor.Eval), map[string]*tensor.Tensor{}
			for name, x := range given {
				if name[0] != 'd' || name == "decay" {
					leaves[name] = x.Clone().Param()
				}
			}
			o.Decay, o.Beta, o.State = leaves["decay"], leaves["beta"], leaves["state"]
			y := linear.Attend(tape, leaves["q"], leaves["k"], leaves["v"], o)
			tape.BackwardAll([]*tensor.Tensor{y.Out, y.State}, []*tensor.Tensor{given["dout"], given["dstate"]})
			if len(got) != 3+len(leaves) {
				t.Errorf("%d results, want %d", len(got), 3+len(leaves))
			}
			for name, x := range leaves {
				tensortest.Same(t, "d."+name, got["d."+name], x.Grad().Data())
			}

			// Rows of n numbers of a head, in float64.
			rows := func(name string, head, n int) []float64 {
				x := given[name]
				if x == nil {
					return nil
				}
				y := make([]float64, n)
				for i := range y {
					y[i] = float64(x.Data()[head*n+i])
				}
				return y
			}
			scale := float64(o.Scale)
			if scale == 0 {
				scale = 1 / math.Sqrt(e)
			}
			var outs, states, weights []float64
			for s := range b {
				ends := []int{l}
				if c.lens != nil {
					ends = []int{c.lens[s]}
				}
				if c.ends != nil {
					ends = c.ends[min(s, len(c.ends)-1)]
				}
				for head := range h {
					k := s*g + head/(h/g)
					state := rows("state", k, e*size)
					if state == nil {
						state = make([]float64, e*size)
					}
					var decay []float64
					for i := 0; c.decay != nil && i < l*e; i++ {
						x, at := given["decay"], k*l*e+i
						switch x.Len() {
						case g:
							at = k % g
						case b * g * l:
							at = k*l + i/e
						}
						decay = append(decay, float64(x.Data()[at]))
					}
					out, last := recur(rows("q", s*h+head, l*e), rows("k", k, l*e), rows("v", k, l*size), decay, rows("beta", k, l), state, l, e, size, ends, scale)
					if outs = append(outs, out...); head%(h/g) == 0 {
						states = append(states, last...)
					}
					// With the unit vectors as values and no first state, the outputs are the weights.
					identity := make([]float64, l*l)
					for i := range l {
						identity[i*l+i] = 1
					}
					row, _ := recur(rows("q", s*h+head, l*e), rows("k", k, l*e), identity, decay, rows("beta", k, l), make([]float64, e*l), l, e, l, ends, scale)
					weights = append(weights, row...)
				}
			}
			tensortest.Close(t, "out", got["out"], outs, 1e-6)
			tensortest.Close(t, "state", got["state"], states, 1e-6)
			tensortest.Close(t, "weights", got["weights"], weights, 1e-6)
		})
	}
}
