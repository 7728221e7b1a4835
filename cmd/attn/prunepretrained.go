package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
)

// prunePretrained is Run for a pretrained model.
func (cmd *pruneCommand) prunePretrained(ctx context.Context, c console) error {
	if err := cmd.wantPretrained(); err != nil {
		return err
	}
	e, r, report, err := cmd.preparePretrained()
	if err != nil {
		return err
	}
	if err := writable(cmd.Out); err != nil {
		return err
	}
	if cmd.store, err = atomicfile.Lock(cmd.Out); err != nil {
		return err
	}
	defer cmd.store.Unlock()
	shown := newStages(c.err)
	defer shown.stop()
	e.Progress = shown.tell
	left, err := e.Run(ctx, r)
	shown.stop()
	if errors.Is(err, context.Canceled) {
		return interrupted{"interrupted; nothing was written"}
	}
	if err != nil {
		return err
	}
	if err := cmd.keepPretrained(ctx, left, report, r); err != nil {
		return err
	}
	if cmd.JSON {
		return json.NewEncoder(c.out).Encode(r)
	}
	return r.Summary(c.out)
}

// wantPretrained refuses flags that go with translators alone.
func (cmd *pruneCommand) wantPretrained() error {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--speed", cmd.Speed != nil}, {"--finetune", cmd.Finetune > 0}, {"--metric", cmd.Metric != "auto"}, {"--kind", len(cmd.Kind) > 0},
		{"--report", cmd.Report != ""}, {"--svg", cmd.SVG != ""}, {"--png", cmd.PNG != ""},
		{"--resamples", cmd.Resamples != 1000}, {"--speed-time", cmd.SpeedTime != time.Second},
	} {
		if f.given {
			return usage("%s goes with a model of attn train, and %s is a pretrained one", f.name, quoted(cmd.Model))
		}
	}
	return nil
}

// preparePretrained loads everything that the experiment needs, and says what it is. report
// is the reporting part of the data.
func (cmd *pruneCommand) preparePretrained() (e *pruning.ByLoss[*models.Probe], r *reports.ByLoss, report []models.Example, err error) {
	methods, err := cmd.methods()
	if err != nil {
		return nil, nil, nil, err
	}
	m, texts, err := cmd.texts(math.MaxInt)
	if err != nil {
		return nil, nil, nil, err
	}
	goal, err := cmd.goal(m.Attention())
	if err != nil {
		return nil, nil, nil, err
	}
	parts, err := pruning.Deal(texts, func(t taskText) string { return t.first + "\t" + t.second }, cmd.Limit, cmd.Seed, "texts")
	if err != nil {
		return nil, nil, nil, &seq2seq.InputError{Name: cmd.Data, Reason: err.Error()}
	}
	var probes [3]*models.Probe
	for i, part := range parts {
		if report, err = cmd.examples(m, part); err != nil {
			return nil, nil, nil, err
		}
		if probes[i], err = models.NewProbe(m, report); err != nil {
			return nil, nil, nil, err
		}
	}
	on := func(part *models.Probe) func(context.Context, *models.Probe) (float64, error) {
		return func(ctx context.Context, p *models.Probe) (float64, error) { return p.On(part).Loss(ctx) }
	}
	e = &pruning.ByLoss[*models.Probe]{
		Subject: probes[0], Select: on(probes[1]), Report: on(probes[2]), Methods: methods, Goal: goal,
		Normalize: cmd.Normalize, Empty: cmd.EmptyLayers, Step: pruning.Affordable, Orders: cmd.Orders, Seed: cmd.Seed,
	}
	set(&e.Step, cmd.Step)
	hash, err := pruning.HashFile(cmd.Data)
	if err != nil {
		return nil, nil, nil, err
	}
	r = &reports.ByLoss{
		Version: version(), Started: time.Now().UTC().Format(time.RFC3339), Model: cmd.Model, Task: string(m.Head().Task), Goal: goal.DescribeLoss(),
		Data:      reports.TextData{File: cmd.Data, SHA256: hash, Score: len(parts[0]), Select: len(parts[1]), Report: len(parts[2])},
		Normalize: cmd.Normalize, Empty: cmd.EmptyLayers, Orders: cmd.Orders, Seed: cmd.Seed, Out: cmd.Out,
	}
	return e, r, report, nil
}

// keepPretrained writes what is left beside the other files of the model, and checks that
// it loads and says the same.
func (cmd *pruneCommand) keepPretrained(ctx context.Context, left *models.Probe, report []models.Example, r *reports.ByLoss) error {
	files, err := besideWeights(cmd.Model)
	if err != nil {
		return err
	}
	files = append(files, atomicfile.File{Path: seq2seq.WeightsFile, Write: left.WriteMasked}, atomicfile.JSON(reportFile, r))
	gone := []string{seq2seq.WeightsFile + ".index.json", pageFile, unfinishedFile}
	if err := cmd.store.Replace(files, gone...); err != nil {
		return err
	}
	written, err := models.Load(cmd.Out, models.Options{})
	if err != nil {
		return err
	}
	again, err := models.NewProbe(written, report)
	if err != nil {
		return err
	}
	loss, err := again.Loss(ctx)
	if err != nil {
		return err
	}
	if want := float64(r.After); !(math.Abs(loss-want) <= 1e-4*math.Max(1, want)) {
		return &pruning.CheckError{Reason: fmt.Sprintf("the loss of %s is %g, that of the model with gates %g", cmd.Out, loss, want)}
	}
	return nil
}

// pipelineFiles make a pipeline of a transformer and of folders that are not copied.
var pipelineFiles = []string{"modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"}

// besideWeights are the files of a pretrained model that are not weights: settings, the
// tokenizer, a template.
func besideWeights(dir string) ([]atomicfile.File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []atomicfile.File
	for _, entry := range entries {
		name := entry.Name()
		kind := strings.ToLower(filepath.Ext(name))
		if !slices.Contains([]string{".json", ".txt", ".model", ".spm", ".jinja"}, kind) || strings.HasSuffix(name, ".index.json") || name == reportFile || slices.Contains(pipelineFiles, name) {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err != nil { // which follows a link
			return nil, err
		} else if info.IsDir() {
			continue
		}
		files = append(files, atomicfile.File{Path: name, Write: func(w io.Writer) error {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(w, f)
			return err
		}})
	}
	return files, nil
}
