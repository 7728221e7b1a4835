// Package input reads lines, and defines the error for invalid input, which commands report with its position and a
// separate exit code.
package input

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/safetensors"
)

// Error describes an error in the content of an input, with its position.
type Error struct {
	Name string // of the file, or a description of the input; empty if Err names it
	Line int    // counted from 1; 0 means the whole input
	Err  error
}

// Errorf returns an *Error that concerns an input as a whole.
func Errorf(name, format string, args ...any) error {
	return &Error{Name: name, Err: fmt.Errorf(format, args...)}
}

// Error returns "name:line: reason", the format that editors turn into a link.
func (e *Error) Error() string {
	switch {
	case e.Name == "" && e.Line == 0:
		return fmt.Sprint(e.Err)
	case e.Line == 0:
		return fmt.Sprintf("%s: %v", quote.Name(e.Name), e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", quote.Name(e.Name), e.Line, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

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
