package models

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// LateEmbedder maps a text to a vector for each of its tokens. A query and a document are compared token by token, by
// score.MaxSim: late interaction, as in ColBERT. Queries and documents are read in different ways.
//
// Several goroutines may use a LateEmbedder at the same time, like an Embedder.
type LateEmbedder struct {
	Model *Model
	// Layers are the layers applied to the hidden state of each token, in order.
	Layers             []Layer
	Queries, Documents *LateTexts
	// Mean divides a score by the number of the query's vectors.
	Mean bool

	width  int
	params nn.Vars // of Layers that are not in Model
	files  []string
}

// LateTexts are the texts of one side of a comparison: queries, or documents.
type LateTexts struct {
	// MostTokens is the length in tokens, special tokens included, to which a text is truncated.
	MostTokens int
	// Prompt is prepended to each text; it may be empty.
	Prompt string

	embedder *LateEmbedder
	marker   []int // a token that the tokenizer does not find in text, such as [Q]; or none
	begin    int   // its place, behind the special tokens at the beginning
	fill     int   // the number of tokens to which shorter texts are filled, 0 for none
	filling  int   // the token that fills them
	attend   bool  // the other tokens attend to it
	from     int   // the number of tokens at the beginning without a vector
	skip     map[int]bool
}

// Width returns the number of elements of a vector.
func (e *LateEmbedder) Width() int { return e.width }

// Files returns the paths of the files of the pipeline, including Model.Files.
func (e *LateEmbedder) Files() []string { return append(e.Model.Files(), e.files...) }

// Params returns the parameters of the model, as Model.Params does, and those of the layers behind it, prefixed with the
// name of their folder.
func (e *LateEmbedder) Params() nn.Params {
	return nn.Join(nn.Named{Module: e.Model}, nn.Named{Module: e.params})
}

// Scores returns the scores of documents for a query, and the token of each document that each token of the query has
// chosen: score.MaxSim of their vectors, divided by the number of the query's tokens if Mean is true.
func (e *LateEmbedder) Scores(t *tensor.Tape, q *tensor.Tensor, documents ...*tensor.Tensor) (scores *tensor.Tensor, chosen [][]int) {
	scores, chosen = score.MaxSim(t, q, documents...)
	if e.Mean {
		scores = tensor.Scale(t, scores, 1/float32(max(q.Dim(0), 1)))
	}
	return scores, chosen
}

// Encode returns the tokens of a text, with the marker of its side, truncated to MostTokens or filled; cut reports
// whether they were truncated. Tokens that fill a text, and that others do not attend to, have a Mask of false.
//
// Errors: those of Model.Encode; a text without a token that has a vector; ctx.Err() if ctx ends, also within a long text.
//
// Differs: the text of a marker, such as "[unused0]", is text within a text, as in the library of ColBERT. It is the
// marker for sentence-transformers.
func (s *LateTexts) Encode(ctx context.Context, text string) (x *tokenizer.Encoding, cut bool, err error) {
	m := s.embedder.Model
	t, err := m.Tokenizer()
	if err != nil {
		return nil, false, err
	}
	if s.MostTokens <= len(s.marker) {
		return nil, false, fmt.Errorf("MostTokens is %d, want more", s.MostTokens)
	}
	o := atMost(s.MostTokens - len(s.marker))
	o.Context = ctx
	if x, err = t.Encode(s.Prompt+text, o); err != nil {
		return nil, false, err
	}
	s.insert(t, x, s.begin, true, s.marker...)
	if n := s.fill - len(x.IDs); n > 0 {
		s.insert(t, x, len(x.IDs), s.attend, slices.Repeat([]int{s.filling}, n)...)
	}
	if err := m.Sizes().Check(lateBatch(x)); err != nil {
		return nil, false, fmt.Errorf("the text has %w", err)
	}
	if len(s.Scored(x)) == 0 {
		return nil, false, errors.New("the text has no token with a vector, want one or more")
	}
	return x, x.Truncated, nil
}

// insert adds special tokens to an encoding.
func (s *LateTexts) insert(t *tokenizer.Tokenizer, x *tokenizer.Encoding, at int, mask bool, ids ...int) {
	for _, id := range ids {
		name, _ := t.Token(id)
		x.IDs = slices.Insert(x.IDs, at, id)
		x.Tokens = slices.Insert(x.Tokens, at, name)
		x.Offsets = slices.Insert(x.Offsets, at, tokenizer.Span{})
		x.TypeIDs = slices.Insert(x.TypeIDs, at, 0)
		x.Texts = slices.Insert(x.Texts, at, -1)
		x.Words = slices.Insert(x.Words, at, -1)
		x.Special = slices.Insert(x.Special, at, true)
		x.Mask = slices.Insert(x.Mask, at, mask)
	}
}

// Scored returns the numbers of the tokens of an encoding that have a vector: all, but for punctuation in documents if
// the model's files say so.
func (s *LateTexts) Scored(x *tokenizer.Encoding) (tokens []int) {
	for i, id := range x.IDs {
		if i >= s.from && !s.skip[id] {
			tokens = append(tokens, i)
		}
	}
	return tokens
}

// lateBatch returns encoded texts as a batch.
func lateBatch(xs ...*tokenizer.Encoding) Batch {
	x := Batch{attended: make([]int, len(xs))}
	for i, e := range xs {
		x.IDs, x.Types, x.attended[i] = append(x.IDs, e.IDs), append(x.Types, e.TypeIDs), len(e.IDs)
		if n := slices.Index(e.Mask, false); n >= 0 {
			x.attended[i] = n
		}
	}
	return x
}

// Forward returns the vectors of each text: [n Width] for the n tokens of Scored. Gradients flow to every parameter of a
// model that was loaded with Options.Trainable.
//
// Unless the tape records, texts of similar lengths run together, and the results do not belong to the tape. The vectors
// of a text do not depend on the others.
func (s *LateTexts) Forward(t *tensor.Tape, xs ...*tokenizer.Encoding) []*tensor.Tensor {
	x, vectors := lateBatch(xs...), make([]*tensor.Tensor, len(xs))
	run := func(t *tensor.Tape, list []int) {
		h := s.embedder.Vectors(t, s.embedder.Model.Hidden(t, x.pick(list), Run{alone: true}))
		for i, n := range list {
			vectors[n] = tensor.Gather(t, tensor.Index(t, h, i), s.Scored(xs[n]))
		}
	}
	if t.Recording() {
		run(t, stats.Numbers(len(xs)))
		return vectors
	}
	inSimilar(t, x, func(own *tensor.Tape, list []int) {
		run(own, list)
		for _, n := range list {
			vectors[n] = vectors[n].Clone()
		}
	})
	return vectors
}

// Vectors maps hidden states [B L D] to vectors [B L Width].
func (e *LateEmbedder) Vectors(t *tensor.Tape, hidden *tensor.Tensor) *tensor.Tensor {
	return inTurn(e.Layers).Forward(t, hidden)
}

// Embed returns the vectors of each text: [n Width] for its n tokens. Texts of any number and length can be mixed.
//
// Errors: those of Encode, with the number of the text, from 0; ctx.Err() if ctx ends, within a text or a layer too.
func (s *LateTexts) Embed(ctx context.Context, texts ...string) (vectors []*tensor.Tensor, err error) {
	all, err := encodeAll(ctx, s.Encode, texts)
	if err != nil {
		return nil, err
	}
	tape := tensor.NewTape(tensor.Infer)
	tape.SetContext(ctx)
	err = par.Stopped(func() { vectors = s.Forward(tape, all...) })
	return vectors, err
}
