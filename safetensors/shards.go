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

// WriteShards writes s to path, whose name ends in ".safetensors", if it has at most `most` bytes of data. Otherwise
// it writes several files in the same folder, and an index that Open and other programs can load:
//
//	model-00001-of-00002.safetensors
//	model-00002-of-00002.safetensors
//	model.safetensors.index.json
//
// The tensors keep their order. A file exceeds `most` only if a single tensor does. Each file gets all the metadata.
//
// Files written earlier under the same path are replaced when the new files are complete, even if one file replaces
// several or the reverse. Files that only an earlier index lists are not removed.
//
// Errors: errors of Write; a limit that is not positive; another name. After an error, no file has changed.
func (s *Stream) WriteShards(path string, most int) error {
	stem, ok := strings.CutSuffix(path, ".safetensors")
	if !ok {
		return fmt.Errorf("safetensors: write %s: want a name that ends in .safetensors", path)
	}
	if most <= 0 {
		return fmt.Errorf("safetensors: write %s: at most %d bytes in a file, want a positive number", path, most)
	}
	// A valid header of one large file implies valid headers of its parts, except for their size.
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

// split returns the index of the first tensor of each file, followed by the number of tensors, and the size of all
// data. The header must be valid.
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

// instead removes the file that a new file replaces, if the new file was written.
func instead(err error, old string) error {
	if err != nil {
		return err
	}
	if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}
