package nn

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// CausalConv is a depthwise causal convolution: each channel is a weighted sum of its last N inputs,
//
//	y_t = activation(Σ_j weight_j·x_(t−N+1+j) + bias),   j = 0 … N−1
//
// It is the convolution before the heads of Mamba-2 and Gated DeltaNet, PyTorch's Conv1d with groups=C, and ONNX's
// CausalConvWithState. Its state is the last N−1 inputs: token by token, in pieces and all at once it computes the same
// bits.
type CausalConv struct {
	// Weight [N 1 C] has a row for each of the inputs, because a step reads it by rows. In files of PyTorch and ONNX it
	// is [C 1 N]: an nn.Entry that is Transposed.
	Weight *tensor.Tensor
	Bias   *tensor.Tensor // [C], or nil for none
	// Activation is a function of each element, such as tensor.SiLU, or nil for none. For inference, tensor.SiLU is
	// computed in the same pass over memory.
	Activation func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor
}

// NewCausalConv returns a convolution of width n without activation, initialised as in PyTorch: weight and bias uniform in
// ±1/√n.
func NewCausalConv(channels, n int, bias bool, rng *rand.Rand) *CausalConv {
	c := &CausalConv{Weight: tensor.Transpose(nil, torchInit(rng, n, channels, 1, n), 2, 1, 0).Param()}
	if bias {
		c.Bias = torchInit(rng, n, channels)
	}
	return c
}

// Forward convolves a batch of sequences, which continue from the state first (nil for zeros), and returns the outputs and
// the last states.
//
// ends are nil, or lists of the ends of documents, as those of mask.Documents: document i of a sequence has the positions
// from ends[i−1], or 0 for i = 0, up to but not including ends[i]. Each sequence has a list, or all sequences share one. A
// sequence of length n with padding behind it has the list {n}. The first document continues from first, and the others
// begin with zeros; last belongs to the last document. Behind it, out is Activation(0), and x has no influence, even if it
// is NaN. ends must not change until Backward.
//
// Shapes:
//
//	x      [B L C]
//	first  [B N−1 C]  the inputs before x, the oldest first
//	out    [B L C]
//	last   [B N−1 C]  the last inputs of each sequence
//
// Gradients flow to x, first, Weight and Bias. It panics with a *tensor.ShapeError if the shapes do not match, or if ends
// are out of range or not ascending.
func (c *CausalConv) Forward(t *tensor.Tape, x, first *tensor.Tensor, ends [][]int) (out, last *tensor.Tensor) {
	p := c.pass(x, first, ends)
	fused := !t.Recording() && reflect.ValueOf(c.Activation).Pointer() == silu
	out, last = t.Make(p.b, p.l, p.c), t.Make(p.b, p.n-1, p.c)
	p.forward(out.Data(), fused)
	clear(last.Data())
	p.eachOfLast(last.Data(), func(y, x []float32) { copy(y, x) }, p.x, p.first)
	if t.Needs(x, first) {
		t.Record(last, func(d []float32) {
			p.eachOfLast(d, func(d, dx []float32) { simd.Add(dx, dx, d) }, t.GradOf(x), t.GradOf(first))
		})
	}
	if t.Needs(x, first, c.Weight, c.Bias) {
		t.Record(out, func(dy []float32) {
			p.inputGrads(dy, t.GradOf(x), t.GradOf(first))
			p.paramGrads(dy, t.GradOf(c.Weight), t.GradOf(c.Bias))
		})
	}
	if c.Activation != nil && !fused {
		out = c.Activation(t, out)
	}
	return out, last
}

var silu = reflect.ValueOf(tensor.SiLU).Pointer()

// Params returns "weight" and, if there is a bias, "bias".
func (c *CausalConv) Params() Params { return Vars{{"weight", c.Weight}, {"bias", c.Bias}}.Params() }

// TorchState returns the table of torch.nn.Conv1d.
func (c *CausalConv) TorchState() (StateDict, error) {
	d, err := OwnNames(c)
	for i := range d {
		d[i].Transposed = d[i].Name == "weight"
	}
	return d, err
}

// convPass is one call of Forward, with the data for its backward pass.
type convPass struct {
	b, l, c, n int
	x, first   []float32 // first is nil for zeros
	w          []float32 // [N 1 C]
	bias       []float32 // nil for none
	ends       [][]int
}

// pass panics with a *tensor.ShapeError unless the parameters of the layer and the arguments of Forward match.
func (c *CausalConv) pass(x, first *tensor.Tensor, ends [][]int) *convPass {
	const op = "nn: CausalConv"
	bad := func(arg, what string, got []int, want string, args ...any) {
		panic(&tensor.ShapeError{Op: op, Arg: arg, What: what, Got: slices.Clone(got), Want: fmt.Sprintf(want, args...)})
	}
	tensor.Want(op, "weight", c.Weight)
	tensor.Want(op, "x", x)
	w, in := c.Weight.Shape(), x.Shape()
	if len(w) != 3 || w[1] != 1 || w[0] < 1 {
		bad("weight", "", w, "[N 1 C] for N inputs of each channel")
	}
	if len(in) != 3 || in[2] != w[2] {
		bad("x", "", in, "[B L C=%d]", w[2])
	}
	p := &convPass{b: in[0], l: in[1], c: w[2], n: w[0], x: x.Data(), w: c.Weight.Data(), ends: ends}
	if c.Bias != nil {
		if !slices.Equal(c.Bias.Shape(), w[2:]) {
			bad("bias", "", c.Bias.Shape(), "[C=%d]", p.c)
		}
		p.bias = c.Bias.Data()
	}
	if first != nil {
		if !slices.Equal(first.Shape(), []int{p.b, p.n - 1, p.c}) {
			bad("first", "", first.Shape(), "[B=%d N−1=%d C=%d]", p.b, p.n-1, p.c)
		}
		p.first = first.Data()
	}
	if ends != nil && len(ends) != 1 && len(ends) != p.b {
		bad("ends", "number of lists", []int{len(ends)}, "one, or one for each of B=%d sequences", p.b)
	}
	for _, list := range ends {
		if !slices.IsSorted(list) || len(list) > 0 && (list[0] < 0 || list[len(list)-1] > p.l) {
			bad("ends", "positions", list, "0 to L=%d in ascending order", p.l)
		}
	}
	return p
}

// document returns the first position of the document with position t of sequence b. That of the first document is 1−N,
// since it continues from the first state. ok is false for padding.
func (p *convPass) document(b, t int) (lo int, ok bool) {
	if p.ends == nil {
		return 1 - p.n, true
	}
	list := p.ends[min(b, len(p.ends)-1)]
	switch i := sort.SearchInts(list, t+1); i {
	case len(list):
		return 0, false
	case 0:
		return 1 - p.n, true
	default:
		return list[i-1], true
	}
}

// row returns the row at position s of sequence b of x, or of first if s is negative; nil if that is nil.
func (p *convPass) row(x, first []float32, b, s int) []float32 {
	switch {
	case s >= 0 && x != nil:
		return x[(b*p.l+s)*p.c:][:p.c]
	case s < 0 && first != nil:
		return first[(b*(p.n-1)+s+p.n-1)*p.c:][:p.c]
	}
	return nil
}

// convColumns is the number of channels of a task: the rows that an output needs stay in the first-level cache.
const convColumns = 1 << 10

// eachPiece calls do, on all processors, for pieces of the rows at positions from to L−1 of all sequences: channels lo to
// hi of one row.
func (p *convPass) eachPiece(from int, do func(b, t, lo, hi int)) {
	rows, across := p.l-from, (p.c+convColumns-1)/convColumns
	n := p.b * rows * across
	par.For(n, par.Chunk(n, min(p.c, convColumns)*(p.n+1)), func(i, end int) {
		for ; i < end; i++ {
			row, lo := i/across, i%across*convColumns
			do(row/rows, from+row%rows, lo, min(lo+convColumns, p.c))
		}
	})
}

func (p *convPass) forward(y []float32, silu bool) {
	p.eachPiece(0, func(b, t, lo, hi int) {
		y := y[(b*p.l+t)*p.c:][lo:hi]
		start, ok := p.document(b, t)
		if !ok || p.bias == nil {
			clear(y)
		} else {
			copy(y, p.bias[lo:hi])
		}
		for j := 0; j < p.n && ok; j++ {
			if s := t - p.n + 1 + j; s >= start {
				if x := p.row(p.x, p.first, b, s); x != nil {
					simd.MulAdd(y, p.w[j*p.c:][lo:hi], x[lo:hi])
				}
			}
		}
		if silu {
			var s [convColumns]float32
			simd.Sigmoid(s[:len(y)], y)
			simd.Mul(y, y, s[:len(y)])
		}
	})
}

// eachOfLast calls do for the rows of the last states and the rows of x and first that they are copies of. Rows that are
// zero, and those of a nil x or first, are left out.
func (p *convPass) eachOfLast(last []float32, do func(last, x []float32), x, first []float32) {
	for b := range p.b {
		start, end := 1-p.n, p.l
		if p.ends != nil {
			end = 0
			if list := p.ends[min(b, len(p.ends)-1)]; len(list) > 0 {
				end = list[len(list)-1]
				if len(list) > 1 {
					start = list[len(list)-2]
				}
			}
		}
		for r := range p.n - 1 {
			if s := end - p.n + 1 + r; s >= start {
				if x := p.row(x, first, b, s); x != nil {
					do(last[(b*(p.n-1)+r)*p.c:][:p.c], x)
				}
			}
		}
	}
}

// inputGrads adds to the gradients of x and first, which may be nil.
func (p *convPass) inputGrads(dy, dx, dfirst []float32) {
	from := 0
	if dfirst != nil {
		from = 1 - p.n
	}
	p.eachPiece(from, func(b, s, lo, hi int) {
		d := p.row(dx, dfirst, b, s)
		if d == nil {
			return
		}
		for t := max(s, 0); t < min(s+p.n, p.l); t++ {
			if start, ok := p.document(b, t); !ok || start > s {
				return
			}
			simd.MulAddSparse(d[lo:hi], dy[(b*p.l+t)*p.c:][lo:hi], p.w[(p.n-1-t+s)*p.c:][lo:hi])
		}
	})
}

// paramGrads adds to the gradients of the weight and of the bias, which may be nil.
func (p *convPass) paramGrads(dy, dw, dbias []float32) {
	if dw == nil && dbias == nil {
		return
	}
	par.For(p.c, 128, func(lo, hi int) { // channels are independent
		for i := range p.b * p.l {
			b, t := i/p.l, i%p.l
			start, ok := p.document(b, t)
			if !ok {
				continue
			}
			d := dy[i*p.c:][lo:hi]
			if dbias != nil {
				simd.Add(dbias[lo:hi], dbias[lo:hi], d)
			}
			for j := 0; j < p.n && dw != nil; j++ {
				if s := t - p.n + 1 + j; s >= start {
					if x := p.row(p.x, p.first, b, s); x != nil {
						simd.MulAddSparse(dw[j*p.c:][lo:hi], d, x[lo:hi])
					}
				}
			}
		}
	})
}
