package nn

import (
	"math"

	"github.com/attn-go/attn/tensor"
)

// Sinusoids returns encodings of the positions first, first+1, …, which give a transformer the position of each
// token: sines and cosines side by side, with wavelengths that rise from 2π towards 10000·2π,
//
//	out[p, 2i]   = sin((first+p)/10000^(2i/width))
//	out[p, 2i+1] = cos((first+p)/10000^(2i/width))
//
// An odd width ends with a sine. Add the encodings to embeddings of the same width.
//
// Shapes: out [length width].
//
// It panics with a *tensor.ShapeError if length or width is negative.
//
// Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.5,
// https://arxiv.org/abs/1706.03762.
func Sinusoids(t *tensor.Tape, first, length, width int) *tensor.Tensor {
	if length < 0 || width < 0 {
		panic(&tensor.ShapeError{Op: "nn: Sinusoids", Arg: "out", Got: []int{length, width}, Want: "no negative axis"})
	}
	out := t.Make(length, width)
	for i := 0; i < width; i += 2 {
		frequency := math.Pow(10000, -float64(i)/float64(width))
		for p := range length {
			sin, cos := math.Sincos(float64(first+p) * frequency)
			row := out.Data()[p*width:][:width]
			if row[i] = float32(sin); i+1 < width {
				row[i+1] = float32(cos)
			}
		}
	}
	return out
}
