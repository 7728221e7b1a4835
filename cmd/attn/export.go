package main

type exportCommand struct {
	Model string `required:"" help:"Directory of the model." placeholder:"DIR"`
	ONNX  string `required:"" name:"onnx" help:"File to write, an ONNX model." placeholder:"FILE"`
	Opset int    `default:"23" enum:"17,23" help:"Version of the operators, 23 or 17; 17 is for runtimes that lack the operator Attention." placeholder:"N"`
}

func (exportCommand) Help() string {
	return `Examples:

  attn export --model runs/dates --onnx dates.onnx
  attn export --model runs/dates --onnx dates.onnx --opset 17

The file is a step of the decoder, which reads the source first; its metadata hold
the vocabularies. docs/onnx.md has the Python code that translates with it.`
}

func (cmd *exportCommand) touches() touched {
	return touched{models: []place{{"--model", cmd.Model}}, writes: []place{{"--onnx", cmd.ONNX}}}
}

func (cmd *exportCommand) Run() error {
	m, err := loadTranslator(cmd.Model)
	if err != nil {
		return err
	}
	model, err := m.ONNX(cmd.Opset)
	if err != nil {
		return err
	}
	return model.Save(cmd.ONNX)
}
