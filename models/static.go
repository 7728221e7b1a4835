package models

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// loadTable returns an Embedder without attention and without a tokenizer: the states of a text are rows of a table, one
// for each token, without special tokens. The table is the named tensor in the directory of the settings or, in those of
// model2vec, embeddings: there, row mapping[i], times weights[i], is that of token i if there are tensors of these names.
func loadTable(s *Settings, o Options, kind, name string) (*Embedder, error) {
	dir := filepath.Dir(s.path)
	if o.Trainable {
		return nil, &FormatError{dir, fmt.Errorf("is a %s, which has no attention: attn neither trains nor exports it", kind)}
	}
	if err := wantWeights(dir); err != nil {
		return nil, err
	}
	r, err := openWeights(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if _, ok := r.Lookup("embeddings"); ok {
		name = "embeddings" // as in model2vec
	}
	table, _, err := build(&directory{settings: s, r: r}, func(b *Builder) (m mapped) {
		info, found := r.Lookup(name)
		shape := append(slices.Clone(info.Shape), 1, 1)[:max(2, len(info.Shape))] // of a table, or of a number for each token
		if m.Sizes = (Sizes{Vocabulary: shape[0], Width: shape[1]}); found && (shape[0] < 1 || len(info.Shape) != 2 && name != "weight") {
			b.Fail("tensor %s has shape %v, want a row for each token", name, info.Shape)
		}
		m.table = b.Fixed(name, info.Shape...)
		if rows, ok := r.Lookup("mapping"); ok && name == "embeddings" && len(rows.Shape) == 1 {
			b.Unread("mapping")
			m.Vocabulary = rows.Len()
		}
		if b.Has("weights") && name == "embeddings" {
			m.weights = b.Fixed("weights", m.Vocabulary)
		}
		return m
	})
	if err != nil {
		return nil, err
	}
	if x, err := r.Tensor("mapping"); err == nil {
		if table.rows, err = x.Ints(); err == nil {
			err = within("row", table.rows, table.table.Dim(0))
		}
		if err != nil {
			return nil, &safetensors.FormatError{Path: r.Path(), Err: fmt.Errorf("tensor mapping: %w", err)}
		}
	}
	m := &Model{Network: &stack{sizes: table.Sizes, words: table}, Dir: dir, Family: Family{Type: kind, Name: kind}, Settings: s, options: o}
	m.limit, m.files = math.Inf(1), append(appendExisting(nil, dir, configFile), r.Files()...)
	e := NewEmbedder(m, []Pooling{*pooling("mean")})
	e.plain = true
	return e, nil
}

// mapped is a table whose rows several tokens may share, each with a weight.
type mapped struct {
	Sizes
	table   *tensor.Tensor
	rows    []int          // by token; nil means that each token has its own
	weights *tensor.Tensor // by token; nil means 1
}

// Forward returns the rows of tokens [b l]: [b l D].
func (m mapped) Forward(t *tensor.Tape, ids []int, b, l int) *tensor.Tensor {
	y, d := t.Make(b, l, m.Width), m.Width
	for i, id := range ids {
		row := id
		if m.rows != nil {
			row = m.rows[id]
		}
		to := y.Data()[i*d:][:copy(y.Data()[i*d:(i+1)*d], m.table.Data()[row*d:])]
		if m.weights != nil {
			simd.Scale(to, m.weights.Data()[id], to)
		}
	}
	return y
}

// loadStatic reads a StaticEmbedding: a table with a vector for each token, of which a text has the mean. The directory
// may be that of model2vec. normalized says whether a Normalize follows.
//
// Differs: as in sentence-transformers, unknown tokens count, and only tokenizer.json truncates. model2vec leaves out
// unknown tokens, and truncates to the max_length of config.json.
func loadStatic(dir string, o Options, normalized bool) (*Embedder, error) {
	s, err := optionalSettings(filepath.Join(dir, configFile)) // sentence-transformers writes none
	if err != nil {
		return nil, err
	}
	s.Only("model_type", "model2vec")
	s.Only("normalize", normalized)
	s.Ignore("apply_pca", "apply_zipf", "architectures", "embedding_dtype", "hidden_dim", "language", "max_length", "pooling",
		"seq_length", "sif_coefficient", "tokenizer_name", "vocabulary_quantization")
	e, err := loadTable(s, o, "StaticEmbedding", "embedding.weight")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, tokenizerFile) // alone, as in sentence-transformers
	data, err := atomicfile.ReadFile(path, atomicfile.Large)
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	m := e.Model
	if m.tokenizer, err = tokenizer.Read(bytes.NewReader(data)); err != nil {
		return nil, &FormatError{path, err}
	}
	m.files = append(m.files, path)
	var file struct {
		Truncation struct {
			Length int `json:"max_length"`
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, &FormatError{path, err}
	}
	e.MostTokens = cmp.Or(file.Truncation.Length, e.MostTokens)
	return e, nil
}
