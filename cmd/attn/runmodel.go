package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

type runCommand struct {
	Model string  `required:"" help:"Directory of a pretrained model." placeholder:"DIR"`
	Out   string  `required:"" help:"Safetensors file to write." placeholder:"FILE"`
	IDs   []int   `name:"ids" help:"Token ids, with commas between them, instead of a text." placeholder:"N"`
	In    string  `name:"in" help:"Safetensors file with input_ids, instead of a text." placeholder:"FILE"`
	Pair  *string `help:"A second text, which goes with the first." placeholder:"TEXT"`
	Text  *string `arg:"" optional:"" help:"Text to run the model on."`
}

func (runCommand) Help() string {
	return `Examples:

  attn run --model bert-base-uncased --out y.safetensors "Attention is all you need"
  attn run --model bert-base-uncased --out y.safetensors --ids 101,7592,102
  attn run --model bert-base-uncased --out y.safetensors --in ids.safetensors

It writes what somebody needs who compares with another framework: input_ids and
token_type_ids [B L]; logits, if the model has a head; hidden.0, the embeddings, and
hidden.1 to hidden.N [B L D]; weights.0 to weights.N-1 [B H L L], each row a query.

--in has input_ids, [L] or [B L] integers; if present, token_type_ids of that shape; and,
for texts of different lengths, attention_mask of that shape: 1 for tokens, 0 for the
padding behind them. What is computed at padding is written as 0.`
}

// Validate is called by the parser.
func (cmd *runCommand) Validate() error {
	given := 0
	for _, is := range []bool{cmd.Text != nil, cmd.IDs != nil, cmd.In != ""} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return errors.New("want one of a text, --ids and --in")
	case cmd.Pair != nil && cmd.Text == nil:
		return errors.New("--pair goes with a text")
	case cmd.IDs != nil && len(cmd.IDs) == 0:
		return errors.New("--ids needs a value")
	}
	return nil
}

func (cmd *runCommand) touches() touched {
	return touched{models: []place{{"--model", cmd.Model}}, reads: []place{{"--in", cmd.In}}, writes: []place{{"--out", cmd.Out}}}
}

func (cmd *runCommand) Run(context.Context, console) error {
	m, err := models.Load(cmd.Model, models.Options{Weights: attn.Float32{}})
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
	input := func(name string, err error) (models.Batch, error) {
		return models.Batch{}, &seq2seq.InputError{Name: name, Reason: err.Error()}
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
			return input("argument", err)
		}
		return models.BatchOf(e), nil
	}
	x, name := models.Batch{IDs: [][]int{cmd.IDs}}, "--ids"
	if cmd.In != "" {
		name = cmd.In
		var err error
		if x, err = readBatch(cmd.In); err != nil {
			return x, err
		}
	}
	if err := m.Sizes().Check(x); err != nil {
		return input(name, err)
	}
	return x, nil
}

// readBatch reads the tokens in a file.
func readBatch(path string) (models.Batch, error) {
	file, err := safetensors.Read(path)
	if err != nil {
		return models.Batch{}, err
	}
	bad := func(format string, args ...any) (models.Batch, error) {
		return models.Batch{}, &safetensors.FormatError{Path: path, Err: fmt.Errorf(format, args...)}
	}
	names := []string{"input_ids", "token_type_ids", "attention_mask"}
	for _, t := range file.Tensors {
		if !slices.Contains(names, t.Name) {
			return bad("tensor %.60q is not read, want input_ids, token_type_ids and attention_mask", t.Name)
		}
	}
	ids := file.Lookup("input_ids")
	if ids == nil {
		return bad(`tensor "input_ids" is missing`)
	}
	if n := len(ids.Shape); n != 1 && n != 2 {
		return bad(`tensor "input_ids" has shape %v, want [L] or [B L]`, ids.Shape)
	}
	l := ids.Shape[len(ids.Shape)-1]
	rows := map[string][][]int{}
	for _, name := range names {
		t := file.Lookup(name)
		if t == nil {
			continue
		}
		if !slices.Equal(t.Shape, ids.Shape) {
			return bad("tensor %q has shape %v, want that of input_ids, %v", name, t.Shape, ids.Shape)
		}
		all, err := t.Ints()
		if err != nil {
			return bad("%w", errors.Unwrap(err))
		}
		for row := range slices.Chunk(all, max(l, 1)) {
			rows[name] = append(rows[name], row)
		}
	}
	x := models.Batch{IDs: rows["input_ids"], Types: rows["token_type_ids"]}
	for i, row := range rows["attention_mask"] {
		n := 0
		for n < l && row[n] == 1 {
			n++
		}
		if slices.ContainsFunc(row[n:], func(v int) bool { return v != 0 }) {
			return bad("row %d of attention_mask is not 1 for tokens and then 0 for padding", i)
		}
		x.IDs[i] = x.IDs[i][:n]
		if x.Types != nil {
			x.Types[i] = x.Types[i][:n]
		}
	}
	return x, nil
}

// ranModel returns what a model computes of a batch.
func ranModel(m *models.Model, x models.Batch) *safetensors.File {
	l := 0
	for _, ids := range x.IDs {
		l = max(l, len(ids))
	}
	file := &safetensors.File{Metadata: map[string]string{"format": "pt", "model_type": m.Family.Type}}
	ints := func(name string, rows [][]int) {
		all := make([]int, len(x.IDs)*l)
		for i, row := range rows {
			copy(all[i*l:], row)
		}
		file.Tensors = append(file.Tensors, safetensors.FromInts(name, []int{len(x.IDs), l}, all))
	}
	add := func(name string, y *tensor.Tensor, tokens bool) {
		data := slices.Clone(y.Data())
		if tokens {
			each := len(data) / (len(x.IDs) * l)
			for i, ids := range x.IDs {
				clear(data[(i*l+len(ids))*each : (i+1)*l*each])
			}
		}
		file.Tensors = append(file.Tensors, safetensors.FromFloat32s(name, y.Shape(), data))
	}
	ints("input_ids", x.IDs)
	if x.Types != nil {
		ints("token_type_ids", x.Types)
	}
	layer := 0
	hidden := m.Hidden(nil, x, models.Run{
		Observe: func(_ string, w *tensor.Tensor) {
			add(fmt.Sprintf("weights.%d", layer), w, false)
			layer++
		},
		States: func(number int, y *tensor.Tensor) { add(fmt.Sprintf("hidden.%d", number), y, true) },
	})
	if h := m.Head(); h != nil {
		add("logits", h.Logits(nil, hidden), h.Task.PerToken())
	}
	return file
}
