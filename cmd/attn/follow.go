package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/attn-go/attn/internal/app/chart"
	"github.com/attn-go/attn/internal/app/film"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/train"
)

type followCommand struct {
	Dir  string `arg:"" help:"Directory of the run: --out of attn train." placeholder:"DIR" run:""`
	Addr string `default:"127.0.0.1:0" help:"Address to serve at; port 0 picks a free port." placeholder:"HOST:PORT"`
	Open bool   `help:"Open the page in the browser."`
	Text string `help:"Text that the last checkpoint translates on the page (default one of the test pairs)." placeholder:"TEXT"`
}

func (followCommand) Help() string {
	return `Examples:

  attn follow runs/dates
  attn follow runs/fra.run --open

The page plots loss, learning rate and tokens per second while another process trains. It
also shows how the last checkpoint translates a text, which tokens its heads attend to,
and how these heads formed: a slider over the recorded steps.
The server runs until Ctrl-C, and only reads the run. The only line on standard output is
the URL of the page. Anyone with this URL can open the page; requests without its token are
rejected.`
}

// Validate is called by the parser.
func (cmd *followCommand) Validate() error {
	if cmd.Text != "" {
		if err := checkText("--text", 0, cmd.Text, train.LongestText); err != nil {
			return err
		}
	}
	return view.CheckAddress(cmd.Addr)
}

func (cmd *followCommand) Run(ctx context.Context, c console) error {
	if info, err := os.Stat(cmd.Dir); errors.Is(err, fs.ErrNotExist) {
		return input.Errorf(cmd.Dir, "no such directory; attn train --out DIR starts a run")
	} else if err != nil {
		return err
	} else if !info.IsDir() {
		return input.Errorf(cmd.Dir, "is a file, want the directory of a run")
	}
	if _, err := chart.ReadPage(cmd.Dir, time.Now(), leastWidth); err != nil {
		return err
	}
	last := train.Sampler{Dir: cmd.Dir, Text: cmd.Text, Draw: film.Layer}
	projector := train.Projector{Dir: cmd.Dir}
	server := view.NewTraining(cmd.Dir, func(width float64) (any, error) {
		page, err := chart.ReadPage(cmd.Dir, time.Now(), width)
		if err == nil {
			page.Note, page.Sample = last.Read(ctx)
			page.Film = film.Describe(projector.Read())
		}
		return page, err
	}, func(step int) (any, error) {
		f, err := projector.Read()
		if err != nil {
			return nil, err
		}
		return film.Draw(f, step)
	})
	return server.ServeAt(ctx, cmd.Addr, cmd.Open, c.out, c.err)
}

// leastWidth is a width in pixels at which every chart can be drawn.
const leastWidth = 300
