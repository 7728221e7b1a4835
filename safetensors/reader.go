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

// The names of a model's files in its folder.
const (
	modelFile   = "model.safetensors"
	torchFile   = "pytorch_model.bin" // of torch.save
	indexSuffix = ".index.json"       // appended to the name of the file that was split
)

// Reader reads single tensors of a file, or of several files joined by an index. Only the headers are in memory. A
// Reader is safe for concurrent use.
type Reader struct {
	path     string // of the opened file or index; empty if it has no name
	shards   []*shard
	metadata map[string]string
	tensors  []Info
	places   map[string]place
}

// place is the position of a tensor's data.
type place struct {
	*entry
	shard *shard
}

// Open opens the model at path: a file; an index, whose name ends in ".json"; or a folder that contains
// model.safetensors or model.safetensors.index.json, or without these pytorch_model.bin or its index.
//
// A file may also be one of torch.save (PyTorch 1.6 or later) with a dict of tensors, such as a state dict. Tensors in a
// dict within it have the key of that dict and a dot before their name. Values other than tensors are skipped. No code in
// the file is run: objects of other classes, such as a module, are an error, and so are
// tensors that are not contiguous.
//
// The files of an index are in its folder. Open opens all of them and checks their headers: each tensor of the index
// must be in its file, and each tensor of a file in the index.
//
// Errors: a *FormatError with the path if a file is invalid; otherwise the operating system's error, wrapped.
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
	for _, name := range []string{modelFile, modelFile + indexSuffix, torchFile, torchFile + indexSuffix} {
		if name == torchFile && len(found) > 0 {
			break // safetensors wins
		}
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
		return "", &FormatError{dir, fmt.Errorf("contains both %s and %s, want one of them by name", found[0], found[1])}
	}
	return "", &FormatError{dir, fmt.Errorf("contains no %s, %s or %s", modelFile, modelFile+indexSuffix, torchFile)}
}

// NewReader reads the header of a file of size bytes that is not on disk, or is already open.
//
// Errors: a *FormatError if the file is invalid; otherwise the error of r, wrapped.
//
// Aliasing: r is kept, and Close does not close it.
func NewReader(r io.ReaderAt, size int64) (*Reader, error) {
	// The wrapper hides a Close method of r.
	s, err := anyShard("", struct{ io.ReaderAt }{r}, size)
	if err != nil {
		return nil, err
	}
	return newReader("", s), nil
}

// newReader joins files. No two of them may have a tensor of the same name.
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

// Close closes the files that Open opened.
func (r *Reader) Close() error {
	var first error
	for _, s := range r.shards {
		if err := s.close(); err != nil && first == nil {
			first = fmt.Errorf("safetensors: %w", err)
		}
	}
	return first
}

// Path returns the path given to Open or, for a folder, the path of the file opened in it. It is empty for a Reader
// from NewReader.
func (r *Reader) Path() string { return r.path }

// Files returns the paths of the files that Open opened, an index first. It is empty for a Reader from NewReader.
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

// Metadata returns the free text of the file; for several files, the entries that are equal in all of them. It is nil
// or empty if there is none.
func (r *Reader) Metadata() map[string]string { return r.metadata }

// Tensors returns name, type and shape of each tensor, in the order of the data, file by file.
//
// Aliasing: the shapes are shared with the reader and must not be changed.
func (r *Reader) Tensors() []Info { return slices.Clone(r.tensors) }

// Lookup returns name, type and shape of the tensor called name, and whether it exists.
func (r *Reader) Lookup(name string) (Info, bool) {
	p, ok := r.places[name]
	if !ok {
		return Info{}, false
	}
	return p.Info, true
}

// Tensor reads one tensor.
//
// Errors: a *FormatError if there is no tensor of that name; otherwise the operating system's error, wrapped.
func (r *Reader) Tensor(name string) (*Tensor, error) {
	p, err := r.find(name)
	if err != nil {
		return nil, err
	}
	t := &Tensor{p.Name, p.DType, slices.Clone(p.Shape), make([]byte, p.end-p.begin)}
	return t, p.shard.readAt(t.Data, p.shard.begin+int64(p.begin))
}

// ReadFloat32s fills dst with elements of a tensor of type F16, BF16, F32 or F64, starting at element at: element i·n
// is the first of row i of a matrix with n columns. It converts in small pieces, so it needs little memory besides
// dst. F64 is rounded to the nearest float32; the other types are exact.
//
// Errors: a *FormatError if there is no tensor of that name, or it has another type or too few elements; otherwise
// the operating system's error, wrapped. After an error of the operating system, the contents of dst are undefined.
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

// ReadBFloat16s is ReadFloat32s for bfloat16, the upper halves of float32. BF16 is read exactly; other types are
// rounded to the nearest float32, and then to the nearest bfloat16, ties to even.
func (r *Reader) ReadBFloat16s(name string, dst []uint16, at int) error {
	p, offset, err := r.floats(name, len(dst), at)
	if err != nil || len(dst) == 0 {
		return err
	}
	if p.DType == BF16 { // unchanged: converting to float32 and back would change some NaN
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

// floats returns the place of a floating-point tensor, and the file offset of n elements starting at element at.
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

// littleEndian says that numbers have the same byte order in memory as in a file.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// blockLength is the number of elements that are read and converted at a time: few enough to stay in the second-level
// cache, and enough that the system calls cost little.
const blockLength = 1 << 16

// blocks is a pool of buffers of blockLength floats.
var blocks = sync.Pool{New: func() any {
	x := make([]float32, blockLength)
	return &x
}}

// readInPlace reads F32, F16 or BF16 without memory besides dst, because models may be gigabytes. Halves are read into
// the second half of a block of dst and converted from the front, so no float overwrites a half that is still to be
// read.
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

// bytesOf returns the memory of x, which must not be empty.
func bytesOf(x []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x)) }

// find returns the place of a tensor.
func (r *Reader) find(name string) (place, error) {
	p, ok := r.places[name]
	if !ok {
		return p, &FormatError{r.path, fmt.Errorf("tensor %s is missing", quote.Text(name))}
	}
	return p, nil
}
