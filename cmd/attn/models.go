package main

import (
	"fmt"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
)

type modelsCommand struct {
	Dir  string `arg:"" name:"model" help:"Directory of a model." placeholder:"DIR"`
	JSON bool   `name:"json" help:"Write a JSON object."`
	settingFlag
}

func (modelsCommand) Help() string {
	return `Examples:

  attn models bert-base-uncased
  attn models --json all-MiniLM-L6-v2

attn reads config.json and the headers of the weights. It checks that it supports every
setting, and that every tensor is expected and has the right shape: if the command succeeds,
the model can be loaded. Families: ` + strings.Join(models.Families().Types(), ", ") + `.`
}

func (cmd *modelsCommand) Run(c console) error {
	d, err := load(c, models.Describe, cmd.Dir, models.Options{Allowed: cmd.AllowSetting})
	if err != nil {
		return err
	}
	object := newDescription(d)
	if !cmd.JSON {
		_, err = fmt.Fprint(c.out, object.lines())
		return err
	}
	return atomicfile.JSON("", object).Write(c.out)
}
