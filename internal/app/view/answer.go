package view

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Time limits for clients. Without them, a client that sends or reads a byte now and
// then could keep connections and answers open without end.
const (
	headerTimeout = 10 * time.Second // to send the headers of a request
	readTimeout   = 30 * time.Second // to send all of a request, or to start the next
	writeTimeout  = 30 * time.Second // to receive an answer, once it is ready
)

// httpServer returns an HTTP server whose requests are cancelled with ctx.
func (s *Server) httpServer(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout, // answer sets it again
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		// Errors of clients are not messages for the user.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

const plainText = "text/plain; charset=utf-8"

// answer sends a result. The time limit for receiving it starts here, so that the
// computation may take any time.
func answer(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	// Ignore errors: recorders in tests have no deadlines, and clients may have left.
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.WriteHeader(status)
	w.Write(body)
}

func refuse(w http.ResponseWriter, status int, reason string) {
	kind, body := encode(map[string]string{"error": reason})
	answer(w, status, kind, body)
}
