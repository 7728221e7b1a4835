// Package shards runs a filter over the parts of a corpus, with any scheduler that starts numbered processes.
//
// The division of the files depends only on the list of files and the number of shards. A shard is a folder with its
// output and a manifest, which are created atomically. A job can therefore be rerun until every shard is done. The
// manifests show that all shards used the same model, command and input, and that no line is missing or duplicated.
package shards

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/attn-go/attn/internal/quote"
)

// File is an input file.
type File struct {
	Path string
	Size int64
}

// Plan is the input: files whose lines form one sequence.
type Plan struct{ files []File }

// NewPlan finds the files that match the patterns, sorted by name. Empty files are left out.
//
// Errors: a pattern without matches, folders, compressed files, which cannot be split, and input without lines.
func NewPlan(patterns []string) (p Plan, err error) {
	var paths []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return p, fmt.Errorf("%s is not a pattern of files", quote.Text(pattern))
		}
		if len(found) == 0 {
			return p, fmt.Errorf("nothing matches %s", quote.Text(pattern))
		}
		for _, path := range found {
			paths = append(paths, filepath.Clean(path)) // ./a and a are the same file
		}
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return p, err
		case !info.Mode().IsRegular():
			return p, fmt.Errorf("%s is not a regular file", path)
		case slices.Contains([]string{".gz", ".bz2", ".xz", ".zst", ".zip"}, filepath.Ext(path)):
			return p, fmt.Errorf("%s is compressed, want files of lines", path)
		case info.Size() > 0:
			p.files = append(p.files, File{path, info.Size()})
		}
	}
	if len(p.files) == 0 {
		return p, errors.New("the input is empty")
	}
	return p, nil
}

// planHash returns a hash of the names and sizes of the files.
func planHash(files []File) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%d %q\n", f.Size, f.Path)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Piece is a part of a file that consists of whole lines.
type Piece struct {
	Path string `json:"path"`
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Size int64  `json:"size"` // of the file
}

// pieces returns the pieces of a shard: the lines that begin in the i-th of n equal parts of all bytes.
func (p Plan) pieces(i, n int) ([]Piece, error) {
	total := int64(0)
	for _, f := range p.files {
		total += f.Size
	}
	cut := func(i int) int64 { return total/int64(n)*int64(i) + total%int64(n)*int64(i)/int64(n) }
	from, to := cut(i), cut(i+1)
	var list []Piece
	start := int64(0)
	for _, f := range p.files {
		a, b := max(from-start, 0), min(to-start, f.Size)
		start += f.Size
		if a >= b {
			continue
		}
		piece := Piece{Path: f.Path, Size: f.Size}
		var err error
		if piece.From, err = lineFrom(f, a); err != nil {
			return nil, err
		}
		if piece.To, err = lineFrom(f, b); err != nil {
			return nil, err
		}
		if piece.From < piece.To {
			list = append(list, piece)
		}
	}
	return list, nil
}

// lineFrom returns the start of the first line that begins at or after at, or the end of the file.
func lineFrom(f File, at int64) (int64, error) {
	if at == 0 || at >= f.Size {
		return min(at, f.Size), nil
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	at--
	r := bufio.NewReaderSize(io.NewSectionReader(file, at, f.Size-at), 1<<12)
	for {
		b, err := r.ReadSlice('\n')
		at += int64(len(b))
		switch err {
		case nil, io.EOF:
			return at, nil
		case bufio.ErrBufferFull:
		default:
			return 0, err
		}
	}
}

// name describes the origin of pieces, for errors.
func name(i, n int, pieces []Piece) string {
	if len(pieces) == 0 {
		return fmt.Sprintf("shard %d of %d", i, n)
	}
	return fmt.Sprintf("shard %d of %d, which begins at byte %d of %s", i, n, pieces[0].From, pieces[0].Path)
}

// reader reads the lines of pieces, one file after another, and hashes them. An interrupted filter may still be
// reading when it returns; close waits for that read, and later reads fail.
type reader struct {
	mu     sync.Mutex
	pieces []Piece
	file   *os.File
	left   *io.SectionReader
	last   byte // the last byte read
	read   *hashed
	closed bool
}

func newReader(pieces []Piece) *reader { return &reader{pieces: pieces, read: newHashed()} }

func (r *reader) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, os.ErrClosed
	}
	n, err := r.next(b)
	r.read.Write(b[:n])
	return n, err
}

func (r *reader) next(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		if r.left == nil {
			if len(r.pieces) == 0 {
				return 0, io.EOF
			}
			p := r.pieces[0]
			r.pieces = r.pieces[1:]
			file, err := os.Open(p.Path)
			if err != nil {
				return 0, err
			}
			r.file, r.left, r.last = file, io.NewSectionReader(file, p.From, p.To-p.From), '\n'
		}
		n, err := r.left.Read(b)
		if n > 0 {
			r.last = b[n-1]
			return n, nil
		}
		if err != io.EOF {
			return 0, err
		}
		r.closeFile()
		if r.last != '\n' { // the last line of a file has no newline
			r.last = '\n'
			b[0] = '\n'
			return 1, nil
		}
	}
}

// close ends the input at its current position, and returns the size and hash of the bytes read.
func (r *reader) close() *hashed {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closeFile()
	r.closed = true
	return r.read
}

func (r *reader) closeFile() {
	if r.file != nil {
		r.file.Close()
		r.file, r.left = nil, nil
	}
}

// folder is the name of a shard's folder.
func folder(i, n int) string { return fmt.Sprintf("shard-%05d-of-%05d", i, n) }

// parseFolder is the inverse of folder.
func parseFolder(name string) (i, n int, ok bool) {
	if _, err := fmt.Sscanf(name, "shard-%d-of-%d", &i, &n); err != nil || folder(i, n) != name {
		return 0, 0, false
	}
	return i, n, true
}

// hashed counts and hashes the bytes written to it.
type hashed struct {
	hash.Hash
	bytes, lines int64
}

func newHashed() *hashed { return &hashed{Hash: sha256.New()} }

func (h *hashed) Write(b []byte) (int, error) {
	h.bytes += int64(len(b))
	h.lines += int64(bytes.Count(b, []byte("\n")))
	return h.Hash.Write(b)
}

func (h *hashed) hex() string { return hex.EncodeToString(h.Sum(nil)) }
