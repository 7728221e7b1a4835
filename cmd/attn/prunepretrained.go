package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// This file has what attn prune does with pretrained models alone.

// preparePretrained loads everything that the experiment needs, and says what it is.
func (cmd *pruneCommand) preparePretrained(c console) (*prepared, error) {
	l, lines, err := loadTask(c, cmd.Model, cmd.Data, math.MaxInt)
	if err != nil {
		return nil, err
	}
	if _, err := cmd.goal(l.Attention()); err != nil {
		return nil, err
	}
	if f := l.Family; f.Fewer == models.AllHeads && (cmd.Speed != nil || cmd.SpeedTime != time.Second) {
		return nil, usage("--speed and --speed-time go with models that have a smaller form, and layers of %s cannot have fewer heads", f.Name)
	}
	parts, err := pruning.Deal(lines, l.task.source, cmd.Limit, cmd.Seed, l.task.items)
	if err != nil {
		return nil, &input.Error{Name: cmd.Data, Err: err}
	}
	train, err := cmd.trainLines(l, parts)
	if err != nil {
		return nil, err
	}
	var probes [3]*models.Probe
	var sizes [3]int
	for i, part := range parts {
		if probes[i], err = l.task.probe(l, part, cmd.Seed); err != nil {
			return nil, err
		}
		sizes[i] = pruning.Groups(part, l.task.source)
	}
	task, err := cmd.predictions(l, parts)
	if err != nil {
		return nil, err
	}
	copy(task.Parts[:], probes[1:])
	const rate = 5e-5 // of a model that has learnt much already
	task.Learn, task.Rate, task.Seed = probes[0], rate, cmd.Seed
	set(&task.Rate, cmd.Rate)
	if cmd.Train != "" {
		from := *l
		from.data = cmd.Train
		if task.Learn, err = l.task.probe(&from, train, cmd.Seed); err != nil {
			return nil, err
		}
	}
	e, err := newExperiment(cmd, probes[0], task)
	if err != nil {
		return nil, err
	}
	e.Keep = cmd.keepPretrained(task.Parts[pruning.Reporting])
	r := cmd.newReport(cmd.Data, sizes, l.task.items)
	r.Model.Arch, r.Model.Task = l.Family.Name, l.task.name
	if r.Settings.TrainData = cmd.Train; cmd.Finetune > 0 {
		r.Settings.Rate, r.Settings.Trained = task.Rate, len(train)
	}
	weights, err := filepath.Glob(filepath.Join(cmd.Model, "*.safetensors"))
	if err != nil {
		return nil, err
	}
	if r.Model.SHA256, err = pruning.HashFiles(weights...); err != nil {
		return nil, err
	}
	if r.Data.SHA256, err = pruning.HashFiles(cmd.Data); err != nil {
		return nil, err
	}
	return &prepared{e, r, fmt.Sprintf("try: attn view --model %s TEXT", quoted(cmd.Out))}, nil
}

// trainLines returns what the model is fine-tuned on: the lines of --train, but for what is
// measured on, or those that heads are scored on.
func (cmd *pruneCommand) trainLines(l *loaded, parts [3][]train.Line) ([]train.Line, error) {
	if cmd.Train == "" {
		return parts[0], nil
	}
	all, err := train.ReadLines(cmd.Train, l.task.data, math.MaxInt)
	if err != nil {
		return nil, err
	}
	if l.task == &similarityTask {
		if err := l.similarities(cmd.Train, all); err != nil {
			return nil, err
		}
	}
	measured := map[string]bool{}
	for _, part := range parts[1:] {
		for _, line := range part {
			measured[l.task.source(line)] = true
		}
	}
	if all = slices.DeleteFunc(all, func(line train.Line) bool { return measured[l.task.source(line)] }); len(all) == 0 {
		return nil, input.Errorf(cmd.Train, "every line is also among those that are measured on")
	}
	return all, nil
}

// predictions returns the task, but for the probes: what the model is judged by.
func (cmd *pruneCommand) predictions(l *loaded, parts [3][]train.Line) (*pruning.Predictions, error) {
	task := &pruning.Predictions{Unit: l.task.lossUnit, Faster: cmd.Speed != nil}
	metric := cmd.Metric
	if metric == "auto" {
		metric = l.task.metrics[0]
	}
	if !slices.Contains(l.task.metrics, metric) {
		return nil, usage("--metric %s does not go with the task of %s, %s: want %s", metric, quoted(cmd.Model), l.task.name, listed(l.task.metrics, "or"))
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
		case ok && name != "loss": // which is told of every model
			task.Others = append(task.Others, j)
		}
	}
	if l.task != &translationTask || metric == "loss" {
		return task, nil
	}
	t, err := l.Tokenizer()
	if err != nil {
		return nil, err
	}
	task.Write = &pruning.Writing{Tokens: longestTarget, Text: t.Target().Decode}
	if metric == "exact" {
		task.Write.By = train.MetricExact
	}
	for i, part := range parts[1:] {
		pairs := make([]seq2seq.Pair, len(part))
		for j, line := range part {
			pairs[j] = seq2seq.Pair{Source: line.Columns[0], Target: line.Columns[1]}
		}
		var sources []string
		sources, task.Write.References[i] = train.Group(pairs)
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

// keepPretrained writes what is left beside the other files of the model: in its compact form,
// with the masked one in a folder, or where there is none, the masked form alone. It checks
// that both load, and say the same on a part of the data.
func (cmd *pruneCommand) keepPretrained(part *models.Probe) func(ctx context.Context, left *models.Probe, r *reports.Report) error {
	return func(ctx context.Context, left *models.Probe, r *reports.Report) error {
		beside, err := besideWeights(cmd.Model)
		if err != nil {
			return err
		}
		config, err := left.Config()
		if err != nil {
			return err
		}
		beside = withConfig(beside, config)
		files, dirs := in("", beside, left.WriteMasked), []string{cmd.Out}
		var gone []string
		compact, err := left.Compact()
		if err != nil {
			r.Result.NoCompact = err.Error()
			for _, f := range files {
				if path := filepath.Join(maskedDir, f.Path); exists(filepath.Join(cmd.Out, path)) { // of an earlier run
					gone = append(gone, path)
				}
			}
		} else {
			files = append(in(maskedDir, beside, left.WriteMasked), in("", withConfig(beside, compact.Config), compact.Write)...)
			dirs = append(dirs, cmd.masked())
		}
		for _, name := range []string{seq2seq.WeightsFile + ".index.json", reportFile, pageFile} {
			if gone = append(gone, name); exists(cmd.masked()) {
				gone = append(gone, filepath.Join(maskedDir, name))
			}
		}
		if err := cmd.store.Replace(files, gone...); err != nil {
			return err
		}
		reference, err := models.NewReference(ctx, left.On(part))
		if err != nil {
			return err
		}
		largest := 0.
		for _, dir := range dirs {
			difference, err := written(ctx, dir, part, reference)
			if err != nil {
				return err
			}
			largest = max(largest, difference)
		}
		r.Result.Difference = reports.Number(largest)
		if r.Result.Masked = dirs[len(dirs)-1]; compact != nil {
			r.Result.Compact, r.Result.Loads = cmd.Out, compact.Loads
		}
		return nil
	}
}

// written loads a model that was written, and returns by how much its outputs differ from a
// reference. It is an error if that is not rounding.
func written(ctx context.Context, dir string, part *models.Probe, reference *models.Reference) (float64, error) {
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		return 0, err
	}
	again, err := part.Of(m)
	if err != nil {
		return 0, err
	}
	largest, scale, err := reference.Difference(ctx, again)
	if err != nil {
		return 0, err
	}
	return largest, pruning.Agree(largest, scale)
}

// in returns the files of a model in a folder of the directory.
func in(folder string, beside []atomicfile.File, weights func(io.Writer) error) []atomicfile.File {
	files := []atomicfile.File{{Path: filepath.Join(folder, seq2seq.WeightsFile), Write: weights}}
	for _, f := range beside {
		files = append(files, atomicfile.File{Path: filepath.Join(folder, f.Path), Write: f.Write})
	}
	return files
}

// withConfig returns files with another config.json.
func withConfig(files []atomicfile.File, config []byte) []atomicfile.File {
	files = slices.Clone(files)
	for i, f := range files {
		if f.Path == "config.json" {
			files[i].Write = func(w io.Writer) error {
				_, err := w.Write(config)
				return err
			}
		}
	}
	return files
}

// modulesFile names the parts of a pipeline of sentence-transformers.
const modulesFile = "modules.json"

// besideWeights are the files of a pretrained model that are not its weights: settings, the
// tokenizer, a template, and the other modules of a pipeline with all they have.
func besideWeights(dir string) ([]atomicfile.File, error) {
	files, err := copies(dir, "", func(name string) bool {
		kind := strings.ToLower(filepath.Ext(name))
		return slices.Contains([]string{".json", ".txt", ".model", ".spm", ".jinja"}, kind) && !strings.HasSuffix(name, ".index.json") && name != reportFile && name != unfinishedFile
	})
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, modulesFile))
	if os.IsNotExist(err) {
		return files, nil
	}
	var modules []struct{ Path string }
	if err == nil {
		err = strictjson.Lenient(data, &modules)
	}
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if m.Path == "" || !filepath.IsLocal(m.Path) || !exists(filepath.Join(dir, m.Path)) {
			continue // old pipelines have no folder for what needs no settings
		}
		more, err := copies(dir, m.Path, func(string) bool { return true })
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// copies returns copies of the files of a folder in dir whose names are wanted.
func copies(dir, folder string, wanted func(name string) bool) (files []atomicfile.File, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !wanted(entry.Name()) {
			continue
		}
		name := filepath.Join(folder, entry.Name())
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
