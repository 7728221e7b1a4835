package models

import (
	"math"
	"testing"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// The activation of SPLADE passes gradients, and does not hide NaN.
func TestLog1pReLU(t *testing.T) {
	x := tensor.New([]float32{-2, -0.1, 0.1, 0.5, 3, 40}, 2, 3)
	tensortest.GradCheck(t, "log(1 + max(x, 0))", func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
		return log1pReLU(t, in[0])
	}, []*tensor.Tensor{x})
	y := log1pReLU(nil, tensor.New([]float32{float32(math.NaN()), -1, float32(math.Inf(1))}, 3)).Data()
	if y[0] == y[0] || y[1] != 0 || !math.IsInf(float64(y[2]), 1) {
		t.Errorf("NaN, -1 and +Inf give %v", y)
	}
}
