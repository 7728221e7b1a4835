package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/flags"
	"github.com/attn-go/attn/internal/guard"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/shards"
	"github.com/attn-go/attn/internal/simd"
)

type shardsCommand struct {
	Input   []string `help:"Quoted pattern of the input files; can be repeated." placeholder:"GLOB" sep:"none" needs:"shards,command"`
	Output  string   `required:"" help:"Directory for the shards: one folder per shard, with its output and a manifest." placeholder:"DIR" writes:"model"`
	Shards  int      `help:"Number of shards." placeholder:"N" want:"1 to 99999" needs:"input"`
	Shard   *int     `help:"Number of the shard to process, from 0 (default JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID, or else all shards)." placeholder:"I" needs:"shards"`
	Merge   bool     `help:"Check that no line is missing or duplicated, and write the outputs of all shards in order." either:"task"`
	Sums    bool     `help:"With --merge, write the sums and means of all numbers as a JSON object instead of the lines." needs:"merge"`
	Command []string `arg:"" optional:"" passthrough:"" help:"Command to run, with its flags, one that writes one line per input line: translate, embed, tokenize, eval --per-line or heads --per-line." either:"task" needs:"input,shards"`
}

func (shardsCommand) Help() string {
	return `Examples:

  attn shards --input 'corpus/*.txt' --output out --shards 16 --shard 3 translate --model runs/fra.run
  attn shards --input 'corpus/*.txt' --output out --shards 16 translate --model runs/fra.run
  attn shards --output out --merge > translations.txt
  attn shards --output measures --merge --sums

Finished shards are skipped, so you can rerun a job until every shard is done. The merged
shards have the same lines as the output of the command on the concatenated input files.
See docs/scale.md for details and deploy/ for Kubernetes and Slurm jobs.`
}

// AdjustFiles marks the directory as an input if shards are merged.
func (cmd *shardsCommand) AdjustFiles(f *guard.Files) {
	if cmd.Merge {
		f.Reads, f.Makes = f.Makes, nil
	}
}

func (cmd *shardsCommand) Run(ctx context.Context, c console) error {
	if cmd.Merge {
		return cmd.merge(c)
	}
	filter, err := parseLines(c, cmd.Command)
	if err != nil {
		return usage("%s: %w", strings.Join(cmd.Command, " "), err)
	}
	todo, err := cmd.numbers()
	if err != nil {
		return err
	}
	job := shards.Job{Kernels: simd.Implementation(), Dir: cmd.Output, Shards: cmd.Shards}
	if job.Plan, err = shards.NewPlan(cmd.Input); err != nil {
		return &input.Error{Name: "--input", Err: err}
	}
	if job.Identity, err = followsFrom(filter, cmd.Command); err != nil {
		return err
	}
	for _, i := range todo {
		if err := cmd.make(ctx, c, &job, filter, i); err != nil {
			return err
		}
	}
	return nil
}

// make processes a shard, or skips a finished one. The model is loaded for the first shard that is
// not finished.
func (cmd *shardsCommand) make(ctx context.Context, c console, job *shards.Job, filter lineCommand, i int) (err error) {
	err = job.Check(i)
	if err == nil && job.Stream == nil {
		var s lineStream
		if s, err = filter.stream(c); err != nil {
			return err
		}
		job.Stream = s
	}
	var m *shards.Manifest
	if err == nil {
		m, err = job.Run(ctx, i)
	}
	var there *shards.Error
	switch {
	case errors.Is(err, shards.ErrDone):
		fmt.Fprintf(c.err, "shard %d of %d is already done\n", i, job.Shards)
		return nil
	case errors.As(err, &there) && there.Other: // the directory has shards of another job
		return usage("%w", err)
	case err != nil:
		return err
	}
	fmt.Fprintf(c.err, "shard %d of %d: %d lines, %d rejected, %v\n", i, job.Shards, m.Output.Lines, m.Rejected, time.Duration(m.Seconds*float64(time.Second)).Round(100*time.Millisecond))
	return nil
}

// shardVariables are the environment variables in which schedulers pass the number of a task,
// from 0.
var shardVariables = []string{"JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"}

// numbers returns the numbers of the shards to process.
func (cmd *shardsCommand) numbers() (list []int, err error) {
	if cmd.Shard != nil {
		if *cmd.Shard < 0 || *cmd.Shard >= cmd.Shards {
			return nil, usage("--shard %d, want 0 to %d", *cmd.Shard, cmd.Shards-1)
		}
		return []int{*cmd.Shard}, nil
	}
	for _, name := range shardVariables {
		text, there := os.LookupEnv(name)
		if !there {
			continue
		}
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || i >= cmd.Shards {
			return nil, usage("%s is %q, want the number of a shard, 0 to %d", name, text, cmd.Shards-1)
		}
		return []int{i}, nil
	}
	for i := range cmd.Shards {
		list = append(list, i)
	}
	return list, nil
}

// merge writes the outputs of all shards, or their sums.
func (cmd *shardsCommand) merge(c console) error {
	var sums shards.Sums
	out := c.out
	if cmd.Sums {
		out = &sums
	}
	sum, err := shards.Merge(cmd.Output, out)
	if err != nil {
		return err
	}
	if cmd.Sums {
		sums.Job = &sum.Identity
		if err := json.NewEncoder(c.out).Encode(&sums); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.err, "%d shards: %d lines, %d rejected, %v\n", sum.Shards, sum.Lines, sum.Rejected, time.Duration(sum.Seconds*float64(time.Second)).Round(time.Second))
	if len(sum.Kernels) > 1 {
		fmt.Fprintf(c.err, "computed with kernels %s: the last digits may differ between them\n", strings.Join(sum.Kernels, ", "))
	}
	return nil
}

// parseLines parses the command line of a command that maps lines to lines.
func parseLines(c console, args []string) (lineCommand, error) {
	asked := false
	parser := kong.Must(&commands{}, append(options(console{in: c.in, out: io.Discard, err: io.Discard}),
		kong.Exit(func(int) { asked = true }),
		kong.BindTo(context.Background(), (*context.Context)(nil)),
	)...)
	parsed, err := parser.Parse(flags.JoinNegative(args))
	if asked {
		return nil, errors.New("want a command, not its help")
	}
	if err != nil {
		return nil, flags.Plain(err)
	}
	cmd, ok := parsed.Selected().Target.Addr().Interface().(lineCommand)
	if !ok {
		return nil, errNotLines
	}
	return cmd, cmd.streams()
}
