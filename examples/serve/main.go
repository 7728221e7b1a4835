// Program serve is an HTTP service that embeds texts, in the form of OpenAI's API, and ranks texts, in that of Hugging
// Face's text-embeddings-inference, with models from directories. docs/serve.md explains it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// settings are the values of the flags.
type settings struct {
	name     string // of the model, for clients
	rerank   string // directory
	truncate bool   // of texts, unless a request says otherwise
	lengths  []int  // of vectors
	tokens   int64  // that wait, at most
	options  models.Options
}

func main() {
	var s settings
	address := flag.String("address", "127.0.0.1:8080", "`HOST:PORT` to listen on")
	flag.StringVar(&s.name, "name", "", "`NAME` of the model in requests, in place of that of DIR")
	flag.StringVar(&s.rerank, "rerank", "", "`DIR` of a cross-encoder for /rerank")
	flag.BoolVar(&s.truncate, "truncate", false, "truncate long texts instead of rejecting them, unless a request says otherwise")
	flag.Func("dimensions", "`LENGTHS` to which clients may cut vectors, such as 64,128, in place of those in config.json", func(list string) (err error) {
		for text := range strings.SplitSeq(list, ",") {
			n, failed := strconv.Atoi(text)
			s.lengths, err = append(s.lengths, n), errors.Join(err, failed)
		}
		return err
	})
	flag.Int64Var(&s.tokens, "waiting", 1<<18, "`TOKENS` that may wait; beyond, requests are rejected with status 429")
	flag.TextVar(&s.options.Format, "format", tensor.Float32, "number `FORMAT`: float32, bfloat16-weights, bfloat16 or int8")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: serve [flags] DIR\n\nDIR contains the model of /v1/embeddings. Flags:")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	handler, err := open(flag.Arg(0), s)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on http://%s", listener.Addr())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Bodies and answers have separate deadlines. A ReadTimeout would also end the context of a request that waits.
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()
	<-ctx.Done()
	stop() // a second signal ends the program at once
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil { // answers the accepted requests first
		log.Fatal(err)
	}
}

// open loads the models. Without a directory of a cross-encoder, there is no /rerank.
func open(dir string, s settings) (http.Handler, error) {
	e, err := models.LoadEmbedder(dir, s.options)
	if err != nil {
		return nil, err
	}
	if s.lengths != nil {
		e.Dimensions = s.lengths
	}
	for _, n := range s.lengths {
		if n < 1 || n > e.Width() {
			return nil, fmt.Errorf("-dimensions has %d, want 1 to %d", n, e.Width())
		}
	}
	if s.name == "" {
		full, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		s.name = filepath.Base(full)
	}
	v := &embeddings{e: e, name: s.name, truncate: s.truncate, batches: newBatcher(s.tokens, e.MostTokens, encodeFor(e), e.Forward)}
	m := newMux()
	m.handle("GET", "/health", func(*call) (any, error) { return "ok", nil })
	m.handle("GET", "/v1/models", v.models)
	m.handle("GET", "/v1/models/{name...}", v.models)
	m.handle("POST", "/v1/embeddings", v.create)
	if s.rerank == "" {
		return m, nil
	}
	r, err := newRanker(s)
	if err != nil {
		return nil, err
	}
	m.handle("POST", "/rerank", r.rank)
	return m, nil
}
