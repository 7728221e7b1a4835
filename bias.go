package attn

import (
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// biasTensor is Options.Bias as a ScoreChange.
type biasTensor struct {
	x     *tensor.Tensor
	three bool // as Sizes.ThreeAxes
}

// shape returns that of the array as one of four axes.
func (r biasTensor) shape() [4]int {
	shape := [4]int{1, 1, 1, 1}
	own := r.x.Shape()
	if r.three && len(own) == 3 { // [B Lq Lk]
		return [4]int{own[0], 1, own[1], own[2]}
	}
	copy(shape[4-len(own):], own)
	return shape
}

func (r biasTensor) Check(s Sizes) error {
	if s.Broadcasts(r.x.Shape()) {
		return nil
	}
	_, letters := s.Shape()
	return &tensor.ShapeError{Arg: "bias", Got: r.x.Shape(), Want: "a shape that broadcasts to " + letters}
}

func (r biasTensor) Param(t *tensor.Tape, _ Inputs) *tensor.Tensor {
	shape := r.shape()
	return tensor.Reshape(t, r.x, shape[:]...)
}

// row returns the elements of a row: n from key at.Key on, or the one of all keys.
func (r biasTensor) row(at Row, x []float32, n int) []float32 {
	shape := r.shape()
	if shape[2] > 1 {
		x = x[at.Query*shape[3]:]
	}
	if shape[3] == 1 {
		return x[:1]
	}
	return x[at.Key:][:n]
}

func (biasTensor) Adds() bool { return true }

func (r biasTensor) Apply(at Row, param, scores []float32) {
	x := r.row(at, param, len(scores))
	if len(x) == len(scores) {
		simd.Add(scores, scores, x)
		return
	}
	for j := range scores {
		scores[j] += x[0]
	}
}

func (r biasTensor) Back(at Row, _, dparam, _, _, grad []float32) {
	if x := r.row(at, dparam, len(grad)); len(x) == len(grad) {
		simd.Add(x, x, grad)
	} else {
		x[0] += simd.Sum(grad)
	}
}
