package main

import (
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/film"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/panels"
	"github.com/attn-go/attn/train"
	"github.com/attn-go/attn/viz"
)

// checkFilm returns a usage error unless --film names a file of the format that is written.
func checkFilm(path string) error {
	if path == "" || path == "-" || strings.EqualFold(filepath.Ext(path), ".webp") {
		return nil
	}
	return usage("--film %s, want a name that ends in .webp", quoted(path))
}

// readFilm returns the recording of the run in a directory.
func readFilm(dir string) (*heads.Film, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, input.Errorf(dir, "is a file, want the directory of a run; use --weights for a file")
	}
	f, err := train.ReadFilm(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, input.Errorf(dir, "contains no %s, which attn train writes", train.FilmFile)
	}
	return f, err
}

// readWeights returns the record in a file of --weights. If the file is a film, readWeights returns the record of the
// last frame, and the film.
func readWeights(path string) (*heads.Record, *heads.Film, error) {
	f, err := heads.ReadFilm(path)
	if errors.Is(err, heads.ErrNotFilm) {
		r, err := heads.Read(path)
		return r, nil, err
	} else if err != nil {
		return nil, nil, err
	}
	return f.Frames[len(f.Frames)-1].Record, f, nil
}

// resumeHint returns the command that resumes the run in a directory, or evaluates it if no epoch is left.
func (cmd *trainCommand) resumeHint(dir string) string {
	line := "attn train --resume --out " + quoted(dir)
	if cmd.Film != "" {
		line += " --film " + quoted(cmd.Film)
	}
	return line
}

// filmHint returns the end of a message: the command that draws the film of an interrupted run. Drawing takes seconds, so
// an interruption does not start it.
func (cmd *trainCommand) filmHint(dir string) string {
	if cmd.Film == "" {
		return ""
	}
	return fmt.Sprintf("; draw what is recorded with: attn map --model %s --layer -1 --all --film %s", quoted(dir), quoted(cmd.Film))
}

// drawFilm writes the file of --film from the saved recording, as attn map --layer -1 --all does.
func (cmd *trainCommand) drawFilm(ctx context.Context, dir string) error {
	f, err := readFilm(dir)
	if err != nil {
		return err
	}
	last := -1
	return writeFilm(ctx, cmd.Film, nil, f, panels.Choice{Layer: &last, All: true}, "", viz.OnLight)
}

// Validate is called by the parser.
func (cmd *mapCommand) Validate() error { return checkFilm(cmd.Film) }

// film writes the file of --film.
func (cmd *mapCommand) film(ctx context.Context, c console) error {
	read, path := readFilm, cmd.Model
	if cmd.Weights != "" {
		read, path = heads.ReadFilm, cmd.Weights
	}
	f, err := read(path)
	if err != nil {
		return err
	}
	choice := cmd.choice()
	choice.Largest = false // one scale for all frames
	return writeFilm(ctx, cmd.Film, c.out, f, choice, cmd.Font, cmd.ground())
}

// ground returns the ground of --png and --film.
func (cmd *mapCommand) ground() viz.Ground {
	if cmd.Dark {
		return viz.OnDark
	}
	return viz.OnLight
}

// png writes the file of --png.
func (cmd *mapCommand) png(w io.Writer, drawn viz.Figure) error {
	img, err := drawn.Image(2, cmd.ground())
	if err != nil {
		return err
	}
	return png.Encode(w, img)
}

// writeFilm draws the chosen heads of a recording to a file.
func writeFilm(ctx context.Context, path string, out io.Writer, f *heads.Film, choice panels.Choice, font string, on viz.Ground) error {
	figure, err := film.Pictures(f, choice, font)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return film.Write(ctx, w, f, figure, on) }
	if path == "-" {
		return write(out)
	}
	return atomicfile.Write(path, write)
}
