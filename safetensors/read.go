package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
)

const prefixSize = 8 // bytes of the header length

// Read reads the whole file at path. To read only parts, or a model of several files, use Open.
//
// Errors: a *FormatError with the path if the file is invalid, or if the path is a folder or a device; otherwise the
// operating system's error, wrapped.
func Read(path string) (*File, error) {
	s, err := openShard(path)
	if err != nil {
		return nil, err
	}
	defer s.close()
	data := make([]byte, s.size-s.begin)
	if err := s.readAt(data, s.begin); err != nil {
		return nil, err
	}
	return s.file(data), nil
}

// Parse parses a safetensors file that is already in memory.
//
// Errors: always a *FormatError.
//
// Aliasing: the Data of the tensors are slices of data.
func Parse(data []byte) (*File, error) {
	s, err := newShard("", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	return s.file(data[s.begin:]), nil
}

// shard is an open file of which only the header has been read.
type shard struct {
	path     string // empty for a file without a path
	r        io.ReaderAt
	size     int64
	begin    int64 // offset of the data
	metadata map[string]string
	tensors  []entry // in the order of their data
}

// openShard opens the file at path and reads its header.
func openShard(path string) (*shard, error) {
	file, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	s, err := anyShard(path, file, size)
	if err != nil {
		file.Close()
	}
	return s, err
}

// openRegular opens a file and returns its size.
func openRegular(path string) (*os.File, int64, error) {
	// Check first: opening a named pipe would block until there is a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, fmt.Errorf("safetensors: %w", err)
	}
	if err := checkRegular(path, info); err != nil {
		return nil, 0, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("safetensors: %w", err)
	}
	// Check again: the path may have been replaced since.
	if info, err = file.Stat(); err != nil {
		err = fmt.Errorf("safetensors: %w", err)
	} else {
		err = checkRegular(path, info)
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

func checkRegular(path string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return &FormatError{path, errors.New("is a folder, want a file")}
	case !info.Mode().IsRegular():
		return &FormatError{path, errors.New("is not a regular file")}
	}
	return nil
}

// newShard reads the header of a file of size bytes. Before it reads a part, it checks that the file is long enough.
func newShard(path string, r io.ReaderAt, size int64) (*shard, error) {
	s := &shard{path: path, r: r, size: size}
	if size < prefixSize {
		return nil, s.bad(fmt.Errorf("file has %d bytes, want at least %d for the header length", size, prefixSize))
	}
	if size > min(maxFile, math.MaxInt) {
		return nil, s.bad(fmt.Errorf("file has %d bytes, more than can be read", size))
	}
	prefix := make([]byte, prefixSize)
	if err := s.readAt(prefix, 0); err != nil {
		return nil, err
	}
	length, err := headerLength(prefix, size)
	if err != nil {
		return nil, s.bad(err)
	}
	text := make([]byte, length)
	if err := s.readAt(text, prefixSize); err != nil {
		return nil, err
	}
	if s.metadata, s.tensors, err = parseHeader(text); err != nil {
		return nil, s.bad(err)
	}
	s.begin = int64(prefixSize + length)
	if err := checkLayout(s.tensors, int(size-s.begin)); err != nil {
		return nil, s.bad(err)
	}
	return s, nil
}

// file returns the content of the file, given all its data.
func (s *shard) file(data []byte) *File {
	f := &File{Metadata: s.metadata, Tensors: make([]Tensor, len(s.tensors))}
	for i, t := range s.tensors {
		// Limit the capacity, so that an append to one tensor does not overwrite the next.
		f.Tensors[i] = Tensor{t.Name, t.DType, t.Shape, data[t.begin:t.end:t.end]}
	}
	return f
}

// readAt fills b from an offset.
func (s *shard) readAt(b []byte, offset int64) error {
	n, err := s.r.ReadAt(b, offset)
	switch {
	case n == len(b):
		return nil // a reader may return io.EOF at the end
	case err == nil || err == io.EOF || err == io.ErrUnexpectedEOF:
		return fmt.Errorf("safetensors: %s became shorter while it was read", cmp.Or(s.path, "the file"))
	}
	return fmt.Errorf("safetensors: %w", err)
}

func (s *shard) close() error {
	if c, ok := s.r.(*os.File); ok {
		return c.Close()
	}
	return nil
}

func (s *shard) bad(err error) error { return &FormatError{s.path, err} }

func headerLength(prefix []byte, size int64) (int, error) {
	n := binary.LittleEndian.Uint64(prefix)
	follow := uint64(size) - prefixSize
	switch {
	case n > min(maxHeader, follow):
		if kind := otherFormat(prefix); kind != "" {
			return 0, fmt.Errorf("is %s", kind)
		}
		if n > maxHeader {
			return 0, fmt.Errorf("is not a safetensors file: it begins with %q", prefix)
		}
		return 0, fmt.Errorf("header length is %d, but only %d bytes follow", n, follow)
	case n < 2:
		return 0, fmt.Errorf("header length is %d, want at least 2", n)
	}
	return int(n), nil
}

// otherFormat names the file format that prefix belongs to, among those often passed by mistake, or returns "". An
// error about the header length would not help for such files.
func otherFormat(prefix []byte) string {
	switch {
	case string(prefix) == "version ":
		return "a Git LFS pointer, not the file itself: run git lfs pull"
	case string(prefix[:4]) == "PK\x03\x04":
		return "a zip archive, perhaps of PyTorch, not a safetensors file"
	case prefix[0] == 0x80 && prefix[1] <= 5 && string(prefix[4:]) != "\x00\x00\x00\x00": // or else it is a length
		return "a pickle, as of torch.save before PyTorch 1.6, which is not read: in Python, torch.save(torch.load(FILE), FILE) writes a newer one, " +
			"and save_pretrained of transformers writes safetensors"
	case string(prefix[:4]) == "GGUF":
		return "a GGUF file, not a safetensors file"
	case prefix[0] == '{':
		return "a JSON file, not a safetensors file"
	}
	return ""
}
