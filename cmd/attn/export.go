package main

import (
	"context"
	"errors"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/onnx"
)

type exportCommand struct {
	Model string `required:"" help:"Directory of an encoder or of a translator of attn train." placeholder:"DIR"`
	ONNX  string `required:"" name:"onnx" help:"ONNX file to write." placeholder:"FILE" writes:"file"`
	Opset int    `default:"23" enum:"17,23" help:"ONNX opset, 23 or 17; use 17 for runtimes without the operator Attention." placeholder:"N"`
}

func (exportCommand) Help() string {
	return `Examples:

  attn export --model all-MiniLM-L6-v2 --onnx MiniLM.onnx
  attn export --model runs/dates --onnx dates.onnx
  attn export --model runs/dates --onnx dates.onnx --opset 17

An encoder has the inputs and outputs of transformers: input_ids, attention_mask,
last_hidden_state, logits; the pipeline of a sentence-transformers directory adds
sentence_embedding. The file does not contain the tokenizer.

The ONNX model of a translator runs one decoding step, and encodes the source in the first
step. Its metadata contain the vocabularies. See docs/onnx.md for Python code for both.`
}

func (cmd *exportCommand) Run(_ context.Context, c console) error {
	var source interface {
		ONNX(opset int) (*onnx.Model, error)
	}
	o := models.Options{Trainable: true}
	source, err := load(c, models.LoadEmbedder, cmd.Model, o)
	if errors.Is(err, models.ErrNoPipeline) {
		source, err = load(c, models.Load, cmd.Model, o)
	}
	if err != nil {
		return err
	}
	model, err := source.ONNX(cmd.Opset)
	if err != nil {
		return err
	}
	return model.Save(cmd.ONNX)
}
