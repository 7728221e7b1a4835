package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// loading is a task that reads a model from files that are in the system's page cache. format is that in memory, 0 for
// parameters.
func (s shape) loading(threads int, file safetensors.DType, format tensor.Format) task {
	held := parameters
	if format != 0 {
		held = format.String()
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("attn-compare-%d-%s", os.Getpid(), file))
	path := filepath.Join(dir, "model.safetensors")
	best := once{Read: math.Inf(1), Fresh: math.Inf(1), Memory: math.Inf(1)} // of all rounds
	return s.kept(task{
		table: "Loading", name: fmt.Sprintf("load %s %s, %s", s.name, file, held), libraries: []string{"torch"},
		request: request{Work: bench.Work{Op: "load"}, File: path, Storage: held},
		start: func() (bench.Measurer, error) {
			return func(ctx context.Context, d time.Duration) (r bench.Result, err error) {
				var times []float64
				for start := time.Now(); len(times) < 5 || time.Since(start) < d; {
					o, err := loadInProcess(ctx, dir, held, threads)
					if err != nil {
						return r, err
					}
					times = append(times, o.Load)
					best = once{Read: min(best.Read, o.Read), Fresh: min(best.Fresh, o.Fresh), Memory: min(best.Memory, o.Memory)}
				}
				r.Median = bench.Median(times)
				return r, nil
			}, nil
		},
		share: func(r bench.Result) string {
			text := fmt.Sprintf("%.1f× reading, %.1f× reading into new memory", r.Median/best.Read, r.Median/best.Fresh)
			if best.Memory > 0 {
				text += fmt.Sprintf(", memory %.2f×", best.Memory/float64(cmp.Or(format, tensor.Float32).Bytes(s.weights())))
			}
			return text
		},
	}, dir, file)
}

// parameters is the name of the format of parameters.
const parameters = "parameters"

// once is the report of a process that has loaded one model. Each process loads a model only once, because a second
// load would reuse memory of the first.
type once struct {
	Load   float64 // milliseconds
	Memory float64 // peak memory of the process in bytes, less its memory before; 0 if unknown
	Read   float64 // milliseconds to read the same file into one small buffer
	Fresh  float64 // milliseconds to read it into new memory
}

// loadOnce is the first argument of such a process.
const loadOnce = "--load-once"

// loadInProcess starts a process that loads a model.
func loadInProcess(ctx context.Context, dir, held string, threads int) (o once, err error) {
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	cmd := exec.CommandContext(ctx, self, loadOnce, dir, held, strconv.Itoa(threads))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return o, fmt.Errorf("load %s: %w", dir, err)
	}
	return o, json.Unmarshal(out, &o)
}

// measureLoad is the main function of such a process.
func measureLoad(args []string, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("want directory, numbers and threads")
	}
	threads, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(threads)
	options := models.Options{Trainable: args[1] == parameters}
	if !options.Trainable {
		if err := options.Format.UnmarshalText([]byte(args[1])); err != nil {
			return err
		}
	}
	var o once
	path := filepath.Join(args[0], "model.safetensors")
	if o.Read, err = readAll(path, make([]byte, 128<<10)); err != nil {
		return err
	}
	before := memoryPeak()
	start := time.Now()
	m, err := models.Load(args[0], options)
	o.Load = milliseconds(start)
	if err != nil {
		return err
	}
	o.Memory = float64(memoryPeak() - before)
	runtime.KeepAlive(m)
	file, err := os.Stat(path)
	if err != nil {
		return err
	}
	if o.Fresh, err = readAll(path, make([]byte, file.Size())); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(o)
}

// readAll reads a file into a buffer, starting at its beginning each time the buffer is full, and returns the time.
func readAll(path string, buffer []byte) (ms float64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for start := time.Now(); ; {
		n, err := file.Read(buffer)
		switch {
		case err == io.EOF:
			return milliseconds(start), nil
		case err != nil:
			return 0, err
		}
		if n < len(buffer) && len(buffer) > 1<<20 { // the next call fills the rest of a large buffer
			buffer = buffer[n:]
		}
	}
}

func milliseconds(since time.Time) float64 { return float64(time.Since(since)) / 1e6 }

// memoryPeak returns the peak memory of this process in bytes, or 0 if the system does not report it.
func memoryPeak() (peak int) {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(status) {
		if _, err := fmt.Sscanf(string(line), "VmHWM: %d kB", &peak); err == nil {
			return peak << 10
		}
	}
	return 0
}
