package main

import (
	"encoding/binary"
	"errors"
	"io"
	"os"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/internal/npy"
	"github.com/attn-go/attn/safetensors"
)

// writeVector writes the numbers of a vector as an array file has them.
func writeVector(w io.Writer, l *filter.Line[embedding]) error {
	return binary.Write(w, binary.LittleEndian, l.Value.Vector)
}

// writeArray writes the file for --npy or --safetensors. Its beginning says how many vectors
// there are, so they wait in a file of their own until all are there: fill writes them there
// and returns their number.
func (cmd *embedCommand) writeArray(width int, fill func(spool io.Writer) (int, error)) (err error) {
	spool, err := os.CreateTemp("", "attn-embed-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spool.Close(), os.Remove(spool.Name())) }()
	rows, err := fill(spool)
	if err != nil {
		return err
	}
	numbers := func(w io.Writer) error {
		if _, err := spool.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.Copy(w, spool)
		return err
	}
	shape := []int{rows, width}
	if cmd.NPY != "" {
		return atomicfile.Write(cmd.NPY, func(w io.Writer) error {
			if _, err := w.Write(npy.Header(shape)); err != nil {
				return err
			}
			return numbers(w)
		})
	}
	s := safetensors.Stream{
		Metadata: map[string]string{"format": "pt"},
		Tensors:  []safetensors.Info{{Name: "vectors", DType: safetensors.F32, Shape: shape}},
		Data:     func(w io.Writer, _ int) error { return numbers(w) },
	}
	return s.WriteFile(cmd.Safetensors)
}
