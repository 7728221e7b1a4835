package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/bench"
	"github.com/attn-go/attn/internal/flags"
)

type benchCommand struct {
	Op       *string       `enum:"${ops}" help:"${ops_or}; without it, a table of common shapes." placeholder:"NAME"`
	Ratios   bool          `help:"Measure the cost of a feature by running the operation with and without it. The feature is the first of these that the operation has: the extras of --with, dropout or weights, a mask, appending to the cache. Without --op, a table of common features."`
	Threads  int           `help:"Number of threads (default all processors)." placeholder:"N" want:"1 to 4096"`
	Schedule []int         `help:"Show how the work is cut for these numbers of threads, and predict their speed-up." placeholder:"N,…" want:"1 to 4096" excludes:"ratios,threads"`
	Loops    int           `help:"With --schedule, also list this many kinds of loops, those that lose most time first (default 0)." placeholder:"N" want:"at least 0" needs:"schedule"`
	Time     time.Duration `default:"1s" help:"Time to measure each operation, for at least five calls." placeholder:"TIME" want:"more than 0"`
	Format   *string       `enum:"${formats}" help:"${formats_or} (default table)." placeholder:"NAME"`
	JSON     bool          `name:"json" help:"Write a JSON object for each measurement." excludes:"format"`

	bench.Work
}

func (benchCommand) Help() string {
	return `Examples:

  attn bench                                        common shapes
  attn bench --op sdpa --h 12 --lq 1024 --e 64 --causal
  attn bench --op mha-train --b 8 --lq 128 --width 768 --h 12 --json
  attn bench --op gemm --lq 512 --lk 512 --e 512    a matrix product 512×512×512
  attn bench --op decode --h 32 --g 8 --lk 8192 --e 128
  attn bench --ratios --format markdown             cost of positions, masks, caches and results
  attn bench --ratios --op sdpa --lq 512 --with top-keys

Milliseconds and allocated bytes are per call. GFLOP/s count useful operations, with a
multiply-add as two: causal attention counts half of its square, a softmax counts zero, and
training counts 3.5 times the forward pass of attention and 3 times that of linear layers.
The peak is the speed of multiply-adds without memory access, measured in the same run.
Additive and Gaussian scores are counted in triples of query, key and feature, each
nominally 4 operations.

decode appends the keys and values of its queries to a KV cache and attends to the whole
cache; decode-fixed attends to a cache that is already filled. Both are compared with the
speed of reading a buffer of the same size (read), which is the speed of the processor's
cache if the buffer fits in it. generate decodes token by token from an empty cache to --lk
keys.

With --ratios, both variants of a row are measured in short alternating turns. The ratio of
times is the median over pairs of turns, with its quartiles. The ratio of a mask is for a
live tile: a block of queries and keys in which some query attends to some key. The speed
is the inverse of the ratio.`
}

func (cmd *benchCommand) Run(ctx context.Context, parsed *kong.Context, c console) error {
	list, err := cmd.works(parsed)
	if err != nil {
		return usage("%w", err)
	}
	threads := cmp.Or(cmd.Threads, runtime.GOMAXPROCS(0))
	t := &bench.Table{Out: c.out, Format: bench.Aligned, Machine: bench.ThisMachine(), Threads: threads, Width: c.width()}
	set(&t.Format, cmd.Format)
	if cmd.JSON {
		t.Format = bench.JSON
	}
	if cmd.Schedule != nil {
		return cmd.schedules(ctx, t, list)
	}
	if !cmd.Ratios {
		return bench.Rows(ctx, t, list, bench.Columns(list), func(w bench.Work) (bench.Result, error) {
			return bench.New(w, threads).Measure(ctx, cmd.Time)
		})
	}
	pairs := bench.Features()
	if cmd.Op != nil {
		p, err := bench.Against(list[0])
		if err != nil {
			return usage("--ratios: %w", err)
		}
		pairs = []bench.Pair{p}
	}
	return bench.Rows(ctx, t, pairs, bench.PairColumns(pairs), func(p bench.Pair) (bench.Comparison, error) {
		return bench.Compare(ctx, p, threads, cmd.Time)
	})
}

// schedules shows how the work of a list is cut.
func (cmd *benchCommand) schedules(ctx context.Context, t *bench.Table, list []bench.Work) error {
	var names []string
	for _, w := range list {
		names = append(names, w.Name())
	}
	t.Threads = 1
	if err := t.Begin(bench.PlanColumns(names)); err != nil {
		return err
	}
	for _, w := range list {
		call := bench.New(w, 1).Call
		for _, threads := range cmd.Schedule {
			p, err := bench.Plan(ctx, w.Name(), threads, cmd.Time, call)
			if err == nil {
				err = t.Add(p)
			}
			if err != nil {
				return err
			}
			for _, line := range p.Worst(cmd.Loops) {
				if _, err := fmt.Fprintln(t.Out, "  "+line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// works returns the operations to measure.
func (cmd *benchCommand) works(parsed *kong.Context) ([]bench.Work, error) {
	if cmd.Op == nil {
		return bench.Usual(), nil
	}
	w := cmd.Work
	w.Op = *cmd.Op
	for _, v := range flags.Given(parsed) {
		if v.Tag.Get("needs") == "op" && !w.Takes(v.Name) {
			return nil, fmt.Errorf("--%s cannot be used with --op %s", v.Name, w.Op)
		}
	}
	w, err := w.Complete()
	return []bench.Work{w}, err
}
