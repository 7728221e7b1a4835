package main

import (
	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/app/completion"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCommand) Help() string {
	return `Examples:

  source <(attn completion bash)                                   in ~/.bashrc
  source <(attn completion zsh)                                    in ~/.zshrc, after compinit
  attn completion fish > ~/.config/fish/completions/attn.fish`
}

func (cmd *completionCommand) Run(parsed *kong.Context, c console) error {
	return completion.Write(c.out, cmd.Shell, parsed.Model)
}
