package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

type pruneCommand struct {
	scoredFlags
	Out   string `required:"" help:"Directory for the pruned model and the report." placeholder:"DIR"`
	Force bool   `help:"Overwrite an existing model."`

	Keep    *int     `help:"Total number of heads to keep." placeholder:"N" group:"Goal (at most one)"`
	Share   *float64 `help:"Share of the heads to remove, 0 to 1." placeholder:"P" group:"Goal (at most one)"`
	MaxDrop *float64 `help:"Maximum relative drop of the metric, or relative increase of the loss, 0 to 1 (default 0.01 if no other goal is given)." placeholder:"P" group:"Goal (at most one)"`
	Speed   *float64 `help:"Speed-up to reach, such as 1.5, with a batch of 32 texts: of translation, or of the forward pass of a model that does not translate." placeholder:"X" group:"Goal (at most one)"`

	Step        *int     `help:"Number of heads to remove before scoring again; 0 scores once (default 1, or more if scoring would take more than 120 passes over its data; 0 with --finetune or --speed)." placeholder:"N" group:"How"`
	Kind        []string `enum:"${kinds}" help:"Remove heads only from these kinds of attention: ${kinds_or}, or several, comma-separated (default all)." placeholder:"NAME" group:"How"`
	Even        bool     `help:"Remove the same number of heads from each layer, as many as the goal allows. A pruned Llama, Mistral, Qwen or Gemma then loads wherever the original does." group:"How"`
	EmptyLayers bool     `help:"Allow removing all heads of a layer; otherwise each layer keeps at least one." group:"How"`
	Finetune    int      `help:"Training steps after each removal (default none)." placeholder:"N" group:"How"`
	Train       string   `help:"Data for the training steps, in the format of --data (default the scoring part of --data)." placeholder:"FILE" group:"How"`
	Rate        *float64 `help:"Peak learning rate of the training steps (default 0.001, or 0.00005 for a pretrained model). For a few hundred steps, a third of 0.001 is better." placeholder:"RATE" group:"How"`

	Metric    string        `default:"auto" enum:"auto,exact,bleu,loss,accuracy,spearman,pearson" help:"exact or bleu for translations; for pretrained models also loss, accuracy, spearman or pearson. auto is exact match for character models of attn train, BLEU for its other models, and accuracy, Spearman's correlation or the loss for pretrained models." placeholder:"NAME" group:"Report"`
	Orders    int           `default:"20" help:"Number of random orders to compare with." placeholder:"N" group:"Report"`
	Resamples int           `default:"1000" help:"Number of bootstrap resamples." placeholder:"N" group:"Report"`
	SpeedTime time.Duration `default:"1s" help:"Time to measure the speed of each kind of work; 0 skips the measurement." placeholder:"TIME" group:"Report"`
	Report    string        `help:"HTML report to write (default report.html in the directory)." placeholder:"FILE" group:"Report"`
	SVG       string        `name:"svg" help:"Write the curves of the metric as an SVG image." placeholder:"FILE" group:"Report"`
	PNG       string        `name:"png" help:"Write the curves of the metric as a PNG image." placeholder:"FILE" group:"Report"`
	JSON      bool          `name:"json" help:"Write the report as a JSON object to standard output." group:"Report"`

	store *atomicfile.Dir // the directory, while the command runs
	shown *stages
}

func (pruneCommand) Help() string {
	return `Examples:

  attn prune --model runs/dates --out runs/small
  attn prune --model runs/fra.run --data valid.tsv --out small --max-drop 0.01
  attn prune --model runs/fra.run --data valid.tsv --out small --share 0.5 --method gradient
  attn prune --model runs/fra.run --data valid.tsv --out small --keep 36 --finetune 300 --train fra.tsv
  attn prune --model bert-base-uncased --data texts.txt --out small --share 0.25 --method gradient

The data are split into three parts without common sources: heads are scored on the first,
the method and the number of heads are chosen on the second, and all reported results are
measured on the third. The directory contains the pruned model, which all commands can load;
masked/, the same model with the shapes of the original; pruning.json; and report.html.
After Ctrl-C, unfinished.json contains the results so far.

For a pretrained model, --data has the format that attn heads --help describes. The metric
is accuracy for classifiers, Spearman's correlation for similar texts, and otherwise the
loss. Heads that share keys and values are removed together. In masked/, the weights of
removed heads are zero, and every program that loads the original can load the model. In
the pruned model, removed heads are absent. For BERT, DistilBERT, RoBERTa and GPT-2,
config.json lists them as pruned_heads, which transformers before version 5 supports. For
Llama, Mistral, Qwen and Gemma, a model with the same number of heads in all layers, as with
--even, is a normal model; otherwise only attn can load it. For MPNet, Marian and T5, there
is no pruned model: the directory contains the masked model.`
}

// What is in the directory beside the model. Until the models are made, those of an
// earlier run stay as they are, and so does what describes them.
const (
	reportFile     = "pruning.json"    // the report for programs
	pageFile       = "report.html"     // and for people
	unfinishedFile = "unfinished.json" // the report so far
	maskedDir      = "masked"
)

// Validate is called by the parser.
func (cmd *pruneCommand) Validate() error {
	goals := 0
	for _, given := range []bool{cmd.Keep != nil, cmd.Share != nil, cmd.MaxDrop != nil, cmd.Speed != nil} {
		if given {
			goals++
		}
	}
	outside := func(p *float64) bool { return p != nil && !(*p >= 0 && *p <= 1) }
	switch {
	case goals > 1:
		return errors.New("want only one of --keep, --share, --max-drop and --speed")
	case cmd.Keep != nil && *cmd.Keep < 1:
		return fmt.Errorf("--keep %d, want at least 1", *cmd.Keep)
	case outside(cmd.Share):
		return fmt.Errorf("--share %v, want 0 to 1", *cmd.Share)
	case outside(cmd.MaxDrop):
		return fmt.Errorf("--max-drop %v, want 0 to 1", *cmd.MaxDrop)
	case cmd.Speed != nil && !(*cmd.Speed > 1 && *cmd.Speed <= 1000):
		return fmt.Errorf("--speed %v, want more than 1 and at most 1000", *cmd.Speed)
	case cmd.Speed != nil && cmd.SpeedTime == 0:
		return errors.New("--speed requires a --speed-time of more than 0")
	case cmd.Step != nil && *cmd.Step < 0:
		return fmt.Errorf("--step %d, want at least 0", *cmd.Step)
	case cmd.Even && cmd.Step != nil && *cmd.Step > 0:
		return errors.New("--even scores once: want --step 0, or none")
	case cmd.Finetune < 0:
		return fmt.Errorf("--finetune %d, want at least 0", cmd.Finetune)
	case cmd.Train != "" && cmd.Finetune == 0:
		return errors.New("--train requires --finetune")
	case cmd.Rate != nil && cmd.Finetune == 0:
		return errors.New("--rate requires --finetune")
	case cmd.Rate != nil && !(*cmd.Rate > 0 && *cmd.Rate <= 1):
		return fmt.Errorf("--rate %v, want more than 0 and at most 1", *cmd.Rate)
	case cmd.Orders < 0 || cmd.Orders > 1000:
		return fmt.Errorf("--orders %d, want 0 to 1000", cmd.Orders)
	case cmd.Resamples < 100 || cmd.Resamples > 1_000_000:
		return fmt.Errorf("--resamples %d, want 100 to 1000000", cmd.Resamples)
	case cmd.SpeedTime < 0 || cmd.SpeedTime > time.Hour:
		return fmt.Errorf("--speed-time %v, want 0 to 1h", cmd.SpeedTime)
	case sameFile(cmd.Out, cmd.Model):
		return fmt.Errorf("--out %s is the model itself", quoted(cmd.Out))
	case sameFile(cmd.masked(), cmd.Model):
		return fmt.Errorf("--out %s would put the masked model in place of the model", quoted(cmd.Out))
	case sameFile(cmd.Out, filepath.Join(cmd.Model, maskedDir)):
		return fmt.Errorf("--out %s is the masked form of the model", quoted(cmd.Out))
	case exists(filepath.Join(cmd.Out, train.TrainingFile)):
		return fmt.Errorf("--out %s contains a run of attn train; choose another directory", quoted(cmd.Out))
	case !cmd.Force && (firstOf(cmd.Out, models.WeightsFile) != "" || firstOf(cmd.masked(), models.WeightsFile) != ""):
		return fmt.Errorf("--out %s already contains a model; use --force to overwrite it", quoted(cmd.Out))
	}
	if name := firstOf(cmd.Out, append(models.TranslatorFiles(), train.RecipeFile, reportFile)...); name != "" && !cmd.Force {
		return fmt.Errorf("%s already exists; use --force to overwrite it", quoted(filepath.Join(cmd.Out, name)))
	}
	if err := cmd.scoredFlags.Validate(); err != nil {
		return err
	}
	if cmd.Limit < pruning.Fewest {
		return fmt.Errorf("--limit %d, want at least %d sources for each part", cmd.Limit, pruning.Fewest)
	}
	return nil
}

func (cmd *pruneCommand) touches() touched {
	t := cmd.scoredFlags.touches()
	t.reads = append(t.reads, place{"--train", cmd.Train})
	t.makes = []place{{"--out", cmd.Out}, {"--out", cmd.masked()}}
	t.writes = cmd.files()
	return t
}

// files are those that are written besides models and numbers.
func (cmd *pruneCommand) files() []place {
	return []place{{"--report", cmd.page()}, {"--svg", cmd.SVG}, {"--png", cmd.PNG}}
}

// prepared is an experiment with what is known before it runs.
type prepared struct {
	*pruning.Experiment
	report *reports.Report
	try    string // what to do with the model, for people
}

func (cmd *pruneCommand) Run(ctx context.Context, c console) error {
	p, err := cmd.prepare(c)
	if err != nil {
		return err
	}
	if err := atomicfile.Writable(cmd.Out); err != nil {
		return err
	}
	if exists(cmd.masked()) {
		if err := atomicfile.Writable(cmd.masked()); err != nil {
			return err
		}
	}
	if err := ready(cmd.files()); err != nil {
		return err
	}
	if cmd.store, err = atomicfile.Lock(cmd.Out); err != nil {
		return err
	}
	defer cmd.store.Unlock()
	cmd.shown = newStages(c.err)
	defer cmd.shown.clear()
	r := p.report
	err = p.Run(ctx, r)
	cmd.shown.clear()
	if err != nil {
		saved := cmd.save(r)
		if errors.Is(err, context.Canceled) && saved == nil {
			return interrupted{fmt.Sprintf("interrupted; what has been measured is in %s", quoted(filepath.Join(cmd.Out, unfinishedFile)))}
		}
		return err // the first matters
	}
	r.Result.Page = cmd.page()
	if err := cmd.publish(r); err != nil {
		return err
	}
	if cmd.JSON {
		return json.NewEncoder(c.out).Encode(r)
	}
	if err := r.Summary(c.out); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.err, p.try)
	return err
}

// newExperiment returns the experiment that the flags ask for.
func (cmd *pruneCommand) newExperiment(
	whole *models.Probe, goal pruning.Goal, task *pruning.Task,
) (*pruning.Experiment, error) {
	methods, err := cmd.methods()
	if err != nil {
		return nil, err
	}
	e := &pruning.Experiment{
		Subject: whole, Task: task, Methods: methods, Goal: goal, Normalize: cmd.Normalize, Empty: cmd.EmptyLayers, Even: cmd.Even,
		Step: pruning.Affordable, FineTune: cmd.Finetune, Orders: cmd.Orders, Resamples: cmd.Resamples, Seed: cmd.Seed, SpeedTime: cmd.SpeedTime,
		Progress: func(stage string, done, all int) { cmd.shown.tell(stage, done, all) }, Save: cmd.save,
	}
	set(&e.Step, cmd.Step)
	for _, name := range cmd.Kind {
		kind, _ := heads.ParseKind(name) // which Validate has seen
		e.Kinds = append(e.Kinds, kind)
	}
	return e, nil
}

// goal returns where to stop.
func (cmd *pruneCommand) goal(layers []*attn.MultiHead) (pruning.Goal, error) {
	count, uneven := -1, false    // heads of a layer from which they may be taken
	all, least, others := 0, 0, 0 // heads; those that must stay; of them, those of layers that are left alone
	for _, l := range layers {
		n := l.Config().Heads
		all += n
		kind, _ := heads.Place(l.Config().Name)
		if len(cmd.Kind) == 0 || slices.Contains(cmd.Kind, kind.String()) {
			uneven = uneven || count >= 0 && n != count
			count = n
		}
		switch {
		case len(cmd.Kind) > 0 && !slices.Contains(cmd.Kind, kind.String()):
			least, others = least+n, others+n
		case !cmd.EmptyLayers && n > 0:
			least += n / l.Config().KVHeads // heads that share keys and values stay together
		}
	}
	if cmd.Even && uneven {
		return pruning.Goal{}, usage("--even requires layers of equally many heads, and those of %s have different numbers", quoted(cmd.Model))
	}
	if len(cmd.Kind) > 0 && least == all {
		return pruning.Goal{}, usage("no head of kind %s can go", strings.Join(cmd.Kind, " or "))
	}
	left := 0
	switch {
	case cmd.Keep != nil:
		left = *cmd.Keep
		if left > all {
			return pruning.Goal{}, usage("--keep %d, but the model has %d heads", left, all)
		}
	case cmd.Share != nil:
		left = all - int(*cmd.Share*float64(all)+0.5)
	case cmd.Speed != nil:
		return pruning.Goal{Speed: *cmd.Speed}, nil
	case cmd.MaxDrop != nil:
		return pruning.Goal{Drop: *cmd.MaxDrop}, nil
	default:
		return pruning.Goal{Drop: 0.01}, nil
	}
	if least = max(least, 1); left < least {
		hint := ""
		if !cmd.EmptyLayers && left >= max(others, 1) {
			hint = "; --empty-layers lets a layer lose its last"
		}
		return pruning.Goal{}, usage("of %d heads %d are to be left, but at least %d must stay%s", all, left, least, hint)
	}
	return pruning.Goal{Left: left}, nil
}

// masked is where the model in the shapes of the original goes.
func (cmd *pruneCommand) masked() string { return filepath.Join(cmd.Out, maskedDir) }

// page is where the report for people goes.
func (cmd *pruneCommand) page() string {
	return cmp.Or(cmd.Report, filepath.Join(cmd.Out, pageFile))
}

// publish writes the report in all its forms, of which those in the directory take the
// place of the unfinished one.
func (cmd *pruneCommand) publish(r *reports.Report) error {
	var others []atomicfile.File
	add := func(path string, write func(io.Writer) error) {
		if path != "" {
			others = append(others, atomicfile.File{Path: path, Write: write})
		}
	}
	report := []atomicfile.File{atomicfile.JSON(reportFile, r)}
	if cmd.Report == "" {
		report = append(report, atomicfile.File{Path: pageFile, Write: r.HTML})
	}
	add(cmd.Report, r.HTML)
	add(cmd.SVG, r.Chart().SVG)
	add(cmd.PNG, func(w io.Writer) error { return r.Chart().PNG(w, 2) })
	if err := atomicfile.WriteAll(others...); err != nil {
		return err
	}
	return cmd.store.Replace(report, unfinishedFile)
}

// save writes the report so far.
func (cmd *pruneCommand) save(r *reports.Report) error {
	return cmd.store.Replace([]atomicfile.File{atomicfile.JSON(unfinishedFile, r)})
}
