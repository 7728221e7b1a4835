package models

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// SparseVector is a vector with an element for each token of a vocabulary, of which most are zero. Its JSON form,
// {"indices": […], "values": […]}, is that of vector databases.
type SparseVector struct {
	Tokens  []int     `json:"indices"` // the ids of the elements that are not zero, ascending
	Weights []float32 `json:"values"`  // the elements
}

// NewSparseVector returns the vector of tokens with the given weights, in any order. A token that occurs several times
// has its largest weight. If tokens is nil, weights has an element for each token of the vocabulary.
func NewSparseVector(tokens []int, weights []float32) SparseVector {
	if tokens == nil {
		tokens = stats.Numbers(len(weights))
	}
	order := stats.Numbers(len(tokens))
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(tokens[i], tokens[j]), cmp.Compare(weights[j], weights[i]))
	})
	v := SparseVector{Tokens: []int{}, Weights: []float32{}}
	for n, i := range order {
		if weights[i] != 0 && (n == 0 || tokens[order[n-1]] != tokens[i]) {
			v.Tokens, v.Weights = append(v.Tokens, tokens[i]), append(v.Weights, weights[i])
		}
	}
	return v
}

// Dot returns Σ v_t·w_t over the tokens t that both vectors have.
func (v SparseVector) Dot(w SparseVector) (sum float64) {
	for i, j := 0, 0; i < len(v.Tokens) && j < len(w.Tokens); {
		switch c := cmp.Compare(v.Tokens[i], w.Tokens[j]); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			sum += float64(float64(v.Weights[i]) * float64(w.Weights[j]))
			i, j = i+1, j+1
		}
	}
	return sum
}

// EmbedSparse is Embed for an Embedder whose vectors are Sparse. It takes memory for len(texts)·Width numbers.
//
// Errors: those of Embed.
func (e *Embedder) EmbedSparse(ctx context.Context, texts ...string) ([]SparseVector, error) {
	y, err := e.Embed(ctx, texts...)
	if err != nil {
		return nil, err
	}
	all := make([]SparseVector, 0, len(texts))
	for row := range slices.Chunk(y.Data(), e.width) {
		all = append(all, NewSparseVector(nil, row))
	}
	return all, nil
}

// splade is the name of the pooling that makes a sparse vector of the logits of masked words.
const splade = "splade"

// poolSplade sets the pooling of SPLADE: the largest, or the sum, over the tokens of a text, of f(logit) for each token of
// the vocabulary, where f(x) = log(1 + max(x, 0)), or log(1 + f(x)) if twice is true.
//
// Sources: Formal et al., "SPLADE v2: Sparse Lexical and Expansion Model for Information Retrieval", 2021,
// https://arxiv.org/abs/2109.10086, and SpladePooling of sentence-transformers.
func (e *Embedder) poolSplade(sum, twice bool) error {
	h := e.Model.Head()
	if h == nil || h.Task != MaskedWords {
		return &FormatError{e.Model.Dir, fmt.Errorf("has no head for %s, from whose logits SPLADE makes a vector", MaskedWords)}
	}
	f := []Layer{Activation(func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Log1p(t, tensor.ReLU(t, x)) })}
	if twice {
		f = append(f, f[0])
	}
	e.states, e.Poolings, e.Layers = h.Layer, []Pooling{*pooling("max")}, f // f grows with x
	if sum {
		e.states, e.Poolings, e.Layers = append(inTurn{h.Layer}, f...), []Pooling{{Name: "sum", weight: func(int, int) float64 { return 1 }}}, nil
	}
	e.sparse, e.width = true, e.Model.Sizes().Vocabulary
	return nil
}

// readSplade reads the second module of a sparse encoder.
func (e *Embedder) readSplade(dir string) error {
	s, err := openSettings(filepath.Join(dir, configFile))
	if err != nil {
		return err
	}
	s.Only("pooling_strategy", "max", "sum")
	s.Only("activation_function", "relu", "log1p_relu")
	s.Ignore("chunk_size")
	if err := e.poolSplade(s.Text("pooling_strategy", "max") == "sum", s.Text("activation_function", "relu") == "log1p_relu"); err != nil {
		return err
	}
	s.wantWidth(e.width, "the vocabulary has %d tokens")
	return s.check()
}

// loadWeights reads a SparseStaticEmbedding: a weight for each token of the vocabulary, such as its IDF, which a text has
// if it contains the token.
func loadWeights(dir string, o Options) (*Embedder, error) {
	s, err := openSettings(filepath.Join(dir, configFile))
	if err != nil {
		return nil, err
	}
	s.Ignore("frozen")
	s.Only("path") // a file that sentence-transformers reads in place of the weights
	e, err := loadTable(s, o, "SparseStaticEmbedding", "weight")
	if err != nil {
		return nil, err
	}
	m := e.Model
	if m.tokenizer, m.untokened = tokenizer.Load(dir); m.untokened != nil {
		return nil, m.untokened
	}
	m.files = appendExisting(append(m.files, m.tokenizer.Files()...), dir, tokenizerConfigFile)
	if err := m.readBeside(); err != nil {
		return nil, err
	}
	e.MostTokens, e.sparse, e.width = m.mostTokens(), true, m.Sizes().Vocabulary
	return e, nil
}

// occurring returns the vectors [B V] of texts whose tokens have the weights [B L 1].
func occurring(t *tensor.Tape, weights *tensor.Tensor, ids [][]int, vocabulary int) *tensor.Tensor {
	y, l := t.Make(len(ids), vocabulary), weights.Dim(1)
	clear(y.Data())
	for i, row := range ids {
		for j, id := range row {
			y.Data()[i*vocabulary+id] = weights.Data()[i*l+j]
		}
	}
	return y
}
