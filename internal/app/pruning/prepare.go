package pruning

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/train"
)

// Options are the settings of attn prune.
type Options struct {
	// Experiment has the settings that are its fields. Prepare and Run set Subject, Task, Goal, Save and Keep.
	Experiment
	Target  Target
	Limit   int      // maximum number of sources in each part
	Metric  string   // "auto", or one of the task's Metrics
	Train   string   // file of training data; "" for the scoring part
	Rate    *float64 // peak learning rate; nil for the default
	Tune    string   // what is trained: "all", "maps" for train.OutputMaps, or "auto"
	Version string   // of attn
}

// NewDates returns the number of built-in dates for parts of at most limit sources.
func NewDates(limit int) int { return 3*limit + 1 }

// Prepared is an experiment that is ready to run.
type Prepared struct {
	Report  *reports.Report
	Example string // source of a pair or text in the reporting part

	experiment Experiment
	model      *tasks.Model
}

// Prepare splits the data of a model into parts, and returns the experiment on them.
//
// Errors: *flags.Error for options that the model does not support; *input.Error for data that are wrong
// or too few.
func Prepare(ctx context.Context, m *tasks.Model, o Options) (*Prepared, error) {
	e := o.Experiment
	var err error
	if e.Methods, err = m.Methods(e.Methods); err != nil {
		return nil, err
	}
	if e.Given, err = o.Target.kept(m.Model); err != nil {
		return nil, err
	}
	if e.Given != nil { // heads are not scored
		e.Methods = e.Methods[:1]
		if e.Compare || e.Even || len(e.Kinds) > 0 {
			return nil, flags.Errorf("--experiment, --even and --kind cannot be used with the heads of a file in --keep")
		}
	}
	if e.Goal, err = o.Target.goal(m.HeadLayers(), &e, m.Dir); err != nil {
		return nil, err
	}
	if f := m.Family; f.Pruning == models.NoPruning && (e.Goal.Speed > 0 || e.SpeedTime != time.Second) {
		return nil, flags.Errorf("--speed and --speed-time require a model with a smaller form, "+
			"but layers of %s cannot have fewer heads", f.Name)
	}
	parts, err := Deal(m.Lines, m.Source, o.Limit, e.Seed, m.Items)
	if err != nil {
		return nil, &input.Error{Name: m.Data, Err: err}
	}
	learn := parts[0]
	if o.Train != "" {
		if learn, err = m.ReadTraining(o.Train, parts[1], parts[2]); err != nil {
			return nil, err
		}
	}
	var probes [3]*probe.Probe
	for i, part := range parts {
		if probes[i], err = m.Probe(ctx, m.Data, part, e.Seed); err != nil {
			return nil, err
		}
	}
	e.Subject = probes[0]
	if e.Task, err = newTask(m, o.Metric, parts); err != nil {
		return nil, err
	}
	e.Task.Selecting.Probe, e.Task.Reporting.Probe = probes[1], probes[2]
	e.Task.Faster = e.Goal.Speed > 0
	r := &reports.Report{Version: o.Version, Started: time.Now().UTC().Format(time.RFC3339)}
	r.Model.Dir, r.Model.Task, r.Settings.TrainData = m.Dir, m.Name, o.Train
	r.Data.File, r.Data.Items = m.Data, m.Items
	for i, n := range []*int{&r.Data.Score, &r.Data.Select, &r.Data.Report} {
		*n = len(stats.GroupBy(parts[i], m.Source))
	}
	if e.FineTune > 0 {
		s := &r.Settings
		tuning := training(m, o)
		if s.Rate, s.Smoothing, s.Tune = tuning.Rate, tuning.Smoothing, "all"; tuning.Params != nil {
			s.Tune = "maps"
		}
		s.Trained = len(learn)
		examples, err := m.Probe(ctx, cmp.Or(o.Train, m.Data), learn, e.Seed)
		if err != nil {
			return nil, err
		}
		e.Task.Train = TrainProbe(examples, tuning)
	}
	if err := identify(m, r); err != nil {
		return nil, err
	}
	if m.NewDates > 0 { // the next pruning gets other dates
		m.Recipe.Pruned = append(m.Recipe.Pruned, m.NewDates)
	}
	return &Prepared{Report: r, Example: parts[2][0].Columns[0], experiment: e, model: m}, nil
}

// newTask returns the task of a model with a metric, without its probes.
func newTask(m *tasks.Model, metric string, parts [3][]train.Line) (*Task, error) {
	task := &Task{Unit: m.LossUnit}
	if metric == "auto" {
		metric = m.Metrics[0]
	}
	if !slices.Contains(m.Metrics, metric) {
		return nil, flags.Errorf("--metric %s does not fit the task of %s (%s), want %s",
			metric, quote.Shell(m.Dir), m.Name, flags.Listed(m.Metrics, "or"))
	}
	task.Judge = judges[metric]
	for _, name := range m.Metrics { // the loss is reported for every model, and translating takes time
		if j := judges[name]; name != metric && name != "loss" && j.Writes == task.Judge.Writes {
			task.Others = append(task.Others, j)
		}
	}
	for i, part := range []*Part{&task.Selecting, &task.Reporting} {
		lines := parts[i+1]
		for _, line := range lines {
			part.Wanted = append(part.Wanted, line.Value)
		}
		if !task.Judge.Writes {
			continue
		}
		var sources []string
		sources, part.References = train.Group(tasks.PairsOf(lines))
		for _, source := range sources {
			e, err := m.Encode(source, "")
			if err != nil {
				return nil, err
			}
			part.Sources = append(part.Sources, e.IDs)
		}
	}
	return task, nil
}

// Run runs the experiment, and writes the models and the report so far to a directory. After an error,
// including that of ctx, the directory has the report of the results so far.
func (p *Prepared) Run(ctx context.Context, out *Output) error {
	e := p.experiment
	e.Save = out.saveUnfinished
	e.Keep = func(ctx context.Context, left *probe.Probe, r *reports.Report) error {
		f, err := formsOf(p.model, left.Model(), left.Kept())
		if err != nil {
			return err
		}
		return out.keep(ctx, f, left, e.Task.Reporting.Probe, r)
	}
	err := e.Run(ctx, p.Report)
	if err != nil {
		out.Unfinished = out.saveUnfinished(p.Report) == nil // the first error matters
	}
	return err
}
