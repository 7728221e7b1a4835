package position

import (
	"cmp"
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

// Distances returns the number of distances, from 0, for which a table with the given number of
// buckets has a bucket: math.MaxInt if there is no limit, 0 if there are too few buckets.
//
// There is no limit if MaxDistance exceeds the number of buckets for a single distance. Otherwise
// Hugging Face's code, and T5Bias, give larger distances buckets of smaller numbers, and none
// after number 0.
func (c T5Config) Distances(buckets int) int {
	c.MaxDistance = cmp.Or(c.MaxDistance, usualT5Distance)
	switch _, single := c.perSide(buckets); {
	case single < 1 || c.MaxDistance < 0:
		return 0
	case c.MaxDistance > single:
		return math.MaxInt
	case c.MaxDistance == single: // which leads to a division by 0
		return single
	default:
		return c.first(buckets, -1)
	}
}

const usualT5Distance = 128

// perSide returns the number of buckets for keys of one side of the query, and how many of them
// are for a single distance.
func (c T5Config) perSide(buckets int) (all, single int) {
	if !c.Causal {
		buckets /= 2
	}
	return buckets, buckets / 2
}

// first returns the smallest distance, among those without a separate bucket, that
// leads to bucket number b or beyond it. Numbers decrease with the distance if MaxDistance is
// below the number of single distances.
func (c T5Config) first(buckets, b int) int {
	all, single := c.perSide(buckets)
	most := float32(math.Log(float64(c.MaxDistance) / float64(single)))
	return single + sort.Search(math.MaxInt32-single, func(d int) bool {
		ratio := float32(math.Log(float64(float32(single+d)/float32(single)))) / most
		n := single + int(ratio*float32(all-single))
		return most > 0 && n >= b || most < 0 && n <= b
	})
}

// T5Bias adds table[bucket(p − j)][h] to the score of head h of a query at position p with key j.
// Half of the buckets are for a single distance each; the others grow logarithmically up to
// MaxDistance. table [buckets H] is T5's "relative_attention_bias.weight" and may require a
// gradient.
//
// T5 does not scale its scores, so use it with Dot. The buckets are the same as in Hugging Face's
// code, which computes the logarithm in float32. Attend panics with a *tensor.ShapeError or
// *tensor.ValueError if there are too few buckets, or none for the distance of some key; see
// T5Config.Distances.
//
// Source: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified
// Text-to-Text Transformer", 2020, https://arxiv.org/abs/1910.10683, section 2.1.
func T5Bias(table *tensor.Tensor, c T5Config) attn.ScoreChange {
	c.MaxDistance = cmp.Or(c.MaxDistance, usualT5Distance)
	r := &t5Bias{table: table, config: c}
	if table != nil && table.Rank() == 2 {
		r.setStarts(table.Dim(0))
	}
	return r
}

type t5Bias struct {
	table  *tensor.Tensor
	config T5Config
	// starts are the smallest distances of the buckets of one side, in the order of distances; an
	// empty bucket has the start of the next one. nil if there are no buckets.
	starts      []int
	all, single int // buckets of one side
	distances   int // that have a bucket
}

// setStarts computes the starts of n buckets.
func (r *t5Bias) setStarts(n int) {
	r.all, r.single = r.config.perSide(n)
	r.distances = r.config.Distances(n)
	for d := range min(r.single, r.distances) {
		r.starts = append(r.starts, d)
	}
	switch {
	case r.distances == math.MaxInt:
		for b := r.single; b < r.all; b++ {
			r.starts = append(r.starts, r.config.first(n, b))
		}
	case r.distances > r.single:
		for b := r.single; b >= 0; b-- {
			r.starts = append(r.starts, r.config.first(n, b))
		}
	}
}

// bucket returns the index in starts of a distance, and the number of its bucket on its side.
func (r *t5Bias) bucket(distance int) (i, number int) {
	i = sort.SearchInts(r.starts, distance+1) - 1
	if number = i; r.distances < math.MaxInt && i > r.single {
		number = 2*r.single - i
	}
	return i, number
}

func (r *t5Bias) Check(s attn.Sizes) error {
	const arg = "table of T5's bias"
	if err := tensor.CheckShape(arg, r.table, fmt.Sprintf("[buckets H=%d]", s.H), -1, s.H); err != nil {
		return err
	}
	if most := r.config.MaxDistance; most < 0 {
		return &tensor.ValueError{Arg: "MaxDistance of T5's bias", Got: fmt.Sprint(most), Want: "a positive number, or 0 for 128"}
	}
	if r.distances == 0 {
		want := "at least 4"
		if r.config.Causal {
			want = "at least 2"
		}
		return &tensor.ShapeError{Arg: arg, What: "number of buckets", Got: []int{r.table.Dim(0)}, Want: want}
	}
	for b := range s.B {
		offset := s.Offset(b)
		if n := max(offset+s.Lq, s.Lk-offset); n > r.distances {
			return &tensor.ValueError{
				Arg: "distance of a key from a query", Got: fmt.Sprint(n - 1),
				Want: fmt.Sprintf("less than %d with %d buckets and MaxDistance %d of T5's bias", r.distances, r.table.Dim(0), r.config.MaxDistance),
			}
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
		i, bucket := r.bucket(max(d, -d))
		hi := n
		switch {
		case d >= 0: // and the distance decreases from key to key
			hi = min(n, lo+d-r.starts[i]+1)
		case i+1 < len(r.starts):
			hi = min(n, lo+r.starts[i+1]+d)
			fallthrough
		default:
			bucket += r.all
		}
		f(bucket, lo, hi)
		lo = hi
	}
}
