package position

import (
	"fmt"
	"math"
	"sort"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// T5Config describes the buckets of T5Bias. The zero value is T5's encoder with distances of up
// to 128.
type T5Config struct {
	// Causal assigns all buckets to keys before the query, as in a decoder; otherwise half of the
	// buckets are for keys after the query.
	Causal bool
	// MaxDistance is the distance from which all keys share the last bucket:
	// "relative_attention_max_distance" of config.json. 0 means 128.
	MaxDistance int
}

// T5Bias adds table[bucket(p − j)][h] to the score of head h of a query at position p with key j.
// Half of the buckets are for a single distance each; the others grow logarithmically up to
// MaxDistance. table [buckets H] is T5's "relative_attention_bias.weight" and may require a
// gradient.
//
// T5 does not scale its scores, so use it with Dot. The buckets are the same as in Hugging Face's
// code, which computes the logarithm in float32.
//
// Source: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified
// Text-to-Text Transformer", 2020, https://arxiv.org/abs/1910.10683, section 2.1.
func T5Bias(table *tensor.Tensor, c T5Config) attn.ScoreChange {
	if c.MaxDistance == 0 {
		c.MaxDistance = 128
	}
	r := &t5Bias{table: table, config: c}
	if table != nil && table.Rank() == 2 {
		r.setStarts(table.Dim(0))
	}
	return r
}

type t5Bias struct {
	table  *tensor.Tensor
	config T5Config
	// starts are the smallest distances of the buckets of one side; an empty bucket has the start
	// of the next one. nil if there are no buckets.
	starts []int
}

// setStarts computes the starts of n buckets, and returns without starts if there are too few or
// too many.
func (r *t5Bias) setStarts(n int) {
	if !r.config.Causal {
		n /= 2
	}
	exact := n / 2
	if exact < 1 || r.config.MaxDistance <= exact {
		return
	}
	most := float32(math.Log(float64(r.config.MaxDistance) / float64(exact)))
	bucket := func(d int) int { // bucket of a distance of at least exact
		return exact + int(float32(math.Log(float64(float32(d)/float32(exact))))/most*float32(n-exact))
	}
	r.starts = make([]int, n)
	for b := range r.starts {
		r.starts[b] = min(b, exact)
		if b > exact {
			r.starts[b] += sort.Search(r.config.MaxDistance-exact, func(d int) bool { return bucket(exact+d) >= b })
		}
	}
}

func (r *t5Bias) Check(s attn.Sizes) error {
	const arg = "table of T5's bias"
	if err := tensor.CheckShape(arg, r.table, fmt.Sprintf("[buckets H=%d]", s.H), -1, s.H); err != nil {
		return err
	}
	if most := r.config.MaxDistance; most < 0 {
		return &tensor.ValueError{Arg: "MaxDistance of T5's bias", Got: fmt.Sprint(most), Want: "a positive number, or 0 for 128"}
	}
	if r.starts == nil {
		sides := 2
		if r.config.Causal {
			sides = 1
		}
		return &tensor.ShapeError{
			Arg: arg, What: "number of buckets", Got: []int{r.table.Dim(0)},
			Want: fmt.Sprintf("at least %d, and less than %d, which is %d·MaxDistance",
				2*sides, 2*sides*r.config.MaxDistance, 2*sides),
		}
	}
	return nil
}

func (r *t5Bias) Param(t *tensor.Tape, _ attn.Inputs) *tensor.Tensor {
	n, h := r.table.Dim(0), r.table.Dim(1)
	return tensor.Reshape(t, tensor.Transpose(t, r.table, 1, 0), 1, h, n)
}

func (*t5Bias) Adds() bool { return true }

func (r *t5Bias) Apply(at attn.Row, param, scores []float32) {
	r.runs(at, len(scores), func(bucket, lo, hi int) {
		for n := lo; n < hi; n++ {
			scores[n] += param[bucket]
		}
	})
}

func (r *t5Bias) Back(at attn.Row, _, dparam, _, _, grad []float32) {
	r.runs(at, len(grad), func(bucket, lo, hi int) { dparam[bucket] += simd.Sum(grad[lo:hi]) })
}

// runs calls f for each run of n keys of a row that share a bucket.
func (r *t5Bias) runs(at attn.Row, n int, f func(bucket, lo, hi int)) {
	for lo := 0; lo < n; {
		d := at.Position - at.Key - lo // distance from key lo to the query; positive if the key is before it
		if d < 0 && r.config.Causal {
			f(0, lo, n)
			return
		}
		next := sort.SearchInts(r.starts, abs(d)+1)
		bucket, hi := next-1, n
		switch {
		case d >= 0: // and the distance decreases from key to key
			hi = min(n, lo+d-r.starts[bucket]+1)
		case next < len(r.starts):
			hi = min(n, lo+r.starts[next]+d)
			fallthrough
		default:
			bucket += len(r.starts)
		}
		f(bucket, lo, hi)
		lo = hi
	}
}
