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
}

// Exit codes, as those of attn.
const (
	exitFailed      = 1
	exitUsage       = 2
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
	err = s.compare(ctx, out, messages)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(messages, "compare: interrupted")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(messages, "compare:", err)
		return exitFailed
	}
	return 0
}

// again runs the program with another implementation, which is chosen when a program
// starts, and returns its exit code.
func again(ctx context.Context, implementation string, args []string, out, messages io.Writer) int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(messages, "compare:", err)
		return exitFailed
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = append(os.Environ(), "ATTN_SIMD="+implementation)
	cmd.Stdout, cmd.Stderr = out, messages
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
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
	var tasks []task
	for _, t := range all {
		if s.only.MatchString(t.name) {
			tasks = append(tasks, t)
		}
	}
	if len(tasks) == 0 {
		return fmt.Errorf("no work matches %q", s.only)
	}
	for done := 0; done < len(tasks); {
		n := slices.IndexFunc(tasks[done:], func(t task) bool { return !slices.Equal(t.libraries, tasks[done].libraries) })
		if n < 0 {
			n = len(tasks) - done
		}
		if done > 0 {
			fmt.Fprintln(out)
		}
		say := func(i int, name string) { fmt.Fprintf(messages, "%d/%d %s\n", done+i+1, len(tasks), name) }
		if err := s.table(ctx, tasks[done:done+n], out, say); err != nil {
			return err
		}
		done += n
	}
	return nil
}

// table measures tasks that have the same libraries beside them.
func (s settings) table(ctx context.Context, tasks []task, out io.Writer, say func(i int, name string)) error {
	var peers []*peer
	for _, name := range tasks[0].libraries {
		p, err := startPeer(ctx, s.python, name)
		if err != nil {
			return err
		}
		defer p.stop()
		if p.checked && p.missing == "" {
			if err := checkLogits(p, s.threads); err != nil {
				return err
			}
		}
		peers = append(peers, p)
	}
	if err := writeHead(out, s, peers); err != nil {
		return err
	}
	var rows []row
	for i, t := range tasks {
		say(i, t.name)
		r, err := s.measure(ctx, t, peers)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, r.cells()); err != nil {
			return err
		}
		rows = append(rows, r)
	}
	return writeNotes(out, rows, peers)
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
	r = row{task: t, peers: make([]theirs, len(peers))}
	for i, p := range peers {
		r.peers[i].missing = p.missing
	}
	ours, err := t.start()
	if err != nil {
		return r, fmt.Errorf("%s: %w", t.name, err)
	}
	var times []float64
	their := make([][]float64, len(peers))
	for range s.rounds {
		time.Sleep(pause)
		one, err := ours(ctx, s.time)
		if err != nil {
			return r, fmt.Errorf("%s: %w", t.name, err)
		}
		times = append(times, one.Median)
		// The best peak of all rounds is what the machine can do.
		one.PeakGFLOPS = max(one.PeakGFLOPS, r.ours.PeakGFLOPS)
		one.PeakReadGBps = max(one.PeakReadGBps, r.ours.PeakReadGBps)
		r.ours = one
		for i, p := range peers {
			if r.peers[i].missing != "" {
				continue
			}
			time.Sleep(pause)
			a, err := p.ask(t.request, s.threads, s.time)
			if err != nil {
				return r, fmt.Errorf("%s: %w", t.name, err)
			}
			r.peers[i] = theirs{form: a.Form, missing: a.missing()}
			if r.peers[i].missing == "" {
				their[i] = append(their[i], a.Median)
			}
		}
	}
	r.ours.Median = bench.Median(times)
	r.steady = steady(times)
	for i := range peers {
		if len(their[i]) > 0 {
			r.peers[i].median = bench.Median(their[i])
			r.steady = r.steady && steady(their[i])
		}
	}
	return r, nil
}

// steady reports whether rounds agree as they do on a machine that does nothing
// else.
func steady(times []float64) bool {
	return slices.Max(times) < 1.25*slices.Min(times)
}
