package models

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// Embedder maps a text to a vector such that texts of similar meaning have similar vectors. It is
// a pipeline of sentence-transformers: a model, a pooling of its hidden states, and further
// layers.
//
// Several goroutines may use an Embedder at the same time, once its fields are set, except while its
// model is trained. One call uses all processors, and calls at the same time share them: a batch of
// many texts is faster than as many calls. docs/serve.md has a service.
type Embedder struct {
	Model *Model
	// Poolings are the poolings, whose vectors are concatenated.
	Poolings []Pooling
	// Layers are the layers applied to the pooled vector, in order.
	Layers []Layer
	// MostTokens is the length in tokens, special tokens included, to which a text is truncated.
	MostTokens int
	// Prompt is prepended to each text; it may be empty. Prompts are the prompts in the
	// directory, by name, for example one for queries and one for passages.
	Prompt  string
	Prompts map[string]string

	width    int
	params   nn.Vars // of Layers
	leaveOut bool    // the pooling should exclude the prompt's tokens
	files    []string
}

// Files returns the paths of the files of the pipeline, including Model.Files.
func (e *Embedder) Files() []string { return append(e.Model.Files(), e.files...) }

// NewEmbedder returns an Embedder for a directory without a pipeline: it pools the hidden states
// of a model and applies further layers, such as Normalize(), to the result.
func NewEmbedder(m *Model, poolings []Pooling, layers ...Layer) *Embedder {
	return &Embedder{
		Model: m, Poolings: poolings, Layers: layers, MostTokens: m.mostTokens(),
		width: m.Sizes().Width * len(poolings),
	}
}

// Normalize is a Layer that divides each vector by its length: y = x/max(‖x‖, 1e-12).
func Normalize() Layer { return normalized }

// Width returns the number of elements of a vector.
func (e *Embedder) Width() int { return e.width }

// Params returns the parameters of the model, as Model.Params does, and those of the layers after
// the pooling, prefixed with the name of their folder.
func (e *Embedder) Params() nn.Params {
	return nn.Join(nn.Named{Module: e.Model}, nn.Named{Module: e.params})
}

// Encode returns the tokens of the prompt and a text, truncated to MostTokens; cut reports
// whether they were truncated. Most tokenizers do not read the rest of a long text: see
// tokenizer.Options.
//
// Errors: those of Model.Encode; an encoder–decoder; a prompt that the directory excludes from
// the pooling, which this package does not support.
func (e *Embedder) Encode(text string) (x *tokenizer.Encoding, cut bool, err error) {
	if e.Model.Sizes().Decoder != nil {
		return nil, false, fmt.Errorf("%s is an encoder-decoder, whose states depend on its output, want an encoder or a decoder", e.Model.Family.Name)
	}
	t, err := e.Model.Tokenizer()
	if err != nil {
		return nil, false, err
	}
	if e.leaveOut && e.Prompt != "" {
		return nil, false, errPrompt
	}
	x, err = t.Encode(e.Prompt+text, atMost(e.MostTokens))
	if err != nil {
		return nil, false, err
	}
	if err := e.Model.Sizes().Check(BatchOf(x)); err != nil {
		return nil, false, fmt.Errorf("the text has %w", err)
	}
	return x, x.Truncated, nil
}

// errPrompt is the error for a prompt that the pooling should leave out.
var errPrompt = errors.New("the pooling of this model excludes prompts, which is not supported, want no prompt")

// Forward returns a vector for each text of a batch: [B Width]. Gradients flow to every
// parameter of a model that was loaded with Options.Trainable.
//
// Unless the tape records, texts of similar lengths run together, so a long text does not pad the
// others: the batch may have any size and order. The vector of a text does not depend on the others.
func (e *Embedder) Forward(t *tensor.Tape, x Batch) *tensor.Tensor {
	if t.Recording() {
		return e.vectors(t, x)
	}
	return eachSimilar(t, x, e.width, e.vectors)
}

// vectors is Forward for the whole batch at once.
func (e *Embedder) vectors(t *tensor.Tape, x Batch) *tensor.Tensor {
	return e.pool(t, e.Model.Hidden(t, x, Run{}), x.Lens())
}

// pool pools hidden states and applies the layers of Layers.
func (e *Embedder) pool(t *tensor.Tape, hidden *tensor.Tensor, lens []int) *tensor.Tensor {
	parts := make([]*tensor.Tensor, len(e.Poolings))
	for i, p := range e.Poolings {
		parts[i] = p.Forward(t, hidden, lens)
	}
	y := parts[0]
	if len(parts) > 1 {
		y = tensor.Concat(t, 1, parts...)
	}
	return inTurn(e.Layers).Forward(t, y)
}

// Embed returns a vector for each text: [len(texts) Width]. Texts of any number and length can be
// mixed, as in Forward.
//
// Errors: those of Encode, with the number of the text, from 0; ctx.Err() if ctx ends, within a text
// or a layer too.
func (e *Embedder) Embed(ctx context.Context, texts ...string) (y *tensor.Tensor, err error) {
	all := make([]*tokenizer.Encoding, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if all[i], _, err = e.Encode(text); err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
	}
	if len(all) == 0 {
		return tensor.Zeros(0, e.width), nil
	}
	tape := tensor.NewTape(tensor.Infer)
	tape.SetContext(ctx)
	err = par.Stopped(func() { y = e.Forward(tape, BatchOf(all...)).Clone() })
	return y, err
}

// PoolingByName returns the pooling with the given name from Poolings.
func PoolingByName(name string) (Pooling, error) {
	var names []string
	for _, p := range Poolings() {
		if names = append(names, p.Name); p.Name == name {
			return p, nil
		}
	}
	return Pooling{}, fmt.Errorf("pooling %s, want one of %s", quote.Text(name), strings.Join(names, ", "))
}
