package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/attn-go/attn/internal/app/hub"
	"github.com/attn-go/attn/internal/app/progress"
)

type fetchCommand struct {
	Revision string `default:"main" help:"Branch, tag or commit." placeholder:"NAME"`
	Out      string `help:"Directory to write (default the last part of the model's name)." placeholder:"DIR" writes:"model"`
	Endpoint string `default:"https://huggingface.co" env:"HF_ENDPOINT" help:"URL of the Hub or of a mirror; also set by the environment variable HF_ENDPOINT." placeholder:"URL"`
	Name     string `arg:"" help:"Name of the model: sentence-transformers/all-MiniLM-L6-v2." placeholder:"NAME"`
}

func (fetchCommand) Help() string {
	return `Examples:

  attn fetch sentence-transformers/all-MiniLM-L6-v2
  attn fetch HuggingFaceTB/SmolLM2-135M-Instruct --revision main --out smol
  HF_ENDPOINT=https://hub.example attn fetch gpt2

attn downloads config.json, the tokenizer files and the weights, all of the same commit: those
in safetensors format or, if there are none, pytorch_model.bin. Files appear in the directory
only when all of them are complete and match the hashes that the Hub lists: SHA-256, or git's
hash for small files. After an interruption or a lost connection, run the same command again to
resume the download. A directory with files of another model is not changed.

A gated or private model requires your access token in the environment variable HF_TOKEN.
The token is sent only to the Hub, not to hosts that it redirects to. HTTPS_PROXY and
NO_PROXY are respected.`
}

// Validate is called by the parser.
func (cmd *fetchCommand) Validate() error {
	if err := hub.CheckName(cmd.Name); err != nil {
		return err
	}
	if cmd.Revision == "" {
		return errors.New("--revision is empty, want a branch, a tag or a commit")
	}
	cmd.Out = cmp.Or(cmd.Out, path.Base(cmd.Name))
	return nil
}

func (cmd *fetchCommand) Run(ctx context.Context, c console) error {
	shown := progress.NewDownload(c.err)
	h, err := hub.New(cmd.Endpoint, os.Getenv("HF_TOKEN"), "attn/"+version(), shown.Retry)
	if err != nil {
		return usage("%w", err)
	}
	m, err := h.Model(ctx, cmd.Name, cmd.Revision)
	if err != nil {
		return err
	}
	err = m.Download(ctx, cmd.Out, shown.Watch())
	shown.Clear()
	have, all := shown.Size()
	switch {
	case ctx.Err() != nil:
		return interrupted{fmt.Sprintf("interrupted after %s of %s; run the same command again to resume", have, all)}
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(c.err, "%s at %.12s: %d files, %s\ntry: attn models %s\n",
		m.Name, m.Commit, len(m.Files), all, quoted(cmd.Out))
	return err
}
