package statedict

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
)

// SaveOptions says how Save writes parameters. The zero value writes one file of float32 under attn's own names.
type SaveOptions struct {
	// Prefix precedes each name in the file, such as "encoder.".
	Prefix string
	// Names returns the table of names. Nil means nn.OwnNames; nn.TorchNames returns PyTorch's names.
	Names func(nn.Module) (nn.StateDict, error)
	// DType is the type in the file: F32, F64, or F16 or BF16, which round to nearest. Empty means F32.
	DType safetensors.DType
	// Metadata is the free text of the file. Nil means {"format": "pt"}, which some PyTorch loaders require.
	Metadata map[string]string
	// FileBytes limits the data in one file, in bytes. A larger model is split over several files with an index. 0
	// means one file of any size.
	FileBytes int
}

// Save writes the parameters of a module to a safetensors file, sorted by name. With the names of a PyTorch state
// dict, the bytes equal those of safetensors.torch.save_file.
//
// The file is replaced only when the new one is complete; after an error the old file is unchanged.
//
// Errors: a number that DType cannot represent; a layer without elements, because it takes its widths from its first
// batch; a module that Names does not support; a duplicate name; an I/O error.
func Save(path string, m nn.Module, o SaveOptions) error {
	s, err := Stream(m, o)
	if err != nil {
		return err
	}
	if o.FileBytes != 0 {
		return s.WriteShards(path, o.FileBytes)
	}
	return s.WriteFile(path)
}

// SaveTo is Save to a writer, as a single file.
func SaveTo(w io.Writer, m nn.Module, o SaveOptions) error {
	if o.FileBytes != 0 {
		return errors.New("statedict: SaveTo: FileBytes is for Save: a writer is one file")
	}
	s, err := Stream(m, o)
	if err != nil {
		return err
	}
	return s.Write(w)
}

// Stream returns the file that Save writes. The parameters are converted when they are written.
//
// Errors: those of Save, except I/O errors.
func Stream(m nn.Module, o SaveOptions) (*safetensors.Stream, error) {
	dict, err := stateDict(o.Names, m)
	if err != nil {
		return nil, err
	}
	dict = slices.DeleteFunc(dict, func(e nn.Entry) bool { return e.Refused != "" })
	slices.SortStableFunc(dict, func(a, b nn.Entry) int { return cmp.Compare(a.Name, b.Name) })
	dtype := cmp.Or(o.DType, safetensors.F32)
	s := &safetensors.Stream{Metadata: o.Metadata}
	if s.Metadata == nil {
		s.Metadata = map[string]string{"format": "pt"}
	}
	for i := range dict {
		e := &dict[i]
		if e.Packed != nil {
			return nil, fmt.Errorf("statedict: Save: tensor %q is packed for inference, want a parameter; models.Options{Trainable: true} loads parameters", e.Name)
		}
		for _, p := range e.Parts {
			if !p.Initialized() {
				return nil, fmt.Errorf("statedict: Save: parameter %q has no shape yet: call Build or Forward on its layer first", e.Name)
			}
		}
		s.Tensors = append(s.Tensors, safetensors.Info{Name: o.Prefix + e.Name, DType: dtype, Shape: shapeOf(e)})
	}
	var buffer []byte
	s.Data = func(w io.Writer, i int) error {
		e := &dict[i]
		parts := make([][]float32, len(e.Parts))
		for j, p := range e.Parts {
			parts[j] = p.Data()
		}
		if e.Separate {
			for j, p := range e.Parts {
				all := make([]float32, p.Len())
				simd.CopyTransposed(all, p.Dim(0), parts[j], p.Dim(1), p.Dim(1), p.Dim(0))
				parts[j] = all
			}
		} else if e.Transposed {
			all, shape := slices.Concat(parts...), shapeOf(e) // the parts form [out in]; the file stores [in out]
			parts = [][]float32{make([]float32, shape[0]*shape[len(shape)-1])}
			columns := shape[len(shape)-1]
			simd.CopyTransposed(parts[0], columns, all[e.Columns[0]:], e.Parts[0].Dim(e.Parts[0].Rank()-1), shape[0], columns)
		}
		if n := e.Interleaved; n > 0 {
			var blocks [][]float32
			for i := range n {
				for _, part := range parts {
					rows := len(part) / n
					blocks = append(blocks, part[i*rows:][:rows])
				}
			}
			parts = blocks
		}
		const most = 1 << 13 // numbers per write
		for _, part := range parts {
			for piece := range slices.Chunk(part, most) {
				var err error
				if buffer, err = safetensors.AppendFloat32s(buffer[:0], dtype, piece); err != nil {
					return fmt.Errorf("tensor %q: %w", s.Tensors[i].Name, errors.Unwrap(err))
				}
				if _, err := w.Write(buffer); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return s, nil
}

// stateDict returns the table of a module's names.
func stateDict(names func(nn.Module) (nn.StateDict, error), m nn.Module) (nn.StateDict, error) {
	if names == nil {
		names = nn.OwnNames
	}
	return names(m)
}
