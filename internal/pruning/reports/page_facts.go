package reports

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

// notes are what an honest reader must know beside the verdict.
func (r *Report) notes() (notes []string) {
	d, res := r.Data, r.Result
	if d.Report > 0 {
		notes = append(notes, fmt.Sprintf("Measured on %s that neither scored the heads nor chose how many go; the parts share no %s.", r.items(d.Report), strings.TrimSuffix(r.itemsName(), "s")))
	}
	if res.Low.Known() && res.High.Known() && len(res.Removed) > 0 && r.significance() == "not significant" && r.harm() > 0 {
		notes = append(notes, fmt.Sprintf("Not significant is not the same as equal: %s of up to %s is within the interval.",
			map[bool]string{false: "a loss", true: "a growth"}[r.Settings.Lower], fixed(r.harm(), r.digits())))
	}
	for _, c := range r.Curves {
		if method, reversed := c.ordered(); !reversed && method != res.Method {
			if worse := r.worseThanChance(method); worse != "" {
				notes = append(notes, strings.ToUpper(worse[:1])+worse[1:]+".")
			}
		}
	}
	notes = append(notes, fmt.Sprintf("One model and one seed (%d): another model may answer otherwise.", r.Settings.Seed))
	if c := res.Control; c != nil && c.Metric.Known() && res.After.Metric.Known() {
		notes = append(notes, fmt.Sprintf("After the same training the whole model has %s: against that, the pruned one differs by %s.", fixed(c.Metric, r.digits()), signed(res.After.Metric-c.Metric, r.digits())))
	}
	if r.Settings.Resamples > 0 {
		notes = append(notes, fmt.Sprintf("Intervals are 95%%, by paired bootstrap with %s, each by itself: they are not corrected for the many comparisons on this page.", quote.Counted(r.Settings.Resamples, "resample", "resamples")))
	}
	return notes
}

// facts are a group of names and what they stand for.
type facts struct {
	Title string
	Rows  [][2]string
}

func (f *facts) add(name, value string) {
	if value != "" {
		f.Rows = append(f.Rows, [2]string{name, value})
	}
}

func (f *facts) addCount(name string, n int) {
	if n > 0 {
		f.add(name, quote.Count(n))
	}
}

// facts returns how everything was done.
func (r *Report) facts() (list []facts) {
	model := facts{Title: "Model"}
	model.add("directory", r.Model.Dir)
	model.add("architecture", r.Model.Arch)
	model.add("task", r.Model.Task)
	model.addCount("heads", r.heads())
	model.addCount("parameters", r.Model.Parameters)
	model.add("SHA-256 of weights", r.Model.SHA256)

	data := facts{Title: "Data"}
	data.add("file", r.Data.File)
	data.addCount("pairs used", r.Data.Pairs)
	data.addCount(r.itemsName()+" that score heads", r.Data.Score)
	data.addCount(r.itemsName()+" that choose", r.Data.Select)
	data.addCount(r.itemsName()+" that report", r.Data.Report)
	data.add("SHA-256", r.Data.SHA256)

	s := r.Settings
	settings := facts{Title: "Settings"}
	settings.add("goal", s.Goal)
	settings.add("metric", s.Metric)
	settings.add("loss", r.lossUnit())
	settings.add("methods", strings.Join(s.Methods, ", "))
	settings.add("scores", map[bool]string{false: "as they are", true: "divided by the norm of their layer"}[s.Normalize])
	if len(s.Kinds) > 0 {
		settings.add("taken from", strings.Join(s.Kinds, ", "))
	}
	settings.add("layers", map[bool]string{false: "keep one head at least", true: "may lose all heads"}[s.Empty])
	if s.Even {
		settings.add("evenly", "equally many heads from each layer")
	}
	if s.Step > 0 {
		settings.add("scored again", "after every "+quote.Counted(s.Step, "head", "heads"))
	} else {
		settings.add("scored", "once")
	}
	if s.FineTune > 0 {
		trained := quote.Counted(s.Trained, "pair", "pairs")
		if r.Model.Task != "" {
			trained = quote.Counted(s.Trained, "line", "lines")
		}
		settings.add("fine-tuning", quote.Counted(s.FineTune, "step", "steps")+" after each removal")
		settings.add("on", cmp.Or(s.TrainData, "the scoring part")+", "+trained+" that are not measured on")
		if s.Rate > 0 {
			settings.add("learning rate", fmt.Sprint(s.Rate))
			if r.Model.Task == "" {
				settings.add("label smoothing", fmt.Sprint(s.Smoothing))
			}
		}
	}
	settings.addCount("random orders", s.Orders)
	settings.addCount("resamples", s.Resamples)
	settings.add("seed", fmt.Sprint(s.Seed))

	machine := facts{Title: "Machine and time"}
	machine.add("processor", r.Machine.CPU)
	machine.add("system", r.Machine.OS)
	machine.addCount("threads", r.Machine.Threads)
	machine.add("kernels", r.Machine.Kernels)
	machine.add("Go", r.Machine.Go)
	machine.add("attn", r.Version)
	machine.add("started", moment(r.Started))
	if r.Seconds > 0 {
		machine.add("took", lasted(r.Seconds))
	}
	for _, f := range []facts{model, data, settings, machine} {
		if len(f.Rows) > 0 {
			list = append(list, f)
		}
	}
	return list
}

// load says how a model that was made is used.
type load struct{ Title, Say, Command, Code string }

func (r *Report) load() (list []load) {
	commands := func(dir string) (command, code string) {
		if r.Model.Task != "" {
			return "attn view --model " + shellWord(dir) + ` "…"`, fmt.Sprintf("m, err := models.Load(%q, models.Options{})", dir)
		}
		return "attn translate --model " + shellWord(dir) + ` "…"`, fmt.Sprintf("m, err := models.Load(%q, models.Options{})", dir)
	}
	if dir := r.Result.Compact; dir != "" {
		l := load{Title: "Compact", Say: "The heads are cut out: smaller and faster, for " + cmp.Or(r.Result.Loads, "attn") + "."}
		l.Command, l.Code = commands(dir)
		list = append(list, l)
	}
	if dir := r.Result.Masked; dir != "" {
		l := load{Title: "Masked", Say: "The shapes of the whole model with zeros in place of the heads: not faster, but for programs that know no layers with fewer heads."}
		of, what := "compact model’s", "logits"
		if r.Model.Task != "" {
			of, what = "whole model’s with gates of zero", "outputs"
		}
		if why := r.Result.NoCompact; why != "" {
			l.Say += " There is no smaller form: " + why + "."
		}
		if r.Result.Difference.Known() {
			l.Say += fmt.Sprintf(" Its %s differ from the %s by %s at most.", what, of, cmp.Or(strings.ReplaceAll(fmt.Sprintf("%.2g", float64(r.Result.Difference)), "-", "−"), "0"))
		}
		l.Command, l.Code = commands(dir)
		list = append(list, l)
	}
	return list
}

// shellWord quotes a word for a shell where it must.
func shellWord(s string) string {
	safe := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-+=:@%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !safe(r) }) && s[0] != '-' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
