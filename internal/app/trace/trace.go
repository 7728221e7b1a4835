// Package trace runs a model on a batch of tokens and returns everything that it computes as a file, to compare
// it with another framework.
package trace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// Run runs a model on a batch and returns everything that it computes, by the names that attn run --help lists:
// the tokens, hidden states, attention weights and logits. Results at padding are 0. If ctx ends, Run returns ctx.Err().
func Run(ctx context.Context, m *models.Model, x models.Batch) (*safetensors.File, error) {
	file := &safetensors.File{Metadata: map[string]string{"format": "pt", "model_type": m.Family.Type}}
	ints := func(name string, tokens, rows [][]int) {
		l := longestOf(tokens)
		all := make([]int, len(tokens)*l)
		for i, row := range rows {
			copy(all[i*l:], row)
		}
		file.Tensors = append(file.Tensors, safetensors.FromInts(name, []int{len(tokens), l}, all))
	}
	// add adds a tensor. If tokens are given, its first axes are those of the tokens, and padding is set to 0.
	add := func(name string, y *tensor.Tensor, tokens [][]int) {
		data := slices.Clone(y.Data())
		if l := longestOf(tokens); tokens != nil {
			each := len(data) / (len(tokens) * l)
			for i, ids := range tokens {
				clear(data[(i*l+len(ids))*each : (i+1)*l*each])
			}
		}
		file.Tensors = append(file.Tensors, safetensors.FromFloat32s(name, y.Shape(), data))
	}
	ints("input_ids", x.IDs, x.IDs)
	if x.Types != nil {
		ints("token_type_ids", x.IDs, x.Types)
	}
	states := func(name string, tokens [][]int) func(int, *tensor.Tensor) {
		return func(number int, y *tensor.Tensor) { add(fmt.Sprintf("%s.%d", name, number), y, tokens) }
	}
	r := models.Run{States: states("hidden", x.IDs)}
	weights := func(string) string { return "weights" }
	written := x.IDs
	if start, ok := m.Network.(interface{ StartToken() int }); ok {
		if written = x.Targets; written == nil {
			written = slices.Repeat([][]int{{start.StartToken()}}, len(x.IDs))
		}
		ints("decoder_input_ids", written, written)
		r.States, r.SourceStates = states("decoder_hidden", written), states("hidden", x.IDs)
		weights = func(layer string) string {
			switch {
			case strings.HasSuffix(layer, ".cross"):
				return "cross"
			case strings.HasPrefix(layer, "decoder."):
				return "decoder"
			}
			return "weights"
		}
	}
	r.Observers = []attn.Observer{observe.Weights(func(layer string, w *tensor.Tensor) {
		kind, at := heads.Place(layer)
		name := weights(layer)
		if kind == heads.Mamba {
			name = "mamba"
		}
		add(fmt.Sprintf("%s.%d", name, at), w, nil)
	})}
	tape := tensor.NewTape(tensor.Infer)
	tape.SetContext(ctx)
	if err := par.Stopped(func() {
		hidden := m.Hidden(tape, x, r)
		if h := m.Head(); h != nil {
			if !h.Task.PerToken() {
				written = nil
			}
			add("logits", h.Of(tape, hidden, x), written)
		}
	}); err != nil {
		return nil, err
	}
	return file, nil
}

// longestOf returns the length of the longest sequence.
func longestOf(rows [][]int) int {
	n := 0
	for _, row := range rows {
		n = max(n, len(row))
	}
	return n
}

// ReadBatch reads the tokens of a batch from a safetensors file: input_ids and, optionally, token_type_ids,
// attention_mask, decoder_input_ids and decoder_attention_mask, each [L] or [B L].
//
// Errors: *safetensors.FormatError for an invalid file, including one with other tensors.
func ReadBatch(path string) (models.Batch, error) {
	file, err := safetensors.Read(path)
	if err != nil {
		return models.Batch{}, err
	}
	x, err := batchOf(file)
	if err != nil {
		return x, &safetensors.FormatError{Path: path, Err: err}
	}
	return x, nil
}

func batchOf(file *safetensors.File) (x models.Batch, err error) {
	names := []string{"input_ids", "token_type_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask"}
	for _, t := range file.Tensors {
		if !slices.Contains(names, t.Name) {
			return x, fmt.Errorf("tensor %.60q is not read, want %s", t.Name, strings.Join(names, ", "))
		}
	}
	if file.Lookup("input_ids") == nil {
		return x, errors.New(`tensor "input_ids" is missing`)
	}
	if x.IDs, x.Types, err = sequences(file, "input_ids", "attention_mask", "token_type_ids"); err != nil {
		return x, err
	}
	if file.Lookup("decoder_input_ids") != nil {
		x.Targets, _, err = sequences(file, "decoder_input_ids", "decoder_attention_mask", "")
	} else if file.Lookup("decoder_attention_mask") != nil {
		return x, errors.New(`tensor "decoder_attention_mask" requires decoder_input_ids`)
	}
	return x, err
}

// sequences returns the sequences in the tensor ids, and their token types, without the padding that mask marks.
func sequences(file *safetensors.File, ids, mask, types string) (tokens, typed [][]int, err error) {
	shape := file.Lookup(ids).Shape
	if n := len(shape); n != 1 && n != 2 {
		return nil, nil, fmt.Errorf("tensor %q has shape %v, want [L] or [B L]", ids, shape)
	}
	l := shape[len(shape)-1]
	rows := map[string][][]int{}
	for _, name := range []string{ids, mask, types} {
		t := file.Lookup(name)
		if t == nil {
			continue
		}
		if !slices.Equal(t.Shape, shape) {
			return nil, nil, fmt.Errorf("tensor %q has shape %v, want the shape of %s, %v", name, t.Shape, ids, shape)
		}
		all, err := t.Ints()
		if err != nil {
			return nil, nil, errors.Unwrap(err)
		}
		for row := range slices.Chunk(all, max(l, 1)) {
			rows[name] = append(rows[name], row)
		}
	}
	tokens, typed = rows[ids], rows[types]
	for i, row := range rows[mask] {
		n := 0
		for n < l && row[n] == 1 {
			n++
		}
		if slices.ContainsFunc(row[n:], func(v int) bool { return v != 0 }) {
			return nil, nil, fmt.Errorf("row %d of %s is not 1 for tokens and then 0 for padding", i, mask)
		}
		tokens[i] = tokens[i][:n]
		if typed != nil {
			typed[i] = typed[i][:n]
		}
	}
	return tokens, typed, nil
}
