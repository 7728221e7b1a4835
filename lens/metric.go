package lens

import (
	"fmt"
	"math"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// Metric is a number by which the output of a model is judged. A user's own implements it in the same way.
type Metric interface {
	// Values returns the number [B 1] of each sequence of a batch. hidden [B L D] is what the model has returned for x,
	// whose sequences have equal lengths. Gradients flow to hidden.
	Values(t *tensor.Tape, m *models.Model, hidden *tensor.Tensor, x models.Batch) *tensor.Tensor
	// Last reports whether only the state of the last token counts: a run then leaves out what it can.
	Last() bool
	// Check returns an error if the model has no such number, or not for a text with that many states L; 0 means any.
	Check(m *models.Model, tokens int) error
}

// Logit is a term of Logits.
type Logit struct {
	Token  int // or the number of a class
	Factor float64
}

// Logits is a sum of logits of the model's head, Σ Factor·logit(Token): of the last token, of a classifier's classes, or
// of the token At in a model of masked words.
type Logits struct {
	Terms []Logit
	At    int // position of the token whose logits count, or All for the last
}

// logits returns those of all tokens or classes: [B V].
func (g Logits) logits(t *tensor.Tape, m *models.Model, hidden *tensor.Tensor, x models.Batch) *tensor.Tensor {
	if head := m.Head(); !head.Task.PerToken() {
		return head.Of(t, hidden, x)
	}
	return g.ofToken(t, m.Head().Layer, hidden)
}

// ofToken returns the logits [B N] that a Layer makes of the state of the token that counts.
func (g Logits) ofToken(t *tensor.Tape, logits models.Layer, hidden *tensor.Tensor) *tensor.Tensor {
	at := g.At
	if at == All {
		at = hidden.Dim(1) - 1
	}
	return tensor.Reshape(t, logits.Forward(t, tensor.Slice(t, hidden, 1, at, at+1)), hidden.Dim(0), -1)
}

// Probabilities returns the probabilities [B V] of all tokens or classes whose logits the metric adds.
func (g Logits) Probabilities(t *tensor.Tape, m *models.Model, hidden *tensor.Tensor, x models.Batch) *tensor.Tensor {
	return tensor.Softmax(t, g.logits(t, m, hidden, x))
}

// Values implements Metric.
func (g Logits) Values(t *tensor.Tape, m *models.Model, hidden *tensor.Tensor, x models.Batch) *tensor.Tensor {
	numbers, factors := make([]int, len(g.Terms)), tensor.Zeros(len(g.Terms), 1)
	for i, term := range g.Terms {
		numbers[i], factors.Data()[i] = term.Token, float32(term.Factor)
	}
	if head := m.Head(); head.Task.PerToken() {
		if some := head.Some(numbers); some != nil { // with many heads, all tokens of a vocabulary take as long as a run
			return tensor.Mix(t, g.ofToken(t, some, hidden), factors)
		}
	}
	y := g.logits(t, m, hidden, x)
	all := tensor.Zeros(y.Dim(1), 1)
	for i, n := range numbers {
		all.Data()[n] += factors.Data()[i]
	}
	return tensor.Mix(t, y, all)
}

// Best returns the metric of a text's best prediction: the largest logit minus the second largest, at the position at or,
// with All, of the last token; of a classifier, those of its classes.
func Best(t *tensor.Tape, m *models.Model, x models.Batch, at int) Logits {
	y := Logits{At: at}.logits(t, m, m.Hidden(t, x, models.Run{}), x)
	_, two := tensor.TopK(tensor.Reshape(nil, y, -1), min(2, y.Len()))
	g := Logits{At: at}
	for i, token := range two {
		g.Terms = append(g.Terms, Logit{token, float64(1 - 2*i)})
	}
	return g
}

// MaskPosition returns the position of the only mask token of a text, for Logits.At in a model of masked words. Errors call
// the text what.
//
// Errors: no mask token, or several; a model without a tokenizer.
func MaskPosition(m *models.Model, what string, ids []int) (at int, err error) {
	mask, err := m.MaskToken()
	if err != nil {
		return 0, err
	}
	n := 0
	for i, id := range ids {
		if id == mask {
			at, n = i, n+1
		}
	}
	if n != 1 {
		t, err := m.Tokenizer()
		if err != nil {
			return 0, err
		}
		name, _ := t.Token(mask)
		return 0, fmt.Errorf("%s has %d tokens %s, want one, at which the model predicts a word", what, n, name)
	}
	return at, nil
}

// Last implements Metric.
func (g Logits) Last() bool { return g.At == All }

// Check implements Metric.
func (g Logits) Check(m *models.Model, tokens int) error {
	head := m.Head()
	if head == nil {
		return fmt.Errorf("lens: the model has no logits, want one with a head, or another metric")
	}
	n := len(head.Labels)
	if head.Task == models.NextWord || head.Task == models.MaskedWords {
		n = m.Sizes().Output().Vocabulary
	}
	if len(g.Terms) == 0 {
		return fmt.Errorf("lens: the metric has no logits, want at least one")
	}
	if tokens > 0 && g.At != All && (g.At < 0 || g.At >= tokens) {
		return fmt.Errorf("lens: the metric is at position %d of a text of %d tokens", g.At, tokens)
	}
	for _, term := range g.Terms {
		if term.Token < 0 || term.Token >= n {
			return fmt.Errorf("lens: logit %d, want one of 0 to %d", term.Token, n-1)
		}
	}
	return nil
}

// Loss is the mean cross-entropy of the next tokens of a text, in nats, or of a translation: of the tokens after the first of
// Batch.Targets, which is the start token.
type Loss struct{}

// Values implements Metric.
func (Loss) Values(t *tensor.Tape, m *models.Model, hidden *tensor.Tensor, x models.Batch) *tensor.Tensor {
	ids := x.IDs
	if x.Targets != nil {
		ids = x.Targets
	}
	b, l := hidden.Dim(0), hidden.Dim(1)
	logits := m.Head().Logits(t, tensor.Slice(t, hidden, 1, 0, l-1))
	return tensor.Scale(t, tensor.Reshape(t, chosen(t, tensor.LogSoftmax(t, logits), ids, b, l-1), b, 1), -1/float32(l-1))
}

// chosen returns for each sequence the sum of the log-probabilities [B L V] of the tokens after the first.
func chosen(t *tensor.Tape, p *tensor.Tensor, ids [][]int, b, l int) *tensor.Tensor {
	v, rows := p.Dim(2), make([]int, 0, b*l)
	for i, list := range ids {
		for j, id := range list[1:] {
			rows = append(rows, (i*l+j)*v+id)
		}
	}
	return tensor.SumAxis(t, tensor.Reshape(t, tensor.Gather(t, tensor.Reshape(t, p, b*l*v, 1), rows), b, l), 1)
}

// Last implements Metric.
func (Loss) Last() bool { return false }

// Check implements Metric.
func (Loss) Check(m *models.Model, tokens int) error {
	if h := m.Head(); h == nil || h.Task != models.NextWord {
		return fmt.Errorf("lens: the model predicts no next token, so it has no loss on a text")
	}
	if tokens == 1 {
		return fmt.Errorf("lens: the text has one token, want at least two, of which the second is predicted")
	}
	return nil
}

// Probability is the logarithm of the probability of a text after its first token, or of a translation, in nats:
// −(tokens − 1) × Loss.
type Probability struct{ Loss }

// Values implements Metric.
func (p Probability) Values(t *tensor.Tape, m *models.Model, hidden *tensor.Tensor, x models.Batch) *tensor.Tensor {
	return tensor.Scale(t, p.Loss.Values(t, m, hidden, x), -float32(hidden.Dim(1)-1))
}

// Similarity is the cosine of the vector of a text, by an Embedder's pooling, with another vector.
type Similarity struct {
	Embedder *models.Embedder
	Vector   []float32
}

// Values implements Metric.
func (s Similarity) Values(t *tensor.Tape, _ *models.Model, hidden *tensor.Tensor, x models.Batch) *tensor.Tensor {
	y := tensor.Normalize(t, s.Embedder.Pool(t, hidden, x.Lens()), 0)
	sum := 0.
	for _, v := range s.Vector {
		sum += float64(float64(v) * float64(v))
	}
	v := tensor.Zeros(len(s.Vector), 1)
	for i, x := range s.Vector {
		v.Data()[i] = float32(float64(x) / math.Sqrt(sum))
	}
	return tensor.MatMul(t, y, v)
}

// Last implements Metric.
func (Similarity) Last() bool { return false }

// Check implements Metric.
func (s Similarity) Check(*models.Model, int) error {
	if n := s.Embedder.Width(); n != len(s.Vector) {
		return fmt.Errorf("lens: a vector of %d numbers, want %d", len(s.Vector), n)
	}
	return nil
}

// none is the metric of a Lens without one.
type none struct{}

func (none) Values(_ *tensor.Tape, _ *models.Model, hidden *tensor.Tensor, _ models.Batch) *tensor.Tensor {
	return tensor.Zeros(hidden.Dim(0), 1)
}

func (none) Last() bool { return true }

func (none) Check(*models.Model, int) error { return nil }
