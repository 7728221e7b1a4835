package safetensors

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
)

// WriteShards writes s to path, whose name ends in ".safetensors", if it has at
// most most bytes of data. Else it writes them to several files beside it, and an
// index that Open, and the loaders of other programs, take:
//
//	model-00001-of-00002.safetensors
//	model-00002-of-00002.safetensors
//	model.safetensors.index.json
//
// The tensors stay in their order. Only a tensor that is larger itself makes a
// file larger than most. The metadata are those of each file.
//
// What was written under the same path is replaced when the new files are
// complete, also where one file takes the place of several or the other way
// round; files that only an earlier index names are left behind.
//
// Errors: those of Write; a limit that is not positive; another name. After an
// error nothing has changed.
func (s *Stream) WriteShards(path string, most int) error {
	stem, ok := strings.CutSuffix(path, ".safetensors")
	if !ok {
		return fmt.Errorf("safetensors: write %s: want a name that ends in .safetensors", path)
	}
	if most <= 0 {
		return fmt.Errorf("safetensors: write %s: at most %d bytes in a file, want a positive number", path, most)
	}
	// All that could be wrong with one large file would be with the parts of it,
	// but for the size of the header.
	if _, err := s.header(); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	bounds, total := s.split(most)
	if len(bounds) <= 2 {
		return instead(s.WriteFile(path), path+indexSuffix)
	}
	index := struct {
		Metadata  map[string]int    `json:"metadata"`
		WeightMap map[string]string `json:"weight_map"`
	}{map[string]int{"total_size": total}, map[string]string{}}
	var files []atomicfile.File
	for i, hi := range bounds[1:] {
		lo := bounds[i]
		file := fmt.Sprintf("%s-%05d-of-%05d.safetensors", stem, i+1, len(bounds)-1)
		for _, t := range s.Tensors[lo:hi] {
			index.WeightMap[t.Name] = filepath.Base(file)
		}
		part := &Stream{s.Metadata, s.Tensors[lo:hi], func(w io.Writer, i int) error { return s.Data(w, lo+i) }}
		files = append(files, atomicfile.File{Path: file, Write: part.Write})
	}
	files = append(files, atomicfile.JSON(path+indexSuffix, index))
	return instead(atomicfile.WriteAll(files...), path)
}

// split returns where each file begins among the tensors, behind the last of them
// where that ends, and the size of all data. The header is valid.
func (s *Stream) split(most int) (bounds []int, total int) {
	bounds = []int{0}
	left := most
	for i, t := range s.Tensors {
		size, _ := byteSize(t.DType, t.Shape)
		if size > left && i > bounds[len(bounds)-1] {
			bounds = append(bounds, i)
			left = most
		}
		left -= size
		total += size
	}
	return slices.Compact(append(bounds, len(s.Tensors))), total
}

// instead removes what a new file takes the place of, if that has been written.
func instead(err error, old string) error {
	if err != nil {
		return err
	}
	if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}
