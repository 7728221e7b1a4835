package mask

import (
	"fmt"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// TopK lets a query attend to the k keys for which other scores are highest, such as those of a small indexer that chooses
// what the attention layer then reads. Only keys that all masks of among allow are chosen, and none with a score of −∞ or
// NaN; of equal scores, those of earlier keys count.
//
// Shapes: scores [Lq Lk], [B Lq Lk] or [B H Lq Lk], which broadcast as in Allow: [B 1 Lq Lk] choose for all heads together.
// They are read at once, and get no gradient.
//
// TopK panics with a *tensor.ValueError if k is not positive or scores are nil, and with a *tensor.ShapeError if they have
// another number of axes, or a mask does not fit them.
//
// Source: DeepSeek-AI, "DeepSeek-V3.2", 2025, https://arxiv.org/abs/2512.02556, section 2.1.
func TopK(k int, scores *tensor.Tensor, among ...attn.Mask) attn.Mask {
	const op = "mask: TopK"
	if k < 1 {
		panic(&tensor.ValueError{Op: op, Arg: "k", Got: fmt.Sprint(k), Want: "a positive number"})
	}
	tensor.Want(op, "scores", scores)
	shape := scores.Shape()
	sizes := [4]int{1, 1, 1, 1} // [B H Lq Lk]
	switch len(shape) {
	case 2, 4:
		copy(sizes[4-len(shape):], shape)
	case 3:
		sizes = [4]int{shape[0], 1, shape[1], shape[2]}
	default:
		panic(&tensor.ShapeError{Op: op, Arg: "scores", Got: shape, Want: "[Lq Lk], [B Lq Lk] or [B H Lq Lk]"})
	}
	x, keys := scores.Clone(), sizes[3]
	seen := attn.And(among...).Array(attn.Sizes{B: sizes[0], H: sizes[1], Lq: sizes[2], Lk: keys})
	for i, v := range x.Data() {
		if !seen[i] || v != v {
			x.Data()[i] = float32(math.Inf(-1))
		}
	}
	clear(seen)
	if k = min(k, keys); k > 0 {
		values, chosen := tensor.TopK(x, k)
		for i, key := range chosen {
			seen[i/k*keys+key] = !math.IsInf(float64(values.Data()[i]), -1)
		}
	}
	return Allow(seen, shape...)
}
