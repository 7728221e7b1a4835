package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/pruning"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tokenizer"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitCheck       = 3
	exitInput       = 4
	exitInterrupted = 130
)

// usage returns an error for an invalid command line.
func usage(format string, args ...any) error { return flags.Errorf(format, args...) }

// interrupted is the error after an interruption. The hint says how to continue.
type interrupted struct{ hint string }

func (e interrupted) Error() string { return e.hint }

// exitCode returns the documented exit code for an error.
func exitCode(err error) int {
	is := func(targets ...any) bool {
		return slices.ContainsFunc(targets, func(target any) bool { return errors.As(err, target) })
	}
	var path *fs.PathError
	switch {
	case err == nil:
		return exitOK
	case is(new(interrupted)), errors.Is(err, context.Canceled):
		return exitInterrupted
	case is(new(*flags.Error)):
		return exitUsage
	case is(new(*pruning.CheckError)):
		return exitCheck
	case is(new(*input.Error), new(*safetensors.FormatError), new(*tokenizer.FormatError), new(*models.FormatError)):
		return exitInput
	case errors.As(err, &path) && noInput(path):
		return exitInput
	}
	return exitFailed
}

// noInput reports whether an error means that an input is missing or unreadable. Errors of
// writing have another Op: "write", "mkdir" or "rename".
func noInput(err *fs.PathError) bool {
	switch err.Op {
	case "open", "stat":
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
	case "read":
		info, statErr := os.Stat(err.Path)
		return errors.Is(err, atomicfile.ErrPointer) || statErr == nil && info.IsDir()
	}
	return false
}

// interruptible returns a context that the first interruption cancels, so that the command can
// finish its step and save. The second interruption removes temporary files and exits at once.
func interruptible(messages io.Writer) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2) // room for a second signal before the first is handled
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		atomicfile.Abandon()
		fmt.Fprintln(messages, "attn: interrupted twice, exiting immediately")
		os.Exit(exitInterrupted)
	}()
	return ctx
}
