// Program serve is an HTTP service that embeds texts with a model from a directory. docs/serve.md shows and explains it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/models"
)

const (
	mostBytes = 1 << 20 // of a request
	mostTexts = 256     // in a request
)

func main() {
	address := flag.String("address", "127.0.0.1:8080", "address to listen on")
	flag.Parse()
	e, err := models.LoadEmbedder(flag.Arg(0), models.Options{})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on http://%s", listener.Addr())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Handler: handler(newBatcher(e)), ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil { // answers the accepted requests first
		log.Fatal(err)
	}
}

// handler answers POST /embed: the body is a JSON array of texts, the answer an array of their vectors.
func handler(b *batcher) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /embed", func(w http.ResponseWriter, r *http.Request) {
		var texts []string
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
		if err == nil && !utf8.Valid(body) { // which package json would replace
			err = errors.New("the body is invalid UTF-8")
		}
		if err == nil {
			err = json.Unmarshal(body, &texts)
		}
		if err == nil && (len(texts) == 0 || len(texts) > mostTexts) {
			err = fmt.Errorf("%d texts, want 1 to %d", len(texts), mostTexts)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		vectors, err := b.embed(r.Context(), texts)
		switch {
		case r.Context().Err() != nil: // the client has left
		case errors.Is(err, errBusy):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		default:
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(vectors); err != nil {
				log.Print(err)
			}
		}
	})
	return mux
}
