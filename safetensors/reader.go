package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/simd"
)

// The names that a model has in its folder.
const (
	modelFile   = "model.safetensors"
	indexSuffix = ".index.json" // behind the name of the file that was split
)

// Reader reads single tensors of a file, or of several files that an index
// joins. Only the headers are in memory. It may be used by several goroutines at
// once.
type Reader struct {
	path     string // what was opened; empty if it has no name
	shards   []*shard
	metadata map[string]string
	tensors  []Info
	places   map[string]place
}

// place is where the data of a tensor are.
type place struct {
	*entry
	shard *shard
}

// Open opens the model at path: a file; an index, whose name ends in ".json"; or
// a folder with model.safetensors or model.safetensors.index.json in it.
//
// The files of an index stand beside it. All of them are opened and their headers
// checked: each tensor of the index must be in its file, and each tensor of a
// file in the index.
//
// Errors: a *FormatError with the path if something is not what it should be;
// else the error of the operating system, wrapped.
func Open(path string) (*Reader, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if info.IsDir() {
		if path, err = inFolder(path); err != nil {
			return nil, err
		}
	}
	if strings.HasSuffix(path, ".json") {
		return openIndex(path)
	}
	s, err := openShard(path)
	if err != nil {
		return nil, err
	}
	return newReader(path, s), nil
}

// inFolder returns the path of the model in a folder.
func inFolder(dir string) (string, error) {
	var found []string
	for _, name := range []string{modelFile, modelFile + indexSuffix} {
		_, err := os.Stat(filepath.Join(dir, name))
		if err == nil {
			found = append(found, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("safetensors: %w", err)
		}
	}
	switch len(found) {
	case 1:
		return filepath.Join(dir, found[0]), nil
	case 2:
		return "", &FormatError{dir, fmt.Errorf("holds both %s and %s, want one of them by name", found[0], found[1])}
	}
	return "", &FormatError{dir, fmt.Errorf("holds neither %s nor %s", modelFile, modelFile+indexSuffix)}
}

// NewReader reads the header of a file of size bytes that is not on the disk or
// already open.
//
// Errors: a *FormatError if it is not what it should be, else the error of r,
// wrapped.
//
// Aliasing: r is kept, and Close leaves it open.
func NewReader(r io.ReaderAt, size int64) (*Reader, error) {
	// Behind another interface, so that Close does not find a file.
	s, err := newShard("", struct{ io.ReaderAt }{r}, size)
	if err != nil {
		return nil, err
	}
	return newReader("", s), nil
}

// newReader joins files, no two of which have a tensor of the same name.
func newReader(path string, shards ...*shard) *Reader {
	r := &Reader{path: path, shards: shards, places: map[string]place{}}
	for _, s := range shards {
		for i := range s.tensors {
			e := &s.tensors[i]
			r.tensors = append(r.tensors, e.Info)
			r.places[e.Name] = place{e, s}
		}
	}
	r.metadata = maps.Clone(shards[0].metadata)
	for _, s := range shards[1:] {
		maps.DeleteFunc(r.metadata, func(key, value string) bool {
			other, ok := s.metadata[key]
			return !ok || other != value
		})
	}
	return r
}

// Close closes the files that Open has opened.
func (r *Reader) Close() error {
	var first error
	for _, s := range r.shards {
		if err := s.close(); err != nil && first == nil {
			first = fmt.Errorf("safetensors: %w", err)
		}
	}
	return first
}

// Path returns what Open was given, or, for a folder, the file in it that was
// opened. It is empty for a NewReader.
func (r *Reader) Path() string { return r.path }

// Files returns the paths of the files that Open has opened, an index first. It is empty
// for a NewReader.
func (r *Reader) Files() []string {
	var files []string
	if r.path != "" && r.path != r.shards[0].path {
		files = append(files, r.path)
	}
	for _, s := range r.shards {
		if s.path != "" {
			files = append(files, s.path)
		}
	}
	return files
}

// Metadata returns the free text of the file; of several files, what all of them
// say alike. It is nil or empty where there is none.
func (r *Reader) Metadata() map[string]string { return r.metadata }

// Tensors returns what the headers say of each tensor, in the order of the data,
// file by file.
//
// Aliasing: the shapes are the reader's, and must not be changed.
func (r *Reader) Tensors() []Info { return slices.Clone(r.tensors) }

// Lookup returns what the header says of the tensor called name, and whether
// there is one.
func (r *Reader) Lookup(name string) (Info, bool) {
	p, ok := r.places[name]
	if !ok {
		return Info{}, false
	}
	return p.Info, true
}

// Tensor reads one tensor.
//
// Errors: a *FormatError if there is none of that name; else the error of the
// operating system, wrapped.
func (r *Reader) Tensor(name string) (*Tensor, error) {
	p, err := r.find(name)
	if err != nil {
		return nil, err
	}
	t := &Tensor{p.Name, p.DType, slices.Clone(p.Shape), make([]byte, p.end-p.begin)}
	return t, p.shard.readAt(t.Data, p.shard.begin+int64(p.begin))
}

// ReadFloat32s fills dst with elements of a tensor of type F16, BF16, F32 or F64,
// from the element at on: element i·n is the first of row i of a matrix with n
// columns. It holds no more than a small part of the tensor in another form.
// Those of F64 are rounded to the nearest float32, the others are exact.
//
// Errors: a *FormatError if there is no tensor of that name, or it has another
// type or too few elements; else the error of the operating system, wrapped.
// What is in dst after an error of the operating system is undefined.
func (r *Reader) ReadFloat32s(name string, dst []float32, at int) error {
	p, offset, err := r.floats(name, len(dst), at)
	if err != nil || len(dst) == 0 {
		return err
	}
	width := p.DType.Bits() / 8
	if width <= 4 && littleEndian {
		return p.shard.readInPlace(dst, p.DType, offset)
	}
	b := make([]byte, width*min(blockLength, len(dst)))
	for part := range slices.Chunk(dst, blockLength) {
		b := b[:width*len(part)]
		if err := p.shard.readAt(b, offset); err != nil {
			return err
		}
		decodeFloat32s(part, p.DType, b)
		offset += int64(len(b))
	}
	return nil
}

// ReadBFloat16s is ReadFloat32s for bfloat16, the upper halves of float32. Those of a tensor
// of type BF16 are exact; others are rounded to the nearest float32, and that to the nearest
// bfloat16, of two the even one.
func (r *Reader) ReadBFloat16s(name string, dst []uint16, at int) error {
	p, offset, err := r.floats(name, len(dst), at)
	if err != nil || len(dst) == 0 {
		return err
	}
	if p.DType == BF16 { // as they are: a way by floats would change some NaN
		err := p.shard.readAt(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 2*len(dst)), offset)
		if !littleEndian {
			for i, v := range dst {
				dst[i] = bits.ReverseBytes16(v)
			}
		}
		return err
	}
	floats := blocks.Get().(*[]float32)
	defer blocks.Put(floats)
	for part := range slices.Chunk(dst, blockLength) {
		x := (*floats)[:len(part)]
		if err := r.ReadFloat32s(name, x, at); err != nil {
			return err
		}
		simd.ToBFloat16(part, x)
		at += len(part)
	}
	return nil
}

// floats returns the place of a tensor of floats, and the offset in the file of n elements
// from the element at on.
func (r *Reader) floats(name string, n, at int) (place, int64, error) {
	p, err := r.find(name)
	if err != nil {
		return p, 0, err
	}
	bad := func(err error) error { return p.shard.bad(inTensor(name, err)) }
	if !p.DType.isFloat() {
		return p, 0, bad(wrongType(p.DType, floatTypes))
	}
	width := p.DType.Bits() / 8
	if has := (p.end - p.begin) / width; at < 0 || at > has || n > has-at {
		return p, 0, bad(fmt.Errorf("has %d elements, want %d from element %d on", has, n, at))
	}
	return p, p.shard.begin + int64(p.begin+at*width), nil
}

// littleEndian says that numbers lie in memory as in a file.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// blockLength is how many elements are read and converted at a time: so many that they stay in
// a second-level cache in between, and that asking the system for them costs little.
const blockLength = 1 << 16

// blocks are memory for so many floats.
var blocks = sync.Pool{New: func() any {
	x := make([]float32, blockLength)
	return &x
}}

// readInPlace reads F32, F16 or BF16 without memory besides dst: models come by the gigabyte.
// Halves are read into the second half of a block of dst and become floats from the front:
// the one that is written is never at the place of one that has not been read.
func (s *shard) readInPlace(dst []float32, d DType, offset int64) error {
	if d == F32 {
		return s.readAt(bytesOf(dst), offset)
	}
	for part := range slices.Chunk(dst, blockLength) {
		b := bytesOf(part)[2*len(part):]
		if err := s.readAt(b, offset); err != nil {
			return err
		}
		halves := unsafe.Slice((*uint16)(unsafe.Pointer(&b[0])), len(part))
		if d == F16 {
			simd.FromFloat16(part, halves)
		} else {
			simd.FromBFloat16(part, halves)
		}
		offset += int64(len(b))
	}
	return nil
}

// bytesOf returns the memory of floats, of which there is at least one.
func bytesOf(x []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x)) }

// find returns the place of a tensor.
func (r *Reader) find(name string) (place, error) {
	p, ok := r.places[name]
	if !ok {
		return p, &FormatError{r.path, fmt.Errorf("tensor %s is missing", quote.Text(name))}
	}
	return p, nil
}
