package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/attn-go/attn/internal/app/guard"
	"github.com/attn-go/attn/internal/app/shards"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/simd"
)

type shardsCommand struct {
	Input   []string `help:"Quoted pattern of the input files; can be repeated." placeholder:"GLOB" sep:"none" needs:"shards,command"`
	Output  string   `required:"" help:"Directory for the shards: one folder per shard, with its output and a manifest." placeholder:"DIR" writes:"model"`
	Shards  int      `help:"Number of shards." placeholder:"N" want:"1 to 99999" needs:"input"`
	Shard   *int     `help:"Number of the shard to process, from 0 (default JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID, or else all shards)." placeholder:"I" needs:"shards"`
	Merge   bool     `help:"Check that no line is missing or duplicated, and write the outputs of all shards in order." either:"task"`
	Sums    bool     `help:"With --merge, write the sums and means of all numbers as a JSON object instead of the lines." needs:"merge"`
	Command []string `arg:"" optional:"" passthrough:"" help:"Command to run, with its flags, one that writes one line per input line: translate, embed, classify, rerank, tokenize, eval --per-line or heads --per-line." either:"task" needs:"input,shards"`
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
		return err
	}
	todo, err := shards.Numbers(cmd.Shard, cmd.Shards, os.LookupEnv)
	if err != nil {
		return err
	}
	job := shards.Job{Kernels: simd.Implementation(), Dir: cmd.Output, Shards: cmd.Shards}
	job.Load = func() (shards.Stream, error) { return filter.stream(c) }
	if job.Plan, err = shards.NewPlan(cmd.Input); err != nil {
		return &input.Error{Name: "--input", Err: err}
	}
	if job.Identity, err = identityOf(filter, cmd.Command); err != nil {
		return err
	}
	for _, i := range todo {
		m, err := job.Run(ctx, i)
		switch {
		case errors.Is(err, shards.ErrDone):
			fmt.Fprintf(c.err, "shard %d of %d is already done\n", i, job.Shards)
		case err != nil:
			return err
		default:
			fmt.Fprintln(c.err, m)
		}
	}
	return nil
}

// merge writes the outputs of all shards, or their sums.
func (cmd *shardsCommand) merge(c console) error {
	merge := shards.Merge
	if cmd.Sums {
		merge = shards.MergeSums
	}
	sum, err := merge(cmd.Output, c.out)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.err, sum)
	return nil
}

// parseLines parses the command line of a command that maps lines to lines, and finds its model.
func parseLines(c console, args []string) (cmd lineCommand, err error) {
	parsed, exited, err := parse(context.Background(), args, console{in: c.in, out: io.Discard, err: io.Discard})
	if exited >= 0 {
		err = errors.New("want a command, not its help")
	} else if err == nil {
		var ok bool
		if cmd, ok = parsed.Selected().Target.Addr().Interface().(lineCommand); !ok || !cmd.streams() {
			err = errNotLines
		}
	}
	if err != nil {
		return nil, usage("%s: %w", strings.Join(args, " "), err)
	}
	return cmd, findModels(parsed)
}
