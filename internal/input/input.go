// Package input has the error that blames an input, for exit codes and for editors.
package input

import (
	"fmt"

	"github.com/attn-go/attn/internal/quote"
)

// Error says what is wrong with the content of an input, and where.
type Error struct {
	Name string // of the file, or what stands for it
	Line int    // counted from 1; 0 when the input as a whole is meant
	Err  error
}

// Errorf returns an *Error about an input as a whole.
func Errorf(name, format string, args ...any) error {
	return &Error{Name: name, Err: fmt.Errorf(format, args...)}
}

// Error gives "name:line: reason", the form that editors turn into a link.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", quote.Name(e.Name), e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", quote.Name(e.Name), e.Line, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
