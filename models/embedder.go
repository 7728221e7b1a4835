package models

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	// Dimensions are the lengths to which Cut may cut a vector, besides Width: those that the model was trained for, as
	// matryoshka_dimensions of its config.json lists them; all if is_matryoshka is true.
	Dimensions []int
	// Late, of BGE-M3, compares texts by vectors of their tokens; nil if the directory has none. EmbedM3 returns all.
	Late *LateEmbedder

	width    int
	params   nn.Vars // of Layers
	leaveOut bool    // the pooling excludes the prompt's tokens
	plain    bool    // special tokens are not added, and a text may have no tokens
	states   Layer   // applied to the hidden states before they are pooled, or nil
	sparse   bool
	files    []string
	weights  *nn.Linear // of BGE-M3, from hidden states to weights of tokens
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

// Sparse reports whether a vector has an element for each token of the vocabulary, of which most are zero: see EmbedSparse.
func (e *Embedder) Sparse() bool { return e.sparse }

// Params returns the parameters of the model, as Model.Params does, and those of the layers after
// the pooling, prefixed with the name of their folder.
func (e *Embedder) Params() nn.Params {
	return nn.Join(nn.Named{Module: e.Model}, nn.Named{Module: e.params})
}

// Encode returns the tokens of the prompt and a text, truncated to MostTokens; cut reports
// whether they were truncated. Most tokenizers do not read the rest of a long text: see
// tokenizer.Options.
//
// Errors: those of Model.Encode; an encoder–decoder; a prompt that fills MostTokens, if the pooling excludes it;
// ctx.Err() if ctx ends, also within a long text.
func (e *Embedder) Encode(ctx context.Context, text string) (x *tokenizer.Encoding, cut bool, err error) {
	t, err := e.Model.Tokenizer()
	if err := cmp.Or(e.Model.wantStates(), err); err != nil {
		return nil, false, err
	}
	o := atMost(e.MostTokens)
	o.Context, o.NoSpecial = ctx, e.plain
	if x, err = t.Encode(e.Prompt+text, o); err != nil {
		return nil, false, err
	}
	if e.plain && len(x.IDs) == 0 {
		return x, false, nil
	}
	if err := e.Model.Sizes().Check(BatchOf(x)); err != nil {
		return nil, false, fmt.Errorf("the text has %w", err)
	}
	if n := e.excluded(); n >= len(x.IDs) {
		return nil, false, fmt.Errorf("the prompt has %d tokens, want fewer than %d, the length of a text", n, e.MostTokens)
	}
	return x, x.Truncated, nil
}

// excluded returns the number of tokens of the prompt, and of special tokens before it, if the pooling excludes them.
func (e *Embedder) excluded() int {
	t, err := e.Model.Tokenizer()
	if !e.leaveOut || e.Prompt == "" || err != nil {
		return 0
	}
	x, err := t.Encode(e.Prompt, atMost(e.MostTokens))
	if err != nil {
		return 0 // Encode of a text has the same error
	}
	n := len(x.IDs)
	if n > 0 && x.Special[n-1] {
		n--
	}
	return n
}

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
	if x.longest() == 0 { // texts without tokens
		y := t.Make(len(x.IDs), e.width)
		clear(y.Data())
		return y
	}
	hidden := e.Model.Hidden(t, x, Run{alone: true})
	if e.plain && e.sparse {
		return occurring(t, hidden, x.IDs, e.width)
	}
	return e.Pool(t, hidden, x.Lens())
}

// Pool maps hidden states [B L D] of sequences with the given lengths to vectors [B Width]: it is Forward after the model.
func (e *Embedder) Pool(t *tensor.Tape, hidden *tensor.Tensor, lens []int) *tensor.Tensor {
	if n := e.excluded(); n > 0 {
		hidden = tensor.Slice(t, hidden, 1, n, hidden.Dim(1))
		lens = slices.Clone(lens)
		for i := range lens {
			lens[i] -= n
		}
	}
	if e.states != nil {
		hidden = e.states.Forward(t, hidden)
	}
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
	all, err := encodeAll(ctx, e.Encode, texts)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return tensor.Zeros(0, e.width), nil
	}
	tape := tensor.NewTape(tensor.Infer)
	tape.SetContext(ctx)
	err = par.Stopped(func() { y = e.Forward(tape, BatchOf(all...)).Clone() })
	return y, err
}

// Cut returns a function that returns the first n elements of a vector, divided by their length if the pipeline ends
// with Normalize: the vector of n elements of a model with Matryoshka representations (Kusupati et al., 2022). The
// vectors of Nomic Embed 1.5, whose pipeline has no Normalize, first pass through a LayerNorm without weights, and are
// normalized at the end.
//
// Errors: an n that is neither Width nor among Dimensions.
//
// Differs: truncate_dim of sentence-transformers takes any length of any model, and does not normalize again.
func (e *Embedder) Cut(n int) (func(vector []float32) []float32, error) {
	switch {
	case n == e.width:
		return func(vector []float32) []float32 { return vector }, nil
	case slices.Contains(e.Dimensions, n):
	case len(e.Dimensions) == 0:
		return nil, fmt.Errorf("is %d, want %d: config.json does not say that the model has Matryoshka representations", n, e.width)
	case len(e.Dimensions) == e.width:
		return nil, fmt.Errorf("is %d, want 1 to %d", n, e.width)
	default:
		return nil, fmt.Errorf("is %d, want %d or one of %d", n, e.width, e.Dimensions)
	}
	return func(vector []float32) []float32 {
		y, k, before := tensor.New(slices.Clone(vector), 1, len(vector)), len(e.Layers), e.Model.Family.beforeCut
		ends := k > 0 && e.Layers[k-1] == Normalize()
		if before != nil && !ends {
			y, ends = before.Forward(nil, y), true
		}
		if y = firstElements(n).Forward(nil, y); ends {
			y = Normalize().Forward(nil, y)
		}
		return y.Data()
	}, nil
}

// readDimensions reads the keys with which vLLM and SGLang recognize Matryoshka representations.
func (e *Embedder) readDimensions() error {
	const key = "matryoshka_dimensions"
	s := e.Model.Settings
	e.Dimensions = get[[]int](s, key, "a list of lengths", nil)
	for _, n := range e.Dimensions {
		if n < 1 || n > e.width {
			s.Fail(key, "has %d, want 1 to %d", n, e.width)
		}
	}
	if s.Bool("is_matryoshka", false) && e.Dimensions == nil {
		for n := range e.width {
			e.Dimensions = append(e.Dimensions, n+1)
		}
	}
	return s.check()
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
