// Package tensor provides float32 arrays, operations on them, and a tape that differentiates those operations:
// reverse-mode automatic differentiation (autograd).
//
// A Tensor is a dense row-major array of any rank. Operations are functions
// whose first argument is a *Tape:
//
//	tape := tensor.NewTape(tensor.Train)
//	y := tensor.Tanh(tape, tensor.Linear(tape, x, w, b))
//	loss := tensor.Mean(tape, y)
//	tape.Backward(loss, nil)
//	step(w.Data(), w.Grad().Data())
//	tape.Reset()
//
// # The tape
//
// A nil tape means inference: nothing is recorded, and every result is ordinary garbage-collected memory. For many calls,
// such as a loop over inputs, a tape in mode Infer with a Reset after each is faster, because it reuses memory. A tape in
// mode Train or Eval records one backward step for each operation whose operands need a gradient. A tape owns the
// memory of every tensor made on it. Reset frees all of that memory for reuse at once, so a training loop allocates
// almost nothing after its first steps. Clone a tensor that must outlive Reset: using it after Reset panics.
//
// In mode Train, Dropout drops elements at random, as a function of the seed and step given to Tape.Seed. Without a
// call of Seed it panics, because every tape would drop the same elements.
//
// In the source, every backward step is directly below its forward step and adds to the gradients of its operands.
//
// # Zero times anything is zero
//
// In every backward pass, an upstream gradient of exactly zero contributes exactly zero, even when multiplied by NaN
// or Inf. So does a zero weight in Mix. Masked attention relies on this: values at masked positions never reach a
// result or a gradient, whichever operations compute the scores.
//
// # Numbers
//
// Results do not depend on the number of threads, bit for bit: sums have a fixed order, however work is divided. A
// row's result does not depend on the other rows of a batch.
//
// # Errors
//
// Operations panic with a *ShapeError if shapes do not match, which is a programming error. They panic with a
// *ValueError if a tensor is nil, if its tape was reset, if a gradient would have to flow to another tape, or if a
// number is out of range. Where arguments come from outside, Catch turns either panic into an error.
package tensor
