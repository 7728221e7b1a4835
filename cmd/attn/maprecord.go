package main

import (
	"context"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/recording"
	"github.com/attn-go/attn/train"
)

// record returns the recorded weights, from a file or from a run of the model. If the file is a film, record also
// returns the film.
func (cmd *mapCommand) record(ctx context.Context, c console) (*heads.Record, *heads.Film, error) {
	if cmd.Weights != "" {
		return readWeights(cmd.Weights)
	}
	r, err := cmd.run(ctx, c)
	return r, nil, err
}

// run runs the model and returns its weights.
func (cmd *mapCommand) run(ctx context.Context, c console) (*heads.Record, error) {
	from, err := openSource(cmd.Model, c, cmd.Steps)
	if err != nil {
		return nil, err
	}
	m, longest := from.m, train.LongestText
	switch {
	case m.Translator == nil && cmd.Target != nil:
		return nil, usage("--target requires a translator, and %s is a %s model; use --pair for a second text", quoted(cmd.Model), m.Family.Name)
	case m.Translator != nil && cmd.Pair != nil:
		return nil, usage("--pair requires a pretrained encoder, and %s is a translator; use --target for its output", quoted(cmd.Model))
	case m.Translator == nil:
		longest = recording.MaxText
	}
	source, err := c.text(ctx, cmd.Text, "type a text for the model to read, then Enter", longest)
	if err != nil {
		return nil, err
	}
	if m.Translator == nil {
		r, err := from.Record(ctx, source, deref(cmd.Pair))
		if err != nil {
			return nil, recordError(1, err)
		}
		return r, nil
	}
	from.unknown.source(m, source)
	if cmd.Target != nil {
		if err := checkText("--target", 0, *cmd.Target, train.LongestText); err != nil {
			return nil, err
		}
		from.unknown.target(m, *cmd.Target)
	} else {
		written, err := m.Translate(ctx, []string{source}, 1)
		if err != nil {
			return nil, err
		}
		cmd.Target = &written[0]
	}
	shown := heads.RecorderOptions{ValueNorms: cmd.Values || cmd.Embed != "", Vectors: cmd.Embed != ""}
	return m.Record(source, *cmd.Target, shown)
}
