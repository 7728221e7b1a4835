package trace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
)

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
