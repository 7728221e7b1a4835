package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
)

// headerAlign is the multiple to which the header is padded, so that data that start on a page of memory are aligned
// for every element type.
const headerAlign = 8

// Write writes f to w: the tensors in their order, and the keys of the metadata sorted. Equal files give equal bytes.
//
// Errors: a name that is duplicate, reserved, not UTF-8 or too long; an unknown type; data whose length does not match
// type and shape; a file beyond the limits of the format. All of these are reported before the first byte is written.
func (f *File) Write(w io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	return f.stream().Write(w)
}

// WriteFile writes f to the file at path. An existing file is replaced when the new one is complete, and unchanged
// after an error.
func (f *File) WriteFile(path string) error { return atomicfile.Write(path, f.Write) }

// WriteShards writes f to path, or to several files in its folder if f has more than `most` bytes of data: see
// Stream.WriteShards.
func (f *File) WriteShards(path string, most int) error {
	if err := f.check(); err != nil {
		return err
	}
	return f.stream().WriteShards(path, most)
}

// stream returns f as a Stream, whose data already exist.
func (f *File) stream() *Stream {
	s := &Stream{Metadata: f.Metadata, Tensors: make([]Info, len(f.Tensors))}
	for i := range f.Tensors {
		s.Tensors[i] = f.Tensors[i].info()
	}
	s.Data = func(w io.Writer, i int) error {
		_, err := w.Write(f.Tensors[i].Data)
		return err
	}
	return s
}

// check returns an error if f cannot be written.
func (f *File) check() error {
	if _, err := f.stream().header(); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	for i := range f.Tensors {
		if err := f.Tensors[i].checkData(); err != nil {
			return fmt.Errorf("safetensors: %w", inTensor(f.Tensors[i].Name, err))
		}
	}
	return nil
}

// Stream is a File whose data are created during the write.
type Stream struct {
	Metadata map[string]string
	Tensors  []Info
	// Data writes the data of Tensors[i], little-endian and row-major. It is called once for each, in their order.
	Data func(w io.Writer, i int) error
}

// Write is File.Write for a Stream.
//
// Errors: errors of File.Write, reported before the first byte is written; errors of Data, wrapped; data whose length
// does not match type and shape.
func (s *Stream) Write(w io.Writer) error {
	header, err := s.header()
	if err == nil {
		_, err = w.Write(header)
	}
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	for i, t := range s.Tensors {
		counted := &counter{w: w}
		err := s.Data(counted, i)
		if err != nil {
			return fmt.Errorf("safetensors: %w", err)
		}
		if err := t.checkSize(counted.n); err != nil {
			return fmt.Errorf("safetensors: %w", inTensor(t.Name, err))
		}
	}
	return nil
}

// WriteFile is File.WriteFile for a Stream.
func (s *Stream) WriteFile(path string) error { return atomicfile.Write(path, s.Write) }

// counter counts the bytes written to w.
type counter struct {
	w io.Writer
	n int
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += n
	return n, err
}

// header returns the bytes before the data. Parse accepts every header that header returns without an error.
func (s *Stream) header() ([]byte, error) {
	if len(s.Tensors) > maxTensors {
		return nil, fmt.Errorf("file has %d tensors, want at most %d", len(s.Tensors), maxTensors)
	}
	b := make([]byte, prefixSize, 1024)
	b = append(b, '{')
	if len(s.Metadata) > 0 {
		var err error
		if b, err = appendMetadata(b, s.Metadata); err != nil {
			return nil, err
		}
	}
	seen := make(map[string]bool, len(s.Tensors))
	begin := 0
	for _, t := range s.Tensors {
		err := checkName(t.Name)
		if err == nil && seen[t.Name] {
			err = errors.New("duplicate name")
		}
		size := 0
		if err == nil {
			size, err = byteSize(t.DType, t.Shape)
		}
		if err == nil && int64(size) > min(maxFile, math.MaxInt)-int64(begin) {
			err = fmt.Errorf("shape %v of %s makes the file larger than can be read", t.Shape, t.DType)
		}
		if err != nil {
			return nil, inTensor(t.Name, err)
		}
		seen[t.Name] = true
		b = appendEntry(b, t, begin, begin+size)
		begin += size
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

// checkData returns an error if type, shape and data do not match.
func (t *Tensor) checkData() error { return t.info().checkSize(len(t.Data)) }

// checkSize returns an error if type and shape do not match a size of data in bytes.
func (t Info) checkSize(got int) error {
	want, err := byteSize(t.DType, t.Shape)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("data have %d bytes, want %d for %s %v", got, want, t.DType, t.Shape)
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
			return nil, fmt.Errorf("metadata %s is not UTF-8", quote.Text(key))
		}
		b = appendKey(b, key)
		b = appendString(b, m[key])
	}
	return append(b, '}'), nil
}

func appendEntry(b []byte, t Info, begin, end int) []byte {
	entry, err := json.Marshal(struct {
		DType   DType  `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}{t.DType, append([]int{}, t.Shape...), [2]int{begin, end}}) // a shape of nil would be null
	if err != nil {
		panic(err) // a known type and integers
	}
	return append(appendKey(b, t.Name), entry...)
}

// appendKey begins a member of an object, after a comma unless it is the first.
func appendKey(b []byte, key string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = appendString(b, key)
	return append(b, ':')
}
