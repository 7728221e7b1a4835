package main

import (
	"context"

	"github.com/attn-go/attn/models"
)

type exportCommand struct {
	settingFlag
	Model string `required:"" help:"Directory of the model." placeholder:"DIR"`
	ONNX  string `required:"" name:"onnx" help:"ONNX file to write." placeholder:"FILE" writes:"file"`
	Opset int    `default:"23" enum:"17,23" help:"ONNX opset, 23 or 17; use 17 for runtimes without the operator Attention." placeholder:"N"`
}

func (exportCommand) Help() string {
	return `Examples:

  attn export --model runs/dates --onnx dates.onnx
  attn export --model runs/dates --onnx dates.onnx --opset 17

The ONNX model runs one decoding step, and encodes the source in the first step. Its metadata
contain the vocabularies. See docs/onnx.md for Python code that translates with it.`
}

func (cmd *exportCommand) Run(_ context.Context, c console) error {
	m, err := loadTranslator(c, cmd.Model, models.Options{Trainable: true, Allowed: cmd.AllowSetting})
	if err != nil {
		return err
	}
	model, err := m.ONNX(cmd.Opset)
	if err != nil {
		return err
	}
	return model.Save(cmd.ONNX)
}
