package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/bench"
	"github.com/attn-go/attn/tensor"
)

type benchCommand struct {
	Op      *string       `enum:"${ops}" help:"${ops_or}; without it, a table of usual shapes." placeholder:"NAME"`
	Ratios  bool          `help:"Hold the operation against the same without its mask, dropout or weights, without what --with names, or without appending to the cache, measured in turns; without --op, a table of features."`
	Threads *int          `help:"Processors to use (default all)." placeholder:"N"`
	Time    time.Duration `default:"1s" help:"How long to measure each operation, with at least five calls." placeholder:"TIME"`
	Format  *string       `enum:"${formats}" help:"${formats_or} (default table)." placeholder:"NAME"`
	JSON    bool          `name:"json" help:"Write a JSON object for each measurement."`

	B       *int            `help:"Batch size (default ${bench_b})." placeholder:"N" group:"Shape"`
	H       *int            `help:"Query heads (default ${bench_h})." placeholder:"N" group:"Shape"`
	G       *int            `help:"Key/value heads; fewer than query heads is grouped-query attention (default as --h)." placeholder:"N" group:"Shape"`
	Lq      *int            `help:"Queries; rows of a gemm (default ${bench_lq})." placeholder:"N" group:"Shape"`
	Lk      *int            `help:"Keys; columns of a gemm (default ${bench_lk}, else as --lq)." placeholder:"N" group:"Shape"`
	E       *int            `help:"Head size of queries and keys; what a gemm sums over (default ${bench_e}, as --lq for gemm, --width divided by --h for mha)." placeholder:"N" group:"Shape"`
	V       *int            `help:"Head size of values (default as --e)." placeholder:"N" group:"Shape"`
	Width   *int            `help:"Width of the model for mha; hidden features for additive (default ${bench_width}, as --e for additive)." placeholder:"N" group:"Shape"`
	Causal  bool            `help:"Query i attends to key j only if j ≤ i + Lk − Lq." group:"Attention"`
	Mask    *string         `enum:"${masks}" help:"${masks_help} (default none)." placeholder:"NAME" group:"Attention"`
	Dropout *float64        `help:"Drop weights with this probability, as in training (default 0)." placeholder:"P" group:"Attention"`
	Weights bool            `help:"Return the weights as well." group:"Attention"`
	With    []string        `help:"What is done besides, separated by commas: ${extras_help} (default nothing)." placeholder:"NAMES" group:"Attention"`
	Storage *tensor.Numbers `help:"Numbers in which a cache holds keys and values: float32, float16, bfloat16 or int8 (default float32)." placeholder:"NAME" group:"Attention"`
}

func (benchCommand) Help() string {
	return `Examples:

  attn bench                                        the usual shapes
  attn bench --op sdpa --h 12 --lq 1024 --e 64 --causal
  attn bench --op mha-train --b 8 --lq 128 --width 768 --h 12 --json
  attn bench --op gemm --lq 512 --lk 512 --e 512    a product 512×512×512
  attn bench --op decode --h 32 --g 8 --lk 8192 --e 128
  attn bench --ratios --format markdown             what positions, masks, caches and results cost
  attn bench --ratios --op sdpa --lq 512 --with top-keys

Milliseconds and allocated bytes are per call. GFLOP/s count useful operations, a
multiply-add as two: causal attention counts half of its square, a softmax nothing,
training 3.5 times the forward pass of attention and 3 times that of linear maps. The
peak is that of multiply-adds without memory, measured in the same run. Additive
and Gaussian scores are counted in triples of query, key and feature, each nominally
4 operations.
decode appends the keys and values of its queries to a KV cache and attends to all
that are there; decode-fixed finds them there. They are compared with the speed of
reading a buffer as large as these (read), which is that of the processor's cache if they
fit in it. generate is all steps of one token from an empty cache to --lk keys.

With --ratios, both sides of a row are measured in short turns, and the ratio of times is
the median over pairs of turns, with its quartiles. That of a mask is for a live tile: of
so many queries and keys as are computed at a time, where some query attends to some key.
The speed is the inverse of the ratio.`
}

// mostThreads is more than any machine has.
const mostThreads = 1 << 12

func (*benchCommand) touches() touched { return touched{} }

func (cmd *benchCommand) Run(ctx context.Context, c console) error {
	list, err := cmd.works()
	if err != nil {
		return usage("%w", err)
	}
	threads := runtime.GOMAXPROCS(0)
	set(&threads, cmd.Threads)
	switch {
	case threads < 1 || threads > mostThreads:
		return usage("--threads %d, want 1 to %d", threads, mostThreads)
	case cmd.Time <= 0:
		return usage("--time %v, want more than 0", cmd.Time)
	}
	if cmd.JSON && cmd.Format != nil {
		return usage("--json does not go with --format")
	}
	format := tableFormats[0]
	for _, f := range tableFormats {
		if cmd.Format != nil && f.name == *cmd.Format {
			format = f
		}
	}
	machine := bench.ThisMachine()
	if cmd.Ratios {
		return cmd.runRatios(ctx, c, list, threads, machine, format)
	}
	t := newTable(c.out, format, machine, threads, benchColumns(list))
	if !cmd.JSON {
		if err := t.begin(); err != nil {
			return err
		}
	}
	for _, w := range list {
		r, err := bench.Run(ctx, w, threads, cmd.Time)
		if err != nil {
			return err
		}
		if cmd.JSON {
			err = json.NewEncoder(c.out).Encode(newBenchResult(r, machine))
		} else {
			err = t.row(benchCells(r))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// works returns what the flags ask to be measured.
func (cmd *benchCommand) works() ([]bench.Work, error) {
	w := bench.Work{Causal: cmd.Causal, Weights: cmd.Weights, With: cmd.With}
	set(&w.Op, cmd.Op)
	set(&w.Mask, cmd.Mask)
	set(&w.Storage, cmd.Storage)
	set(&w.Dropout, cmd.Dropout)
	given := map[string]bool{"causal": cmd.Causal, "weights": cmd.Weights, "mask": cmd.Mask != nil, "dropout": cmd.Dropout != nil, "storage": cmd.Storage != nil, "with": len(cmd.With) > 0}
	for name, p := range map[string]struct{ to, flag *int }{
		"b": {&w.B, cmd.B}, "h": {&w.H, cmd.H}, "g": {&w.G, cmd.G}, "lq": {&w.Lq, cmd.Lq}, "lk": {&w.Lk, cmd.Lk},
		"e": {&w.E, cmd.E}, "v": {&w.V, cmd.V}, "width": {&w.Width, cmd.Width},
	} {
		given[name] = p.flag != nil
		if p.flag != nil && *p.flag < 1 { // 0 would be filled in
			return nil, fmt.Errorf("--%s %d, want at least 1", name, *p.flag)
		}
		set(p.to, p.flag)
	}
	for _, name := range []string{"b", "h", "g", "lq", "lk", "e", "v", "width", "causal", "mask", "dropout", "weights", "storage", "with"} {
		switch known := slices.Contains(bench.Ops(), w.Op); {
		case !given[name]:
		case cmd.Op == nil:
			return nil, fmt.Errorf("--%s goes with --op", name)
		case known && !w.Takes(name):
			return nil, fmt.Errorf("--%s does not go with --op %s", name, w.Op)
		}
	}
	if cmd.Op == nil {
		return bench.Usual(), nil
	}
	w, err := w.Complete()
	return []bench.Work{w}, err
}

// benchResult is a bench.Result in the form for programs. What does not apply is
// left out.
type benchResult struct {
	Op           string          `json:"op"`
	B            int             `json:"b,omitempty"`
	H            int             `json:"h,omitempty"`
	G            int             `json:"g,omitempty"`
	Lq           int             `json:"lq"`
	Lk           int             `json:"lk"`
	E            int             `json:"e"`
	V            int             `json:"v,omitempty"`
	Width        int             `json:"width,omitempty"`
	Causal       *bool           `json:"causal,omitempty"`
	Mask         *string         `json:"mask,omitempty"`
	Dropout      *float64        `json:"dropout,omitempty"`
	Weights      *bool           `json:"weights,omitempty"`
	Storage      *tensor.Numbers `json:"storage,omitempty"`
	With         []string        `json:"with,omitempty"`
	Threads      int             `json:"threads"`
	Median       float64         `json:"ms_median"`
	Min          float64         `json:"ms_min"`
	Max          float64         `json:"ms_max"`
	GFLOPS       float64         `json:"gflops"`
	PeakGFLOPS   float64         `json:"peak_gflops"`
	PeakShare    float64         `json:"peak_share"`
	Bytes        float64         `json:"bytes_per_op"`
	GTriples     float64         `json:"gtriples,omitempty"`
	ReadGBps     float64         `json:"read_gbps,omitempty"`
	PeakReadGBps float64         `json:"peak_read_gbps,omitempty"`
	ReadShare    float64         `json:"read_share,omitempty"`

	Machine bench.Machine `json:"machine"`
}

func newBenchResult(r bench.Result, machine bench.Machine) benchResult {
	w := r.Work
	b := benchResult{
		Op: w.Op, B: w.B, H: w.H, G: w.G, Lq: w.Lq, Lk: w.Lk, E: w.E, V: w.V, Width: w.Width, With: w.With,
		Machine: machine, Threads: r.Threads, Median: r.Median, Min: r.Min, Max: r.Max,
		GFLOPS: r.GFLOPS(), PeakGFLOPS: r.PeakGFLOPS, PeakShare: r.PeakShare(), Bytes: r.Bytes, GTriples: r.GTriples(),
	}
	if w.Takes("causal") {
		b.Causal, b.Mask, b.Weights = &w.Causal, &w.Mask, &w.Weights
	}
	if w.Takes("dropout") {
		b.Dropout = &w.Dropout
	}
	if w.Takes("storage") {
		b.Storage = &w.Storage
	}
	if r.ReadGBps() > 0 {
		b.ReadGBps = r.ReadGBps()
	}
	if r.PeakReadGBps > 0 {
		b.PeakReadGBps, b.ReadShare = r.PeakReadGBps, r.ReadShare()
	}
	return b
}

// benchColumns returns the head of the table.
func benchColumns(list []bench.Work) []tableColumn {
	width, besides, rank := 0, len("besides"), 1 // what all rows have besides matters
	for _, w := range list {
		width = max(width, utf8.RuneCountInString(w.Name()))
		switch {
		case w.CacheBytes() > 0:
			besides = max(besides, len("00.0 GB/s of 00.0 GB/s, 00.0%"))
		case w.Triples() > 0:
			besides = max(besides, len("00.00 G triples/s"))
		default:
			rank = 5
		}
	}
	return []tableColumn{
		{"work", -width, 0}, {"ms median", 9, 0}, {"min", 9, 2}, {"max", 9, 2},
		{"GFLOP/s", 7, 1}, {"peak", 7, 4}, {"share", 6, 1}, {"bytes", 9, 3}, {"besides", -besides, rank},
	}
}

// benchCells returns a row of the table.
func benchCells(r bench.Result) []string {
	besides := ""
	switch {
	case r.GTriples() > 0:
		besides = fmt.Sprintf("%.2f G triples/s", r.GTriples())
	case r.PeakReadGBps > 0:
		besides = fmt.Sprintf("%.1f GB/s of %.1f GB/s, %.1f%%", r.ReadGBps(), r.PeakReadGBps, 100*r.ReadShare())
	case r.ReadGBps() > 0:
		besides = fmt.Sprintf("%.1f GB/s", r.ReadGBps())
	}
	number := func(format string, x float64) string { return fmt.Sprintf(format, x) }
	return []string{
		r.Work.Name(), number("%.4g", r.Median), number("%.4g", r.Min), number("%.4g", r.Max), number("%.1f", r.GFLOPS()),
		number("%.1f", r.PeakGFLOPS), number("%.1f%%", 100*r.PeakShare()), number("%.0f", r.Bytes), besides,
	}
}
