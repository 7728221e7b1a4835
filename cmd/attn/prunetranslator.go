package main

import (
	"context"
	"path/filepath"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// This file has what attn prune does with translators of attn train alone.

// prepareTranslator loads everything that the experiment needs, and says what it is.
func (cmd *pruneCommand) prepareTranslator() (*prepared, error) {
	m, err := cmd.load()
	if err != nil {
		return nil, err
	}
	metric, err := cmd.translatorMetric(m)
	if err != nil {
		return nil, err
	}
	if _, err := cmd.goal(m.Layers()); err != nil {
		return nil, err // before files are read
	}
	most := 3*cmd.Limit + 1
	pairs, name, err := cmd.pairs(most)
	if err != nil {
		return nil, err
	}
	if cmd.Data == "" {
		cmd.recipe.Pruned = append(cmd.recipe.Pruned, most) // the next pruning gets others
	}
	parts, err := pruning.Split(pairs, cmd.Limit, cmd.Seed)
	if err != nil {
		return nil, &input.Error{Name: name, Err: err}
	}
	probe, err := seq2seq.NewProbe(m, parts.Score)
	if err != nil {
		return nil, err
	}
	task := pruning.NewTranslations(m, parts, metric)
	task.Seed, task.Faster = cmd.Seed, cmd.Speed != nil
	set(&task.Rate, cmd.Rate)
	if cmd.recipe != nil {
		task.Smoothing = cmd.recipe.Training.Smoothing
	}
	if cmd.Train != "" {
		if task.Learn, err = train.LoadPairs(cmd.Train); err != nil {
			return nil, err
		}
		// What is measured on must not be learnt.
		if task.Learn = parts.Unseen(task.Learn); len(task.Learn) == 0 {
			return nil, input.Errorf(cmd.Train, "every source is also among those that are measured on")
		}
	}
	e, err := newExperiment(cmd, probe, task)
	if err != nil {
		return nil, err
	}
	e.Keep = func(ctx context.Context, left *seq2seq.Probe, r *reports.Report) error {
		masked, difference, err := task.Masked(ctx, left.Translator())
		if err != nil {
			return err
		}
		r.Result.Difference = reports.Number(difference)
		return cmd.keepTranslator(left.Translator(), masked, r)
	}
	r := cmd.newReport(name, parts.Sources(), "sources")
	r.Data.Pairs, r.Model.Arch = len(parts.Score)+len(parts.Select)+len(parts.Report), m.Config.Arch
	r.Settings.TrainData = cmd.Train
	if cmd.Finetune > 0 {
		r.Settings.Rate, r.Settings.Smoothing, r.Settings.Trained = task.Rate, task.Smoothing, len(task.Learn)
	}
	err = atomicfile.Read(filepath.Join(cmd.Model, seq2seq.WeightsFile), func(place string) (err error) {
		r.Model.SHA256, err = pruning.HashFiles(place)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.Data.SHA256 = pruning.HashPairs(pairs)
	return &prepared{e, r, tryHint(cmd.Out, parts.Report[0].Source)}, nil
}

// translatorMetric returns what tells how good a translation is.
func (cmd *pruneCommand) translatorMetric(m *seq2seq.Translator) (train.Metric, error) {
	switch {
	case cmd.Metric == "exact", cmd.Metric == "auto" && m.Target.Units() == seq2seq.Chars:
		return train.MetricExact, nil
	case cmd.Metric == "bleu", cmd.Metric == "auto":
		return train.MetricBLEU, nil
	}
	return 0, usage("--metric %s goes with a pretrained model, and %s is one of attn train: want exact or bleu", cmd.Metric, quoted(cmd.Model))
}

// keepTranslator writes both forms of the pruned model, each with its recipe: it tells which
// dates the model has learnt. What describes the models of an earlier run goes in the
// same step, so that no number ever stands beside a model that it is not about.
func (cmd *pruneCommand) keepTranslator(compact, masked *seq2seq.Translator, r *reports.Report) error {
	files := append(compact.Files(""), masked.Files(maskedDir)...)
	var gone []string
	for _, folder := range []string{"", maskedDir} {
		gone = append(gone, filepath.Join(folder, reportFile), filepath.Join(folder, pageFile))
		name := filepath.Join(folder, train.RecipeFile)
		if cmd.recipe == nil {
			gone = append(gone, name)
			continue
		}
		files = append(files, atomicfile.File{Path: name, Write: cmd.recipe.File().Write})
	}
	if err := cmd.store.Replace(files, gone...); err != nil {
		return err
	}
	r.Result.Compact, r.Result.Masked = cmd.Out, cmd.masked()
	return nil
}
