// Attn trains attention models, translates with them, and computes single
// attention mechanisms on tensors from any framework.
//
// Data go to standard output; messages and progress go to standard error. The
// exit code is
//
//   - 0 when all is done;
//   - 1 when something failed: an output that cannot be written, a full disk, a loss that
//     diverges, a server that does not answer;
//   - 2 for wrong usage: what the command line alone shows, flags that do not go with the
//     model, and an output that would replace something;
//   - 3 when a check fell short;
//   - 4 for a bad input: a file, model or directory of shards that is missing, cannot be
//     read, is a directory in place of a file or the other way round, is broken or of the
//     wrong kind;
//   - 130 after an interruption.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/flags"
	"github.com/attn-go/attn/internal/guard"
	"github.com/attn-go/attn/internal/hub"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/shards"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tokenizer"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitCheck       = 3
	exitInput       = 4
	exitInterrupted = 130
)

// commands are the subcommands, by the groups of the help; each is in a file of its own.
type commands struct {
	Train     trainCommand     `cmd:"" group:"Train and translate" help:"Train a translator, on built-in dates unless data are given."`
	Follow    followCommand    `cmd:"" group:"Train and translate" help:"Show in a browser how a training goes."`
	Translate translateCommand `cmd:"" group:"Train and translate" help:"Translate arguments or lines of standard input."`
	Eval      evalCommand      `cmd:"" group:"Train and translate" help:"Measure a translator on sentence pairs."`

	Map   mapCommand   `cmd:"" group:"Inspect" help:"Draw what heads attend to, or write it as a picture or table."`
	View  viewCommand  `cmd:"" group:"Inspect" help:"Show in a browser what the heads attend to."`
	Heads headsCommand `cmd:"" group:"Inspect" help:"Measure how important each head is, and what it attends to."`

	Prune pruneCommand `cmd:"" group:"Prune" help:"Remove the heads that matter least, and report what it costs."`

	Fetch    fetchCommand    `cmd:"" group:"Pretrained models" help:"Download a pretrained model from the Hugging Face hub."`
	Models   modelsCommand   `cmd:"" group:"Pretrained models" help:"Describe the directory of a pretrained model."`
	Run      runCommand      `cmd:"" group:"Pretrained models" help:"Run a pretrained model, and write its logits, hidden states and attention weights."`
	Embed    embedCommand    `cmd:"" group:"Pretrained models" help:"Make a vector of each text with a pretrained model."`
	Generate generateCommand `cmd:"" group:"Pretrained models" help:"Continue a text with a language model."`
	Tokenize tokenizeCommand `cmd:"" group:"Pretrained models" help:"Print the tokens of texts, as a model reads them."`

	Apply  applyCommand  `cmd:"" group:"Files and scale" help:"Run one attention mechanism on tensors from a file."`
	Export exportCommand `cmd:"" group:"Files and scale" help:"Write a model as an ONNX file, for other runtimes."`
	Shards shardsCommand `cmd:"" group:"Files and scale" help:"Run a command over a corpus in parts, on any scheduler."`

	Bench      benchCommand      `cmd:"" group:"Tools" help:"Measure how fast this machine runs attention."`
	Completion completionCommand `cmd:"" group:"Tools" help:"Print a script for completion in a shell."`
	Version    versionCommand    `cmd:"" group:"Tools" help:"Print the version."`
}

// console is what a command reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
	// writes are the files that the command replaces: nothing may be read from them.
	writes guard.Outputs
}

// say writes a message of one line for people. What it has from files, flags and servers
// does nothing to a terminal.
func (c console) say(format string, args ...any) {
	fmt.Fprintln(c.err, quote.Message(fmt.Sprintf(format, args...)))
}

func main() {
	os.Exit(run(interruptible(os.Stderr), os.Args[1:], console{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// options are those of the parser that do not depend on a run.
func options(c console) []kong.Option {
	return []kong.Option{
		kong.Name("attn"),
		kong.Description("Train, use and inspect attention models."),
		kong.UsageOnError(),
		kong.ValueFormatter(flags.WithDefault),
		flags.FillIn(choices()),
		kong.Writers(c.out, c.err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	}
}

// run runs the command line and returns the exit code.
func run(ctx context.Context, args []string, c console) int {
	exited := -1
	parser := kong.Must(&commands{}, append(options(c),
		kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)...)
	switch { // what people try first
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		args = []string{"version"}
	}
	parsed, err := parser.Parse(flags.JoinNegative(args))
	if exited >= 0 { // help was asked for and has been printed
		return exited
	}
	if err == nil {
		c.writes, err = checkFiles(parsed, c)
	} else {
		err = usage("%w", flags.Plain(err))
	}
	if err == nil {
		err = parsed.Run(c)
	}
	if err == nil {
		return exitOK
	}
	code := exitCode(err)
	if code == exitInterrupted && !errors.As(err, new(interrupted)) {
		err = interrupted{"interrupted"}
	}
	c.say("attn: %v", err)
	return code
}

// Validate checks the requirements between flags, which their tags say.
func (*commands) Validate(parsed *kong.Context) error { return flags.Check(parsed) }

// checkFiles returns the files that the command writes, or an error if it would overwrite
// one that it reads.
func checkFiles(parsed *kong.Context, c console) (guard.Outputs, error) {
	return filesOf(parsed.Selected()).Check(c.in, c.out, runFiles())
}

// filesOf returns what a command reads and writes.
func filesOf(command *kong.Node) guard.Files {
	if cmd, ok := command.Target.Addr().Interface().(interface{ touches() touched }); ok {
		t := cmd.touches()
		return guard.Files{
			Reads: places(t.reads), Models: places(t.models), Writes: places(t.writes), Makes: places(t.makes), Stdin: t.stdin,
		}
	}
	return guard.Of(command)
}

// usage returns the error of a command line that cannot be.
func usage(format string, args ...any) error { return flags.Errorf(format, args...) }

// interrupted is an error after which there is a way to go on.
type interrupted struct{ hint string }

func (e interrupted) Error() string { return e.hint }

// exitCode sorts an error into the codes that the command promises.
func exitCode(err error) int {
	is := func(targets ...any) bool {
		return slices.ContainsFunc(targets, func(target any) bool { return errors.As(err, target) })
	}
	var path *fs.PathError
	switch {
	case is(new(interrupted)), errors.Is(err, context.Canceled):
		return exitInterrupted
	case is(new(*flags.Error)):
		return exitUsage
	case is(new(*pruning.CheckError)):
		return exitCheck
	case is(new(*input.Error), new(*safetensors.FormatError), new(*tokenizer.FormatError), new(*models.FormatError),
		new(*hub.ModelError), new(*shards.Error)):
		return exitInput
	case errors.As(err, &path) && noInput(path):
		return exitInput
	}
	return exitFailed
}

// noInput reports whether an error of reading a file means that the user gave
// the wrong one. What fails in writing says "write", "mkdir" or "rename".
func noInput(err *fs.PathError) bool {
	switch err.Op {
	case "open", "stat":
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR)
	case "read":
		info, statErr := os.Stat(err.Path)
		return statErr == nil && info.IsDir()
	}
	return false
}
