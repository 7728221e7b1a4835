// Program serve is an HTTP service that embeds and ranks texts with models from directories. docs/serve.md shows and
// explains it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

func main() {
	address := flag.String("address", "127.0.0.1:8080", "`HOST:PORT` to listen on")
	rerank := flag.String("rerank", "", "`DIR` of a cross-encoder for /rerank")
	var o models.Options
	flag.TextVar(&o.Format, "format", tensor.Float32, "number `FORMAT`: float32, bfloat16-weights, bfloat16 or int8")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: serve [flags] DIR\n\nDIR contains the model of /embed. Flags:")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	handler, err := open(flag.Arg(0), *rerank, o)
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
	server := &http.Server{Handler: handler, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute}
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

// open loads the models. Without a directory of a cross-encoder, there is no /rerank.
func open(embed, rerank string, o models.Options) (http.Handler, error) {
	e, err := models.LoadEmbedder(embed, o)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("POST /embed", handleEmbed(embedding(e)))
	if rerank == "" {
		return mux, nil
	}
	m, err := models.Load(rerank, o)
	if err != nil {
		return nil, err
	}
	c, err := models.NewClassifier(m)
	if err == nil && len(c.Labels()) != 1 {
		err = fmt.Errorf("%s: %d labels, want 1", rerank, len(c.Labels()))
	}
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("POST /rerank", handleRerank(newBatcher(c.MostTokens, c.Encode, c.Logits)))
	return mux, nil
}

// embedding returns the batcher of an embedder.
func embedding(e *models.Embedder) *batcher {
	encode := func(ctx context.Context, texts ...string) (*tokenizer.Encoding, bool, error) {
		return e.Encode(ctx, texts[0])
	}
	return newBatcher(e.MostTokens, encode, e.Forward)
}

// handleEmbed reads a JSON array of texts, and answers with an array of their vectors.
func handleEmbed(b *batcher) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		texts, err := readTexts(w, r)
		var vectors [][]float32
		if err == nil {
			inputs := make([][]string, len(texts))
			for i, text := range texts {
				inputs[i] = []string{text}
			}
			vectors, err = b.run(r.Context(), inputs)
		}
		reply(w, r, vectors, err)
	}
}

// handleRerank reads {"query": "…", "texts": ["…"]}, and answers with an array of the scores of the texts: the higher,
// the better a text fits the query.
func handleRerank(b *batcher) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query, texts, err := readQuery(w, r)
		var scores []float32
		if err == nil {
			inputs := make([][]string, len(texts))
			for i, text := range texts {
				inputs[i] = []string{query, text}
			}
			var rows [][]float32
			rows, err = b.run(r.Context(), inputs)
			for _, row := range rows {
				scores = append(scores, row[0])
			}
		}
		reply(w, r, scores, err)
	}
}

// reply writes a result or, as {"error": "…"}, the error in it.
func reply(w http.ResponseWriter, r *http.Request, result any, err error) {
	var large *http.MaxBytesError
	switch {
	case r.Context().Err() != nil: // the client has left
	case err == nil:
		answer(w, http.StatusOK, result)
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "1") // second
		answer(w, http.StatusServiceUnavailable, map[string]string{"error": err.Error()})
	case errors.As(err, &large):
		answer(w, http.StatusRequestEntityTooLarge, map[string]string{"error": err.Error()})
	default:
		answer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
	}
}

func answer(w http.ResponseWriter, status int, result any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(result); err != nil {
		log.Print(err)
	}
}
