// Command gomlx trains a transformer of attn with GoMLX: in Go on the CPU or, built with the tag xla, with XLA on
// CPUs, GPUs and TPUs, on one or several devices.
//
//	attn train --data pairs.tsv --prepare --out runs/big
//	go run -tags xla . -backend xla:cuda -devices 4 runs/big
//	attn train --resume --out runs/big
//
// Batches, schedule and loss are the same as in attn; dropout drops different elements. It writes a JSON object for
// each step to standard output, saves checkpoints, and saves when it is interrupted, as attn train --json --steps does.
//
// Matrices are multiplied in float32, or with -tf32 in TF32 on a GPU. Before the first step, it compiles a program for
// each of at most four lengths to which batches are padded. These depend only on the pairs and the settings of the
// run: a resumed run has the same.
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
	"slices"
	"strings"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"

	"github.com/attn-go/attn/internal/app/chart"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// options are the command line flags.
type options struct {
	backend                           string
	tf32                              bool
	devices, epochs, steps, saveEvery int
}

func main() {
	var o options
	flag.StringVar(&o.backend, "backend", "go", "go, or with the tag xla: xla:cpu, xla:cuda")
	flag.BoolVar(&o.tf32, "tf32", false, "multiply in TF32 with xla:cuda: faster, with 11 significant bits instead of 24")
	flag.IntVar(&o.devices, "devices", 1, "number of devices; each batch is divided among them")
	flag.IntVar(&o.epochs, "epochs", 0, "passes over the data, in total (default: as prepared)")
	flag.IntVar(&o.steps, "steps", 0, "stop after this number of steps (default: no limit)")
	flag.IntVar(&o.saveEvery, "save-every", 1000, "steps between saves within an epoch")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: gomlx [flags] DIR, a directory written by attn train --prepare")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || o.devices < 1 || o.epochs < 0 || o.steps < 0 || o.saveEvery < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := trainRun(ctx, flag.Arg(0), o, os.Stdout, os.Stderr)
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted; all progress is saved, and the same command continues")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gomlx:", err)
		os.Exit(1)
	}
}

// trainRun trains the run in a directory until all epochs, or the requested steps, are done, or until ctx ends.
func trainRun(ctx context.Context, path string, o options, out, messages io.Writer) error {
	s, err := train.Reopen(path, func(r train.Recipe) (train.Recipe, error) {
		r.Training.Epochs = cmp.Or(o.epochs, r.Training.Epochs)
		return r, nil
	}, train.Options{
		Prepared: true, Every: train.Interval{Steps: o.saveEvery}, JSON: out, Steps: true, Picture: chart.Picture,
	})
	if err != nil {
		return err
	}
	defer s.Close()
	switch c, _ := s.Model.TranslatorConfig(); {
	case c.Arch != models.Transformer:
		return fmt.Errorf("%s: the network is a %s, want a %s; interop/torch trains both", path, c.Arch, models.Transformer)
	case len(c.PrunedHeads) > 0:
		return fmt.Errorf("%s: the model is pruned, want one with all its heads", path)
	}
	backend, err := newBackend(o)
	if err != nil {
		return err
	}
	defer backend.Finalize()
	e, err := newEngine(backend, o.devices, s)
	if err != nil {
		return err
	}
	s.Trainer.Engine = e
	if done, _ := s.Trainer.Done(); done < s.Recipe.Training.Epochs {
		if err := e.compile(ctx, messages); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	limit := &limit{o.steps, stop}
	if err := s.Train(ctx, limit); o.steps == 0 || limit.left > 0 || !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// limit ends a training after a number of steps.
type limit struct {
	left int // 0 or less if there is no limit
	stop func()
}

// Step counts a step.
func (l *limit) Step(train.Progress) {
	if l.left--; l.left == 0 {
		l.stop()
	}
}

// Epoch does nothing: attn evaluates the model.
func (l *limit) Epoch(train.Progress, float64) {}

// newBackend returns the backend of the options, with at least as many devices.
func newBackend(o options) (compute.Backend, error) {
	config, err := backendConfig(o)
	if err != nil {
		return nil, err
	}
	b, err := compute.NewWithConfig(config)
	if err != nil {
		return nil, fmt.Errorf("backend %q: %w", o.backend, err)
	}
	if n := b.NumDevices(); n < o.devices {
		b.Finalize()
		return nil, fmt.Errorf("backend %q has %d devices, want %d", o.backend, n, o.devices)
	}
	return b, nil
}

// backendConfig returns GoMLX's configuration of a backend.
func backendConfig(o options) (string, error) {
	kind, rest, _ := strings.Cut(o.backend, ":")
	plugin, set, _ := strings.Cut(rest, ",")
	// go-xla also recognizes a device by the name, or the path, of its plugin.
	on := func(device string) bool { return kind == "xla" && strings.Contains(strings.ToLower(plugin), device) }
	switch kinds := slices.Sorted(slices.Values(compute.List())); {
	case o.tf32 && !on("cuda"):
		return "", fmt.Errorf("backend %q does not multiply in TF32; -tf32 needs xla:cuda", o.backend)
	case !slices.Contains(kinds, kind):
		known := strings.Join(kinds, ", ")
		return "", fmt.Errorf("backend %q, want one of %s; build with -tags xla for XLA", o.backend, known)
	case o.backend == "go":
		// Operations that run in parallel can take all workers and then wait for more forever (compute v0.1.3). Each
		// operation uses all workers anyway.
		return "go:ops_sequential", nil
	case kind != "xla":
		return o.backend, nil
	case strings.Contains(set, "tf32"):
		return "", fmt.Errorf("backend %q sets tf32; use -tf32", o.backend)
	case !on("cuda") && !on("cpu"):
		// go-xla v0.4.1 requests a precision of CUDA plugins only. A TPU multiplies in bfloat16 unless it is requested.
		return "", fmt.Errorf("backend %q may multiply in less than float32, want xla:cpu or xla:cuda", o.backend)
	}
	return fmt.Sprintf("%s,tf32=%t", o.backend, o.tf32), nil
}
