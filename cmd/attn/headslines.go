package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/app/importance"
	"github.com/attn-go/attn/internal/app/shards"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/app/texts"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
)

// Validate is called by the parser.
func (cmd *headsCommand) Validate() error {
	if cmd.PerLine {
		var names []string
		for _, m := range importance.LineMethods {
			names = append(names, m.String())
		}
		for _, name := range cmd.Method {
			if !slices.Contains(names, name) {
				return fmt.Errorf("--method %s cannot be used with --per-line, want any of %s", name, strings.Join(names, ", "))
			}
		}
	}
	if cmd.Format != 0 && (len(cmd.Method) > 0 || cmd.Sums != "") {
		return errors.New("--format cannot be used with --method or --sums: heads are scored in float32")
	}
	return cmd.scoredFlags.Validate()
}

func (cmd *headsCommand) streams() bool { return cmd.PerLine && cmd.Data == "" }

func (cmd *headsCommand) model() (string, bool) { return cmd.Model, true }

// load loads a model with heads, and an encoder-decoder if heads are scored.
func (cmd *headsCommand) load(c console, o models.Options) (*models.Model, error) {
	m, err := load(c, models.Load, cmd.Model, o)
	switch {
	case err != nil:
		return nil, err
	case len(cmd.Method) > 0 && m.Sizes().Decoder == nil:
		return nil, input.Errorf(cmd.Model, "is a %s model, want an encoder-decoder for --method with --per-line or --sums", m.Family.Name)
	}
	return m, tasks.WantHeads(cmd.Model, m)
}

func (cmd *headsCommand) stream(c console) (shards.Stream, error) {
	methods, err := cmd.methods()
	if err != nil {
		return nil, err
	}
	o := cmd.options()
	o.Trainable = len(methods) > 0
	m, err := cmd.load(c, o)
	if err != nil {
		return nil, err
	}
	f := importance.Lines(m, methods, c.err)
	f.MaxBytes, f.Strict = texts.LongestPair, cmd.Strict
	return newStream(f, c), nil
}

// showMerged shows the report of lines that attn shards has added up.
func (cmd *headsCommand) showMerged(c console, o importance.Options) error {
	m, err := cmd.load(c, models.Options{Trainable: true, Allowed: cmd.AllowSetting})
	if err != nil {
		return err
	}
	id, err := identityOf(cmd, nil)
	if err != nil {
		return err
	}
	r, err := importance.Merged(cmd.Sums, m, cmd.Model, id.Model, len(cmd.Method) > 0, o)
	if err != nil {
		return err
	}
	return cmd.write(r, c)
}
