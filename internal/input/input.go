// Package input defines the error for invalid input, which commands report with its position and a separate exit
// code.
package input

import (
	"fmt"

	"github.com/attn-go/attn/internal/quote"
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
	case e.Name == "":
		return fmt.Sprint(e.Err)
	case e.Line == 0:
		return fmt.Sprintf("%s: %v", quote.Name(e.Name), e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", quote.Name(e.Name), e.Line, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
