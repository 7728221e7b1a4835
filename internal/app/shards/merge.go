package shards

import (
	"encoding/json"
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
)

// Merged describes all shards of a directory together.
type Merged struct {
	Identity
	Shards   int
	Lines    int64
	Rejected int
	Seconds  float64
	Kernels  []string // the distinct instruction sets of the shards
}

// Merge checks that a directory contains all shards of one job, and that together they cover every line of the input
// exactly once. Then it writes their outputs in order. On an error in the shards it writes nothing.
func Merge(dir string, out io.Writer) (sum Merged, err error) {
	list, err := manifests(dir)
	if err != nil {
		return sum, err
	}
	if err := whole(list, dir); err != nil {
		return sum, err
	}
	sum.Identity = list[0].Identity
	for _, m := range list {
		if err := m.copy(dir, io.Discard); err != nil {
			return sum, err
		}
		sum.Shards++
		sum.Lines += m.Output.Lines
		sum.Rejected += m.Rejected
		sum.Seconds += m.Seconds
		sum.Kernels = append(sum.Kernels, m.Kernels)
	}
	slices.Sort(sum.Kernels)
	sum.Kernels = slices.Compact(sum.Kernels)
	for _, m := range list {
		if err := m.copy(dir, out); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// MergeSums is Merge, but writes the sums and means of all numbers as a JSON object instead of the lines.
func MergeSums(dir string, out io.Writer) (Merged, error) {
	var sums Sums
	sum, err := Merge(dir, &sums)
	if err != nil {
		return sum, err
	}
	sums.Job = &sum.Identity
	return sum, json.NewEncoder(out).Encode(&sums)
}

// manifests returns the manifests of all shards, in order.
func manifests(dir string) ([]*Manifest, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	n, found := 0, ""
	for _, e := range entries {
		_, shards, ok := parseFolder(e.Name())
		switch {
		case !ok:
		case n == 0:
			n, found = shards, e.Name()
		case n != shards:
			return nil, bad("%s contains both %s and %s, want the shards of one division", dir, found, e.Name())
		}
	}
	if n == 0 {
		return nil, bad("%s contains no shards", dir)
	}
	var list []*Manifest
	var missing []string
	for i := range n {
		m, err := readManifest(filepath.Join(dir, folder(i, n)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, fmt.Sprint(i))
		case err != nil:
			return nil, err
		case m.Shard != i || m.Shards != n:
			return nil, bad("%s contains shard %d of %d", filepath.Join(dir, folder(i, n)), m.Shard, m.Shards)
		default:
			list = append(list, m)
		}
	}
	if lacks := len(missing); lacks > 0 {
		const most = 20
		if lacks > most {
			missing = append(missing[:most], "and others")
		}
		return nil, bad("%s lacks %d of %d shards: %s", dir, lacks, n, strings.Join(missing, " "))
	}
	return list, nil
}

// whole returns an error unless the shards are from one job and their pieces cover every line of its files exactly
// once.
func whole(list []*Manifest, dir string) error {
	first := list[0]
	var files []File
	at := Piece{} // the previous piece
	for i, m := range list {
		place := filepath.Join(dir, folder(i, m.Shards))
		if err := m.is(first.Identity, place); err != nil {
			return bad("%w", err)
		}
		if m.Input.Plan != first.Input.Plan {
			return bad("%s was made from another input than %s", place, folder(0, m.Shards))
		}
		for _, p := range m.Input.Pieces {
			switch {
			case p.Path == at.Path && p.From == at.To:
			case p.Path != at.Path && p.From == 0 && at.To == at.Size:
				files = append(files, File{p.Path, p.Size})
			default:
				return bad("%s begins at byte %d of %s, but the shards before end at byte %d of %s", place, p.From, p.Path, at.To, at.Path)
			}
			at = p
		}
	}
	if at.To != at.Size || planHash(files) != first.Input.Plan {
		return bad("the shards in %s do not cover the whole input", dir)
	}
	return nil
}

// copy copies the output of a shard to out.
func (m *Manifest) copy(dir string, out io.Writer) error {
	path := filepath.Join(dir, folder(m.Shard, m.Shards), OutputFile)
	f, err := atomicfile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := newHashed()
	if _, err := io.Copy(io.MultiWriter(out, h), f); err != nil {
		return err
	}
	if got := (Output{h.lines, h.bytes, h.hex()}); got != m.Output {
		return bad("%s is not what its manifest says: %d lines and %d bytes, want %d and %d", path, got.Lines, got.Bytes, m.Output.Lines, m.Output.Bytes)
	}
	return nil
}

// String returns a line with the results of all shards, and a second one if their last digits may differ.
func (m Merged) String() string {
	text := fmt.Sprintf("%d shards: %d lines, %d rejected, %v", m.Shards, m.Lines, m.Rejected, seconds(m.Seconds, time.Second))
	if len(m.Kernels) > 1 {
		text += fmt.Sprintf("\ncomputed with kernels %s: the last digits may differ between them", strings.Join(m.Kernels, ", "))
	}
	return text
}

func seconds(s float64, unit time.Duration) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(unit)
}
