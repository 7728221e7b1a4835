// Command compare measures this library and PyTorch, ONNX Runtime and others on common shapes, and prints tables in
// Markdown. See bench/README.md.
//
// All libraries take turns, round after round, in one run, so that other load on the machine affects all of them. A
// figure is the median over the rounds of each round's median. Rows in which attn is slower are printed too.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/attn-go/attn/bench/history"
	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/internal/simd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// settings are the command line flags.
type settings struct {
	rounds  int
	time    time.Duration
	threads int
	only    *regexp.Regexp
	python  string
	// text is a file on which the tokenizers in dirs are measured, instead of the usual work.
	text string
	dirs []string
	// decoders are directories of decoders, which are measured instead of the usual work.
	decoders []string
	// history is the directory of earlier measurements. With save, a run adds to it; with gate, a run is compared
	// with it; with render, RESULTS.md is written from it.
	history      string
	save, render bool
	gate         float64 // percent, negative for none
}

// Exit codes, the same as attn's.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitSlower      = 3
	exitInterrupted = 130
)

// run runs the command line and returns the exit code.
func run(ctx context.Context, args []string, out, messages io.Writer) int {
	var err error
	if len(args) > 0 && args[0] == loadOnce {
		err = measureLoad(args[1:], out)
	} else if s, bad := parse(args, messages); errors.Is(bad, flag.ErrHelp) {
		return 0
	} else if bad != nil {
		return exitUsage // parse has printed the error
	} else if s.render {
		err = render(s.history, messages)
	} else {
		err = s.compare(ctx, out, messages)
	}
	code := exitFailed
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		err, code = errors.New("interrupted"), exitInterrupted
	case errors.Is(err, errSlower):
		code = exitSlower
	}
	fmt.Fprintln(messages, "compare:", err)
	return code
}

func parse(args []string, messages io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.IntVar(&s.rounds, "rounds", 5, "number of rounds; each library is measured once per round")
	flags.DurationVar(&s.time, "time", time.Second, "time of each measurement")
	flags.IntVar(&s.threads, "threads", runtime.GOMAXPROCS(0), "processors that each library uses")
	only := flags.String("only", "", "measure only work whose name matches this regular expression")
	flags.StringVar(&s.python, "python", "python3", "Python interpreter with bench/peers/requirements.txt installed")
	flags.StringVar(&s.text, "text", "", "measure tokenizers on the lines of this file and compare with the library tokenizers")
	flags.Func("tokenizer", "directory with a tokenizer.json to measure with --text; may be repeated", func(dir string) error {
		s.dirs = append(s.dirs, dir)
		return nil
	})
	flags.Func("decoder", "directory of a decoder to measure beside transformers, instead of the usual work; may be repeated", func(dir string) error {
		s.decoders = append(s.decoders, dir)
		return nil
	})
	flags.StringVar(&s.history, "history", "bench/history", "directory of earlier measurements")
	flags.BoolVar(&s.save, "save", false, "save the measurements there")
	flags.BoolVar(&s.render, "render", false, "write bench/RESULTS.md from the history, without measuring")
	flags.Float64Var(&s.gate, "gate", -1, "exit with 3 if a ratio is more than this percentage below the last one on the same kind of machine")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	var err error
	s.only, err = regexp.Compile(*only)
	switch {
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %s", flags.Arg(0))
	case s.rounds < 1:
		err = fmt.Errorf("rounds %d, want at least 1", s.rounds)
	case s.time <= 0:
		err = fmt.Errorf("time %v, want more than 0", s.time)
	case s.threads < 1:
		err = fmt.Errorf("threads %d, want at least 1", s.threads)
	case (s.text == "") != (len(s.dirs) == 0):
		err = errors.New("--text and --tokenizer go together")
	}
	if err != nil {
		fmt.Fprintln(messages, "compare:", err)
	}
	return s, err
}

// compare measures and prints the tables.
func (s settings) compare(ctx context.Context, out, messages io.Writer) error {
	all := allTasks(s.threads)
	if s.decoders != nil {
		all = nil
		for _, dir := range s.decoders {
			more, err := directoryTasks(dir, s.threads)
			if err != nil {
				return err
			}
			all = append(all, more...)
		}
	}
	if s.text != "" {
		var err error
		if all, err = tokenizerTasks(s.dirs, s.text); err != nil {
			return err
		}
		s.threads = 1
	}
	tasks := slices.DeleteFunc(all, func(t task) bool { return !s.only.MatchString(t.name) })
	if len(tasks) == 0 {
		return fmt.Errorf("no work matches %q", s.only)
	}
	var records []*history.Record
	if s.gate >= 0 {
		var err error
		if records, err = history.Read(s.history); err != nil {
			return err
		}
	}
	r := history.New()
	var slower, failed error
	for done := 0; done < len(tasks); {
		n := done + 1
		for n < len(tasks) && tasks[n].table == tasks[done].table {
			n++
		}
		if done > 0 {
			fmt.Fprintln(out)
		}
		say := func(i int, name string) { fmt.Fprintf(messages, "%d/%d %s\n", done+i+1, len(tasks), name) }
		t, err := s.table(ctx, r, tasks[done:n], out, say)
		if err != nil {
			return err
		}
		done = n
		if s.save { // now, so that an interruption loses only the table that is being measured
			r.Tables = []*history.Table{t}
			if err := r.Save(s.history); err != nil {
				return err
			}
		}
		if s.gate >= 0 {
			if err := gate(records, r, t, s.gate, messages); errors.Is(err, errSlower) {
				slower = err
			} else {
				failed = errors.Join(failed, err)
			}
		}
	}
	return cmp.Or(failed, slower)
}

// table measures tasks that are compared with the same libraries.
func (s settings) table(
	ctx context.Context, r *history.Record, tasks []task, out io.Writer, say func(i int, name string),
) (*history.Table, error) {
	how := fmt.Sprintf("Medians over %d rounds of %v a side.", s.rounds, s.time)
	t := &history.Table{Title: tasks[0].table, Threads: s.threads, How: how}
	if variables := held[simd.Implementation()]; variables != nil {
		t.Note = fmt.Sprintf("With %s, which ONNX Runtime and llama.cpp do not heed.", strings.Join(variables, ", "))
	}
	var peers []*peer
	for _, name := range tasks[0].libraries {
		p, err := startPeer(ctx, s.python, name)
		if err != nil {
			return nil, err
		}
		defer p.stop()
		if err := checkOutputs(p, s.threads); err != nil {
			return nil, err
		}
		peers, t.Peers = append(peers, p), append(t.Peers, history.Version{Name: p.name, Version: p.version})
	}
	if _, err := io.WriteString(out, r.Head(t)); err != nil {
		return nil, err
	}
	for i, work := range tasks {
		say(i, work.name)
		row, err := s.measure(ctx, work, peers)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(out, row.Cells()); err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, row)
	}
	_, err := io.WriteString(out, t.Notes())
	return t, err
}

// pause lets the threads of one library go to sleep before the next library starts: idle threads spin for a while.
const pause = 20 * time.Millisecond

// measure measures one task with all libraries in turn.
func (s settings) measure(ctx context.Context, t task, peers []*peer) (r history.Row, err error) {
	defer runtime.GC() // free the memory of this task before the next is measured
	if t.end != nil {
		defer func() { err = errors.Join(err, t.end()) }()
	}
	r = history.Row{Work: t.name, Peers: make([]history.Figure, len(peers))}
	for i, p := range peers {
		r.Peers[i].Missing = p.missing
	}
	m, err := t.start()
	if err != nil {
		return r, fmt.Errorf("%s: %w", t.name, err)
	}
	var ours bench.Result
	var times []float64
	their := make([][]float64, len(peers))
	for range s.rounds {
		time.Sleep(pause)
		one, err := m(ctx, s.time)
		if err != nil {
			return r, fmt.Errorf("%s: %w", t.name, err)
		}
		times = append(times, one.Median)
		// The best peak of all rounds is the machine's peak.
		one.PeakGFLOPS = max(one.PeakGFLOPS, ours.PeakGFLOPS)
		one.PeakReadGBps = max(one.PeakReadGBps, ours.PeakReadGBps)
		ours = one
		for i, p := range peers {
			if r.Peers[i].Missing != "" {
				continue
			}
			time.Sleep(pause)
			a, err := p.ask(t.request, s.threads, s.time)
			if err != nil {
				return r, fmt.Errorf("%s: %w", t.name, err)
			}
			if r.Peers[i] = (history.Figure{Ran: a.Form, Missing: a.missing()}); r.Peers[i].Missing == "" {
				their[i] = append(their[i], a.Median)
			}
		}
	}
	r.Median = bench.Median(times)
	r.Unsteady = !steady(times)
	for i := range peers {
		if len(their[i]) > 0 && r.Peers[i].Missing == "" {
			r.Peers[i].Median = bench.Median(their[i])
			r.Peers[i].Ratio = r.Peers[i].Median / r.Median
			r.Unsteady = r.Unsteady || !steady(their[i])
		}
	}
	ours.Median = r.Median
	r.Share = t.share(ours)
	return r, nil
}

// steady reports whether the rounds agree as well as on a machine without other load.
func steady(times []float64) bool {
	return slices.Max(times) < 1.25*slices.Min(times)
}
