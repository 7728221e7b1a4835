package safetensors

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

// mostPickle is the largest number of bytes of a pickle.
const mostPickle = 1 << 26

// anyShard reads what describes the tensors of a file of safetensors or torch.save.
func anyShard(path string, r io.ReaderAt, size int64) (*shard, error) {
	s := &shard{path: path, r: r, size: size}
	start := make([]byte, prefixSize+1)
	if size >= int64(len(start)) {
		if err := s.readAt(start, 0); err != nil {
			return nil, err
		}
	}
	if string(start[:4]) != "PK\x03\x04" || start[prefixSize] == '{' { // after the length of a header
		return newShard(path, r, size)
	}
	if size > min(maxFile, math.MaxInt) {
		return nil, s.bad(fmt.Errorf("file has %d bytes, more than can be read", size))
	}
	if err := s.readTorch(); err != nil {
		return nil, s.bad(err)
	}
	return s, nil
}

// readTorch reads the tensors of a file of torch.save (PyTorch 1.6 or later): an archive with the pickle data.pkl and a
// file of numbers for each storage, none of them compressed.
//
// Source: torch/serialization.py.
func (s *shard) readTorch() error {
	archive, err := zip.NewReader(s.r, s.size)
	if err != nil || len(archive.File) == 0 {
		return fmt.Errorf("is an invalid zip archive: %w", cmp.Or(err, zip.ErrFormat))
	}
	folder, _, _ := strings.Cut(archive.File[0].Name, "/")
	files := map[string]*zip.File{}
	for _, f := range archive.File {
		switch {
		case files[f.Name] != nil || f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64 || f.Flags&1 != 0:
			return fmt.Errorf("archive has %s twice, compressed or encrypted; want a file of torch.save", quote.Text(f.Name))
		case f.UncompressedSize64 > uint64(s.size) || f.Name == folder+"/data.pkl" && f.UncompressedSize64 > mostPickle:
			return fmt.Errorf("archive has %s with %d bytes, too many", quote.Text(f.Name), f.UncompressedSize64)
		}
		files[f.Name] = f
	}
	order, err := fs.ReadFile(archive, folder+"/byteorder")
	if err == nil && string(order) != "little" { // older versions write none
		return fmt.Errorf("has the byte order %s, want little", quote.Text(string(order)))
	}
	text, err := fs.ReadFile(archive, folder+"/data.pkl")
	if err != nil {
		return fmt.Errorf("is no file of torch.save: %w", err)
	}
	value, err := unpickle(text)
	if err != nil {
		return fmt.Errorf("data.pkl %w", err)
	}
	top, ok := value.(*dict)
	if !ok {
		return errors.New("has no dict of tensors, want a file of torch.save(model.state_dict(), …)")
	}
	left := 8 * s.size // tensors may share storages, but not without limit
	err = top.tensors("", map[any]bool{}, new(int), func(name string, v view) error {
		f := files[folder+"/data/"+v.key]
		size, err := v.check(f)
		if err != nil {
			return err
		}
		at, err := f.DataOffset()
		if err != nil || at > s.size-int64(f.UncompressedSize64) {
			return fmt.Errorf("file %s of its storage: %w", quote.Text(f.Name), cmp.Or(err, zip.ErrFormat))
		}
		if left -= int64(size); left < 0 || len(s.tensors) == maxTensors {
			return errors.New("tensors share storages too often, or are too many")
		}
		begin := int(at) + v.offset*v.dtype.Bits()/8
		s.tensors = append(s.tensors, entry{Info{name, v.dtype, v.shape}, begin, begin + size})
		return nil
	})
	slices.SortStableFunc(s.tensors, func(a, b entry) int { return cmp.Compare(a.begin, b.begin) })
	return err
}

// check returns the bytes of a tensor, whose elements must be in row-major order in the file of its storage.
func (v *view) check(f *zip.File) (size int, err error) {
	if size, err = byteSize(v.dtype, v.shape); err != nil {
		return 0, err
	}
	width := v.dtype.Bits() / 8
	if f == nil || f.UncompressedSize64%uint64(width) != 0 || f.UncompressedSize64/uint64(width) != uint64(v.n) {
		return 0, fmt.Errorf("archive has no file for storage %s with %d elements of %s", quote.Text(v.key), v.n, v.dtype)
	}
	if v.offset > v.n || size/width > v.n-v.offset {
		return 0, fmt.Errorf("shape %v from element %d exceeds its storage of %d elements", v.shape, v.offset, v.n)
	}
	step := 1
	for i, n := range slices.Backward(v.shape) {
		if size > 0 && n > 1 && v.strides[i] != step {
			return 0, fmt.Errorf("has strides %v for shape %v, want those of a contiguous tensor: save x.contiguous()", v.strides, v.shape)
		}
		step *= n
	}
	return size, nil
}
