// Package tensor holds float32 arrays, the operations on them and the tape that
// differentiates those operations.
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
// A nil tape means inference: nothing is recorded and every result is ordinary
// garbage-collected memory. A tape in mode Train or Eval records one backward
// step for each operation whose operands need a gradient. A tape owns the
// memory of everything that was made on it; Reset hands all of that memory back
// at once, so that a training loop allocates next to nothing once it is warm.
// Whatever must outlive Reset is copied first (Clone): to use a tensor that the tape
// has taken back panics.
//
// A tape in mode Train drops at random what Dropout is given, as the seed and the step
// say that Tape.Seed was called with; without them it panics, since every tape would
// drop the same.
//
// Every backward step stands directly below its forward step, in the same
// function, and adds to the gradients of its operands.
//
// # Zero carries nothing
//
// In every backward pass an upstream gradient of exactly zero contributes
// exactly zero, even against NaN or Inf, and so do weights in Mix. Masked
// attention relies on this: what is stored under a mask never reaches a result
// or a gradient, whatever operations a score is made of.
//
// # Numbers
//
// Results do not depend on the number of threads, bit for bit: work is cut by
// shape alone and sums have one order. Nor does a row's result depend on the
// other rows of a batch.
//
// # Errors
//
// Shapes that disagree are a programmer's mistake: operations panic with a
// *ShapeError. So are a tensor that is nil, or whose memory a tape has taken back, a
// gradient that would have to flow to another tape, and a number out of range: a
// *ValueError. Catch turns either panic into an error where arguments come from
// outside.
package tensor
