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
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// loadTable returns an Embedder without attention and without a tokenizer: the states of a text are rows of a table, one
// for each token, without special tokens. The table is a tensor in the directory of the settings, of the first of the
// names that there is. Row mapping[i], times weights[i], is that of token i, if there are tensors of these names beside
// embeddings.
func loadTable(s *Settings, o Options, kind string, names ...string) (*Embedder, error) {
	dir := filepath.Dir(s.path)
	if o.Trainable {
		return nil, &FormatError{dir, fmt.Errorf("is a %s, which has no attention: attn neither trains nor exports it", kind)}
	}
	if err := cmp.Or(s.check(), wantWeights(dir)); err != nil {
		return nil, err
	}
	r, err := openWeights(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	bad := func(format string, args ...any) error {
		return &safetensors.FormatError{Path: r.Path(), Err: fmt.Errorf(format, args...)}
	}
	has := func(name string) bool { _, ok := r.Lookup(name); return ok }
	name := append(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !has(name) }), "")[0]
	for _, x := range r.Tensors() {
		if x.Name != name && (name != "embeddings" || x.Name != "mapping" && x.Name != "weights") {
			return nil, bad("tensor %s is not read, want %s", quote.Text(x.Name), names[0])
		}
	}
	info, _ := r.Lookup(name)
	shape := info.Shape
	if name == "weight" {
		shape = append(slices.Clone(shape), 1)
	}
	if len(shape) != 2 || shape[0] < 1 || shape[1] < 1 {
		return nil, bad("tensor %s has shape %v, want a row for each token", quote.Text(name), info.Shape)
	}
	table := mapped{Embedding: nn.Embedding{Weight: tensor.Zeros(shape...)}}
	if err := r.ReadFloat32s(name, table.Weight.Data(), 0); err != nil {
		return nil, err
	}
	z := Sizes{Width: shape[1], Vocabulary: shape[0]}
	if name == "embeddings" && has("mapping") {
		if x, err := r.Tensor("mapping"); err != nil {
			return nil, err
		} else if table.rows, err = x.Ints(); err != nil {
			return nil, bad("%w", err)
		}
		if err := within("mapping", table.rows, shape[0]); err != nil {
			return nil, bad("tensor %w", err)
		}
		z.Vocabulary = len(table.rows)
	}
	if name == "embeddings" && has("weights") {
		x, _ := r.Lookup("weights")
		if table.weights = make([]float32, z.Vocabulary); x.Len() != z.Vocabulary {
			return nil, bad("tensor weights has shape %v, want a number for each of %d tokens", x.Shape, z.Vocabulary)
		}
		if err := r.ReadFloat32s("weights", table.weights, 0); err != nil {
			return nil, err
		}
	}
	m := &Model{Network: &stack{sizes: z, words: table}, Dir: dir, Family: Family{Type: kind, Name: kind}, Settings: s, options: o}
	m.limit, m.files = math.Inf(1), append(appendExisting(nil, dir, configFile), r.Files()...)
	e := NewEmbedder(m, []Pooling{*pooling("mean")})
	e.plain = true
	return e, nil
}

// mapped is a table whose rows several tokens share, each with a weight.
type mapped struct {
	nn.Embedding
	rows    []int     // by token; nil means that each token has its own
	weights []float32 // by token; nil means 1
}

// Forward returns the rows of tokens [b l]: [b l D].
func (m mapped) Forward(t *tensor.Tape, ids []int, b, l int) *tensor.Tensor {
	rows := ids
	if m.rows != nil {
		rows = stats.Pick(m.rows, ids)
	}
	y := m.Embedding.Forward(t, rows, b, l)
	for i, id := range ids[:len(ids)*min(1, len(m.weights))] {
		row := y.Data()[i*y.Dim(2):][:y.Dim(2)]
		for j := range row {
			row[j] *= m.weights[id]
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
	s, err := optionalSettings(filepath.Join(dir, configFile))
	if s == nil { // sentence-transformers writes none
		s = &Settings{path: filepath.Join(dir, configFile), read: map[string]bool{}, wrong: new([]error)}
	}
	if err != nil {
		return nil, err
	}
	s.Only("model_type", "model2vec")
	s.Only("normalize", normalized)
	s.Ignore("apply_pca", "apply_zipf", "architectures", "embedding_dtype", "hidden_dim", "language", "max_length", "pooling",
		"seq_length", "sif_coefficient", "tokenizer_name", "vocabulary_quantization")
	e, err := loadTable(s, o, "StaticEmbedding", "embedding.weight", "embeddings")
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
