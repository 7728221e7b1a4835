package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/attn-go/attn/internal/atomicfile"
)

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
