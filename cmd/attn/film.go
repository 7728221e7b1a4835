package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/internal/film"
	"github.com/attn-go/attn/internal/fonts"
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
	f, err := train.ReadFilm(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, input.Errorf(dir, "contains no %s, which attn train writes", train.FilmFile)
	}
	return f, err
}

// drawFilm writes the file of --film from the saved recording, as attn map --layer -1 --all does.
func (cmd *trainCommand) drawFilm(dir string) error {
	f, err := readFilm(dir)
	if err != nil {
		return err
	}
	last := -1
	return writeFilm(cmd.Film, nil, f, panels.Choice{Layer: &last, All: true}, "", viz.OnLight)
}

// filmPictures returns a function that draws the chosen heads of a frame. font is the value of --font.
func filmPictures(f *heads.Film, choice panels.Choice, font string) (func(*heads.Record) (viz.Figure, error), error) {
	draw := func(r *heads.Record) (viz.Figure, error) {
		figure, err := choice.Figure(r)
		return shortMarks(figure, r.Special), err
	}
	first, err := draw(f.Frames[0].Record)
	if err != nil {
		return nil, err
	}
	have, err := fonts.For(font, first.Lacking())
	if err != nil {
		return nil, err
	}
	return func(r *heads.Record) (viz.Figure, error) {
		figure, err := draw(r)
		figure.Fonts = have
		return figure, err
	}, nil
}

// writeFilm draws the chosen heads of a recording to a file.
func writeFilm(path string, out io.Writer, f *heads.Film, choice panels.Choice, font string, on viz.Ground) error {
	figure, err := filmPictures(f, choice, font)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return film.Write(w, f, figure, on) }
	if path == "-" {
		return write(out)
	}
	return atomicfile.Write(path, write)
}

// filmOf describes a recording to the page of attn follow.
func filmOf(f *heads.Film, err error) (page curve.Film) {
	if err != nil {
		return curve.Film{Error: err.Error()}
	} else if f == nil {
		return page
	}
	r := f.Frames[0].Record
	l := r.Layers[len(r.Layers)-1] // cross-attention comes last
	page.Title, page.Text = fmt.Sprintf("%s attention, layer %d", l.Kind, l.Index), panels.Choice{}.Title(r)
	for _, x := range f.Frames {
		page.Steps, page.Losses = append(page.Steps, x.Step), append(page.Losses, curve.Number(x.Loss))
	}
	return page
}

// frameOf draws the frame of a step of a recording for the page of attn follow.
func frameOf(f *heads.Film, step int) (page curve.Frame, err error) {
	var at int
	if f != nil {
		at = slices.IndexFunc(f.Frames, func(x heads.Frame) bool { return x.Step == step })
	}
	if f == nil || at < 0 {
		return page, fmt.Errorf("the recording has no frame of step %d", step)
	}
	r := f.Frames[at].Record
	last := len(r.Layers) - 1
	l := &r.Layers[last]
	var numbers []string
	for h := range l.Heads {
		numbers = append(numbers, fmt.Sprintf("head %d %.2f", l.Number(h), l.Measure(h, r.Special).Confidence))
	}
	page.Text = "Confidence, the largest weight of a query, mean over the queries: " + strings.Join(numbers, ", ")
	page.Picture, err = drawHeads(r, last)
	return page, err
}
