package linear

import (
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Options are the options of Attend. The zero value is linear attention without a decay: each token adds key ⊗ value to
// the state.
type Options struct {
	// Decay is the logarithm of the factor by which a token shrinks the state before it adds to it: [B G L], a number
	// for each head and token; [B G L E], one for each element of a key; or [G], a constant for each head. −Inf clears
	// the state. Numbers above 0 let it grow without bound. Nil means no decay.
	Decay *tensor.Tensor
	// Beta [B G L] is the strength of the delta rule: a token replaces this share of the value that its key reads from
	// the state. Usual are keys of length 1 and numbers in [0, 1], or in [0, 2], which lets a token negate what it reads.
	// Nil means that tokens only add.
	Beta *tensor.Tensor
	// Scale multiplies the queries; 0 means 1/√E.
	Scale float32
	// Feature maps queries and keys before anything else, for example ELU1 or Unit. It gets [B H L E] and may change E.
	// Nil means no change.
	Feature Feature
	// Normalize divides each output by φ(q)·Σ φ(k), so that it is a mean of the values, as with a softmax. An output
	// whose divisor is 0 is 0. The state then has a column more, for the sum of the keys. It needs a Feature, and no Beta.
	Normalize bool
	// Bidirectional lets each query read the state after the last token of its sequence or document, as in an encoder,
	// instead of that after its own. It has no Decay and no Beta.
	Bidirectional bool
	// State [B G E V] is the state before the first token; nil means 0. With Normalize it is [B G E V+1], with Exp too
	// [B G E V+2].
	State *tensor.Tensor
	// Lens is the number of tokens of each sequence. Those behind it are padding: they change nothing, and their outputs
	// are 0. Nil means that there is no padding.
	Lens []int
	// Documents has the ends of documents that are packed into a sequence, as in mask.Documents: one list for all
	// sequences or one for each. The state begins again at each document, the first of which continues State. Tokens
	// behind the last document are padding.
	Documents [][]int
	// Gates multiply the output of each head: [N] or [B N] for N = max(H, G) heads. A gate of 0 removes the head exactly.
	Gates *tensor.Tensor
	// Edits replace values inside the call, before the Feature: Queries [B H L E], Keys [B K L E], Values [B G L V], and
	// Outputs [B N L V]. In a Layer they are those after its convolution, and Outputs are Parts.Outputs. Weights cannot be
	// edited: nothing is mixed with them.
	Edits attn.Edits
	// Weights requests Output.Weights.
	Weights bool
	// Observers are called with each row of Output.Weights. They need no memory for all weights, and Weights need not be
	// set. attn.Sizes has N heads of queries, G of keys and values, L queries and keys, and is Signed unless Normalize is
	// set.
	Observers []attn.Observer
	// Inspect, if not nil, is called with the parts of the call. Parts.Weights computes the weights of one head later. There
	// are no Queries and Keys, and ValueNorms are the lengths of the values, in a Layer too: norms and gates follow them.
	Inspect attn.Inspector
	// Layer is the name that Observers and Inspect receive. In a Layer, the empty string means that of its configuration.
	Layer string
}

// Output is the result of linear attention.
type Output struct {
	Out *tensor.Tensor // [B N L V], N = max(H, G)
	// Weights [B N L L], nil unless Options.Weights is set, are what queries give to the values of tokens. Before Gates,
	// Out = Weights·v, plus what is left of a first state. They are signed, and rows need not sum to 1; 0 for later
	// tokens, other documents and padding. With Normalize, rows are divided as outputs are. No gradient flows through
	// Weights. With q in place of scale·q, and l from i down to 0, row i is
	//
	//	y = q[i]
	//	Weights[i,l] = beta[l]·(y·k[l])                          y·k[l] without Beta
	//	y            = e^decay[l]·(y − Weights[i,l]·k[l])        e^decay[l]·y without Beta
	//
	// where y below 1e-30 counts as 0. With Bidirectional, row i has the products of q[i] with all keys of its document. A head of L
	// tokens takes as long as one of L tokens with values of size L/2.
	Weights *tensor.Tensor
	// State [B G E V] is the state after the last token of each sequence, [B G E V+1] with Normalize, [B G E V+2] with the
	// Feature Exp.
	State *tensor.Tensor
}

// Attend reads, for each query, the state that the tokens up to its own have left.
//
//	S_t   = e^decay[t]·S_(t−1)
//	u_t   = v_t, or with Beta: beta[t]·(v_t − S_tᵀ·k_t)
//	S_t   = S_t + k_t ⊗ u_t
//	out_t = scale·S_tᵀ·q_t
//
// Shapes:
//
//	q    [B H L E]
//	k    [B K L E];  G is a multiple of K
//	v    [B G L V];  H is a multiple of G, or G of H
//	out  [B N L V],  N = max(H, G)
//
// or without heads, q and k [B L E], v [B L V], Decay [B L] or [B L E], Beta [B L] and State [B E V]. A head of keys
// belongs to G/K consecutive heads of values, and N/H and N/G are shared in the same way. States are float32, whatever
// the format of the tape.
//
// Gradients flow to q, k, v, Decay, Beta, State and Gates, from the output and the last state.
//
// Attend panics with a *tensor.ShapeError if shapes or lengths do not fit, and with a *tensor.ValueError if a tensor is
// nil or an option is out of range.
//
// Source: Katharopoulos et al., "Transformers are RNNs", 2020, https://arxiv.org/abs/2006.16236; Schlag et al., "Linear
// Transformers Are Secretly Fast Weight Programmers", 2021, https://arxiv.org/abs/2102.11174; Yang et al., "Gated Delta
// Networks", 2024, https://arxiv.org/abs/2412.06464.
func Attend(t *tensor.Tape, q, k, v *tensor.Tensor, o Options) Output {
	return attend(t, "linear: Attend", q, k, v, o, nil)
}

// attend is Attend, which continues a State if it is not nil.
func attend(t *tensor.Tape, op string, q, k, v *tensor.Tensor, o Options, s *State) Output {
	for _, x := range []struct {
		name string
		x    *tensor.Tensor
	}{{"query", q}, {"key", k}, {"value", v}} {
		tensor.Want(op, x.name, x.x)
	}
	flat := q.Rank() == 3
	if flat {
		q, k, v = withHead(t, op, "query", q, 3), withHead(t, op, "key", k, 3), withHead(t, op, "value", v, 3)
		o.Beta, o.State = withHead(t, op, "beta", o.Beta, 2), withHead(t, op, "state", o.State, 3)
		if o.Decay != nil && o.Decay.Rank() > 1 {
			o.Decay = withHead(t, op, "decay", o.Decay, o.Decay.Rank())
		}
	}
	q, k, v = edited(t, op, o.Edits.Queries, q), edited(t, op, o.Edits.Keys, k), edited(t, op, o.Edits.Values, v)
	if o.Feature != nil && !relative(o.Feature, o.Normalize) {
		q, k = o.Feature(t, q), o.Feature(t, k)
	}
	c := newCall(t, op, q, k, v, o, s)
	c.flat = flat
	y := c.run(t)
	y.Out = edited(t, op, o.Edits.Outputs, y.Out)
	c.inspect(y.Out)
	if o.Gates != nil {
		y.Out = attn.GateHeads(t, y.Out, o.Gates)
	}
	if flat {
		y.Out = tensor.Reshape(t, y.Out, c.b, c.l, v.Dim(3))
		if y.State != nil {
			y.State = tensor.Reshape(t, y.State, c.b, c.e, y.State.Dim(3))
		}
		if y.Weights != nil {
			y.Weights = tensor.Reshape(t, y.Weights, c.b, c.l, c.l)
		}
	}
	return y
}

// edited returns what takes the place of x.
func edited(t *tensor.Tape, op string, e attn.Edit, x *tensor.Tensor) *tensor.Tensor {
	if e == nil {
		return x
	}
	y := e(t, x)
	if tensor.Want(op, "edit", y); !slices.Equal(y.Shape(), x.Shape()) {
		badShape(op, "edit", y, "%v, as what it replaces", x.Shape())
	}
	return y
}

// withHead adds an axis of size 1 for heads behind the first axis of a tensor of the given rank.
func withHead(t *tensor.Tape, op, arg string, x *tensor.Tensor, rank int) *tensor.Tensor {
	if x == nil {
		return nil
	}
	if x.Rank() != rank {
		badShape(op, arg, x, "%d axes, as the query has no heads", rank)
	}
	return tensor.Reshape(t, x, slices.Insert(slices.Clone(x.Shape()), 1, 1)...)
}

// call is a call of linear attention.
type call struct {
	op             string
	o              Options
	b, h, kh, g, n int // B, H, K, G, N
	l, e, v        int // with Normalize, v counts the sums of keys
	q, k, value    *tensor.Tensor
	continued      *State // may be nil
	segments       []segment
	reads          *tensor.Tensor // [B G L V]: what keys read, if gradients need it
	ends           *tensor.Tensor // [segments G E V]: states after documents that queries read, nil for others
	stop           func()         // panics if the context has ended; nil without one
	few            [8]segment     // the memory of segments, if they are few
	flat           bool           // the caller's tensors have no heads
	running        *running       // with the Feature Exp and Normalize
	divisors       []float32      // [B N L] of outputs and weights with Normalize; nil if no weights are wanted
}

// segment is a document of a sequence, or a sequence.
type segment struct {
	b, from, to int
	first, last bool // of its sequence
}

func newCall(t *tensor.Tape, op string, q, k, v *tensor.Tensor, o Options, s *State) *call {
	c := &call{op: op, o: o, q: q, k: k, value: v, continued: s}
	if q.Rank() != 4 {
		badShape(op, "query", q, "[B H L E] or [B L E]")
	}
	c.b, c.h, c.l, c.e = q.Dim(0), q.Dim(1), q.Dim(2), q.Dim(3)
	if k.Rank() != 4 || k.Dim(0) != c.b || k.Dim(1) < 1 || k.Dim(2) != c.l || k.Dim(3) != c.e {
		badShape(op, "key", k, "[B=%d K L=%d E=%d]", c.b, c.l, c.e)
	}
	if v.Rank() != 4 || v.Dim(0) != c.b || v.Dim(1) < 1 || v.Dim(2) != c.l {
		badShape(op, "value", v, "[B=%d G L=%d V]", c.b, c.l)
	}
	c.kh, c.g = k.Dim(1), v.Dim(1)
	c.n = max(c.h, c.g)
	if c.g%c.kh != 0 || c.h < 1 || c.n%c.h != 0 || c.n%c.g != 0 {
		badShape(op, "value", v, "G heads, a multiple of K=%d, and H=%d a multiple of G or G of H", c.kh, c.h)
	}
	c.check()
	if c.o.Scale == 0 {
		c.o.Scale = float32(1 / math.Sqrt(float64(c.e)))
	}
	if o.Decay != nil && o.Decay.Rank() == 1 {
		c.o.Decay = tensor.BroadcastTo(t, tensor.Reshape(t, o.Decay, 1, c.g, 1), c.b, c.g, c.l)
	}
	if c.v = v.Dim(3); o.Normalize {
		ones := t.Make(c.b, c.g, c.l, 1)
		for i := range ones.Data() {
			ones.Data()[i] = 1
		}
		c.value = tensor.Concat(t, 3, v, ones)
		c.v++
	}
	c.checkState()
	if c.cut(); relative(o.Feature, o.Normalize) {
		c.scaleExp(t)
	}
	return c
}

// check panics unless the options fit the sizes.
func (c *call) check() {
	o := &c.o
	if s := float64(o.Scale); math.IsNaN(s) || math.IsInf(s, 0) {
		badValue(c.op, "scale", fmt.Sprint(s), "a finite number, or 0 for 1/√E")
	}
	if d := o.Decay; d != nil {
		perToken := isShape(d, c.b, c.g, c.l) || isShape(d, c.b, c.g, c.l, c.e)
		if !perToken && !isShape(d, c.g) {
			badShape(c.op, "decay", d, "[B=%d G=%d L=%d], [B=%d G=%d L=%d E=%d] or [G=%d]", c.b, c.g, c.l, c.b, c.g, c.l, c.e, c.g)
		}
	}
	if b := o.Beta; b != nil && !isShape(b, c.b, c.g, c.l) {
		badShape(c.op, "beta", b, "[B=%d G=%d L=%d]", c.b, c.g, c.l)
	}
	if o.Normalize && (o.Feature == nil || o.Beta != nil) {
		badValue(c.op, "normalize", "true without Feature, or with Beta", "a Feature without negative numbers, and no Beta")
	}
	if o.Decay != nil && relative(o.Feature, o.Normalize) {
		badValue(c.op, "decay", "given, with the Feature Exp and Normalize", "none: the running maximum of the keys is the decay")
	}
	if o.Edits.Weights != nil {
		badValue(c.op, "edits", "of weights", "edits of queries, keys, values or outputs: nothing is mixed with weights")
	}
	if slices.Contains(o.Observers, nil) {
		badValue(c.op, "observer", "nil", "an Observer")
	}
	if o.Bidirectional && (o.Decay != nil || o.Beta != nil || c.continued != nil) {
		badValue(c.op, "bidirectional", "with a decay, beta or a State to continue", "none of these: all queries read one state")
	}
	if o.Lens != nil {
		if o.Documents != nil {
			badValue(c.op, "lengths", "given, and documents", "one of them: what is behind the last document is padding")
		}
		c.wantCounts("lengths", o.Lens)
	}
	if n := len(o.Documents); o.Documents != nil && n != 1 && n != c.b {
		badValue(c.op, "documents", fmt.Sprintf("%d lists", n), fmt.Sprintf("one, or one for each of B=%d sequences", c.b))
	}
	for _, ends := range o.Documents {
		if len(ends) == 0 || ends[0] < 0 || ends[len(ends)-1] > c.l || !slices.IsSorted(ends) {
			badValue(c.op, "documents", fmt.Sprint(ends), fmt.Sprintf("ascending ends from 0 to L=%d", c.l))
		}
	}
}

func (c *call) wantCounts(arg string, counts []int) {
	if len(counts) != c.b {
		badValue(c.op, arg, fmt.Sprintf("%d numbers", len(counts)), fmt.Sprintf("one for each of B=%d sequences", c.b))
	}
	for _, n := range counts {
		if n < 0 || n > c.l {
			badValue(c.op, arg, fmt.Sprint(n), fmt.Sprintf("0 to L=%d", c.l))
		}
	}
}

func (c *call) checkState() {
	if c.continued != nil {
		c.continued.wantFit(c)
	}
	columns := c.v
	if relative(c.o.Feature, c.o.Normalize) {
		columns++
	}
	if s := c.o.State; s != nil && !isShape(s, c.b, c.g, c.e, columns) {
		badShape(c.op, "state", s, "[B=%d G=%d E=%d %d]", c.b, c.g, c.e, columns)
	}
}

// cut sets the segments of all sequences.
func (c *call) cut() {
	c.segments = c.few[:0]
	for b := range c.b {
		d := c.o.Documents
		if d == nil {
			s := segment{b, 0, c.l, true, true}
			if c.o.Lens != nil {
				s.to = c.o.Lens[b]
			}
			c.segments = append(c.segments, s)
			continue
		}
		ends, from := d[min(b, len(d)-1)], 0
		for i, end := range ends {
			c.segments = append(c.segments, segment{b, from, end, i == 0, i == len(ends)-1})
			from = end
		}
	}
}

func isShape(x *tensor.Tensor, shape ...int) bool { return slices.Equal(x.Shape(), shape) }

func badShape(op, arg string, x *tensor.Tensor, want string, args ...any) {
	panic(&tensor.ShapeError{Op: op, Arg: arg, Got: x.Shape(), Want: fmt.Sprintf(want, args...)})
}

func badValue(op, arg, got, want string) {
	panic(&tensor.ValueError{Op: op, Arg: arg, Got: got, Want: want})
}
