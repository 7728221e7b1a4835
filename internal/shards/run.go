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
	"strings"
	"time"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/internal/strictjson"
)

// The files of a shard's folder.
const (
	OutputFile   = "output"
	ManifestFile = "manifest.json"
)

// Identity is what the lines of an output follow from, besides the input.
type Identity struct {
	Version string   `json:"version"` // of attn
	Command []string `json:"command"` // without the place of the model
	Model   string   `json:"model"`   // hash of its files
}

// Manifest tells of a shard that is done.
type Manifest struct {
	Shard  int `json:"shard"` // from 0
	Shards int `json:"of"`
	Identity
	Kernels  string  `json:"kernels"` // the instruction set, with which last digits may differ
	Input    Input   `json:"input"`
	Output   Output  `json:"output"`
	Rejected int     `json:"rejected"` // lines with an error in their place
	Seconds  float64 `json:"seconds"`
}

// Input is what a shard has read.
type Input struct {
	Plan   string  `json:"plan_sha256"` // names and sizes of all files
	Pieces []Piece `json:"pieces"`
	SHA256 string  `json:"sha256"` // of its bytes
}

// Output is what a shard has written.
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
	Dir     string // of the shards' folders
	Shards  int
	// Stream maps lines to lines.
	Stream func(ctx context.Context, in io.Reader, name string, out io.Writer) (filter.Stats, error)
}

// Error says what is wrong with shards, or with their lines.
type Error struct {
	err error
	// Other says that they are whole, but of another job.
	Other bool
}

// Error returns what is wrong, with the path.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns what is behind it.
func (e *Error) Unwrap() error { return e.err }

func bad(format string, args ...any) error { return &Error{err: fmt.Errorf(format, args...)} }

func other(format string, args ...any) error { return &Error{fmt.Errorf(format, args...), true} }

// ErrDone says that there is nothing to do.
var ErrDone = errors.New("is done")

// Check returns ErrDone if a shard is done, and another error if what is in its place is
// not of this job.
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
		return err
	}
	pieces, in, err := j.input(i)
	if err != nil {
		return err
	}
	if m.Input.Plan != hash(j.Plan.files) || !slices.Equal(m.Input.Pieces, pieces) || m.Input.SHA256 != in.hex() {
		return other("%s was made of another input, want another --output", dir)
	}
	return ErrDone
}

// is returns an error that says in what a shard is of another job.
func (m *Manifest) is(id Identity, dir string) error {
	differs := func(what, has, want string) error {
		return other("%s was made %s %s, not %s; want another --output", dir, what, has, want)
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

// checkOthers returns an error if the directory holds shards of another division.
func (j *Job) checkOthers() error {
	entries, err := os.ReadDir(j.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if _, n, ok := parseFolder(e.Name()); ok && n != j.Shards {
			return other("%s holds %s, want one of %d shards; want another --output", j.Dir, e.Name(), j.Shards)
		}
	}
	return nil
}

// input returns the pieces of a shard, read and hashed.
func (j *Job) input(i int) ([]Piece, *hashed, error) {
	pieces, err := j.Plan.pieces(i, j.Shards)
	if err != nil {
		return nil, nil, err
	}
	r := newReader(pieces)
	_, err = io.Copy(io.Discard, r)
	return pieces, r.close(), err
}

// Run makes a shard. It is there whole or not at all.
//
// Errors: ErrDone if it is there already, and atomicfile.ErrInUse, wrapped, if another
// process is making it.
func (j *Job) Run(ctx context.Context, i int) (*Manifest, error) {
	if err := j.Check(i); err != nil {
		return nil, err
	}
	d, err := atomicfile.Lock(filepath.Join(j.Dir, folder(i, j.Shards)))
	if err != nil {
		return nil, err
	}
	defer d.Unlock()
	if err := j.Check(i); err != nil { // somebody else may have made it meanwhile
		return nil, err
	}
	pieces, err := j.Plan.pieces(i, j.Shards)
	if err != nil {
		return nil, err
	}
	m := &Manifest{
		Shard: i, Shards: j.Shards, Identity: j.Identity, Kernels: j.Kernels,
		Input: Input{Plan: hash(j.Plan.files), Pieces: pieces},
	}
	var failed error // without the name of the file to be written
	err = d.Replace([]atomicfile.File{
		{Path: OutputFile, Write: func(w io.Writer) error {
			start := time.Now()
			r, out := newReader(pieces), newHashed()
			var stats filter.Stats
			stats, failed = j.Stream(ctx, r, name(i, j.Shards, pieces), io.MultiWriter(w, out))
			in := r.close()
			if failed == nil && (in.lines != out.lines || int64(stats.Lines) != out.lines) {
				failed = fmt.Errorf("%d lines became %d", in.lines, out.lines)
			}
			m.Input.SHA256, m.Output = in.hex(), Output{out.lines, out.bytes, out.hex()}
			m.Rejected, m.Seconds = stats.Rejected, time.Since(start).Seconds()
			return failed
		}},
		// Written behind the output, when all of it is known.
		{Path: ManifestFile, Write: func(w io.Writer) error { return atomicfile.JSON("", m).Write(w) }},
	})
	if failed != nil {
		return nil, failed
	}
	return m, err
}

// readManifest returns that of a shard's folder.
func readManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	var data []byte
	err := atomicfile.Read(path, func(place string) (err error) {
		data, err = os.ReadFile(place)
		return err
	})
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	if err := strictjson.Lenient(data, m); err != nil {
		return nil, bad("%s is no manifest of a shard: %w", path, err)
	}
	return m, nil
}
