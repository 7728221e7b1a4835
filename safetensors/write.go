package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/atomicfile"
)

// headerAlign is what the header is padded to a multiple of, so that data which
// begin a page of memory keep every element type aligned.
const headerAlign = 8

// Write writes f to w: the tensors in their order, the keys of the metadata
// sorted. Equal files give equal bytes.
//
// Errors: a name that comes twice, is reserved, not UTF-8 or too long; an
// unknown type; data whose length is not that of type and shape; more than the
// format allows. All of this is found before the first byte is written.
func (f *File) Write(w io.Writer) error {
	header, err := f.header()
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	if _, err := w.Write(header); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	for i := range f.Tensors {
		if _, err := w.Write(f.Tensors[i].Data); err != nil {
			return fmt.Errorf("safetensors: %w", err)
		}
	}
	return nil
}

// WriteFile writes f to the file at path. The file that was there is replaced
// when the new one is complete, and left as it was after an error.
func (f *File) WriteFile(path string) error {
	return atomicfile.Write(path, f.Write)
}

// header returns the bytes before the data. Whatever it accepts, Parse accepts.
func (f *File) header() ([]byte, error) {
	if len(f.Tensors) > maxTensors {
		return nil, fmt.Errorf("file has %d tensors, want at most %d", len(f.Tensors), maxTensors)
	}
	b := make([]byte, prefixSize, 1024)
	b = append(b, '{')
	if len(f.Metadata) > 0 {
		var err error
		if b, err = appendMetadata(b, f.Metadata); err != nil {
			return nil, err
		}
	}
	seen := make(map[string]bool, len(f.Tensors))
	begin := 0
	for i := range f.Tensors {
		t := &f.Tensors[i]
		err := t.check()
		if err == nil && seen[t.Name] {
			err = errors.New("name comes twice")
		}
		if err != nil {
			return nil, inTensor(t.Name, err)
		}
		seen[t.Name] = true
		end := begin + len(t.Data)
		b = appendEntry(b, t, begin, end)
		begin = end
	}
	b = append(b, '}')
	for len(b)%headerAlign != 0 {
		b = append(b, ' ')
	}
	length := len(b) - prefixSize
	if length > maxHeader {
		return nil, fmt.Errorf("header has %d bytes, want at most %d", length, maxHeader)
	}
	binary.LittleEndian.PutUint64(b, uint64(length))
	return b, nil
}

// check returns what makes a tensor impossible to write.
func (t *Tensor) check() error {
	if err := checkName(t.Name); err != nil {
		return err
	}
	return t.checkData()
}

// checkData returns what is wrong with type, shape and data together.
func (t *Tensor) checkData() error {
	want, err := byteSize(t.DType, t.Shape)
	if err != nil {
		return err
	}
	if len(t.Data) != want {
		return fmt.Errorf("data have %d bytes, want %d for %s %v", len(t.Data), want, t.DType, t.Shape)
	}
	return nil
}

func appendMetadata(b []byte, m map[string]string) ([]byte, error) {
	if len(m) > maxMetadata {
		return nil, fmt.Errorf("metadata has %d keys, want at most %d", len(m), maxMetadata)
	}
	b = appendKey(b, metadataKey)
	b = append(b, '{')
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !utf8.ValidString(key) || !utf8.ValidString(m[key]) {
			return nil, fmt.Errorf("metadata %s is not UTF-8", quote(key))
		}
		b = appendKey(b, key)
		b = appendString(b, m[key])
	}
	return append(b, '}'), nil
}

func appendEntry(b []byte, t *Tensor, begin, end int) []byte {
	b = appendKey(b, t.Name)
	b = append(b, '{')
	b = appendKey(b, "dtype")
	b = appendString(b, string(t.DType))
	b = appendKey(b, "shape")
	b = appendIntegers(b, t.Shape...)
	b = appendKey(b, "data_offsets")
	b = appendIntegers(b, begin, end)
	return append(b, '}')
}

// appendKey begins a member of an object, with a comma unless it is the first.
func appendKey(b []byte, key string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = appendString(b, key)
	return append(b, ':')
}

func appendIntegers(b []byte, list ...int) []byte {
	b = append(b, '[')
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, ']')
}
