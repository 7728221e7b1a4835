package main

import (
	"context"
	"fmt"

	"github.com/attn-go/attn/internal/app/figures"
	"github.com/attn-go/attn/internal/app/film"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/viz"
)

// interrupted returns the error of an interrupted run in a directory, whose progress is saved: the message, and the
// command that resumes the run, or evaluates it if no epoch is left. It first draws the film of the steps so far. Drawing
// takes seconds; a second interruption ends the program, so the command that draws the film later is printed before.
func (cmd *trainCommand) interrupted(ctx context.Context, c console, dir, message string) error {
	resume := "attn train --resume --out " + quoted(dir)
	if cmd.Film == "" {
		return interrupted{message + resume}
	}
	message += resume + " --film " + quoted(cmd.Film)
	fmt.Fprintf(c.err, "drawing the film so far; Ctrl-C quits, and this command draws it later: %s\n", cmd.laterFilm(dir))
	if err := cmd.drawFilm(context.WithoutCancel(ctx), c, dir); err != nil {
		return interrupted{fmt.Sprintf("%s; the film is not drawn: %v", message, err)}
	}
	return interrupted{message}
}

// laterFilm returns the command that draws the film of a run.
func (cmd *trainCommand) laterFilm(dir string) string {
	return fmt.Sprintf("attn map --model %s --layer -1 --all --film %s", quoted(dir), quoted(cmd.Film))
}

// drawFilm writes the file of --film as laterFilm does: from the saved recording, whose weights are rounded.
func (cmd *trainCommand) drawFilm(ctx context.Context, c console, dir string) error {
	f, err := recording.Film(dir)
	if err != nil {
		return err
	}
	last := -1
	file, err := film.File(ctx, cmd.Film, f, figures.Choice{Layer: &last, All: true}, "", viz.OnLight)
	if err == nil {
		_, err = c.writeFiles(file)
	}
	return err
}
