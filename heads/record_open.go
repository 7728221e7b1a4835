package heads

import (
	"github.com/attn-go/attn/safetensors"
)

// File is a record whose weights stay in its file until they are asked for, a head
// at a time: the weights of a large model's run may not fit into memory.
//
// Its methods may be called at the same time.
type File struct {
	// Record has everything but the weights: those of its layers are nil.
	Record *Record
	file   *safetensors.Reader
}

// Open opens a record in a file of the form that Read reads, and leaves the weights
// there. Only where neither metadata nor name say of what kind a square layer is,
// its weights are read at once. Close closes the file.
//
// Errors: those of Read, but for what is wrong with weights that are not read.
func Open(path string) (*File, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := recordFrom(f, outlineLayer)
	if err != nil {
		f.Close()
		return nil, inFile(path, err)
	}
	return &File{Record: r, file: f}, nil
}

// outlineLayer is a layerReader that keeps no weights.
func outlineLayer(f *safetensors.Reader, t safetensors.Info, j layerJSON, texts *Texts, others []Layer) (Layer, error) {
	_, said := kindOf(t.Name)
	l, err := layerFrom(f, t, j, texts, others, func(l *Layer) bool {
		return !said && j.Kind == "" && len(l.Queries) == len(l.Keys)
	})
	l.Weights = nil
	return l, err
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
