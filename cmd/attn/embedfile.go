package main

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"io"
	"math"
	"os"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/npy"
	"github.com/attn-go/attn/safetensors"
)

// arrayFile is a file whose beginning says how many vectors there are: they wait in a file
// of their own until all are there.
type arrayFile struct {
	path  string
	width int
	rows  int
	spool *os.File
	w     *bufio.Writer
	npy   bool // else safetensors
}

// sink returns where vectors of a width go.
func (cmd *embedCommand) sink(c console, width int) (sink, error) {
	f := &arrayFile{path: cmp.Or(cmd.NPY, cmd.Safetensors), width: width, npy: cmd.NPY != ""}
	if f.path == "" {
		return jsonLines{bufio.NewWriter(c.out)}, nil
	}
	var err error
	if f.spool, err = os.CreateTemp("", "attn-embed-"); err != nil {
		return nil, err
	}
	f.w = bufio.NewWriterSize(f.spool, 1<<16)
	return f, nil
}

func (f *arrayFile) write(vectors [][]float32) error {
	b := make([]byte, 4*f.width)
	for _, v := range vectors {
		for i, x := range v {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
		}
		if _, err := f.w.Write(b); err != nil {
			return err
		}
		f.rows++
	}
	return nil
}

func (f *arrayFile) end(err error) error {
	defer os.Remove(f.spool.Name())
	defer f.spool.Close()
	if err != nil {
		return err
	}
	if err := f.w.Flush(); err != nil {
		return err
	}
	numbers := func(w io.Writer) error {
		if _, err := f.spool.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.Copy(w, f.spool)
		return err
	}
	shape := []int{f.rows, f.width}
	if f.npy {
		return atomicfile.Write(f.path, func(w io.Writer) error {
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
	return s.WriteFile(f.path)
}
