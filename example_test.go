package attn_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// Attention as regression: the estimate at x is the mean of the y_j, with larger weights for
// nearer x_j. The kernel width 1/w is trained: each point is estimated from all others, and the
// mask hides it from itself.
func Example_kernelRegression() {
	const n = 50
	rng := rand.New(rand.NewPCG(1, 2))
	x := tensor.Uniform(rng, 0, 5, 1, n, 1)
	slices.SortFunc(x.Data(), cmp.Compare[float32])
	y := tensor.Zeros(1, n, 1)
	for i, v := range x.Data() {
		v := float64(v)
		y.Data()[i] = float32(2*math.Sin(v) + math.Pow(v, 0.8) + 0.5*rng.NormFloat64())
	}

	kernel := &score.Gaussian{W: tensor.Full(1, 1).Param()}
	others := mask.AllowFunc(func(_, _, i, j int) bool { return i != j })
	optimizer := optim.NewAdamW(kernel)
	tape := tensor.NewTape(tensor.Train)
	for step := range 101 {
		tape.Reset()
		optim.ZeroGrad(kernel)
		estimate := attn.Attend(tape, x, x, y, attn.Options{Score: kernel, Mask: others}).Out
		loss := nn.MSE(tape, estimate, y)
		if step%100 == 0 {
			fmt.Printf("w = %.1f, mean squared error %.2f\n", kernel.W.Item(), loss.Item())
		}
		tape.Backward(loss, nil)
		optimizer.Step(0.1)
	}
	// Output:
	// w = 1.0, mean squared error 0.43
	// w = 3.8, mean squared error 0.21
}

// Every score measures how well a key matches a query. The example compares the scores of one
// query with two keys.
func Example_scores() {
	q := tensor.New([]float32{1, 2}, 1, 1, 1, 2) // [B H Lq E]
	k := tensor.New([]float32{
		3, 4,
		2, 1,
	}, 1, 1, 2, 2) // [B H Lk E]
	identity := tensor.New([]float32{1, 0, 0, 1}, 2, 2)
	swap := tensor.New([]float32{0, 1, 1, 0}, 2, 2)

	for _, s := range []struct {
		name  string
		score attn.Score
	}{
		{"dot", score.Dot()},
		{"scaled dot", score.ScaledDot()},
		{"additive", &score.Additive{WQ: identity, WK: swap, WV: tensor.Full(1, 2)}},
		{"bilinear", &score.Bilinear{W: swap}},
		{"scaled bilinear", &score.Bilinear{W: swap, Scaled: true}},
		{"Gaussian", &score.Gaussian{}},
		{"cosine", &score.Cosine{}},
		{"L1", &score.L1{}},
		{"your own", score.Func(func(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
			return tensor.Square(t, tensor.MatMulT(t, q, k))
		})},
	} {
		scores := attn.Scores(nil, q, k, attn.Options{Score: s.score}).Data()
		fmt.Printf("%-16s%8.3f%8.3f\n", s.name, scores[0], scores[1])
	}
	// Output:
	// dot               11.000   4.000
	// scaled dot         7.778   2.828
	// additive           2.000   1.963
	// bilinear          10.000   5.000
	// scaled bilinear    7.071   3.536
	// Gaussian          -4.000  -1.000
	// cosine             0.984   0.800
	// L1                -4.000  -2.000
	// your own         121.000  16.000
}

// A decoder attends to the states of an encoder. The decoder's states are the queries; the
// encoder's states after each step are the keys and values.
func Example_encoderDecoder() {
	rng := rand.New(rand.NewPCG(1, 2))
	encoder, decoder := nn.NewGRU(8, 16, rng), nn.NewGRU(8, 16, rng)
	source, target := tensor.Randn(rng, 2, 7, 8), tensor.Randn(rng, 2, 3, 8)
	lens := []int{7, 4} // the second source is padded

	tape := tensor.NewTape(tensor.Train)
	enc, last := encoder.Forward(tape, source, nil, lens, nn.Forward)
	dec, _ := decoder.Forward(tape, target, last, nil, nn.Forward)
	context := attn.Attend(tape, dec, enc, enc, attn.Options{
		Score: score.Dot(), Mask: mask.Lengths(lens...), Weights: true,
	})

	fmt.Println("context", context.Out.Shape(), "weights", context.Weights.Shape())
	fmt.Printf("on padding: %.3f\n", context.Weights.At(1, 0, 5))
	// Output:
	// context [2 3 16] weights [2 3 7]
	// on padding: 0.000
}

// Cross-attention of a transformer: queries from the decoder, keys and values
// from the encoder.
func Example_multiHeadCross() {
	rng := rand.New(rand.NewPCG(1, 2))
	cross, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 128, Heads: 8, Bias: attn.AllProjections}, rng)
	if err != nil {
		fmt.Println(err)
		return
	}
	decoder, encoder := tensor.Randn(rng, 2, 5, 128), tensor.Randn(rng, 2, 7, 128)

	y := cross.Forward(nil, decoder, encoder, encoder, attn.Options{Weights: true})
	fmt.Println("context", y.Out.Shape())
	fmt.Println("weights", y.Weights.Shape())
	fmt.Println("heads of", cross.Config().HeadSize)
	// Output:
	// context [2 5 128]
	// weights [2 8 5 7]
	// heads of 16
}

// A mask of 0 and 1 that broadcasts over batch, heads and queries, and dropout
// on the weights in training.
func Example_multiHeadMask() {
	rng := rand.New(rand.NewPCG(1, 2))
	config := attn.MultiHeadConfig{Width: 300, Heads: 7, Bias: attn.AllProjections, Dropout: 0.1}
	_, err := attn.NewMultiHead(config, rng)
	fmt.Println(err)
	config.Heads = 6
	layer, _ := attn.NewMultiHead(config, rng)

	masked := tensor.New([]float32{1, 1, 1, 0, 1, 1, 1, 1, 0, 0}, 10) // one per key
	q, kv := tensor.Randn(rng, 64, 12, 300), tensor.Randn(rng, 64, 10, 300)
	tape := tensor.NewTape(tensor.Train)
	tape.Seed(1, 0) // the run's seed and the step determine the dropped weights
	y := layer.Forward(tape, q, kv, kv, attn.Options{Mask: mask.AllowTensor(masked), Weights: true})
	fmt.Println("out", y.Out.Shape(), "weights", y.Weights.Shape())
	for j, m := range masked.Data() {
		if m == 0 {
			fmt.Print("key ", j, ": ", y.Weights.At(63, 5, 11, j), "  ")
		}
	}
	// Output:
	// attn: NewMultiHead: width 300 is not divisible by 7 heads
	// out [64 12 300] weights [64 6 12 10]
	// key 3: 0  key 8: 0  key 9: 0
}

// Valid lengths are the numbers of keys of each sequence. The first batch sets the widths of the
// inputs.
func Example_multiHeadValidLens() {
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{
		Width: 100, Heads: 5, Dropout: 0.5,
		QueryWidth: attn.Infer, KeyWidth: attn.Infer, ValueWidth: attn.Infer,
	}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := tensor.Full(1, 2, 4, 100), tensor.Full(1, 2, 6, 100)

	out := layer.Forward(nil, x, y, y, attn.Options{Mask: mask.Lengths(3, 2), Weights: true})
	fmt.Println(out.Out.Shape())
	for b := range 2 { // of the first query in the first head
		fmt.Printf("%.3f\n", tensor.Index(nil, out.Weights, b, 0, 0).Data())
	}
	// Output:
	// [2 4 100]
	// [0.333 0.333 0.333 0.000 0.000 0.000]
	// [0.500 0.500 0.000 0.000 0.000 0.000]
}

// relative is a user-defined score with a parameter: scaled dot product with trained relative
// positions, as in Shaw et al., 2018, https://arxiv.org/abs/1803.02155, with one vector r per
// distance.
type relative struct {
	r *tensor.Tensor // [Lq+Lk−1 E]
}

func (s relative) Form() attn.Form { return attn.Form{Given: s.scores} }

func (s relative) scores(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
	return relativeScores(t, q, k, s.r)
}

func (s relative) Params() nn.Params { return nn.Vars{{Name: "r", Tensor: s.r}}.Params() }

// relativeScores returns (q_i·k_j + q_i·r_{j−i+Lq−1})/√E. It needs at least two queries.
func relativeScores(t *tensor.Tape, q, k, r *tensor.Tensor) *tensor.Tensor {
	b, h, lq, lk := q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2)
	n := lq + lk - 1

	// Row i of all has the distances in order and must be shifted left by Lq−1−i. Reading the
	// data with rows that are one element shorter does this.
	all := tensor.Reshape(t, tensor.MatMulT(t, q, r), b*h, lq*n)
	all = tensor.Slice(t, all, 1, lq-1, lq*n-1)
	position := tensor.Slice(t, tensor.Reshape(t, all, b, h, lq, n-1), 3, 0, lk)

	s := tensor.Add(t, tensor.MatMulT(t, q, k), position)
	return tensor.Scale(t, s, float32(1/math.Sqrt(float64(q.Dim(3)))))
}

// Relative positions replace only the score of a layer. The parameter of the score becomes a
// parameter of the layer.
func Example_relativePositions() {
	const lq, lk, b, width, heads = 3, 5, 2, 12, 2
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{
		Name: "decoder.0", Width: width, Heads: heads, Bias: attn.Value | attn.Out,
		Layout: attn.SequenceFirst,
		Score:  relative{r: tensor.Randn(rng, lq+lk-1, width/heads).Param()},
	}, rng)
	if err != nil {
		fmt.Println(err)
		return
	}
	q, kv := tensor.Randn(rng, lq, b, width), tensor.Randn(rng, lk, b, width) // [L B D]
	seen := make([]bool, lq*lk*b)                                             // [Lq Lk B]
	for i := range seen {
		key, sequence := i/b%lk, i%b
		seen[i] = sequence == 0 || key < 2
	}

	out := layer.Forward(nil, q, kv, kv, attn.Options{
		Mask: mask.AllowSequenceFirst(seen, lq, lk, b),
		Observers: []attn.Observer{observe.Weights(func(layer string, weights *tensor.Tensor) {
			fmt.Println(layer, weights.Shape(), "on a hidden key:", weights.At(1, 0, 0, 2))
		})},
	}).Out
	fmt.Println(out.Shape())
	for name, p := range layer.Params() {
		fmt.Print(name, p.Shape(), " ")
	}
	// Output:
	// decoder.0 [2 2 3 5] on a hidden key: 0
	// [3 2 12]
	// q.weight[12 12] k.weight[12 12] v.weight[12 12] v.bias[12] out.weight[12 12] out.bias[12] score.r[7 6]
}

// lowRank is a user-defined score, (Aq)ᵀ(Bk)/√r with trained A and B: the dot product of mapped
// queries and keys, which is computed in tiles.
type lowRank struct{ A, B *tensor.Tensor } // [r E]

func (s lowRank) Form() attn.Form {
	by := func(m *tensor.Tensor) func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		return func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Linear(t, x, m, nil) }
	}
	return attn.Form{Queries: by(s.A), Keys: by(s.B), Scale: 1, PerRoot: true}
}

func (s lowRank) Params() nn.Params {
	return nn.Vars{{Name: "a", Tensor: s.A}, {Name: "b", Tensor: s.B}}.Params()
}

// The parameters of a layer's score are parameters of the layer.
func ExampleScore() {
	rng := rand.New(rand.NewPCG(1, 2))
	score := lowRank{nn.Xavier(rng, 2, 8), nn.Xavier(rng, 2, 8)}
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 32, Heads: 4, Score: score}, rng)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := tensor.Randn(rng, 2, 5, 32)
	fmt.Println(layer.Forward(nil, x, x, x, attn.Options{Mask: mask.Causal()}).Out.Shape())
	for name, p := range layer.Params() {
		fmt.Print(name, p.Shape(), " ")
	}
	// Output:
	// [2 5 32]
	// q.weight[32 32] k.weight[32 32] v.weight[32 32] out.weight[32 32] score.a[2 8] score.b[2 8]
}

// tempered is a user-defined score change: it divides scores by a temperature that increases with
// the position of the query.
type tempered struct {
	attn.NoParam
	rate float32
}

func (tempered) Adds() bool { return false }

func (m tempered) by(at attn.Row) float32 { return 1 / (1 + m.rate*float32(at.Position)) }

func (m tempered) Apply(at attn.Row, _, scores []float32) {
	for j := range scores {
		scores[j] *= m.by(at)
	}
}

func (m tempered) Back(at attn.Row, _, _, before, after, grad []float32) {
	for j := range grad {
		grad[j] *= m.by(at)
	}
}

func ExampleScoreChange() {
	q := tensor.Full(float32(math.Log(4)), 1, 2, 1)
	k := tensor.New([]float32{1, 0}, 1, 2, 1)
	y := attn.Attend(nil, q, k, k, attn.Options{Score: score.Dot(), Changes: []attn.ScoreChange{tempered{rate: 1}}, Weights: true})
	fmt.Println(y.Weights)
	// Output:
	// [[[0.8 0.2] [0.6667 0.3333]]]
}

// decay is a user-defined position: it multiplies a query at position p by rate^p and a key by
// rate^−p, as in xPos and RetNet, so that scores decay with distance.
type decay struct{ rate float64 }

func (decay) Check(int) error { return nil }

func (d decay) factor(p int, of attn.Projections) float32 {
	if of == attn.Key {
		p = -p
	}
	return float32(math.Pow(d.rate, float64(p)))
}

func (d decay) Apply(dst, x []float32, p int, of attn.Projections) {
	for i, v := range x {
		dst[i] = d.factor(p, of) * v
	}
}

func (d decay) Back(dx, dy []float32, p int, of attn.Projections) { // the transpose of a diagonal map is itself
	for i, v := range dy {
		dx[i] += d.factor(p, of) * v
	}
}

func ExamplePosition() {
	one := tensor.Full(1, 1, 4, 1)
	q := attn.ApplyPosition(nil, decay{0.5}, one, attn.Query, attn.Positions{})
	k := attn.ApplyPosition(nil, decay{0.5}, one, attn.Key, attn.Positions{})
	fmt.Println(attn.Scores(nil, q, k, attn.Options{Score: score.Dot()}))
	// Output:
	// [[[1 2 4 8] [0.5 1 2 4] [0.25 0.5 1 2] [0.125 0.25 0.5 1]]]
}

// towards is a user-defined score change: it adds learnt[h] for keys in the first half of the
// row, and nothing for the others.
type towards struct{ learnt *tensor.Tensor } // [H]

func (r towards) Check(s attn.Sizes) error {
	if got := r.learnt.Len(); got != s.H {
		return &tensor.ShapeError{Arg: "bias towards the first half", Got: r.learnt.Shape(), Want: fmt.Sprintf("[H=%d]", s.H)}
	}
	return nil
}

func (r towards) Param(t *tensor.Tape, x attn.Inputs) *tensor.Tensor {
	return tensor.Reshape(t, r.learnt, 1, x.H, 1)
}

func (towards) Adds() bool { return true }

func (r towards) Apply(at attn.Row, param, scores []float32) {
	for j := range scores {
		if at.Key+j < 2 {
			scores[j] += param[0]
		}
	}
}

func (r towards) Back(at attn.Row, _, dparam, _, _, grad []float32) {
	for j, g := range grad {
		if at.Key+j < 2 {
			dparam[0] += g
		}
	}
}

// A score change with a trained number per head, and its gradient.
func ExampleScoreChange_learnt() {
	rule := towards{tensor.New([]float32{float32(math.Log(3)), 0}, 2).Param()}
	q, k := tensor.Zeros(1, 2, 1, 3), tensor.Zeros(1, 2, 4, 3)
	v := tensor.New([]float32{1, 2, 3, 4, 1, 2, 3, 4}, 1, 2, 4, 1)
	tape := tensor.NewTape(tensor.Train)
	y := attn.Attend(tape, q, k, v, attn.Options{Changes: []attn.ScoreChange{rule}, Weights: true})
	tape.Backward(tensor.Sum(tape, y.Out), nil)
	fmt.Println(y.Weights)
	fmt.Println(rule.learnt.Grad())
	// Output:
	// [[[[0.375 0.375 0.125 0.125]] [[0.25 0.25 0.25 0.25]]]]
	// [-0.375 -0.5]
}

// after lets the queries of a sequence attend only to keys after a given key. It is a
// user-defined rule with intervals only, so keys outside the intervals cost nothing.
type after struct {
	attn.Intervals
	key []int // one per sequence
}

func (r after) Check(s attn.Sizes) error {
	if len(r.key) != s.B {
		return &tensor.ShapeError{Arg: "mask", What: "number of keys", Got: []int{len(r.key)}, Want: fmt.Sprintf("one for each of B=%d sequences", s.B)}
	}
	return nil
}

func (r after) Keys(s attn.Sizes, at attn.Row) (lo, hi int) { return r.key[at.Batch] + 1, s.Lk }

func ExampleMaskRule() {
	m := attn.And(attn.NewMask(after{key: []int{0, 2}}), mask.Causal())
	fmt.Print(m.Draw(attn.Sizes{B: 2, Lq: 2, Lk: 4}))

	q, k := tensor.Zeros(2, 2, 3), tensor.Zeros(2, 4, 3)
	fmt.Println(attn.Attend(nil, q, k, k, attn.Options{Mask: m, Weights: true}).Weights)
	fmt.Println(tensor.Catch(func() { attn.Attend(nil, q, k, k, attn.Options{Mask: attn.NewMask(after{key: []int{1}})}) }))
	// Output:
	// · 1 1 ·
	// · 1 1 1
	//
	// · · · ·
	// · · · 1
	// [[[0 0.5 0.5 0] [0 0.3333 0.3333 0.3333]] [[0 0 0 0] [0 0 0 1]]]
	// attn: Attend: mask has 1 keys, want one for each of B=2 sequences
}

// distance is a user-defined observer: it computes the average distance that each head attends
// over. Each head has a separate entry per query, so goroutines do not conflict.
type distance struct {
	sizes attn.Sizes
	mean  [][]float64 // by head and query
}

func (d *distance) Begin(s attn.Sizes) {
	d.sizes, d.mean = s, make([][]float64, s.H)
	for h := range d.mean {
		d.mean[h] = make([]float64, s.B*s.Lq)
	}
}

func (d *distance) Row(at attn.Row, weights []float32) {
	for j, w := range weights {
		d.mean[at.Head][at.Batch*d.sizes.Lq+at.Query] += float64(w) * math.Abs(float64(at.Position-j))
	}
}

func ExampleObserver() {
	x := tensor.Zeros(1, 2, 5, 4)
	d := new(distance)
	attn.Attend(nil, x, x, x, attn.Options{
		Mask: mask.Causal(), Changes: []attn.ScoreChange{position.ALiBi(0, 10)}, Observers: []attn.Observer{d},
	})
	fmt.Printf("%.2f\n%.2f\n", d.mean[0], d.mean[1]) // the second head attends to near keys
	// Output:
	// [0.00 0.50 1.00 1.50 2.00]
	// [0.00 0.00 0.00 0.00 0.00]
}
