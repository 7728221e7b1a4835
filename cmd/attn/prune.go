package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/guard"
	"github.com/attn-go/attn/internal/app/progress"
	"github.com/attn-go/attn/internal/app/pruning"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/models"
)

type pruneCommand struct {
	settingFlag
	scoredFlags
	Out   string `required:"" help:"Directory for the pruned model and the report." placeholder:"DIR" writes:"model"`
	Force bool   `help:"Overwrite an existing model."`

	pruning.Target

	Step        *int     `help:"Number of heads to remove before scoring again; 0 scores once (default 1, or more if scoring would take more than 120 passes over its data)." placeholder:"N" group:"How" want:"at least 0"`
	Kind        []string `enum:"${kinds}" help:"Remove heads only from these kinds of attention: ${kinds_or}, or several, comma-separated (default all)." placeholder:"NAME" group:"How"`
	Even        bool     `help:"Remove the same number of heads from each layer, or the same share where layers without a softmax have other numbers, as many as the goal allows. A pruned Llama or related decoder then loads wherever the original does." group:"How"`
	EmptyLayers bool     `help:"Allow removing all heads of a layer; otherwise each layer keeps at least one." group:"How"`
	Compensate  string   `default:"ridge" enum:"none,mean,ridge" help:"What makes up for removed heads, without training: ridge solves the output maps again, mean adds the mean output to the bias; none. It is only used if it lowers the loss. With mean and ridge, heads are scored against their mean outputs." placeholder:"NAME" group:"How"`
	Finetune    int      `help:"Training steps of the pruned model, after compensation (default none). With --max-drop, each number of heads that is tried is trained." placeholder:"N" group:"How" want:"at least 0"`
	Tune        string   `default:"auto" enum:"auto,all,maps" help:"What the steps train: all parameters, or only the output maps of the attention, biases and norms (maps). auto is maps for fewer than 500 steps of a model of attn train." placeholder:"NAME" group:"How" needs:"finetune" excludes:"finetune=0"`
	Train       string   `help:"Data for the training steps, in the format of --data (default the scoring part of --data)." placeholder:"FILE" group:"How" needs:"finetune" excludes:"finetune=0"`
	Rate        *float64 `help:"Peak learning rate of the training steps (default 0.001 for a model of attn train, 0.00005 for others). With --tune all and only a few hundred steps, 0.0003 is better for a translator of attn train." placeholder:"RATE" group:"How" want:"more than 0 and at most 1" needs:"finetune" excludes:"finetune=0"`

	Metric    string `default:"auto" enum:"auto,exact,bleu,loss,accuracy,spearman,pearson,cosine" help:"bleu, exact or loss for translations, accuracy or loss for classes, spearman, pearson or loss for similar texts, cosine or loss for texts of a pipeline, and otherwise loss. auto is the first of these, and exact for character models of attn train." placeholder:"NAME" group:"Report"`
	Resamples int    `default:"1000" help:"Number of bootstrap resamples." placeholder:"N" group:"Report" want:"100 to 1000000"`
	Report    string `help:"HTML report to write (default report.html in the directory)." placeholder:"FILE" group:"Report" writes:"file"`
	JSON      bool   `name:"json" help:"Write the report as a JSON object to standard output." group:"Report"`

	Experiment bool          `help:"Also measure curves: the quality with other numbers of heads, by each method, in reverse and in random orders; and the speed of up to 14 kinds of work. This takes most of the time." group:"Experiment"`
	Orders     int           `default:"20" help:"Number of random orders to compare with." placeholder:"N" group:"Experiment" want:"0 to 1000" needs:"experiment"`
	SpeedTime  time.Duration `default:"1s" help:"Time to measure the speed of each kind of work, up to three times as long for slow work; 0 skips the measurement." placeholder:"TIME" group:"Experiment" want:"0 to 1h" needs:"experiment|speed"`
	SVG        string        `name:"svg" help:"Write the curves of the metric as an SVG image." placeholder:"FILE" group:"Experiment" writes:"file" needs:"experiment"`
	PNG        string        `name:"png" help:"Write the curves of the metric as a PNG image." placeholder:"FILE" group:"Experiment" writes:"file" needs:"experiment"`
}

func (pruneCommand) Help() string {
	return `Examples:

  attn prune --model runs/dates --out runs/small
  attn prune --model runs/fra.run --data valid.tsv --out small --max-drop 0.01
  attn prune --model runs/fra.run --data valid.tsv --out small --share 0.5 --experiment --svg curves.svg
  attn prune --model runs/fra.run --data valid.tsv --out small --keep 36 --finetune 300 --train fra.tsv
  attn prune --model bert-base-uncased --data texts.txt --out small --share 0.25 --method gradient

The data are split into three parts without common sources: heads are scored on the first,
the method and the number of heads are chosen on the second, and all reported results are
measured on the third. The directory contains the pruned model, which all commands can load;
masked/, the same model with the shapes of the original; pruning.json; and report.html.
--experiment measures more than the result, last: the quality with other numbers of heads, beside random
orders, and the speed. After Ctrl-C, unfinished.json contains the results so far.

--data has the format that attn heads --help describes. The metric is BLEU for translations,
exact match for character models of attn train, accuracy for classifiers, Spearman's
correlation for similar texts, and otherwise the loss. Heads that share keys and values are
removed together. In masked/, the weights of removed heads are zero, and every program that
loads the original can load the model. In the pruned model, removed heads are absent. For ` +
		listed(pruned(models.PrunedHeads), "and") + `, config.json lists them as pruned_heads,
which transformers before version 5 supports; for models of attn train too, which only attn loads.
For ` + listed(pruned(models.HeadCounts), "and") + `, a model with the same number of
heads in all layers, as with --even, is a normal model; otherwise only attn can load it. For
other families, there is no pruned model: the directory contains the masked model.`
}

// Names of files that other commands must not overwrite.
const (
	reportFile     = pruning.ReportFile
	unfinishedFile = pruning.UnfinishedFile
)

// Validate is called by the parser.
func (cmd *pruneCommand) Validate() error {
	switch {
	case cmd.Even && cmd.Step != nil && *cmd.Step > 0:
		return errors.New("--even scores once: want --step 0, or none")
	case cmd.Limit < pruning.Fewest:
		return fmt.Errorf("--limit %d, want at least %d sources for each part", cmd.Limit, pruning.Fewest)
	}
	return cmd.scoredFlags.Validate()
}

// AdjustFiles adds the files of the directory whose names are fixed.
func (cmd *pruneCommand) AdjustFiles(f *guard.Files) {
	const masked = pruning.MaskedDir
	f.Makes = append(f.Makes, guard.Place{Flag: "--out", Path: filepath.Join(cmd.Out, masked)})
	f.Models = append(f.Models, guard.Place{Flag: "--model", Path: filepath.Join(cmd.Model, masked)})
	if cmd.Report == "" {
		f.Writes = slices.Insert(f.Writes, 0, guard.Place{Flag: "--report", Path: filepath.Join(cmd.Out, pruning.PageFile)})
	}
}

// options returns the settings in the flags.
func (cmd *pruneCommand) options(progress func(stage string, done, all int)) (pruning.Options, error) {
	methods, err := cmd.methods()
	o := pruning.Options{
		Experiment: pruning.Experiment{
			Methods: methods, Normalize: cmd.Normalize, Empty: cmd.EmptyLayers, Even: cmd.Even, Step: pruning.Affordable,
			FineTune: cmd.Finetune, Compare: cmd.Experiment, Orders: cmd.Orders, Resamples: cmd.Resamples, Seed: cmd.Seed, SpeedTime: cmd.SpeedTime,
			Progress: progress,
		},
		Target: cmd.Target, Limit: cmd.Limit, Metric: cmd.Metric, Train: cmd.Train, Rate: cmd.Rate, Tune: cmd.Tune, Version: version(),
	}
	set(&o.Step, cmd.Step)
	if cmd.Compensate != "none" {
		o.Compensate = cmd.Compensate
	}
	for _, name := range cmd.Kind {
		kind, _ := heads.ParseKind(name) // the parser has checked the name
		o.Kinds = append(o.Kinds, kind)
	}
	return o, err
}

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
