package main

import (
	"context"
	"io"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/figures"
	"github.com/attn-go/attn/internal/app/film"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/internal/atomicfile"
)

func (cmd *mapCommand) Run(ctx context.Context, c console) error {
	if cmd.Film != "" {
		return cmd.film(ctx, c)
	}
	record, film, err := cmd.record(ctx, c)
	if err != nil {
		return err
	}
	choice := cmd.choice()
	figure, err := choice.Figure(record)
	if err != nil {
		return err
	}
	drawn := figures.Labelled(figure, record) // tables have the original tokens
	if cmd.PNG != "" {
		if drawn.Fonts, err = figures.Fonts(cmd.Font, drawn.Lacking()); err != nil {
			return err
		}
	}
	written, err := c.writeFiles(
		atomicfile.File{Path: cmd.SVG, Write: drawn.SVG},
		atomicfile.File{Path: cmd.PNG, Write: func(w io.Writer) error { return figures.PNG(w, drawn, cmd.ground()) }},
		atomicfile.File{Path: cmd.HTML, Write: drawn.HTML},
		atomicfile.File{Path: cmd.CSV, Write: figure.CSV},
		atomicfile.File{Path: cmd.JSON, Write: figure.JSON},
		atomicfile.File{Path: cmd.NPY, Write: figure.NPY},
		atomicfile.File{Path: cmd.Embed, Write: func(w io.Writer) error {
			state, err := choice.State(record, cmd.Mean != nil)
			if err != nil {
				return err
			}
			o := view.Options{Name: choice.Title(record), Film: film}
			if film == nil {
				o.Records = []*heads.Record{record}
			}
			return view.WriteEmbed(ctx, w, o, state)
		}},
	)
	if err != nil || written {
		return err
	}
	return drawn.Text(c.out, terminalOf(c.out, cmd.Color, cmd.Width, cmd.ASCII))
}

// film writes the file of --film.
func (cmd *mapCommand) film(ctx context.Context, c console) error {
	read, path := recording.Film, cmd.Model
	if cmd.Weights != "" {
		read, path = heads.ReadFilm, cmd.Weights
	}
	f, err := read(path)
	if err != nil {
		return err
	}
	file, err := film.File(ctx, cmd.Film, f, cmd.choice(), cmd.Font, cmd.ground())
	if err == nil {
		_, err = c.writeFiles(file)
	}
	return err
}

// record returns the recorded weights, from a file or from a run of the model. If the file is a film, record also
// returns the film.
func (cmd *mapCommand) record(ctx context.Context, c console) (*heads.Record, *heads.Film, error) {
	if cmd.Weights != "" {
		return recording.Weights(cmd.Weights)
	}
	r, err := cmd.run(ctx, c)
	return r, nil, err
}

// run runs the model and returns its weights.
func (cmd *mapCommand) run(ctx context.Context, c console) (*heads.Record, error) {
	from, err := openRecorded(cmd.Model, c, cmd.Steps, cmd.settingFlag, cmd.languageFlags)
	if err != nil {
		return nil, err
	}
	m := from.Model
	second, flag := cmd.Pair, "--pair"
	switch writes := m.Sizes().Decoder != nil; {
	case !writes && cmd.Target != nil:
		return nil, usage("--target requires an encoder-decoder, and %s is a %s model; use --pair for a second text", quoted(cmd.Model), m.Family.Name)
	case writes && cmd.Pair != nil:
		return nil, usage("--pair requires an encoder or a decoder, and %s is an encoder-decoder; use --target for its output", quoted(cmd.Model))
	case writes:
		second, flag = cmd.Target, "--target"
	}
	source, err := c.text(ctx, cmd.Text, "type a text for the model to read, then Enter", recording.MaxText)
	if err == nil && second != nil {
		err = checkText(flag, 0, *second, recording.MaxText)
	}
	if err != nil {
		return nil, err
	}
	r, err := from.Record(ctx, source, deref(second))
	if err != nil {
		return nil, recordError(1, err)
	}
	return r, nil
}
