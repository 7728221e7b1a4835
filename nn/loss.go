package nn

import (
	"fmt"
	"math"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// CrossEntropy returns the mean, over the targets that are not ignored, of
//
//	−(1−s)·log p_target − s·mean_c log p_c,   p = softmax(logits)
//
// where s is the label smoothing. Targets equal to ignore, such as padding, do not count; if all are ignored, the
// loss is zero.
//
// Shapes:
//
//	logits   [… C]
//	targets  one class for each vector of logits, in row-major order
//	loss     no axes; unit: nats
//
// targets must not change until Backward.
//
// It panics with a *tensor.ShapeError if the number of targets differs from the number of vectors, or if a target is
// not a class, and with a *tensor.ValueError if smoothing is outside [0, 1).
//
// Source: label smoothing as in Szegedy et al., "Rethinking the Inception
// Architecture", 2016, https://arxiv.org/abs/1512.00567, section 7.
func CrossEntropy(t *tensor.Tape, logits *tensor.Tensor, targets []int, ignore int, smoothing float32) *tensor.Tensor {
	const op = "nn: CrossEntropy"
	tensor.Want(op, "logits", logits)
	if !(smoothing >= 0 && smoothing < 1) {
		panic(&tensor.ValueError{Op: op, Arg: "smoothing", Got: fmt.Sprint(smoothing), Want: "a number in [0, 1)"})
	}
	if logits.Rank() == 0 {
		panic(&tensor.ShapeError{Op: op, Arg: "logits", Got: logits.Shape(), Want: "[… C]"})
	}
	classes := logits.Dim(-1)
	if logits.Len() != len(targets)*classes {
		panic(&tensor.ShapeError{Op: op, Arg: "targets", What: "number of values", Got: []int{len(targets)}, Want: fmt.Sprintf("one for each vector of logits %v", logits.Shape())})
	}
	counted := 0
	for _, c := range targets {
		if c == ignore {
			continue
		}
		if c < 0 || c >= classes {
			panic(&tensor.ShapeError{Op: op, Arg: "targets", What: "class", Got: []int{c}, Want: fmt.Sprintf("0 to %d", classes-1)})
		}
		counted++
	}
	loss := t.Make()
	if loss.Data()[0] = 0; counted == 0 {
		if t.Needs(logits) {
			t.Record(loss, func([]float32) {}) // the gradient is 0, and Backward must not panic
		}
		return loss
	}

	x := logits.Data()
	// For the rows that count: softmax − s/C, stored for the gradient.
	soft := t.Floats(len(x))
	uniform := smoothing / float32(classes)
	each := t.Floats(len(targets))
	chunk := par.Chunk(len(targets), 4*classes) // an exponential for each class
	par.For(len(targets), chunk, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			each[r] = 0
			if targets[r] == ignore {
				continue
			}
			row, p := x[r*classes:(r+1)*classes], soft[r*classes:(r+1)*classes]
			m := simd.Max(row)
			sum := simd.ExpSum(p, row, m)
			simd.ScaleShift(p, 1/sum, p, -uniform)
			lse := m + float32(math.Log(float64(sum)))
			each[r] = lse - float32((1-smoothing)*row[targets[r]])
			if smoothing != 0 { // without smoothing, a logit of −Inf is valid
				each[r] -= float32(uniform * simd.Sum(row))
			}
		}
	})
	loss.Data()[0] = simd.Sum(each) / float32(counted)
	if t.Needs(logits) {
		t.Record(loss, func(d []float32) {
			// dlogits = (p − (1−s)·[target] − s/C)/counted
			dx := t.GradOf(logits)
			scale := d[0] / float32(counted)
			if scale == 0 {
				return // even if a logit is NaN
			}
			par.For(len(targets), chunk, func(lo, hi int) {
				for r := lo; r < hi; r++ {
					if targets[r] == ignore {
						continue
					}
					g := dx[r*classes : (r+1)*classes]
					simd.Axpy(scale, soft[r*classes:(r+1)*classes], g)
					g[targets[r]] -= float32(scale * (1 - smoothing))
				}
			})
		})
	}
	return loss
}

// MSE returns the mean squared error, the mean of (x − target)² over all elements.
//
// Shapes: x and target of one shape, or shapes that broadcast; out has no axes. Gradients flow to both.
func MSE(t *tensor.Tape, x, target *tensor.Tensor) *tensor.Tensor {
	return tensor.Mean(t, tensor.Square(t, tensor.Sub(t, x, target)))
}
