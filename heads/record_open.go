package heads

import (
	"github.com/attn-go/attn/safetensors"
)

// File is a record whose weights stay in its file until a head is read, because the weights of a large
// model's run may not fit in memory.
//
// Its methods are thread-safe.
type File struct {
	// Record has everything except the weights, which are nil in its layers.
	Record *Record
	file   *safetensors.Reader
}

// Open opens a record in a file that Read can read, without reading the weights. Only the weights of a
// square layer are read at once if neither its metadata nor its name has the layer's kind. Close closes the
// file.
//
// Errors: those of Read, except errors in weights that are not read.
func Open(path string) (*File, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := outline(f, 0, false)
	if err != nil {
		f.Close()
		return nil, inFile(path, err)
	}
	return &File{Record: r, file: f}, nil
}

// Head reads the weights [Lq Lk] of a head of a layer of the record.
//
// Errors: those of the operating system, with the path.
func (f *File) Head(layer, head int) ([]float32, error) {
	weights, err := headOf(f.file, &f.Record.Layers[layer], head)
	return weights, inFile(f.file.Path(), err)
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }
