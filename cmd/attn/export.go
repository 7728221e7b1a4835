package main

import (
	"context"
	"errors"

	"github.com/attn-go/attn/models"
)

type exportCommand struct {
	settingFlag
	Model string `required:"" help:"Directory of an encoder or of a translator of attn train." placeholder:"DIR"`
	ONNX  string `required:"" name:"onnx" help:"ONNX file to write." placeholder:"FILE" writes:"file"`
	Opset int    `default:"23" enum:"17,23" help:"ONNX opset, 23 or 17; use 17 for runtimes without the operator Attention." placeholder:"N"`
}

func (exportCommand) Help() string {
	return `Examples:

  attn export --model all-MiniLM-L6-v2 --onnx MiniLM.onnx
  attn export --model runs/dates --onnx dates.onnx
  attn export --model runs/dates --onnx dates.onnx --opset 17

An encoder has the inputs and outputs of transformers, from input_ids to logits, and, for
a sentence-transformers directory, sentence_embedding. The file has no tokenizer. The ONNX
model of a translator runs one decoding step, and encodes the source in the first step. Its
metadata contain the vocabularies. See docs/onnx.md for Python code for both.`
}

func (cmd *exportCommand) Run(_ context.Context, c console) error {
	o := models.Options{Trainable: true, Allowed: cmd.AllowSetting}
	e, err := load(c, models.LoadEmbedder, cmd.Model, o)
	export := e.ONNX
	if errors.Is(err, models.ErrNoPipeline) {
		var m *models.Model
		m, err = load(c, models.Load, cmd.Model, o)
		export = m.ONNX
	}
	if err != nil {
		return err
	}
	model, err := export(cmd.Opset)
	if err != nil {
		return err
	}
	return model.Save(cmd.ONNX)
}
