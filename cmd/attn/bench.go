package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

type benchCommand struct {
	Op       *string       `enum:"${ops}" help:"${ops_or}; without it, a table of common shapes." placeholder:"NAME"`
	Ratios   bool          `help:"Measure the cost of a feature by running the operation with and without it. The feature is the first of these that the operation has: the extras of --with, dropout or weights, a mask, appending to the cache. Without --op, a table of common features."`
	Threads  int           `help:"Number of threads (default all processors)." placeholder:"N" want:"1 to 4096"`
	Schedule []int         `help:"Show how the work is cut into loops and chunks for these numbers of threads, and how much faster than one thread they would be if waking and waiting took no time. It works on any number of processors (default: measure instead)." placeholder:"N,…" want:"1 to 4096" excludes:"ratios,threads"`
	Loops    int           `help:"Also list this many kinds of loops, those that lose most time first (default 0)." placeholder:"N" want:"at least 0" needs:"schedule" excludes:"json,as=csv,as=markdown"`
	Model    string        `help:"Show the schedule of a pretrained model on one text (default: of operations)." placeholder:"DIR" needs:"schedule" excludes:"op"`
	Tokens   int           `default:"128" help:"Number of tokens of the text for --model." placeholder:"N" want:"at least 1" needs:"model"`
	Time     time.Duration `default:"1s" help:"Time to measure each operation, for at least five calls." placeholder:"TIME" want:"more than 0"`
	As       *string       `enum:"${tables}" help:"Write a ${tables_or} (default table)." placeholder:"NAME"`
	JSON     bool          `name:"json" help:"Write a JSON object for each measurement." excludes:"as"`

	formatFlag
	bench.Work
}

func (benchCommand) Help() string {
	return `Examples:

  attn bench                                        common shapes
  attn bench --op sdpa --h 12 --lq 1024 --e 64 --causal
  attn bench --op mha-train --b 8 --lq 128 --width 768 --h 12 --json
  attn bench --op gemm --lq 512 --lk 512 --e 512    a matrix product 512×512×512
  attn bench --op decode --h 32 --g 8 --lk 8192 --e 128
  attn bench --ratios --as markdown                 cost of positions, masks, caches and results
  attn bench --ratios --op sdpa --lq 512 --with top-keys
  attn bench --schedule 16,64 --op mha --loops 5    how the work of a call is cut for 16 and 64 threads

Milliseconds and allocated bytes are per call. GFLOP/s count useful operations, with a
multiply-add as two: causal attention counts half of its square, a softmax counts zero, and
training counts 3.5 times the forward pass of attention and 3 times that of linear layers.
The peak is the speed of multiply-adds without memory access, measured in the same run.
linear is attention without a softmax: the gated delta rule, or that of --rule. It counts 6
operations for each token and element of a state, 4 without a delta rule, and training counts
4 times the forward pass.
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
is the inverse of the ratio.

With --schedule, one thread runs the work as it is cut for other numbers of threads, several
times, and the shortest time of each chunk counts. Threads then claim these chunks. The serial
time is outside of loops. A loop with fewer chunks than threads leaves some of them idle.`
}

func (cmd *benchCommand) Run(ctx context.Context, parsed *kong.Context, c console) error {
	list, err := cmd.works(parsed)
	if err != nil {
		return usage("%w", err)
	}
	threads := cmp.Or(cmd.Threads, runtime.GOMAXPROCS(0))
	t := &bench.Table{Out: c.out, Format: bench.Aligned, Machine: bench.ThisMachine(), Threads: threads, Width: c.width()}
	set(&t.Format, cmd.As)
	if cmd.JSON {
		t.Format = bench.JSON
	}
	if cmd.Schedule != nil {
		return cmd.schedules(ctx, c, t, list)
	}
	if !cmd.Ratios {
		return bench.Rows(ctx, t, list, bench.Columns(list), func(w bench.Work) (bench.Result, error) {
			return bench.New(w, threads)(ctx, cmd.Time)
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

// schedules shows how the work of a list is cut, or that of a model.
func (cmd *benchCommand) schedules(ctx context.Context, c console, t *bench.Table, list []bench.Work) error {
	var calls []bench.Call
	if cmd.Model != "" {
		call, err := cmd.model(c)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s, %d tokens", quote.Text(filepath.Base(cmd.Model)), cmd.Tokens)
		calls = []bench.Call{{Name: name, Prepare: func() func() { return call }}}
	} else {
		for _, w := range list {
			calls = append(calls, bench.Call{Name: w.Name(), Prepare: w.Prepare})
		}
	}
	return bench.Schedules(ctx, t, calls, cmd.Schedule, cmd.Time, cmd.Loops)
}

// model returns a call that computes the hidden states of one text.
func (cmd *benchCommand) model(c console) (func(), error) {
	m, err := load(c, models.Load, cmd.Model, cmd.options())
	if err != nil {
		return nil, err
	}
	x := models.Batch{IDs: [][]int{make([]int, cmd.Tokens)}}
	for i := range x.IDs[0] {
		x.IDs[0][i] = i % m.Sizes().Vocabulary
	}
	if err := m.Sizes().Check(x); err != nil {
		return nil, err
	}
	tape := tensor.NewTape(tensor.Infer)
	return func() {
		tape.Reset()
		m.Hidden(tape, x, models.Run{})
	}, nil
}

// works returns the operations to measure.
func (cmd *benchCommand) works(parsed *kong.Context) ([]bench.Work, error) {
	if cmd.Op == nil {
		if cmd.Model == "" && cmd.formatFlag.Format != 0 {
			return nil, errors.New("--format needs --op or --model")
		}
		return bench.Usual(), nil
	}
	w := cmd.Work
	w.Op, w.Format = *cmd.Op, cmd.formatFlag.Format
	for _, v := range flags.Given(parsed) {
		if v.Tag.Get("needs") == "op" && !w.Takes(v.Name) {
			return nil, fmt.Errorf("--%s cannot be used with --op %s", v.Name, w.Op)
		}
	}
	w, err := w.Complete()
	return []bench.Work{w}, err
}
