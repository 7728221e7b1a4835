package input

import (
	"errors"
	"io/fs"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/safetensors"
)

// Tensors opens a safetensors file of a directory that atomicfile saves. A missing or invalid file gives an *Error.
func Tensors(path string) (*safetensors.Reader, error) {
	r, err := atomicfile.Read(path, safetensors.Open)
	return r, BadFile(path, err)
}

// BadFile converts an error about a missing file, or about the content of a safetensors file, to an *Error.
func BadFile(path string, err error) error {
	var format *safetensors.FormatError
	switch {
	case errors.As(err, &format):
		return Errorf(path, "%v", format.Err) // not wrapped: the file itself exists
	case errors.Is(err, fs.ErrNotExist):
		return Errorf(path, "no such file")
	}
	return err
}
