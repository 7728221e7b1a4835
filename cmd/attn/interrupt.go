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

// interruptible returns a context that ends at the first interruption, so that what is under
// way can be finished and saved. The second interruption removes temporary files and ends
// the program at once.
func interruptible(messages io.Writer) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2) // room for a second that comes before the first is answered
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		atomicfile.Abandon()
		fmt.Fprintln(messages, "attn: interrupted twice, ended at once")
		os.Exit(exitInterrupted)
	}()
	return ctx
}
