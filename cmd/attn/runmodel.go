package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

type runCommand struct {
	Model      string  `required:"" help:"Directory of a pretrained model." placeholder:"DIR"`
	Out        string  `required:"" help:"Safetensors file to write." placeholder:"FILE" writes:"file"`
	IDs        []int   `name:"ids" help:"Comma-separated token ids, instead of a text." placeholder:"N" either:"input"`
	In         string  `name:"in" help:"Safetensors file with input_ids, instead of a text." placeholder:"FILE" either:"input"`
	DecoderIDs []int   `name:"decoder-ids" help:"Token ids for the decoder of an encoder-decoder (default its start token)." placeholder:"N" excludes:"in"`
	Pair       *string `help:"Second text of a pair." placeholder:"TEXT" needs:"text"`
	Text       *string `arg:"" optional:"" help:"Text to run the model on." either:"input"`
}

func (runCommand) Help() string {
	return `Examples:

  attn run --model bert-base-uncased --out y.safetensors "Attention is all you need"
  attn run --model bert-base-uncased --out y.safetensors --ids 101,7592,102
  attn run --model bert-base-uncased --out y.safetensors --in ids.safetensors
  attn run --model t5-small --out y.safetensors --ids 13959,1566,1 --decoder-ids 0,644

The output file has the tensors for a comparison with another framework: input_ids and
token_type_ids [B L]; logits, if the model has a head; hidden.0, the embeddings, and
hidden.1 to hidden.N [B L D]; weights.0 to weights.N-1 [B H L L], each row a query.

For an encoder-decoder, these tensors are the encoder's, except logits, which are the
decoder's. The file also has decoder_input_ids [B M]; decoder_hidden.0 to decoder_hidden.N
[B M D]; the decoder's self-attention weights decoder.0 and so on [B H M M]; and the
cross-attention weights cross.0 and so on [B H M L]. --in may then contain
decoder_input_ids, [M] or [B M], and decoder_attention_mask.

--in contains input_ids, [L] or [B L] integers, and optionally token_type_ids of the same
shape. For texts of different lengths, it also contains attention_mask of the same shape:
1 for tokens, 0 for the padding after them. Results at padding are written as 0.`
}

func (cmd *runCommand) Run(_ context.Context, c console) error {
	m, err := load(c, models.Load, cmd.Model, models.Options{Weights: tensor.Float32})
	if err != nil {
		return err
	}
	x, err := cmd.batch(m)
	if err != nil {
		return err
	}
	file := ranModel(m, x)
	return file.WriteFile(cmd.Out)
}

// batch returns the tokens to run on.
func (cmd *runCommand) batch(m *models.Model) (models.Batch, error) {
	bad := func(name string, err error) (models.Batch, error) {
		return models.Batch{}, &input.Error{Name: name, Err: err}
	}
	if cmd.Text != nil {
		second := ""
		if cmd.Pair != nil {
			second = *cmd.Pair
		}
		if _, err := m.Tokenizer(); err != nil {
			return models.Batch{}, err
		}
		e, err := m.Encode(*cmd.Text, second)
		if err != nil {
			return bad("argument", err)
		}
		x := models.BatchOf(e)
		if cmd.DecoderIDs == nil {
			return x, nil
		}
		if x.Targets = [][]int{cmd.DecoderIDs}; m.Sizes().Decoder != nil {
			x.Types = nil
		}
		if err := m.Sizes().Check(x); err != nil {
			return bad("--decoder-ids", err)
		}
		return x, nil
	}
	x, name := models.Batch{IDs: [][]int{cmd.IDs}}, "--ids"
	if cmd.DecoderIDs != nil {
		x.Targets, name = [][]int{cmd.DecoderIDs}, "--ids and --decoder-ids"
	}
	if cmd.In != "" {
		name = cmd.In
		var err error
		if x, err = readBatch(cmd.In); err != nil {
			return x, err
		}
	}
	if err := m.Sizes().Check(x); err != nil {
		return bad(name, err)
	}
	return x, nil
}

// readBatch reads the tokens in a file.
func readBatch(path string) (models.Batch, error) {
	var x models.Batch
	file, err := safetensors.Read(path)
	if err != nil {
		return x, err
	}
	in := &batchFile{file: file, path: path}
	names := []string{"input_ids", "token_type_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask"}
	for _, t := range file.Tensors {
		if !slices.Contains(names, t.Name) {
			return x, in.bad("tensor %.60q is not read, want %s", t.Name, strings.Join(names, ", "))
		}
	}
	if file.Lookup("input_ids") == nil {
		return x, in.bad(`tensor "input_ids" is missing`)
	}
	if x.IDs, x.Types, err = in.tokens("input_ids", "attention_mask", "token_type_ids"); err != nil {
		return x, err
	}
	if file.Lookup("decoder_input_ids") != nil {
		x.Targets, _, err = in.tokens("decoder_input_ids", "decoder_attention_mask", "")
	} else if file.Lookup("decoder_attention_mask") != nil {
		return x, in.bad("decoder_attention_mask is there without decoder_input_ids")
	}
	return x, err
}

// batchFile is a file with tokens.
type batchFile struct {
	file *safetensors.File
	path string
}

func (f *batchFile) bad(format string, args ...any) error {
	return &safetensors.FormatError{Path: f.path, Err: fmt.Errorf(format, args...)}
}

// tokens returns sequences and what goes with their tokens, without padding.
func (f *batchFile) tokens(ids, mask, types string) (tokens, typed [][]int, err error) {
	shape := f.file.Lookup(ids).Shape
	if n := len(shape); n != 1 && n != 2 {
		return nil, nil, f.bad("tensor %q has shape %v, want [L] or [B L]", ids, shape)
	}
	l := shape[len(shape)-1]
	rows := map[string][][]int{}
	for _, name := range []string{ids, mask, types} {
		t := f.file.Lookup(name)
		if t == nil {
			continue
		}
		if !slices.Equal(t.Shape, shape) {
			return nil, nil, f.bad("tensor %q has shape %v, want that of %s, %v", name, t.Shape, ids, shape)
		}
		all, err := t.Ints()
		if err != nil {
			return nil, nil, f.bad("%w", errors.Unwrap(err))
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
			return nil, nil, f.bad("row %d of %s is not 1 for tokens and then 0 for padding", i, mask)
		}
		tokens[i] = tokens[i][:n]
		if typed != nil {
			typed[i] = typed[i][:n]
		}
	}
	return tokens, typed, nil
}

// ranModel returns what a model computes of a batch.
func ranModel(m *models.Model, x models.Batch) *safetensors.File {
	file := &safetensors.File{Metadata: map[string]string{"format": "pt", "model_type": m.Family.Type}}
	ints := func(name string, tokens, rows [][]int) {
		l := longestOf(tokens)
		all := make([]int, len(tokens)*l)
		for i, row := range rows {
			copy(all[i*l:], row)
		}
		file.Tensors = append(file.Tensors, safetensors.FromInts(name, []int{len(tokens), l}, all))
	}
	// add adds a tensor, of which a part belongs to each of the tokens, if they are given.
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
	seen := map[string]int{}
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
	r.Observe = func(layer string, w *tensor.Tensor) {
		name := weights(layer)
		add(fmt.Sprintf("%s.%d", name, seen[name]), w, nil)
		seen[name]++
	}
	hidden := m.Hidden(nil, x, r)
	if h := m.Head(); h != nil {
		if !h.Task.PerToken() {
			written = nil
		}
		add("logits", h.Logits(nil, hidden), written)
	}
	return file
}

// longestOf returns the length of the longest of some sequences.
func longestOf(rows [][]int) int {
	n := 0
	for _, row := range rows {
		n = max(n, len(row))
	}
	return n
}
