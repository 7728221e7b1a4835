package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/app/importance"
	"github.com/attn-go/attn/internal/app/shards"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/app/texts"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
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
	return cmd.scoredFlags.Validate()
}

func (cmd *headsCommand) streams() bool { return cmd.PerLine && cmd.Data == "" }

func (cmd *headsCommand) model() (string, bool) { return cmd.Model, true }

// translator loads a translator with heads.
func (cmd *headsCommand) translator(c console) (*models.Model, error) {
	m, err := loadTranslator(c, cmd.Model, models.Options{Trainable: true, Allowed: cmd.AllowSetting})
	if err != nil {
		return nil, err
	}
	return m, tasks.WantHeads(cmd.Model, m)
}

func (cmd *headsCommand) stream(c console) (shards.Stream, error) {
	m, err := cmd.translator(c)
	if err != nil {
		return nil, err
	}
	var methods []prune.Method
	if len(cmd.Method) > 0 {
		if methods, err = cmd.methods(); err != nil {
			return nil, err
		}
	}
	f := importance.Lines(m, methods, c.err)
	f.MaxBytes, f.Strict = texts.LongestPair, cmd.Strict
	return newStream(f, c), nil
}

// showMerged shows the report of lines that attn shards has added up.
func (cmd *headsCommand) showMerged(c console, o importance.Options) error {
	m, err := cmd.translator(c)
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
