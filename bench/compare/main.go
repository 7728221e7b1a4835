// Compare measures this library beside PyTorch, ONNX Runtime and others on the
// usual shapes and prints tables in Markdown. See bench/README.md.
//
// The sides take turns, round after round, in one run: what else the machine
// does then falls on all of them. Figures are medians over the rounds of each
// round's median, and rows that lose are printed like those that win.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/attn-go/attn/internal/bench"
	"github.com/attn-go/attn/internal/simd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// settings are the flags.
type settings struct {
	rounds  int
	time    time.Duration
	threads int
	only    *regexp.Regexp
	python  string
	simd    string // the implementation to measure; empty for the one in use
	// text is what tokenizers are measured on, in place of the usual work, with those of dirs.
	text string
	dirs []string
	// history is the directory of earlier measurements, which save adds to, gate compares with
	// and render makes RESULTS.md of.
	history      string
	save, render bool
	gate         float64 // percent, negative for none
}

// Exit codes, as those of attn.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitSlower      = 3
	exitInterrupted = 130
)

// run runs the command line and returns the exit code.
func run(ctx context.Context, args []string, out, messages io.Writer) int {
	if len(args) > 0 && args[0] == loadOnce {
		return runLoadOnce(args[1:], out, messages)
	}
	s, err := parse(args, messages)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage // which has been told
	}
	if s.simd != "" && s.simd != simd.Implementation() {
		return again(ctx, s.simd, args, out, messages)
	}
	if s.render {
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

// again runs the program with another implementation, which is chosen when a program
// starts, and returns its exit code.
func again(ctx context.Context, implementation string, args []string, out, messages io.Writer) int {
	self, err := os.Executable()
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = append(os.Environ(), "ATTN_SIMD="+implementation)
	cmd.Stdout, cmd.Stderr = out, messages
	if err == nil {
		err = cmd.Run()
	}
	if cmd.ProcessState == nil {
		fmt.Fprintln(messages, "compare:", err)
		return exitFailed
	}
	return cmd.ProcessState.ExitCode()
}

func parse(args []string, messages io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.IntVar(&s.rounds, "rounds", 5, "how often each side has its turn")
	flags.DurationVar(&s.time, "time", time.Second, "how long a turn measures")
	flags.IntVar(&s.threads, "threads", runtime.GOMAXPROCS(0), "processors that each side uses")
	only := flags.String("only", "", "measure only work whose name matches this regular expression")
	flags.StringVar(&s.simd, "simd", "", "implementation to measure, as in ATTN_SIMD; avx2 holds PyTorch to AVX2 as well")
	flags.StringVar(&s.python, "python", "python3", "Python that has bench/peers/requirements.txt installed")
	flags.StringVar(&s.text, "text", "", "measure tokenizers, on the lines of this file, beside the library tokenizers")
	flags.Func("tokenizer", "directory with a tokenizer.json to measure with --text; may be repeated", func(dir string) error {
		s.dirs = append(s.dirs, dir)
		return nil
	})
	flags.StringVar(&s.history, "history", "bench/history", "directory of earlier measurements")
	flags.BoolVar(&s.save, "save", false, "save what is measured there")
	flags.BoolVar(&s.render, "render", false, "write bench/RESULTS.md from it, and measure nothing")
	flags.Float64Var(&s.gate, "gate", -1, "exit with 3 if a ratio is so many percent below the last on such a machine")
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

// compare measures and prints.
func (s settings) compare(ctx context.Context, out, messages io.Writer) error {
	all := allTasks(s.threads)
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
	var history []*record
	if s.gate >= 0 {
		var err error
		if history, err = readHistory(s.history); err != nil {
			return err
		}
	}
	r, slower := newRecord(), error(nil)
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
		r.Tables, done = append(r.Tables, t), n
		if s.gate >= 0 {
			slower = errors.Join(slower, r.gate(history, t, s.gate, messages))
		}
	}
	if s.save {
		return errors.Join(slower, r.save(s.history))
	}
	return slower
}

// table measures tasks that have the same libraries beside them.
func (s settings) table(
	ctx context.Context, r *record, tasks []task, out io.Writer, say func(i int, name string),
) (*table, error) {
	how := fmt.Sprintf("Medians over %d rounds of %v a side.", s.rounds, s.time)
	t := &table{Title: tasks[0].table, Threads: s.threads, How: how}
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
		if p.checked && p.missing == "" {
			if err := checkLogits(p, s.threads); err != nil {
				return nil, err
			}
		}
		peers, t.Peers = append(peers, p), append(t.Peers, version{p.name, p.version})
	}
	if _, err := io.WriteString(out, t.head(r)); err != nil {
		return nil, err
	}
	for i, work := range tasks {
		say(i, work.name)
		row, err := s.measure(ctx, work, peers)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(out, row.cells()); err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, row)
	}
	_, err := io.WriteString(out, t.notes())
	return t, err
}

// pause lets the threads of one side go to sleep before the other begins: all
// of them spin for a while when they have nothing to do.
const pause = 20 * time.Millisecond

// measure lets the sides take turns on one task.
func (s settings) measure(ctx context.Context, t task, peers []*peer) (r row, err error) {
	defer runtime.GC() // of what this task has used, outside of what the next measures
	if t.end != nil {
		defer func() { err = errors.Join(err, t.end()) }()
	}
	r = row{Work: t.name, Peers: make([]figure, len(peers))}
	for i, p := range peers {
		r.Peers[i].Missing = p.missing
	}
	measure, err := t.start()
	if err != nil {
		return r, fmt.Errorf("%s: %w", t.name, err)
	}
	var ours bench.Result
	var times []float64
	their := make([][]float64, len(peers))
	for range s.rounds {
		time.Sleep(pause)
		one, err := measure(ctx, s.time)
		if err != nil {
			return r, fmt.Errorf("%s: %w", t.name, err)
		}
		times = append(times, one.Median)
		// The best peak of all rounds is what the machine can do.
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
			if r.Peers[i] = (figure{Ran: a.Form, Missing: a.missing()}); r.Peers[i].Missing == "" {
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

// steady reports whether rounds agree as they do on a machine that does nothing
// else.
func steady(times []float64) bool {
	return slices.Max(times) < 1.25*slices.Min(times)
}
