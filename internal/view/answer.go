package view

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"
)

// What a client may take its time for. Without bounds, clients that send or read
// a byte now and then hold connections and answers for as long as they like.
const (
	headerTimeout = 10 * time.Second // to send the headers of a request
	readTimeout   = 30 * time.Second // to send all of a request, or begin the next
	writeTimeout  = 30 * time.Second // to take an answer, from when it is ready
)

// httpServer returns the server of connections, whose requests end with ctx.
func (s *Server) httpServer(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout, // answer sets it anew
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		// What strangers send is no message to the user.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

const plainText = "text/plain; charset=utf-8"

// answer sends what has been worked out, however long that took: the time that a
// client has for taking it begins here.
func answer(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	// A recorder in a test has no deadlines, and a client that has left needs none.
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.WriteHeader(status)
	w.Write(body)
}

func send(w http.ResponseWriter, v any) { sendStatus(w, http.StatusOK, v) }

func refuse(w http.ResponseWriter, status int, reason string) {
	sendStatus(w, status, map[string]string{"error": reason})
}

func sendStatus(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types can all be written
	}
	answer(w, status, "application/json", text)
}
