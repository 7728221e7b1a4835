package main

// Stand-ins, this whole file, for what packages heads and seq2seq will have: to
// be replaced by heads.Read and (*seq2seq.Translator).Look.

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/safetensors"
	"github.com/attn-go/attn/seq2seq"
)

// lookTranslator stands for (*seq2seq.Translator).Look.
func lookTranslator(m *seq2seq.Translator, source, target string) *heads.Record {
	a := m.Align(source, target)
	r := &heads.Record{Source: source, Target: target, Special: []string{"<pad>", "<bos>", "<eos>", "<unk>"}}
	for i, l := range a.Layers {
		r.Layers = append(r.Layers, heads.Layer{Name: l.Name, Kind: heads.Cross, Index: i, Heads: l.Weights.Shape()[0],
			Queries: a.Target, Keys: a.Source, Weights: slices.Clone(l.Weights.Data())})
	}
	return r
}

// readRecord stands for heads.Read: tensors [H Lq Lk] with numbers as tokens.
func readRecord(path string) (*heads.Record, error) {
	f, err := safetensors.Read(path)
	if err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) error {
		return &safetensors.FormatError{Path: path, Err: fmt.Errorf(format, args...)}
	}
	r := &heads.Record{Source: filepath.Base(path)}
	numbers := func(n int) []string {
		tokens := make([]string, n)
		for i := range tokens {
			tokens[i] = strconv.Itoa(i)
		}
		return tokens
	}
	var layers [3]int
	for _, t := range f.Tensors {
		if len(t.Shape) != 3 {
			return nil, bad("tensor %q has shape %v, want [H Lq Lk]", t.Name, t.Shape)
		}
		w, err := t.Float32s()
		if err != nil {
			return nil, err
		}
		kind := heads.Encoder
		if strings.Contains(t.Name, "cross") {
			kind = heads.Cross
		} else if strings.Contains(t.Name, "decoder") {
			kind = heads.Decoder
		}
		r.Layers = append(r.Layers, heads.Layer{Name: t.Name, Kind: kind, Index: layers[kind], Heads: t.Shape[0],
			Queries: numbers(t.Shape[1]), Keys: numbers(t.Shape[2]), Weights: w})
		layers[kind]++
	}
	return r, nil
}
