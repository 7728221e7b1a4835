package attn

import (
	"math"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// Scores returns the scores of all pairs of queries and keys, as the softmax of Attend
// takes them:
//
//	scores[i,j] = mods(softcap(Score(q_i, k_j))) + Bias[i,j] + Biases   unit: nats
//
// and −Inf where the Mask hides key j from query i. A stage before that is Scores with
// fewer options: the Score alone gives what it returns for each pair, and the Score with
// SoftCap what comes before the bias. Options that act after the softmax change nothing
// here, nor do Sinks, whose scores are themselves.
//
// Attend makes no such array for a MappedScore. This function is for inspection and tests.
//
// Shapes: as for Attend; out [B H Lq Lk], or [B Lq Lk] where q has three axes.
//
// Gradients flow to q, k, Bias and the parameters of Score and Biases.
//
// Scores panics as Attend does.
func Scores(t *tensor.Tape, q, k *tensor.Tensor, o Options) *tensor.Tensor {
	const op = "attn: Scores"
	q, k, _, d := settle(t, op, q, k, k, &o)
	o.check(op, d)
	score := o.Score
	if score == nil {
		score = ScaledDot()
	}
	s := headScores(t, score, q, k, d)
	for _, c := range steps(t, op, inputs(d, headFirst(q), func(*tensor.Tape) *tensor.Tensor { return k }), 0, &o) {
		s = c.applied(t, s)
	}
	if rows := o.Mask.visible(d.Sizes, 0); rows != nil {
		s = hidden(t, s, rows)
	}
	if d.ThreeAxes {
		s = tensor.Reshape(t, s, d.B, d.Lq, d.Lk)
	}
	return s
}

// hidden returns s [B H Lq Lk] with −Inf where a key is hidden.
func hidden(t *tensor.Tape, s *tensor.Tensor, rows tensor.Visible) *tensor.Tensor {
	lk := s.Dim(3)
	// copied copies what is visible.
	copied := func(dst, src []float32) {
		par.For(len(src)/max(lk, 1), 1, func(from, to int) {
			seen := make([]bool, lk)
			for r := from; r < to; r++ {
				lo, hi, holes := rows.Row(r, seen)
				for j := lo; j < hi; j++ {
					if !holes || seen[j] {
						dst[r*lk+j] = src[r*lk+j]
					}
				}
			}
		})
	}
	y := t.Make(s.Shape()...)
	for i := range y.Data() {
		y.Data()[i] = float32(math.Inf(-1))
	}
	copied(y.Data(), s.Data())
	if t.Needs(s) {
		t.Record(y, func(dy []float32) {
			d := t.Floats(len(dy))
			clear(d)
			copied(d, dy)
			ds := t.GradOf(s)
			for i, v := range d {
				ds[i] += v
			}
		})
	}
	return y
}
