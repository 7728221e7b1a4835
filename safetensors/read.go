package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
)

const prefixSize = 8 // bytes of the header length

// Read reads the file at path.
//
// Errors: a *FormatError with the path if the file is not what it should be,
// which includes a folder or a device in its place; else the error of the
// operating system, wrapped.
func Read(path string) (*File, error) {
	f, err := read(path)
	if bad, ok := err.(*FormatError); ok {
		bad.Path = path
	}
	return f, err
}

func read(path string) (*File, error) {
	// Looking before opening: to open a named pipe would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if err := checkRegular(info); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	defer file.Close()
	// Looking again: the name may mean another file by now.
	if info, err = file.Stat(); err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if err := checkRegular(info); err != nil {
		return nil, err
	}

	next := func(n int) ([]byte, error) {
		b := make([]byte, n)
		_, err := io.ReadFull(file, b)
		switch err {
		case nil:
			return b, nil
		case io.EOF, io.ErrUnexpectedEOF:
			return nil, fmt.Errorf("safetensors: %s became shorter while it was read", path)
		}
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return decode(info.Size(), next)
}

func checkRegular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return &FormatError{Err: errors.New("is a folder, want a file")}
	case !info.Mode().IsRegular():
		return &FormatError{Err: errors.New("is not a regular file")}
	}
	return nil
}

// Parse reads a file that is in memory already.
//
// Errors: always a *FormatError.
//
// Aliasing: the Data of the tensors are parts of data.
func Parse(data []byte) (*File, error) {
	rest := data
	return decode(int64(len(data)), func(n int) ([]byte, error) {
		b := rest[:n:n]
		rest = rest[n:]
		return b, nil
	})
}

// decode reads a file of size bytes. It asks next for its parts from front to
// back, each one only when what came before proves that it has that length.
func decode(size int64, next func(n int) ([]byte, error)) (*File, error) {
	if size < prefixSize {
		return nil, badFile("file has %d bytes, want at least %d for the header length", size, prefixSize)
	}
	if size > min(maxFile, math.MaxInt) {
		return nil, badFile("file has %d bytes, more than can be read", size)
	}
	prefix, err := next(prefixSize)
	if err != nil {
		return nil, err
	}
	length, err := headerLength(prefix, size)
	if err != nil {
		return nil, &FormatError{Err: err}
	}
	text, err := next(length)
	if err != nil {
		return nil, err
	}
	metadata, tensors, err := parseHeader(text)
	if err != nil {
		return nil, &FormatError{Err: err}
	}
	dataSize := int(size) - prefixSize - length
	if err := checkLayout(tensors, dataSize); err != nil {
		return nil, &FormatError{Err: err}
	}
	data, err := next(dataSize)
	if err != nil {
		return nil, err
	}

	f := &File{Metadata: metadata, Tensors: make([]Tensor, len(tensors))}
	for i, t := range tensors {
		f.Tensors[i] = t.Tensor
		// The capacity ends with the tensor, so that an append to it does not
		// run into the next one.
		f.Tensors[i].Data = data[t.begin:t.end:t.end]
	}
	return f, nil
}

func headerLength(prefix []byte, size int64) (int, error) {
	n := binary.LittleEndian.Uint64(prefix)
	room := uint64(size) - prefixSize
	switch {
	case n > min(maxHeader, room):
		if kind := otherFormat(prefix); kind != "" {
			return 0, fmt.Errorf("is %s", kind)
		}
		if n > maxHeader {
			return 0, fmt.Errorf("header length is %d, want at most %d", n, maxHeader)
		}
		return 0, fmt.Errorf("header length is %d, but only %d bytes follow", n, room)
	case n < 2:
		return 0, fmt.Errorf("header length is %d, want at least 2", n)
	}
	return int(n), nil
}

// otherFormat names what people give by mistake, if prefix is the start of it.
// A header length of such a size would be an unhelpful thing to complain about.
func otherFormat(prefix []byte) string {
	switch {
	case string(prefix) == "version ":
		return "a Git LFS pointer, not the file itself: run git lfs pull"
	case string(prefix[:4]) == "PK\x03\x04":
		return "a zip archive, perhaps of PyTorch, not a safetensors file"
	case string(prefix[:4]) == "GGUF":
		return "a GGUF file, not a safetensors file"
	case prefix[0] == '{':
		return "a JSON file, not a safetensors file"
	}
	return ""
}

func badFile(format string, args ...any) error {
	return &FormatError{Err: fmt.Errorf(format, args...)}
}
