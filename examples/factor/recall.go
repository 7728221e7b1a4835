package factor

import (
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/tensor"
)

// Letters are the keys, and Digits the values.
const Letters, Digits = 26, 10

// Batch has sequences of tokens: pairs of a letter and a digit, followed by questions, which are letters of pairs in another
// order.
type Batch struct {
	Sequences, Length int
	Letters           []int // [Sequences Length]
	Digits            []int // [Sequences Length]; that of a question is 10
	Answers           []int // [Sequences Length], the digits of questions; −1 for pairs
}

// Draw returns random sequences. Letters of pairs differ, so there are at most 26; with again, they are a few that come
// again, and the answer to a question is the last digit of its letter.
func Draw(rng *rand.Rand, sequences, pairs, questions int, again bool) Batch {
	b := Batch{Sequences: sequences, Length: pairs + questions}
	for range sequences {
		letters, last := rng.Perm(Letters)[:pairs], [Letters]int{}
		for i := range letters {
			if again {
				letters[i] = rng.IntN(fewLetters)
			}
			digit := rng.IntN(Digits)
			last[letters[i]] = digit
			b.Letters, b.Digits, b.Answers = append(b.Letters, letters[i]), append(b.Digits, digit), append(b.Answers, -1)
		}
		for _, i := range rng.Perm(pairs)[:questions] {
			b.Letters, b.Digits, b.Answers = append(b.Letters, letters[i]), append(b.Digits, Digits), append(b.Answers, last[letters[i]])
		}
	}
	return b
}

// fewLetters is the number of letters that come again.
const fewLetters = 8

// Rules are the names of four layers.
var Rules = []string{"softmax", "linear", "gated", "gated delta"}

// width is the width of a Model.
const width = 32

// Model answers the questions of a Batch, with one layer of one head.
type Model struct {
	Letter, Digit *nn.Embedding     // whose sum is a token
	Key, Value    *nn.Linear        // a query has the map of a key: the same letter should match
	Decay         *linear.StepDecay // of gated layers
	Beta          *nn.Linear        // of the delta rule
	Norm          *nn.RMSNorm
	Out           *nn.Linear
	rule          string
}

// NewModel returns a model whose queries, keys and values have the given size, with random parameters.
func NewModel(rule string, size int, rng *rand.Rand) *Model {
	m := &Model{
		Letter: nn.NewEmbedding(Letters, width, 1, rng), Digit: nn.NewEmbedding(Digits+1, width, 1, rng),
		Key: nn.NewLinear(width, size, false, rng), Value: nn.NewLinear(width, size, false, rng),
		Norm: nn.NewRMSNorm(size), Out: nn.NewLinear(size, Digits, true, rng), rule: rule,
	}
	switch rule {
	case "gated delta":
		m.Beta = nn.NewLinear(width, 1, true, rng)
		fallthrough
	case "gated":
		m.Decay = linear.NewStepDecay(width, 1, 1, rng)
		m.Decay.A.Data()[0], m.Decay.Step.Bias.Data()[0] = 0, -5 // at first, a token lets 1% of the state go
	}
	return m
}

// Params returns the parameters.
func (m *Model) Params() nn.Params {
	parts := []nn.Named{
		{Name: "letter", Module: m.Letter}, {Name: "digit", Module: m.Digit}, {Name: "key", Module: m.Key},
		{Name: "value", Module: m.Value}, {Name: "norm", Module: m.Norm}, {Name: "out", Module: m.Out},
	}
	if m.Decay != nil {
		parts = append(parts, nn.Named{Name: "decay", Module: m.Decay})
	}
	if m.Beta != nil {
		parts = append(parts, nn.Named{Name: "beta", Module: m.Beta})
	}
	return nn.Join(parts...)
}

// embed returns the vectors of the tokens, [Sequences Length Width].
func (m *Model) embed(t *tensor.Tape, b Batch) *tensor.Tensor {
	return nn.EmbeddingSum(t, []*nn.Embedding{m.Letter, m.Digit}, [][]int{b.Letters, b.Digits}, b.Sequences, b.Length)
}

// Attend returns the output of the layer for other values, [Sequences Length V].
func (m *Model) Attend(t *tensor.Tape, b Batch, values *tensor.Tensor) *tensor.Tensor {
	return m.attend(t, m.embed(t, b), values)
}

// attend is the layer, for vectors x [B L Width] and values v [B L V].
func (m *Model) attend(t *tensor.Tape, x, v *tensor.Tensor) *tensor.Tensor {
	k := m.Key.Forward(t, x)
	q := k
	var decay, beta *tensor.Tensor // [B L]
	if m.Decay != nil {
		decay = tensor.Reshape(t, m.Decay.Decays(t, x), x.Dim(0), x.Dim(1))
	}
	if m.Beta != nil {
		beta = tensor.Reshape(t, tensor.Sigmoid(t, m.Beta.Forward(t, x)), x.Dim(0), x.Dim(1))
	}
	switch m.rule {
	case "softmax":
		return attn.Attend(t, q, k, v, attn.Options{Mask: mask.Causal()}).Out
	case "linear":
		return linear.Attend(t, q, k, v, linear.Options{Feature: linear.ELU1, Normalize: true}).Out
	case "gated":
		return linear.Attend(t, q, k, v, linear.Options{Decay: decay, Feature: linear.Unit}).Out
	default: // gated delta
		return linear.Attend(t, q, k, v, linear.Options{Decay: decay, Beta: beta, Feature: linear.Unit}).Out
	}
}

// Forward returns scores of the digits, [Sequences Length Digits].
func (m *Model) Forward(t *tensor.Tape, b Batch) *tensor.Tensor {
	x := m.embed(t, b)
	return m.Out.Forward(t, m.Norm.Forward(t, m.attend(t, x, m.Value.Forward(t, x))))
}

// Matrix returns the matrix [Sequences Length Length] by which the layer multiplies the values.
func (m *Model) Matrix(b Batch) *tensor.Tensor {
	identity := tensor.Zeros(b.Sequences, b.Length, b.Length)
	for i := range b.Sequences * b.Length {
		identity.Data()[i*b.Length+i%b.Length] = 1
	}
	return m.Attend(nil, b, identity) // the output of the layer for these values
}

// Recalled returns the share of questions that the model answers correctly.
func (m *Model) Recalled(b Batch) float64 {
	right, questions := 0, 0
	for i, digit := range tensor.ArgMax(m.Forward(nil, b)) {
		if b.Answers[i] >= 0 {
			questions++
			if digit == b.Answers[i] {
				right++
			}
		}
	}
	return float64(right) / float64(questions)
}

// Training trains a Model on random sequences of 1 to MostPairs pairs.
type Training struct {
	*Model
	Steps, Step int // of all, and so far
	again       bool
	rng         *rand.Rand
	optimizer   *optim.AdamW
	rate        optim.Schedule
	tape        *tensor.Tape
}

// MostPairs is the number of pairs of the longest sequences.
const MostPairs = 16

// NewTraining returns a training of a new model. Models of all rules see the same sequences.
func NewTraining(rule string, size, steps int, seed uint64, again bool) *Training {
	m := NewModel(rule, size, rand.New(rand.NewPCG(seed, 1)))
	return &Training{
		Model: m, Steps: steps, again: again, rng: rand.New(rand.NewPCG(seed, 2)), optimizer: optim.NewAdamW(m), rate: optim.WarmupCosine(steps/8, steps),
		tape: tensor.NewTape(tensor.Train),
	}
}

// Next makes a step with 32 sequences, and returns its loss in nats for a question.
func (r *Training) Next() float64 {
	pairs := 1 + r.rng.IntN(MostPairs)
	b := Draw(r.rng, 32, pairs, min(pairs, 8), r.again)
	r.Step++
	r.tape.Reset()
	optim.ZeroGrad(r.Model)
	loss := nn.CrossEntropy(r.tape, r.Forward(r.tape, b), b.Answers, -1, 0)
	r.tape.Backward(loss, nil)
	optim.ClipGradNorm(r.Model, 1)
	r.optimizer.Step(0.02 * r.rate(r.Step))
	return float64(loss.Item())
}
