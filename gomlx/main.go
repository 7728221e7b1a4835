// Command gomlx trains a transformer of attn with GoMLX: in Go on the CPU or, built with the tag xla, with XLA on
// CPUs, GPUs and TPUs, on one or several devices.
//
//	attn train --data pairs.tsv --prepare --out runs/big
//	go run -tags xla . -backend xla:cuda -devices 4 runs/big
//	attn train --resume --out runs/big
//
// Batches, schedule and loss are the same as in attn; dropout drops different elements. For each step it writes a
// JSON object to standard output, as attn train --json --steps does.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/support/exceptions"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// options are the command line flags.
type options struct {
	backend                           string
	devices, epochs, steps, saveEvery int
}

func main() {
	var o options
	flag.StringVar(&o.backend, "backend", "go", "go, or with the tag xla: xla:cpu, xla:cuda, xla:tpu")
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
	if err := trainRun(flag.Arg(0), o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gomlx:", err)
		os.Exit(1)
	}
}

// trainRun trains the run in a directory until all epochs, or the requested steps, are done.
func trainRun(path string, o options, out io.Writer) error {
	r, err := openRun(path)
	if err != nil {
		return err
	}
	defer r.close()
	if o.epochs == 0 {
		o.epochs = r.settings.Epochs
	}
	backend, err := newBackend(o.backend, o.devices)
	if err != nil {
		return err
	}
	defer backend.Finalize()
	e, err := newEngine(backend, o.devices, r)
	if err != nil {
		return err
	}
	rows := (r.settings.Batch + o.devices - 1) / o.devices * o.devices
	encoder := json.NewEncoder(out)
	unsaved := 0
	save := func() error {
		if unsaved == 0 {
			return nil
		}
		unsaved = 0
		if err := e.read(r); err != nil { // otherwise the checkpoint would mix two steps
			return err
		}
		return r.save()
	}
	for done := 0; r.at.Epoch < o.epochs; {
		batches := train.Batches(r.lengths, r.settings.Batch, r.settings.Seed, r.at.Epoch)
		for r.at.Step < len(batches) {
			if o.steps > 0 && done == o.steps {
				return save()
			}
			start := time.Now()
			batch := batches[r.at.Step]
			loss, norm, err := guarded(func() (float32, float32, error) { return e.step(r.at.Total+1, r.rectangles(batch, rows)) })
			if err != nil {
				return err
			}
			if sum := float64(loss) + float64(norm); math.IsNaN(sum) || math.IsInf(sum, 0) {
				return fmt.Errorf("epoch %d, step %d: %w", r.at.Epoch+1, r.at.Step+1, models.ErrDiverged)
			}
			r.count(batch, float64(loss), time.Since(start))
			done++
			unsaved++
			if err := encoder.Encode(stepLine{update, r.at.Epoch + 1, r.at.Step, loss, norm}); err != nil {
				return err
			}
			if r.at.Step < len(batches) && unsaved >= o.saveEvery {
				if err := save(); err != nil {
					return err
				}
			}
		}
		if err := r.endEpoch(); err != nil {
			return err
		}
		if err := save(); err != nil {
			return err
		}
	}
	return nil
}

// update is the kind of a step's line.
const update = "update"

// stepLine is the output for a step.
type stepLine struct {
	Kind  string  `json:"kind"` // update, as in attn train --steps
	Epoch int     `json:"epoch"`
	Step  int     `json:"step"`
	Loss  float32 `json:"loss"`
	Norm  float32 `json:"norm"`
}

// count adds a step to the position.
func (r *run) count(batch []int, loss float64, took time.Duration) {
	targets := 0
	for _, p := range batch {
		targets += r.lengths[p][1]
		r.at.Tokens += r.lengths[p][0] + r.lengths[p][1]
	}
	r.at.Step++
	r.at.Total++
	r.at.Loss += loss * float64(targets)
	r.at.Count += targets
	r.at.Seconds += took.Seconds()
}

// endEpoch records an epoch and starts the next.
func (r *run) endEpoch() error {
	line, err := json.Marshal(struct {
		Kind      string   `json:"kind"`
		Epoch     int      `json:"epoch"`
		Step      int      `json:"step"` // over all epochs
		TrainLoss float64  `json:"train_loss"`
		ValidLoss *float64 `json:"valid_loss"` // measured by attn
		Tokens    int      `json:"tokens"`
		Seconds   float64  `json:"seconds"`
	}{"epoch", r.at.Epoch + 1, r.at.Total, r.at.Loss / float64(r.at.Count), nil, r.at.Tokens, r.at.Seconds})
	if err != nil {
		return err
	}
	r.metrics = append(append(r.metrics, line...), '\n')
	r.at = position{Epoch: r.at.Epoch + 1, Total: r.at.Total}
	return nil
}

// newBackend returns a backend with at least the given number of devices.
func newBackend(name string, devices int) (compute.Backend, error) {
	kind, _, _ := strings.Cut(name, ":")
	if kinds := slices.Sorted(slices.Values(compute.List())); !slices.Contains(kinds, kind) {
		return nil, fmt.Errorf("backend %q, want one of %s; build with -tags xla for XLA", name, strings.Join(kinds, ", "))
	}
	config := name
	if name == "go" {
		// Operations that run in parallel can take all workers and then wait for more forever (compute v0.1.3). Each
		// operation uses all workers anyway.
		config = "go:ops_sequential"
	}
	b, err := compute.NewWithConfig(config)
	if err != nil {
		return nil, fmt.Errorf("backend %q: %w", name, err)
	}
	if n := b.NumDevices(); n < devices {
		b.Finalize()
		return nil, fmt.Errorf("backend %q has %d devices, want %d", name, n, devices)
	}
	return b, nil
}

// guarded turns GoMLX's panics about invalid graphs into errors.
func guarded(f func() (float32, float32, error)) (loss, norm float32, err error) {
	failed := exceptions.TryCatch[error](func() { loss, norm, err = f() })
	return loss, norm, errors.Join(failed, err)
}
