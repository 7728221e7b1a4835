package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/attn-go/attn/models"
)

type mergeCommand struct {
	Base    string `required:"" help:"Directory of the base model." placeholder:"DIR"`
	Adapter string `required:"" help:"Directory of the adapter: adapter_config.json and adapter_model.safetensors (or .bin) of peft." placeholder:"DIR"`
	Out     string `required:"" help:"New or empty directory for the merged model." placeholder:"DIR" writes:"model"`
}

func (mergeCommand) Help() string {
	return `Example:

  attn merge --base SmolLM2-135M --adapter smol-lora --out smol-merged

The merged model has the weights W + (lora_alpha / r)·B·A in the number format of the base, the
tensors that the adapter stores whole (modules_to_save), its tokenizer and chat template if it
has them, and the other files of the base. An adapter that does more, such as DoRA, is refused.`
}

func (cmd *mergeCommand) Run(ctx context.Context, c console) error {
	if entries, err := os.ReadDir(cmd.Out); len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return usage("--out %s, want a new or empty directory", quoted(cmd.Out))
	}
	if err := models.MergeAdapter(ctx, cmd.Base, cmd.Adapter, cmd.Out); err != nil {
		return err
	}
	c.say("try: attn models %s", quoted(cmd.Out))
	return nil
}
