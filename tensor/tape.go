package tensor

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sort"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Mode selects whether a tape records operations and whether it drops elements; it always manages memory.
type Mode uint8

const (
	// Train records backward steps, and Dropout drops elements.
	Train Mode = iota
	// Eval records backward steps, but Dropout drops nothing. Use it for gradients of a model as it runs in
	// inference.
	Eval
	// Infer records nothing and drops nothing: the tape only manages memory.
	Infer
)

// Tape records operations for the backward pass and owns the memory of their results. Only one goroutine may use a
// tape at a time. A nil tape is valid everywhere and means inference with garbage-collected memory.
type Tape struct {
	mode    Mode
	rounded bool // whether SetFormat has set BFloat16
	seeded  bool // whether Seed has been called
	seed    uint64
	draws   uint64 // random streams used since Seed
	steps   []step
	losses  []*Tensor // outputs from which a pass with gradient 1 has begun
	only    []*Tensor // the leaves that gradients flow to; nil means every parameter
	ctx     context.Context
	shared  context.Context // ctx for any goroutine
	unshare func() bool     // frees what ctx keeps for shared
	cleanup runtime.Cleanup // calls unshare if the tape is not reachable

	floats  arena[float32]
	ints    arena[int]
	headers []Tensor // not yet used
	life    uint64   // incremented by Reset, Mark and Release
	gone    []lives  // lives of tensors whose memory was freed, in order
	alive   uint64   // the end of the last range in gone: later tensors are valid
}

// lives is a range of lives, from inclusive to exclusive.
type lives struct{ from, to uint64 }

// step is the backward half of one operation.
type step struct {
	out  *Tensor
	back func(dout []float32)
}

// NewTape returns an empty tape. In mode Train, call Seed before the first Dropout.
func NewTape(mode Mode) *Tape {
	if mode > Infer {
		badValue("NewTape", "mode", fmt.Sprint(uint8(mode)), "Train, Eval or Infer")
	}
	return &Tape{mode: mode}
}

// SetContext makes the following operations end with ctx: once ctx has ended, each operation on the tape panics, and a
// long one, such as a large product, panics between pieces of its work. Catch returns ctx.Err() then. What was being
// computed is incomplete, including gradients and a KV cache that was being extended. The tape can be used again after
// Reset and another call of SetContext.
//
//	tape.SetContext(ctx)
//	err := tensor.Catch(func() { y = model.Forward(tape, x) })
//
// A nil tape ignores ctx.
func (t *Tape) SetContext(ctx context.Context) {
	if t == nil {
		return
	}
	if t.unshare != nil {
		t.cleanup.Stop()
		t.unshare()
	}
	t.ctx = ctx
	if t.shared, t.unshare = par.Share(ctx); t.unshare != nil {
		t.cleanup = runtime.AddCleanup(t, func(unshare func() bool) { unshare() }, t.unshare)
	}
}

// Context returns a context that ends with that of SetContext, or context.Background() if there is none. Any goroutine
// may call its Err method. Operations of other packages that run for long check it between pieces of their work.
func (t *Tape) Context() context.Context {
	if t == nil || t.shared == nil {
		return context.Background()
	}
	return t.shared
}

// SetFormat sets the format of the products of the following operations, Float32 or BFloat16: those of Linear and of
// attention, and of their backward passes. Packed weights have their own format. Everything else stays float32:
// parameters, results, norms, softmax, and the state of an optimizer. The default is Float32.
//
// A rounded factor has an error of at most 0.4%; magnitudes below 1.2e-38 may count as 0. On an AMD processor with
// AVX512-BF16 a product takes about half of the time of float32. On others it takes longer than float32, 1.2 times on an
// Intel Xeon: only packed weights use its tile units.
//
// It panics with a *ValueError on a nil tape, which has no state, and for other formats.
//
// Source: Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training", 2019, https://arxiv.org/abs/1905.12322.
func (t *Tape) SetFormat(f Format) {
	switch {
	case t == nil:
		badValue("SetFormat", "tape", "nil", "one of NewTape")
	case f != Float32 && f != BFloat16:
		badValue("SetFormat", "format", f.String(), Float32.String()+" or "+BFloat16.String())
	}
	t.rounded = f == BFloat16
}

// Format returns the format of products: Float32, or that of SetFormat.
func (t *Tape) Format() Format {
	if t != nil && t.rounded {
		return BFloat16
	}
	return Float32
}

// Training reports whether Dropout drops elements on this tape.
func (t *Tape) Training() bool { return t != nil && t.mode == Train }

// Recording reports whether the tape records backward steps.
func (t *Tape) Recording() bool { return t != nil && t.mode != Infer }

// Seed fixes the random numbers of the following operations: with the same seed and step, the same operations drop
// the same elements. Dropout on a training tape without a seed panics, because any default seed would be the same for
// every tape.
//
// Use one seed for the whole run, and count the steps in the training loop:
//
//	for step := range steps {
//		tape.Reset()
//		tape.Seed(seed, step)
//		…
//	}
//
// Each step then drops different elements, and a resumed run drops the same elements as an uninterrupted one, even if
// each step uses a new tape. Reset does not rewind the random numbers, so a single call of Seed is enough for all
// steps of one tape.
func (t *Tape) Seed(seed uint64, step int) {
	if t != nil {
		t.seed, t.draws, t.seeded = seed^uint64(step)<<20, 0, true
	}
}

// Only makes gradients flow to the given leaves, each marked by Param, and to no other parameter. Operations that
// depend on none of them are not recorded, and backward passes do not change the gradients of other parameters. It
// applies to the operations that follow, until the next call of Only. Without leaves, gradients flow to every
// parameter, as on a new tape. A leaf that is a view, such as the result of Rows, selects the whole tensor that it
// views, because the two share a gradient.
func (t *Tape) Only(leaves ...*Tensor) {
	if t == nil {
		return
	}
	t.only = nil
	for _, x := range leaves {
		t.only = append(t.only, x.root())
	}
}

// root returns the tensor that x views, through any number of views, or x itself.
func (x *Tensor) root() *Tensor {
	for x.base != nil {
		x = x.base
	}
	return x
}

// reaches reports whether a gradient flows to x on this tape.
func (t *Tape) reaches(x *Tensor) bool {
	if x == nil || !x.needs {
		return false
	}
	if t == nil || t.only == nil {
		return true
	}
	x = x.root() // a view's gradient is part of its root's gradient
	return x.home != nil || slices.Contains(t.only, x)
}

// Reset removes every recorded operation and frees the memory of every tensor made on the tape. Using one of those
// tensors afterwards panics with a *ValueError; slices that their Data returned must not be used either. Parameters
// and their gradients are not changed.
func (t *Tape) Reset() {
	if t == nil {
		return
	}
	clear(t.steps) // release the closures
	t.steps = t.steps[:0]
	clear(t.losses)
	t.losses = t.losses[:0]
	t.floats.reset()
	t.ints.reset()
	t.end(0)
}

// end marks all tensors made since the given life as stale.
func (t *Tape) end(from uint64) {
	t.life++
	for len(t.gone) > 0 && t.gone[len(t.gone)-1].from >= from {
		t.gone = t.gone[:len(t.gone)-1]
	}
	t.gone, t.alive = append(t.gone, lives{from, t.life}), t.life
}

// lost returns the range of stale lives that contains life, if any.
func (t *Tape) lost(life uint64) (lives, bool) {
	n := sort.Search(len(t.gone), func(i int) bool { return life < t.gone[i].to })
	if n == len(t.gone) || life < t.gone[n].from {
		return lives{}, false
	}
	return t.gone[n], true
}

// Mark is a position of a tape, for Release.
type Mark struct {
	tape   *Tape
	floats mark
	life   uint64 // of the tensors made since the mark
}

// Mark returns the current position of the tape.
func (t *Tape) Mark() Mark {
	if t == nil {
		return Mark{}
	}
	t.life++
	return Mark{t, t.floats.mark(), t.life}
}

// Release frees the memory of all tensors made since a mark and returns x, whose elements it keeps, possibly at
// another address. Use it to free the intermediate results of a layer. Using any tensor made since the mark, x itself
// included, panics with a *ValueError; use the tensor that Release returns. Tensors made before the mark stay valid.
// A tape that records needs all tensors, so Release then frees nothing and returns x.
//
//	for _, layer := range layers {
//		mark := tape.Mark()
//		x = tape.Release(mark, layer.Forward(tape, x))
//	}
//
// It panics with a *ValueError if x is nil, or if the mark is from another tape, from before a Reset, or from a part
// that another Release has freed.
func (t *Tape) Release(m Mark, x *Tensor) *Tensor {
	operand("Release", "x", x)
	if t == nil {
		return x
	}
	if l, lost := t.lost(m.life); m.tape != t || lost && l.from != m.life {
		badValue("Release", "mark", "from another tape, or no longer valid after a Reset or Release", "a valid mark of this tape")
	}
	if t.mode != Infer || x.home != t {
		return x
	}
	t.end(m.life)
	y := t.header(x.shape)
	y.data = t.floats.release(m.floats, x.data)
	return y
}

// Make returns a tensor of the given shape in the tape's memory, with arbitrary contents: the caller must write every
// element.
func (t *Tape) Make(shape ...int) *Tensor {
	n := checkSize("Make", shape)
	x := t.header(shape)
	x.data = t.Floats(n)
	return x
}

// makeRows is Make of the given shape with its last axis replaced.
func (t *Tape) makeRows(shape []int, last int) *Tensor {
	x := t.header(shape)
	x.shape[len(shape)-1] = last
	x.data = t.Floats(checkSize("Make", x.shape))
	return x
}

// Floats returns n floats of scratch memory with arbitrary contents, valid until Reset or Release.
func (t *Tape) Floats(n int) []float32 {
	if t == nil {
		return make([]float32, n)
	}
	return t.floats.take((n + 15) &^ 15)[:n:n] // whole cache lines
}

// list returns n integers with arbitrary contents.
func (t *Tape) list(n int) []int {
	if t == nil {
		return make([]int, n)
	}
	return t.ints.take(n)
}

// header returns a tensor of the given shape without data.
func (t *Tape) header(shape []int) *Tensor {
	if t == nil {
		return &Tensor{shape: append([]int(nil), shape...)}
	}
	par.Check(t.ctx)
	// Headers are not reused, so that a tensor kept beyond Reset is recognized as stale rather than mistaken for a
	// new one.
	if len(t.headers) == 0 {
		t.headers = make([]Tensor, 32)
	}
	x := &t.headers[0]
	t.headers = t.headers[1:]
	x.shape, x.home, x.life = t.ints.take(len(shape)), t, t.life
	copy(x.shape, shape)
	return x
}

// Needs reports whether an operation on these operands must be recorded: the tape records, and a gradient flows to at
// least one operand. Nil operands are ignored. It panics with a *ValueError if an operand's tape has freed it, or if
// a gradient would have to flow to an operand that was made on another tape.
func (t *Tape) Needs(operands ...*Tensor) bool {
	needs := false
	for _, x := range operands {
		if x == nil {
			continue
		}
		if x.stale() {
			badStale("Needs", "an operand")
		}
		if t != nil && t.mode != Infer && t.reaches(x) {
			t.own("Needs", "an operand", x)
			needs = true
		}
	}
	return needs
}

// own panics if a gradient flows to x on another tape: this tape has no record of how x was computed, so the gradient
// would end there.
func (t *Tape) own(op, arg string, x *Tensor) {
	if r := x.root(); r.needs && r.home != nil && r.home != t {
		badValue(op, arg, "a tensor recorded by another tape", "a tensor of this tape, or one from Detach")
	}
}

// Record adds the backward step of the operation that computed out. During Backward, back is called once with the
// complete gradient of out, and adds to the gradients of the operands, which GradOf returns. An operation calls
// Record only if Needs returns true:
//
//	out := tape.Make(x.Shape()...)
//	square(out.Data(), x.Data())
//	if tape.Needs(x) {
//		tape.Record(out, func(dout []float32) {
//			dx := tape.GradOf(x)
//			for i, v := range x.Data() {
//				dx[i] += 2 * v * dout[i]
//			}
//		})
//	}
func (t *Tape) Record(out *Tensor, back func(dout []float32)) {
	operand("Record", "out", out)
	if t == nil || out.home != t {
		badValue("Record", "out", "not a tensor of this tape", "the result of Make; an operation calls Record only if Needs returns true")
	}
	out.needs = true
	t.steps = append(t.steps, step{out, back})
}

// GradOf returns the gradient of x for a backward step to add to, or nil if no
// gradient flows to x.
func (t *Tape) GradOf(x *Tensor) []float32 {
	dx, fresh := t.FreshGradOf(x)
	if fresh {
		zeroAll(dx)
	}
	return dx
}

// zeroAll clears x, on all processors if x is large enough: clearing is limited by memory, which several processors
// use better than one.
func zeroAll(x []float32) {
	if small(len(x)) {
		clear(x)
		return
	}
	par.For(len(x), par.ChunkOfNumbers(len(x), costAdd), func(lo, hi int) { clear(x[lo:hi]) })
}

// FreshGradOf is GradOf for steps that can set the gradient instead of adding to it. If fresh is true, dx has arbitrary
// contents, and the step must set every element. Clearing dx and then adding would take two more passes through
// memory.
func (t *Tape) FreshGradOf(x *Tensor) (dx []float32, fresh bool) {
	if !t.reaches(x) {
		return nil, false
	}
	if x.base != nil {
		if len(x.data) == len(x.base.data) {
			return t.FreshGradOf(x.base)
		}
		// Setting these rows would leave the other rows of the base uninitialized.
		if g := t.GradOf(x.base); g != nil {
			dx = g[x.at:][:len(x.data)]
		}
		return dx, false
	}
	if x.grad == nil {
		x.grad = x.home.Make(x.shape...) // a parameter's home is nil, so its gradient outlives the tape
		fresh = true
	}
	return x.grad.data, fresh
}

// Backward runs the recorded steps in reverse, starting from the gradient dout of out, and adds to the gradient of
// every parameter that out depends on. A nil dout means 1; out must then have one element. The record is kept, so
// Backward may be called again, from another output or with another dout. Gradients of parameters add up until
// ZeroGrad; tensors made on the tape have the gradients of the last call only.
//
// It panics with a *ValueError if out depends on no parameter that the tape has recorded. It also panics if dout is
// nil and Backward was already called with this out and a nil dout, because the loss would count twice.
func (t *Tape) Backward(out, dout *Tensor) {
	t.BackwardAll([]*Tensor{out}, []*Tensor{dout})
}

// BackwardAll is Backward from several outputs at once, in one pass. Unless outs is empty, at least one of them must
// depend on a parameter.
//
// It also panics with a *ValueError if an output is nil, has been freed by Reset, or was recorded on another tape.
func (t *Tape) BackwardAll(outs, douts []*Tensor) {
	const op = "Backward"
	if len(douts) != len(outs) {
		panic(&ShapeError{
			Op: "tensor: " + op, Arg: "douts", What: "number of gradients", Got: []int{len(douts)},
			Want: fmt.Sprintf("%d, a gradient or nil for each output", len(outs)),
		})
	}
	for i, out := range outs {
		operand(op, "out", out)
		t.own(op, "out", out)
		if douts[i] != nil {
			operand(op, "dout", douts[i])
		}
	}
	if len(outs) > 0 && !slices.ContainsFunc(outs, t.differentiates) {
		badValue(op, "out", "a tensor that depends on no recorded parameter", "a result computed from a parameter marked by Param, on a tape of mode Train or Eval")
	}
	for i, out := range outs {
		if douts[i] == nil && slices.Contains(t.losses, out) {
			badValue(op, "out", "the output of an earlier Backward", "another output, or a gradient dout; or call Reset and repeat the forward pass")
		}
	}
	for _, s := range t.steps {
		s.out.grad = nil // from an earlier pass
	}
	for i, out := range outs {
		g := t.GradOf(out)
		if g == nil {
			continue // depends on no parameter
		}
		switch dout := douts[i]; {
		case dout != nil:
			sameShape(op, "dout", dout, out.shape)
			par.For(len(g), par.ChunkOfNumbers(len(g), costAdd), func(lo, hi int) { simd.Add(g[lo:hi], g[lo:hi], dout.data[lo:hi]) })
		case len(g) == 1:
			g[0]++
			t.losses = append(t.losses, out)
		default:
			badShape(op, "out", out.shape, "one element, or a gradient dout for it")
		}
	}
	for i := len(t.steps) - 1; i >= 0; i-- {
		s := t.steps[i]
		par.Check(t.ctx)
		if g := s.out.Grad(); g != nil { // nil: no requested output depends on it
			s.back(g.data)
		}
	}
}

// differentiates reports whether a backward pass from x reaches a parameter.
func (t *Tape) differentiates(x *Tensor) bool { return t.Recording() && t.reaches(x) }

// Stream returns the key of a new random stream for an operation that drops elements. The key depends only on the
// tape's seed and step and on the number of random operations since. It panics with a *ValueError if Seed has not
// been called.
func (t *Tape) Stream() uint64 {
	if t == nil || !t.seeded {
		badValue("Dropout", "tape", "a training tape without a seed", "Seed(seed, step) to be called first")
	}
	t.draws++
	return simd.Mix64(t.seed ^ simd.Mix64(t.draws))
}
