package models

import (
	"slices"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// A table of positions grows when it is read beyond its end, also where it has fewer rows than columns.
func TestSinusoidsGrow(t *testing.T) {
	const width = 200
	s := &sinusoids{width: width, rows: func(n int) *tensor.Tensor { return nn.Sinusoids(nil, 0, n, width) }}
	all := nn.Sinusoids(nil, 0, 200, width)
	for _, at := range []int{0, 63, 64, 150, 10} {
		if got := s.Forward(nil, []int{at}, 1, 1); !slices.Equal(got.Data(), all.Data()[at*width:][:width]) {
			t.Errorf("position %d has another vector", at)
		}
	}
}
