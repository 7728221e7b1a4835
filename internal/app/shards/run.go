package shards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/internal/strictjson"
)

// The files of a shard's folder.
const (
	OutputFile   = "output"
	ManifestFile = "manifest.json"
)

// Identity determines the lines of an output, together with the input.
type Identity struct {
	Version string   `json:"version"` // of attn
	Command []string `json:"command"` // without the path of the model
	Model   string   `json:"model"`   // hash of its files
}

// Manifest describes a finished shard.
type Manifest struct {
	Shard  int `json:"shard"` // from 0
	Shards int `json:"of"`
	Identity
	Kernels  string  `json:"kernels"` // the instruction set, which can change the last digits
	Input    Input   `json:"input"`
	Output   Output  `json:"output"`
	Rejected int     `json:"rejected"` // lines replaced by an error
	Seconds  float64 `json:"seconds"`
}

// String returns a line with the results of a shard.
func (m *Manifest) String() string {
	return fmt.Sprintf("shard %d of %d: %d lines, %d rejected, %v",
		m.Shard, m.Shards, m.Output.Lines, m.Rejected, seconds(m.Seconds, 100*time.Millisecond))
}

// Input describes the input that a shard has read.
type Input struct {
	Plan   string  `json:"plan_sha256"` // names and sizes of all files
	Pieces []Piece `json:"pieces"`
	SHA256 string  `json:"sha256"` // of its bytes
}

// Output describes the output of a shard.
type Output struct {
	Lines  int64  `json:"lines"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Job is a filter over a corpus.
type Job struct {
	Identity
	Kernels string
	Plan    Plan
	Dir     string // contains the folders of the shards
	Shards  int
	// Load returns the stream. It is called for the first shard that is not done.
	Load   func() (Stream, error)
	stream Stream
}

// Stream maps lines to lines. Its errors contain the name of the input.
type Stream = func(ctx context.Context, in io.Reader, name string, out io.Writer) (filter.Stats, error)

// bad returns an error in shards, or in their lines. It names the path.
func bad(format string, args ...any) error { return &input.Error{Err: fmt.Errorf(format, args...)} }

// ErrDone says that the shard is already done.
var ErrDone = errors.New("is done")

// Check returns ErrDone if a shard is done, and a *flags.Error if its folder belongs to another job.
func (j *Job) Check(i int) error {
	if i < 0 || i >= j.Shards {
		return fmt.Errorf("no shard %d of %d, want 0 to %d", i, j.Shards, j.Shards-1)
	}
	if err := j.checkOthers(); err != nil {
		return err
	}
	dir := filepath.Join(j.Dir, folder(i, j.Shards))
	m, err := readManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := m.is(j.Identity, dir); err != nil {
		return flags.Errorf("%w", err)
	}
	pieces, in, err := j.input(i)
	if err != nil {
		return err
	}
	if m.Input.Plan != planHash(j.Plan.files) || !slices.Equal(m.Input.Pieces, pieces) || m.Input.SHA256 != in.hex() {
		return flags.Errorf("%s was made from another input; use another --output", dir)
	}
	return ErrDone
}

// is returns an error that describes how a shard's job differs from id.
func (m *Manifest) is(id Identity, dir string) error {
	differs := func(what, has, want string) error {
		return fmt.Errorf("%s was made %s %s, not %s; want another --output", dir, what, has, want)
	}
	switch {
	case m.Version != id.Version:
		return differs("by attn", m.Version, id.Version)
	case !slices.Equal(m.Command, id.Command):
		return differs("by", strings.Join(m.Command, " "), strings.Join(id.Command, " "))
	case m.Model != id.Model:
		return differs("with model", short(m.Model), short(id.Model))
	}
	return nil
}

func short(hash string) string { return hash[:min(12, len(hash))] }

// checkOthers returns an error if the directory contains shards of another division.
func (j *Job) checkOthers() error {
	entries, err := os.ReadDir(j.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if _, n, ok := parseFolder(e.Name()); ok && n != j.Shards {
			return flags.Errorf("%s contains %s, want a division into %d shards, or another --output", j.Dir, e.Name(), j.Shards)
		}
	}
	return nil
}

// input returns the pieces of a shard, with their size and hash.
func (j *Job) input(i int) ([]Piece, *hashed, error) {
	pieces, err := j.Plan.pieces(i, j.Shards)
	if err != nil {
		return nil, nil, err
	}
	r := newReader(pieces)
	_, err = io.Copy(io.Discard, r)
	return pieces, r.close(), err
}

// Run computes a shard and writes it atomically.
//
// Errors: ErrDone if the shard is already done, and atomicfile.ErrInUse, wrapped, if another process is computing it.
func (j *Job) Run(ctx context.Context, i int) (*Manifest, error) {
	err := j.Check(i)
	if err == nil && j.stream == nil {
		j.stream, err = j.Load()
	}
	if err != nil {
		return nil, err
	}
	d, err := atomicfile.Lock(filepath.Join(j.Dir, folder(i, j.Shards)))
	if err != nil {
		return nil, err
	}
	defer d.Unlock()
	if err := j.Check(i); err != nil { // another process may have finished it meanwhile
		return nil, err
	}
	pieces, err := j.Plan.pieces(i, j.Shards)
	if err != nil {
		return nil, err
	}
	m := &Manifest{
		Shard: i, Shards: j.Shards, Identity: j.Identity, Kernels: j.Kernels,
		Input: Input{Plan: planHash(j.Plan.files), Pieces: pieces},
	}
	var failed error // without the name of the output file
	err = d.Replace([]atomicfile.File{
		{Path: OutputFile, Write: func(w io.Writer) error {
			start := time.Now()
			r, out := newReader(pieces), newHashed()
			var stats filter.Stats
			stats, failed = j.stream(ctx, r, name(i, j.Shards, pieces), io.MultiWriter(w, out))
			in := r.close()
			if failed == nil && (in.lines != out.lines || int64(stats.Lines) != out.lines) {
				failed = fmt.Errorf("%d lines of input gave %d lines of output, want as many", in.lines, out.lines)
			}
			m.Input.SHA256, m.Output = in.hex(), Output{out.lines, out.bytes, out.hex()}
			m.Rejected, m.Seconds = stats.Rejected, time.Since(start).Seconds()
			return failed
		}},
		// Written after the output, when all numbers are known.
		{Path: ManifestFile, Write: func(w io.Writer) error { return atomicfile.JSON("", m).Write(w) }},
	})
	if failed != nil {
		return nil, failed
	}
	return m, err
}

// readManifest returns the manifest of a shard's folder.
func readManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	data, err := atomicfile.ReadFile(path, atomicfile.Large)
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	if err := strictjson.Lenient(data, m); err != nil {
		return nil, bad("%s is not the manifest of a shard: %w", path, err)
	}
	return m, nil
}

// Variables are the environment variables in which schedulers pass the number of a task, from 0.
var Variables = []string{"JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"}

// Numbers returns which of n shards to process: the given number, or the number in the first of Variables that is set,
// or all. lookup is os.LookupEnv.
//
// Errors: *flags.Error if there is no such shard.
func Numbers(given *int, n int, lookup func(string) (string, bool)) ([]int, error) {
	if given != nil {
		if *given < 0 || *given >= n {
			return nil, flags.Errorf("--shard %d, want 0 to %d", *given, n-1)
		}
		return []int{*given}, nil
	}
	for _, name := range Variables {
		text, ok := lookup(name)
		if !ok {
			continue
		}
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || i >= n {
			return nil, flags.Errorf("%s is %q, want the number of a shard, 0 to %d", name, text, n-1)
		}
		return []int{i}, nil
	}
	return stats.Numbers(n), nil
}
