package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

func init() {
	handle("scores.compare", scoresCompare)
	handle("scores.lengths", scoresLengths)
	handle("scores.scaling", scoresScaling)
	handle("scores.train", scoresTrain)
}

// compared is one score of a query with all keys.
type compared struct {
	Name    string `json:"name"`
	Scores  reals  `json:"scores"`
	Weights reals  `json:"weights"`
	Out     reals  `json:"out"`
}

// scoresCompare compares a query in the plane with keys by seven scores. The first Valid keys are
// visible. The numbers of the additive and the bilinear scores are drawn by Seed: they are not trained.
func scoresCompare(_ context.Context, a struct {
	Query [2]float32   `json:"query"`
	Keys  [][2]float32 `json:"keys"`
	Valid int          `json:"valid"`
	Seed  uint64       `json:"seed"`
}, _ func(any)) (any, error) {
	if len(a.Keys) == 0 || len(a.Keys) > 64 {
		return nil, fmt.Errorf("%d keys, want 1 to 64", len(a.Keys))
	}
	q, k := tensor.New(a.Query[:], 1, 1, 2), tensor.Zeros(1, len(a.Keys), 2) // [B L E]
	for j, key := range a.Keys {
		copy(k.Data()[2*j:], key[:])
	}
	rng := rand.New(rand.NewPCG(a.Seed, 1))
	options := attn.Options{Mask: mask.Lengths(a.Valid), Weights: true}
	bilinear := score.NewBilinear(2, 2, rng)
	var list []compared
	for _, s := range []struct {
		name  string
		score attn.Score
	}{
		{"dot product", score.Dot()},
		{"scaled", score.ScaledDot()},
		{"cosine", &score.Cosine{}},
		{"Gaussian", &score.Gaussian{}},
		{"bilinear", bilinear},
		{"scaled bilinear", &score.Bilinear{W: bilinear.W, Scaled: true}},
		{"additive", score.NewAdditive(2, 2, 8, rng)},
	} {
		options.Score = s.score
		out := attn.Attend(nil, q, k, k, options)
		scores := attn.Scores(nil, q, k, attn.Options{Score: s.score})
		list = append(list, compared{s.name, scores.Data(), out.Weights.Data(), out.Out.Data()})
	}
	return list, nil
}

// scoresLengths runs a multi-head layer on a batch of two sequences of the given valid lengths, as
// examples/lengths does. With NaN, padding contains NaN.
func scoresLengths(_ context.Context, a struct {
	Lengths  [2]int `json:"lengths"`
	NaN      bool   `json:"nan"`
	KeysOnly bool   `json:"keysOnly"` // the mask hides padded keys, but computes the rows of padded queries
}, _ func(any)) (any, error) {
	const batch, length, width, heads = 2, 7, 12, 3
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: width, Heads: heads}, rng)
	if err != nil {
		return nil, err
	}
	x := tensor.Randn(rng, batch, length, width) // [B L D]
	for b, n := range a.Lengths {
		if n < 0 || n > length {
			return nil, fmt.Errorf("length %d, want 0 to %d", n, length)
		}
		if a.NaN {
			padding := x.Data()[(b*length+n)*width : (b+1)*length*width]
			for i := range padding {
				padding[i] = float32(math.NaN())
			}
		}
	}
	visible := mask.Lengths(a.Lengths[:]...)
	if !a.KeysOnly {
		visible = attn.And(visible, mask.QueryLengths(a.Lengths[:]...))
	}
	out := layer.Forward(nil, x, x, x, attn.Options{Mask: visible, Weights: true})
	sum, broken := 0.0, 0 // of valid queries, and the vectors of padding that contain NaN
	for i := range batch * length {
		row := out.Out.Data()[i*width : (i+1)*width]
		if i%length < a.Lengths[i/length] {
			for _, v := range row {
				sum += float64(v)
			}
		} else if slices.ContainsFunc(row, func(v float32) bool { return v != v }) {
			broken++
		}
	}
	if math.IsNaN(sum) {
		return nil, errors.New("NaN has reached the output")
	}
	return map[string]any{
		"length": length, "heads": heads, "weights": reals(out.Weights.Data()), "out": real(sum), "broken": broken,
		"hidden": hidden(visible, attn.Sizes{B: batch, Lq: length, Lk: length}),
	}, nil
}

// scaling is what the size of vectors does to a softmax over the same number of keys.
type scaling struct {
	E       int        `json:"e"`
	Scores  reals      `json:"scores"`  // of one query, unscaled
	Plain   reals      `json:"plain"`   // weights without scaling
	Scaled  reals      `json:"scaled"`  // weights with 1/√E
	Largest [2]float64 `json:"largest"` // the largest weight, mean over many queries
	Slope   [2]float64 `json:"slope"`   // Σ w(1−w), the size of the softmax's gradient, mean over many queries
}

// scoresScaling compares random queries with eight keys, for sizes 1, 2, 4, …, 1024.
func scoresScaling(_ context.Context, a struct {
	Seed uint64 `json:"seed"`
}, _ func(any)) (any, error) {
	const keys, queries, most = 8, 64, 1024
	rng := rand.New(rand.NewPCG(a.Seed, 7))
	q, k := tensor.Randn(rng, 1, queries, most), tensor.Randn(rng, 1, keys, most)
	var list []scaling
	for e := 1; e <= most; e *= 2 {
		s := scaling{E: e}
		qe, ke := tensor.Slice(nil, q, 2, 0, e), tensor.Slice(nil, k, 2, 0, e)
		for which, score := range []attn.Score{score.Dot(), score.ScaledDot()} {
			w := attn.Attend(nil, qe, ke, ke, attn.Options{Score: score, Weights: true}).Weights.Data()
			for i := 0; i < len(w); i += keys {
				largest, slope := 0.0, 0.0
				for _, v := range w[i : i+keys] {
					largest = max(largest, float64(v))
					slope += float64(float64(v) * (1 - float64(v)))
				}
				s.Largest[which] += float64(largest / queries)
				s.Slope[which] += float64(slope / queries)
			}
			if which == 0 {
				s.Plain = w[:keys]
			} else {
				s.Scaled = w[:keys]
			}
		}
		s.Scores = attn.Scores(nil, qe, ke, attn.Options{Score: score.Dot()}).Data()[:keys]
		list = append(list, s)
	}
	return list, nil
}

// scoresTrain trains three scores in turns, on the same queries and keys, and returns the loss of each step in nats. The
// right key is that with the largest product with a hidden map of the query, or the one whose first element is nearest.
func scoresTrain(ctx context.Context, a struct {
	E    int  `json:"e"`
	Near bool `json:"near"`
}, frame func(any)) (any, error) {
	const batch, keys, steps, rate = 64, 8, 400, 0.02
	if a.E < 1 || a.E > 64 {
		return nil, fmt.Errorf("vectors have %d elements, want 1 to 64", a.E)
	}
	rng := rand.New(rand.NewPCG(1, 3))
	hidden, plain := score.NewBilinear(a.E, a.E, rng), score.NewBilinear(a.E, a.E, rng)
	scaled := &score.Bilinear{W: tensor.New(slices.Clone(plain.W.Data()), a.E, a.E).Param(), Scaled: true}
	learn := []attn.ParamScore{plain, scaled, score.NewAdditive(a.E, a.E, 32, rng)}
	optimizers := []*optim.AdamW{optim.NewAdamW(learn[0]), optim.NewAdamW(learn[1]), optim.NewAdamW(learn[2])}
	losses, tape := make([]reals, len(learn)), tensor.NewTape(tensor.Train)
	for step := 1; step <= steps && ctx.Err() == nil; step++ {
		q, k := tensor.Randn(rng, 1, batch, 1, a.E), tensor.Randn(rng, 1, batch, keys, a.E)
		for i := a.E - 1; i < q.Len(); i += a.E {
			q.Data()[i] = 1 // a bias: without one, the additive score changes its sign with that of all vectors
		}
		best, right := attn.Scores(nil, q, k, attn.Options{Score: hidden}).Data(), []int{}
		for i := range best {
			if a.Near {
				best[i] = -max(q.Data()[i/keys*a.E]-k.Data()[i*a.E], k.Data()[i*a.E]-q.Data()[i/keys*a.E])
			}
		}
		for row := range slices.Chunk(best, keys) {
			right = append(right, slices.Index(row, slices.Max(row)))
		}
		for i, s := range learn {
			tape.Reset()
			optim.ZeroGrad(s)
			loss := nn.CrossEntropy(tape, attn.Scores(tape, q, k, attn.Options{Score: s}), right, -1, 0)
			losses[i] = append(losses[i], loss.Item())
			tape.Backward(loss, nil)
			optimizers[i].Step(rate)
		}
		if step%10 == 0 {
			frame(losses)
			pause()
		}
	}
	return losses, ctx.Err()
}
