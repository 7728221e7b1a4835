package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// This file has what attn prune measures models by; prunefiles.go has what it writes.

// prepare loads everything that the experiment needs, and says what it is.
func (cmd *pruneCommand) prepare(c console) (*prepared, error) {
	most := math.MaxInt
	if !isPretrained(cmd.Model) {
		most = 3*cmd.Limit + 1 // new dates, if there are no other data
	}
	l, lines, err := cmd.loadTask(c, most)
	if err != nil {
		return nil, err
	}
	goal, err := cmd.goal(l.Attention())
	if err != nil {
		return nil, err
	}
	if f := l.Family; f.Pruning == models.NoPruning && (cmd.Speed != nil || cmd.SpeedTime != time.Second) {
		return nil, usage("--speed and --speed-time go with models that have a smaller form, "+
			"and layers of %s cannot have fewer heads", f.Name)
	}
	if l.Translator != nil && cmd.Data == "" {
		cmd.recipe.Pruned = append(cmd.recipe.Pruned, most) // the next pruning gets others
	}
	parts, err := pruning.Deal(lines, l.task.source, cmd.Limit, cmd.Seed, l.task.items)
	if err != nil {
		return nil, &input.Error{Name: l.data, Err: err}
	}
	learn, err := cmd.trainLines(l, parts)
	if err != nil {
		return nil, err
	}
	var probes [3]*models.Probe
	for i, part := range parts {
		if probes[i], err = l.task.probe(l, part, cmd.Seed); err != nil {
			return nil, err
		}
	}
	task, err := cmd.task(l, parts)
	if err != nil {
		return nil, err
	}
	copy(task.Parts[:], probes[1:])
	r := cmd.newReport(l, parts)
	if task.Train, err = cmd.training(l, learn, parts[0], probes[0], r); err != nil {
		return nil, err
	}
	e, err := cmd.newExperiment(probes[0], goal, task)
	if err != nil {
		return nil, err
	}
	e.Keep = cmd.keep(l, task)
	if err := cmd.identify(l, lines, r); err != nil {
		return nil, err
	}
	try := fmt.Sprintf("try: attn view --model %s TEXT", quoted(cmd.Out))
	if l.Translator != nil {
		try = tryHint(cmd.Out, parts[2][0].Columns[0])
	}
	return &prepared{e, r, try}, nil
}

// newReport returns a report that says what is pruned, and on which data.
func (cmd *pruneCommand) newReport(l *loaded, parts [3][]train.Line) *reports.Report {
	r := &reports.Report{Version: version(), Started: time.Now().UTC().Format(time.RFC3339)}
	r.Model.Dir, r.Data.File, r.Data.Items = cmd.Model, l.data, l.task.items
	for i, n := range []*int{&r.Data.Score, &r.Data.Select, &r.Data.Report} {
		*n = pruning.Groups(parts[i], l.task.source)
		if l.Translator != nil {
			r.Data.Pairs += len(parts[i])
		}
	}
	r.Settings.TrainData, r.Model.Task, r.Model.Arch = cmd.Train, l.task.name, l.Family.Name
	if l.Translator != nil {
		r.Model.Arch = l.Translator.Config.Arch
	}
	return r
}

// identify adds to a report which bits model and data have.
func (cmd *pruneCommand) identify(l *loaded, lines []train.Line, r *reports.Report) (err error) {
	if l.Translator != nil {
		r.Data.SHA256 = pruning.HashPairs(pairsOfLines(lines))
		return atomicfile.Read(filepath.Join(cmd.Model, models.WeightsFile), func(place string) (err error) {
			r.Model.SHA256, err = pruning.HashFiles(place)
			return err
		})
	}
	weights, err := filepath.Glob(filepath.Join(cmd.Model, "*.safetensors"))
	if err != nil {
		return err
	}
	if r.Model.SHA256, err = pruning.HashFiles(weights...); err != nil {
		return err
	}
	r.Data.SHA256, err = pruning.HashFiles(cmd.Data)
	return err
}

// trainLines returns what the model is fine-tuned on: the lines of --train, but for what is
// measured on, or those that heads are scored on.
func (cmd *pruneCommand) trainLines(l *loaded, parts [3][]train.Line) (all []train.Line, err error) {
	if cmd.Train == "" {
		return parts[0], nil
	}
	line := "line"
	if l.Translator != nil {
		var pairs []seq2seq.Pair
		pairs, err = train.LoadPairs(cmd.Train)
		all, line = linesOf(pairs), "source"
	} else {
		all, err = train.ReadLines(cmd.Train, l.task.data, math.MaxInt)
	}
	if err == nil && l.task == &similarityTask {
		err = l.similarities(cmd.Train, all)
	}
	if err != nil {
		return nil, err
	}
	measured := map[string]bool{}
	for _, part := range parts[1:] {
		for _, line := range part {
			measured[l.task.source(line)] = true
		}
	}
	all = slices.DeleteFunc(all, func(line train.Line) bool { return measured[l.task.source(line)] })
	if len(all) == 0 {
		return nil, input.Errorf(cmd.Train, "every %s is also among those that are measured on", line)
	}
	return all, nil
}

// training returns how the model is fine-tuned, and tells the report of it. scoring is the
// part on which heads are scored, and probe the probe on it.
func (cmd *pruneCommand) training(
	l *loaded, learn, scoring []train.Line, probe *models.Probe, r *reports.Report,
) (pruning.Train, error) {
	rate, smoothing := 5e-5, float32(0) // of a model that has learnt much already
	if l.Translator != nil {
		rate = 0.001
		if cmd.recipe != nil {
			smoothing = cmd.recipe.Training.Smoothing
		}
	}
	set(&rate, cmd.Rate)
	if cmd.Finetune > 0 {
		r.Settings.Rate, r.Settings.Smoothing, r.Settings.Trained = rate, smoothing, len(learn)
	}
	if l.Translator != nil {
		pairs, scored := pairsOfLines(learn), pairsOfLines(scoring)
		return pruning.TrainTranslator(l.Model, pairs, scored, rate, smoothing, cmd.Seed), nil
	}
	if cmd.Train != "" {
		from := *l
		from.data = cmd.Train
		var err error
		if probe, err = l.task.probe(&from, learn, cmd.Seed); err != nil {
			return nil, err
		}
	}
	return pruning.TrainProbe(probe, rate, cmd.Seed), nil
}

// metric returns the name of what the model is judged by.
func (cmd *pruneCommand) metric(l *loaded) (string, error) {
	metric := cmd.Metric
	if metric == "auto" {
		metric = l.task.metrics[0]
		if l.Translator != nil && l.Translator.Target.Units() != seq2seq.Chars {
			metric = "bleu"
		}
	}
	switch {
	case slices.Contains(l.task.metrics, metric):
		return metric, nil
	case l.Translator != nil:
		return "", usage("--metric %s requires a pretrained model, and %s is one of attn train: want exact or bleu",
			metric, quoted(cmd.Model))
	}
	return "", usage("--metric %s does not go with the task of %s, %s: want %s",
		metric, quoted(cmd.Model), l.task.name, listed(l.task.metrics, "or"))
}

// task returns the task, but for the probes: what the model is judged by.
func (cmd *pruneCommand) task(l *loaded, parts [3][]train.Line) (*pruning.Task, error) {
	task := &pruning.Task{Unit: l.task.lossUnit, Faster: cmd.Speed != nil}
	metric, err := cmd.metric(l)
	if err != nil {
		return nil, err
	}
	for i := range task.Wanted {
		for _, line := range parts[i+1] {
			task.Wanted[i] = append(task.Wanted[i], line.Value)
		}
	}
	for _, name := range l.task.metrics {
		switch j, ok := judges[name]; {
		case name == metric && ok:
			task.Judge = j
		case ok && name != "loss": // the loss is reported for every model
			task.Others = append(task.Others, j)
		}
	}
	if metric != "bleu" && metric != "exact" {
		return task, nil
	}
	task.Write = new(pruning.Writing)
	if metric == "exact" {
		task.Write.By = train.MetricExact
	}
	for i, part := range parts[1:] {
		var sources []string
		sources, task.Write.References[i] = train.Group(pairsOfLines(part))
		for _, source := range sources {
			e, err := l.Encode(source, "")
			if err != nil {
				return nil, err
			}
			task.Write.Sources[i] = append(task.Write.Sources[i], e.IDs)
		}
	}
	return task, nil
}

// pairsOfLines is the inverse of linesOf.
func pairsOfLines(lines []train.Line) []seq2seq.Pair {
	pairs := make([]seq2seq.Pair, len(lines))
	for i, line := range lines {
		pairs[i] = seq2seq.Pair{Source: line.Columns[0], Target: line.Columns[1]}
	}
	return pairs
}
