package main

// Stand-ins for heads.Read and (*seq2seq.Translator).Look: delete this file when those are there.

import (
	"fmt"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/safetensors"
	"github.com/attn-go/attn/seq2seq"
)

// readRecord is heads.Read for safetensors files with tensors [H Lq Lk].
func readRecord(path string) (*heads.Record, error) {
	f, err := safetensors.Read(path)
	if err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) error {
		return &seq2seq.InputError{Name: path, Reason: fmt.Sprintf(format, args...)}
	}
	r := &heads.Record{}
	count := map[heads.Kind]int{}
	for _, t := range f.Tensors {
		if len(t.Shape) != 3 {
			return nil, bad("tensor %q has shape %v, want [H Lq Lk]", t.Name, t.Shape)
		}
		w, err := t.Float32s()
		if err != nil {
			return nil, bad("%v", err)
		}
		if len(w) == 0 {
			return nil, bad("tensor %q has shape %v, want at least one element", t.Name, t.Shape)
		}
		kind := heads.Encoder
		switch {
		case strings.Contains(t.Name, "cross"):
			kind = heads.Cross
		case strings.Contains(t.Name, "decoder"):
			kind = heads.Decoder
		}
		r.Layers = append(r.Layers, heads.Layer{
			Name: t.Name, Kind: kind, Index: count[kind], Heads: t.Shape[0],
			Queries: numbered(t.Shape[1]), Keys: numbered(t.Shape[2]), Weights: w,
		})
		count[kind]++
	}
	if r.Layers == nil {
		return nil, bad("no weights")
	}
	return r, nil
}

func numbered(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprint(i))
	}
	return list
}

// look is Look for cross attention only.
func look(m *seq2seq.Translator, source, target string) (*heads.Record, error) {
	a := m.Align(source, target)
	r := &heads.Record{Source: source, Target: target, Special: []string{"<bos>", "<eos>", "<pad>", "<unk>"}}
	for i, l := range a.Layers {
		r.Layers = append(r.Layers, heads.Layer{
			Name: l.Name, Kind: heads.Cross, Index: i, Heads: l.Weights.Dim(0),
			Queries: a.Target, Keys: a.Source, Weights: l.Weights.Data(),
		})
	}
	return r, nil
}
