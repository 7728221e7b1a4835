// Attn trains attention models, translates with them, and runs single attention mechanisms on
// tensors from any framework.
//
// Data go to standard output; messages and progress go to standard error. The exit codes are
//
//   - 0: success;
//   - 1: a failure, such as an output that cannot be written, a full disk, a diverging loss or a
//     server that does not respond;
//   - 2: wrong usage, such as an invalid command line, a flag that does not apply to the model,
//     or an output that would overwrite an existing file;
//   - 3: a failed check;
//   - 4: a bad input: a file, model or directory of shards that is missing, unreadable, corrupt
//     or of the wrong kind, including a directory in place of a file or a file in place of a
//     directory;
//   - 130: interrupted.
package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/apply"
	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/guard"
	"github.com/attn-go/attn/internal/app/lens"
	of "github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// commands lists the subcommands in the groups of the help. Each is in a separate file.
type commands struct {
	Train     trainCommand     `cmd:"" group:"Train and translate" help:"Train a translator, on built-in dates or your own sentence pairs."`
	Follow    followCommand    `cmd:"" group:"Train and translate" help:"Plot a training run live in the browser."`
	Translate translateCommand `cmd:"" group:"Train and translate" help:"Translate arguments or the lines of standard input."`
	Eval      evalCommand      `cmd:"" group:"Train and translate" help:"Evaluate a translator on sentence pairs."`

	Map   mapCommand   `cmd:"" group:"Inspect" help:"Draw attention weights in the terminal, or write them to an image or table."`
	View  viewCommand  `cmd:"" group:"Inspect" help:"Explore the attention weights of every head in the browser."`
	Heads headsCommand `cmd:"" group:"Inspect" help:"Measure the importance of each head and what it attends to."`
	Lens  lensCommand  `cmd:"" group:"Inspect" help:"Measure what each head causes: silence it, or give it what it computes for another text."`

	Prune pruneCommand `cmd:"" group:"Prune" help:"Remove the least important heads, and report the loss in quality."`

	Fetch    fetchCommand    `cmd:"" group:"Pretrained models" help:"Download a pretrained model from the Hugging Face Hub."`
	Merge    mergeCommand    `cmd:"" group:"Pretrained models" help:"Merge a LoRA adapter into its base model."`
	Models   modelsCommand   `cmd:"" group:"Pretrained models" help:"Describe a model directory."`
	Run      runCommand      `cmd:"" group:"Pretrained models" help:"Run a pretrained model, and write its logits, hidden states and attention weights to a file."`
	Embed    embedCommand    `cmd:"" group:"Pretrained models" help:"Compute an embedding vector for each text."`
	Classify classifyCommand `cmd:"" group:"Pretrained models" help:"Predict the class of each text, or of each pair of texts."`
	Rerank   rerankCommand   `cmd:"" group:"Pretrained models" help:"Rank texts by how well they answer a query."`
	Generate generateCommand `cmd:"" group:"Pretrained models" help:"Generate text with a language model."`
	Tokenize tokenizeCommand `cmd:"" group:"Pretrained models" help:"Print the tokens of texts."`

	Apply  applyCommand  `cmd:"" group:"Files and scale" help:"Run one attention mechanism on tensors from a file."`
	Export exportCommand `cmd:"" group:"Files and scale" help:"Export a model to ONNX, for other runtimes."`
	Shards shardsCommand `cmd:"" group:"Files and scale" help:"Process a corpus in parallel shards, with any scheduler."`

	Bench      benchCommand      `cmd:"" group:"Tools" help:"Benchmark attention on this machine."`
	Completion completionCommand `cmd:"" whole:"" group:"Tools" help:"Print a shell completion script."`
	Version    versionCommand    `cmd:"" group:"Tools" help:"Print the version."`
}

func main() {
	os.Exit(run(interruptible(os.Stderr), os.Args[1:], console{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// options returns the parser's options that are the same for every run.
func options(c console) []kong.Option {
	return []kong.Option{
		kong.Name("attn"),
		kong.Description("Train, use and inspect attention models."),
		kong.ValueFormatter(flags.WithDefault),
		flags.FillIn(choices()),
		kong.Writers(c.out, c.err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	}
}

// parse parses a command line. exited is the exit code if the parser has printed the help, otherwise −1.
func parse(ctx context.Context, args []string, c console) (parsed *kong.Context, exited int, err error) {
	return flags.Parse(&commands{}, args, append(options(c), kong.BindTo(ctx, (*context.Context)(nil)))...)
}

// run runs the command line and returns the exit code.
func run(ctx context.Context, args []string, c console) int {
	switch { // common first attempts
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		args = []string{"version"}
	}
	parsed, exited, err := parse(ctx, args, c)
	if exited >= 0 { // the parser has printed the help
		return exited
	}
	if err == nil {
		err = execute(parsed, c)
	}
	code := exitCode(err)
	if code == exitInterrupted && !errors.As(err, new(interrupted)) {
		err = interrupted{"interrupted"}
	}
	if err != nil {
		c.say("attn: %v", err)
	}
	return code
}

// execute checks the files that a command line names, and runs the command.
func execute(parsed *kong.Context, c console) (err error) {
	missing := findModels(parsed)
	runs := append(train.RunFiles(), reportFile, unfinishedFile) // of attn train and attn prune
	if c.writes, err = guard.Of(parsed.Selected()).Check(c.in, c.out, runs); err != nil {
		return err
	}
	if err := cmp.Or(flags.CheckFormats(parsed), missing); err != nil {
		return err
	}
	return parsed.Run(c)
}

// Validate checks the requirements between flags, which are tags of the fields.
func (*commands) Validate(parsed *kong.Context) error { return flags.Check(parsed) }

// pruned returns the names of the families whose config.json describes removed heads in a way.
func pruned(how models.HeadPruning) (names []string) {
	for _, f := range models.Families() {
		if f.Pruning == how && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// choices returns the variables in the help and enumerations of flags. The lists are those that the
// packages check values against.
func choices() kong.Vars {
	lists := map[string][]string{
		"scores": score.Kinds().Names(), "rules": apply.Rules(), "archs": {models.Transformer, models.GRU},
		"units": {string(seq2seq.Chars), string(seq2seq.Words), string(seq2seq.BPE)},
		"kinds": {heads.Encoder.String(), heads.Decoder.String(), heads.Cross.String()},
		"drawn": {heads.Encoder.String(), heads.Decoder.String(), heads.Cross.String(), heads.Mamba.String(), heads.Alignment.String()},
		"whats": lens.Whats(), "parts": of.PartNames(),
		"ops": bench.Ops(), "masks": bench.Masks(),
		"tables": {bench.Aligned, bench.Markdown, bench.CSV},
	}
	for _, m := range prune.Methods() {
		lists["methods"] = append(lists["methods"], m.String())
	}
	for _, m := range (heads.Measures{}).List() {
		lists["measures"] = append(lists["measures"], m.Name)
	}
	for _, p := range models.Poolings() {
		lists["poolings"] = append(lists["poolings"], p.Name)
	}
	lists["poolings"] = append(lists["poolings"], "splade")
	vars := kong.Vars{
		"scaled_and": listed(apply.Scaled(), "and"), "masks_help": bench.MasksHelp(), "extras_help": bench.ExtrasHelp(),
	}
	for name, list := range lists {
		vars[name] = strings.Join(list, ",")
		vars[name+"_or"] = listed(list, "or")
	}
	return vars
}
