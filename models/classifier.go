package models

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// Classifier predicts the class of a text, or of a pair of texts, with a model of a class …ForSequenceClassification. A
// cross-encoder has one class; its logit says how well the second text answers the first.
//
// A decoder that predicts the next word can be a cross-encoder, too, as in sentence-transformers (LogitScore): it answers
// with one of two tokens, such as yes and no, and its one logit is that of the first minus that of the second. Such a
// Classifier needs a Prompt.
//
// Several goroutines may use a Classifier at the same time, like an Embedder.
type Classifier struct {
	Model *Model
	// Prompt returns the text that a decoder reads in place of the given texts, a query and a document. Special tokens
	// within the literal spans are text. Nil means that the tokenizer joins a pair.
	Prompt func(texts ...string) (text string, literal []tokenizer.Span, err error)
	// MostTokens is the length in tokens, special tokens included, to which a text is truncated, or a pair: first the
	// longer text.
	MostTokens int
	// Prefix is prepended to the first text where Prompt is nil: the default prompt of a cross-encoder's directory.
	Prefix string

	head    *TaskHead
	several bool // classes do not exclude each other
	values  bool // and are no classes, but values
}

// NewClassifier returns a Classifier, or a *FormatError if the head of the model has another task than to classify texts
// or to predict the next word. answers are the tokens with which a decoder answers, such as "yes" and "no", or only the
// positive one; without them, they are those of the LogitScore in modules.json, which is then necessary. The length and
// the prompt of a cross-encoder of sentence-transformers are read from its directory.
//
// Differs: sentence-transformers uses yes and no for every decoder without a LogitScore.
func NewClassifier(m *Model, answers ...string) (*Classifier, error) {
	head := m.Head()
	if list, err := readModules(m.Dir); m.Dir != "" && err == nil && isEmbedder(list) && (head == nil || head.Task != TextClasses) {
		return nil, &FormatError{m.Dir, errors.New("is a bi-encoder, which maps a text to a vector, want a cross-encoder, " +
			"or LoadEmbedder and attn embed for vectors")}
	}
	if head == nil {
		return nil, &FormatError{m.Dir, fmt.Errorf("has no head, want a head for the %s", TextClasses)}
	}
	if err := m.wantTokens(); err != nil {
		return nil, err
	}
	switch head.Task {
	case NextWord:
		ids, err := m.answerTokens(answers)
		if err != nil {
			return nil, err
		}
		head = &TaskHead{Task: TextClasses, Labels: []string{"yes"}, Pool: pooling("lasttoken"), Layer: answer{head, ids}}
	case TextClasses:
		if len(answers) > 0 {
			return nil, &FormatError{m.Dir, fmt.Errorf("has a head for the %s, want no answers", TextClasses)}
		}
	default:
		return nil, &FormatError{m.Dir, fmt.Errorf("has a head for the %s, want one for the %s", head.Task, TextClasses)}
	}
	c := &Classifier{Model: m, MostTokens: m.mostTokens(), head: head}
	switch kind := m.Settings.Text("problem_type", ""); kind {
	case "regression":
		c.values = true
	case "", "single_label_classification", "multi_label_classification":
		c.several = kind == "multi_label_classification" || len(head.Labels) == 1
	default:
		return nil, &FormatError{filepath.Join(m.Dir, configFile), fmt.Errorf("problem_type is %s, want regression, "+
			"single_label_classification or multi_label_classification", quote.Text(kind))}
	}
	return c, c.readPipeline()
}

// readPipeline reads the files of a cross-encoder of sentence-transformers, if there is a modules.json of one.
func (c *Classifier) readPipeline() error {
	m := c.Model
	if m.Dir == "" { // a new model
		return nil
	}
	modules, err := readModules(m.Dir)
	task, output := "sequence-classification", "scores"
	if m.Head().Task == NextWord {
		task, output = writesText, "causal_logits"
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case isEmbedder(modules): // whose files do not concern the head
		return nil
	case len(modules) == 0 || modules[0].Path != "" || modules[0].kind() != "Transformer",
		len(modules) > 1 && (task != writesText || !isScore(modules)):
		return &FormatError{filepath.Join(m.Dir, PipelineFile), errOtherModules}
	}
	if c.MostTokens, err = m.readTransformer(task, task, output, nil); err != nil {
		return err
	}
	prompts, usual, _, err := readPrompts(m.Dir, crossEncoder)
	c.Prefix = prompts[usual]
	return err
}

var errOtherModules = errors.New("has other modules, want a Transformer and, for a decoder, a LogitScore")

// isEmbedder reports whether modules are those of an Embedder.
func isEmbedder(list []module) bool { return len(list) > 1 && list[1].kind() == "Pooling" }

// isScore reports whether modules are a transformer and a LogitScore.
func isScore(list []module) bool {
	return len(list) == 2 && list[0].Path == "" && list[1].kind() == "LogitScore" && filepath.IsLocal(list[1].Path)
}

// answer is the Layer whose logit is that of one token after a text, minus that of another, if there are two.
type answer struct {
	next *TaskHead
	ids  []int
}

func (a answer) Forward(t *tensor.Tape, last *tensor.Tensor) *tensor.Tensor {
	logits := a.next.Logits(t, last)
	y := tensor.Slice(t, logits, 1, a.ids[0], a.ids[0]+1)
	for _, id := range a.ids[1:] {
		y = tensor.Sub(t, y, tensor.Slice(t, logits, 1, id, id+1))
	}
	return y
}

// answerTokens returns the token of a positive answer, followed by that of a negative one if that counts: those of the
// given names, or else those of the LogitScore.
func (m *Model) answerTokens(names []string) (ids []int, err error) {
	if m.Sizes().Decoder != nil {
		return nil, &FormatError{m.Dir, fmt.Errorf("is an encoder-decoder, want a decoder, or a head for the %s", TextClasses)}
	}
	if len(names) > 0 {
		t, err := m.Tokenizer()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			id, ok := t.ID(name)
			if !ok || len(names) > 2 {
				return nil, &FormatError{m.Dir, fmt.Errorf("has no answers %s, want one or two tokens of its vocabulary", quote.Text(strings.Join(names, ",")))}
			}
			ids = append(ids, id)
		}
		return ids, nil
	}
	modules, err := readModules(m.Dir)
	path := filepath.Join(m.Dir, PipelineFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &FormatError{m.Dir, fmt.Errorf("is a decoder, and no modules.json with a LogitScore names the tokens of its answers, "+
			"want it, or the tokens, such as --answers yes,no of attn rerank, or a head for the %s", TextClasses)}
	case err != nil:
		return nil, err
	case !isScore(modules):
		return nil, &FormatError{path, errOtherModules}
	}
	s, err := openSettings(filepath.Join(m.Dir, modules[1].Path, configFile))
	if err != nil {
		return nil, err
	}
	s.Only("module_input_name", "causal_logits")
	for _, key := range []string{"true_token_id", "false_token_id"} {
		if len(ids) == 1 && !s.Has(key) { // the score is one logit
			break
		}
		id := s.Int(key, -1)
		if most := m.Sizes().Vocabulary - 1; id < 0 || id > most {
			s.Fail(key, "is %d, want 0 to %d", id, most)
		}
		ids = append(ids, id)
	}
	return ids, s.check()
}

// Labels returns the names of the classes.
func (c *Classifier) Labels() []string { return c.head.Labels }

// Encode returns the tokens of a text, or of a pair; cut reports whether they were truncated.
//
// Errors: those of tokenizer.Tokenizer.Encode and EncodePair; more than two texts; ctx.Err() if ctx ends, also within a
// long text.
func (c *Classifier) Encode(ctx context.Context, texts ...string) (x *tokenizer.Encoding, cut bool, err error) {
	t, err := c.Model.Tokenizer()
	if err != nil {
		return nil, false, err
	}
	o := atMost(c.MostTokens)
	o.Context = ctx
	if c.Prompt != nil {
		text, literal, err := c.Prompt(texts...)
		if err != nil {
			return nil, false, err
		}
		o.NoSpecial, o.Literal, texts = true, literal, []string{text}
	} else if c.Model.Head().Task == NextWord {
		return nil, false, errors.New("the model is a decoder without a Classifier.Prompt, want one")
	}
	if len(texts) > 0 && c.Prompt == nil && c.Prefix != "" {
		texts = append([]string{c.Prefix + texts[0]}, texts[1:]...)
	}
	switch len(texts) {
	case 1:
		x, err = t.Encode(texts[0], o)
	case 2:
		x, err = t.EncodePair(texts[0], texts[1], o)
	default:
		err = fmt.Errorf("%d texts, want one or two", len(texts))
	}
	if err == nil && c.Prompt != nil { // whose end is not to be cut
		err = tooMany("prompt", x, c.MostTokens)
	}
	if err == nil {
		err = c.Model.Sizes().Check(BatchOf(x))
	}
	if err != nil {
		return nil, false, err
	}
	return x, x.Truncated, nil
}

// Logits returns the logits of each text of a batch: [B C]. Texts of similar lengths run together, and the logits of a
// text do not depend on the others. The tape must not record.
func (c *Classifier) Logits(t *tensor.Tape, x Batch) *tensor.Tensor {
	classes := len(c.Labels())
	return eachSimilar(t, x, classes, func(own *tensor.Tape, some Batch) *tensor.Tensor {
		return c.head.Of(own, c.Model.Hidden(own, some, Run{alone: true}), some)
	})
}

// Probabilities returns the probabilities of the classes: the softmax of the logits or, if classes do not exclude each
// other (problem_type multi_label_classification, or a single class), the sigmoid of each. It returns nil if the logits
// are values (problem_type regression).
func (c *Classifier) Probabilities(logits []float32) []float64 {
	if c.values {
		return nil
	}
	p, top, sum := make([]float64, len(logits)), math.Inf(-1), 0.
	for _, x := range logits {
		top = max(top, float64(x))
	}
	for i, x := range logits {
		if p[i] = math.Exp(float64(x) - top); c.several {
			p[i] = 1 / (1 + math.Exp(-float64(x)))
		}
		sum += p[i]
	}
	for i := range p {
		if !c.several {
			p[i] /= sum
		}
	}
	return p
}
