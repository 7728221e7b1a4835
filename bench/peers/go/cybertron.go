package main

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/nlpodyssey/cybertron/pkg/models/bert"
	"github.com/nlpodyssey/cybertron/pkg/vocabulary"
	"github.com/nlpodyssey/spago/mat"
	"github.com/nlpodyssey/spago/nn"
	"github.com/nlpodyssey/spago/nn/linear"
	"github.com/nlpodyssey/spago/nn/normalization/layernorm"

	"github.com/attn-go/attn/safetensors"
)

// loadCybertron fills a model of cybertron with the weights of a directory. It has the names of ids for tokens, which
// cybertron looks up in a vocabulary, and computes texts one after the other, as its package bert does.
func loadCybertron(dir string) (func(ids [][]int) ([]float32, error), error) {
	c, err := bert.ConfigFromFile[bert.Config](filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, err
	}
	c.EmbeddingsSize = c.HiddenSize
	file, err := safetensors.Read(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		return nil, err
	}
	names := make([]string, c.VocabSize)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	m := bert.New[float32](c)
	m.Embeddings.Vocab = vocabulary.New(names)
	if err := fill(m, file); err != nil {
		return nil, err
	}
	return func(ids [][]int) (out []float32, err error) {
		for _, text := range ids {
			tokens := make([]string, len(text))
			for i, id := range text {
				tokens[i] = names[id]
			}
			for _, x := range m.EncodeTokens(tokens) {
				out = append(out, mat.Data[float32](x.Value().(mat.Matrix))...)
			}
		}
		return out, nil
	}, nil
}

// fill copies the weights of a file into a model.
func fill(m *bert.Model, file *safetensors.File) (err error) {
	of := func(name string) []float32 {
		t := file.Lookup(name)
		if t == nil {
			err = fmt.Errorf("no tensor %s", name)
			return nil
		}
		x, e := t.Float32s()
		if e != nil {
			err = e
		}
		return x
	}
	rows := func(to []*nn.Param, name string) {
		x := of(name)
		for i, row := range to {
			n := len(x) / len(to)
			mat.SetData(row.Value(), x[i*n:(i+1)*n])
		}
	}
	whole := func(w, b *nn.Param, name string) {
		mat.SetData(w.Value(), of(name+".weight"))
		mat.SetData(b.Value(), of(name+".bias"))
	}
	norm := func(to *layernorm.Model, name string) {
		whole(to.W, to.B, name)
		mat.SetData(to.Eps.Value(), []float32{1e-12})
	}
	rows(m.Embeddings.Tokens.Weights, "embeddings.word_embeddings.weight")
	rows(m.Embeddings.Positions.Weights, "embeddings.position_embeddings.weight")
	rows(m.Embeddings.TokenTypes.Weights, "embeddings.token_type_embeddings.weight")
	norm(m.Embeddings.Norm, "embeddings.LayerNorm")
	for i, layer := range m.Encoder.Layers {
		at, a := fmt.Sprintf("encoder.layer.%d.", i), layer.SelfAttention.Attention
		for j, h := range a.Heads {
			for name, to := range map[string]*linear.Model{"query": h.Query, "key": h.Key, "value": h.Value} {
				w, b := of(at+"attention.self."+name+".weight"), of(at+"attention.self."+name+".bias")
				n, k := len(w)/len(a.Heads), len(b)/len(a.Heads)
				mat.SetData(to.W.Value(), w[j*n:(j+1)*n])
				mat.SetData(to.B.Value(), b[j*k:(j+1)*k])
			}
		}
		whole(a.OutputMerge.W, a.OutputMerge.B, at+"attention.output.dense")
		norm(layer.SelfAttention.Norm, at+"attention.output.LayerNorm")
		up, down := layer.FF.MLP[0].(*linear.Model), layer.FF.MLP[2].(*linear.Model)
		whole(up.W, up.B, at+"intermediate.dense")
		whole(down.W, down.B, at+"output.dense")
		norm(layer.FF.Norm, at+"output.LayerNorm")
	}
	return err
}
