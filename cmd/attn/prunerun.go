package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/attn-go/attn/internal/app/progress"
	"github.com/attn-go/attn/internal/app/pruning"
	"github.com/attn-go/attn/internal/app/tasks"
)

func (cmd *pruneCommand) Run(ctx context.Context, c console) error {
	if err := pruning.Vacant(cmd.Out, cmd.Force); err != nil {
		return err
	}
	shown := progress.NewStages(c.err)
	defer shown.Clear()
	o, err := cmd.options(shown.Update)
	if err != nil {
		return err
	}
	m, err := cmd.open(c, cmd.settingFlag, tasks.Limits{Lines: math.MaxInt, Dates: pruning.NewDates(cmd.Limit)})
	if err != nil {
		return err
	}
	x, err := pruning.Prepare(ctx, m, o)
	if err != nil {
		return err
	}
	out, err := pruning.Open(cmd.Out)
	if err != nil {
		return err
	}
	defer out.Close()
	err = x.Run(ctx, out)
	shown.Clear()
	if errors.Is(err, context.Canceled) && out.Unfinished {
		unfinished := filepath.Join(cmd.Out, unfinishedFile)
		return interrupted{fmt.Sprintf("interrupted; what has been measured is in %s", quoted(unfinished))}
	}
	if err == nil {
		err = out.Publish(x.Report, cmd.Report, cmd.SVG, cmd.PNG)
	}
	if err != nil {
		return err
	}
	if cmd.JSON {
		return json.NewEncoder(c.out).Encode(x.Report)
	}
	if err := x.Report.Summary(c.out); err != nil {
		return err
	}
	try := fmt.Sprintf("try: attn view --model %s TEXT", quoted(cmd.Out))
	if m.Name == tasks.Translation {
		try = tryHint(cmd.Out, x.Example)
	}
	_, err = fmt.Fprintln(c.err, try)
	return err
}
