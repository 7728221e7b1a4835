package filter

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
)

// panicked is a panic converted to an error.
type panicked struct {
	value any
	place string // "postprocessor.go:248", or empty
}

func (p *panicked) Error() string {
	text := "internal error: " + oneLine.Replace(fmt.Sprint(p.value))
	if p.place != "" {
		text += " (" + p.place + ")"
	}
	return text
}

func isPanic(err error) bool {
	var p *panicked
	return errors.As(err, &p)
}

// guarded returns the error of f, or the panic of f as an error.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v, panicPlace()}
		}
	}()
	return f()
}

// panicPlace returns the source line that panicked. It must be called while recovering from a panic: only functions
// of package runtime are then between the caller and that line.
func panicPlace() string {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	raised := false
	for {
		frame, more := frames.Next()
		inside := strings.HasPrefix(frame.Function, "runtime.")
		if raised && !inside {
			return fmt.Sprintf("%s:%d", path.Base(frame.File), frame.Line)
		}
		raised = raised || frame.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}
