// Package view serves a page that shows what the heads of a model attend to.
//
// The page is plain HTML, CSS and JavaScript, embedded in the program. It fetches
// structure as JSON and weights, one head at a time, as bytes. It loads nothing from the
// network, and no request of the page names a file. Every request must contain a
// secret, which only the user of the program gets.
package view

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// Recorder records the attention of a model for given texts.
type Recorder interface {
	// Record returns the attention of every head while the model reads source and
	// writes target. If target is empty, the model writes its own output. The page
	// shows the error.
	Record(ctx context.Context, source, target string) (*heads.Record, error)
	// NoVectors returns the reason why a record from it has no queries and keys, as a
	// sentence for the page.
	NoVectors(r *heads.Record) string
}

// Model is a Recorder with a name.
type Model struct {
	Name     string
	Recorder Recorder
}

// Scores are numbers for heads computed elsewhere, such as their importance. The page
// shows them like measures.
type Scores struct {
	Name, Help string
	// Values are the scores of each layer, by its name: one per head of the record, or
	// one per head of the model, by its number there. NaN is a missing score.
	Values map[string][]strictjson.Number
}

// score returns the score of head h of a layer, or NaN.
func (s *Scores) score(l *heads.Layer, h int) strictjson.Number {
	values := s.Values[l.Name]
	if len(values) != l.Heads {
		h = l.Number(h)
	}
	if h >= len(values) {
		return strictjson.NaN
	}
	return values[h]
}

// Options selects the records and models that a Server shows.
type Options struct {
	// Name is the name of the model or the file, for the title.
	Name string
	// Records are available from the start.
	Records []*heads.Record
	// Files follow the Records. Their weights are read on request.
	Files []*heads.File
	// Recorder records typed texts; nil if there is no model.
	Recorder Recorder
	// Second describes the second text of Recorder. The zero value means a translation.
	Second Second
	// Others are models to compare with that of Recorder.
	Others []Model
	// Film is the recording of a training, of that model if there is one, which the page can scrub; nil if there is none.
	Film *heads.Film
	// Scores are scores of the heads of the records, and of records from Recorder.
	Scores []Scores
	// Examples are the best examples of the heads in a corpus; nil if there are none.
	Examples *Examples
	// Keep is the number of bytes for cached records of typed texts. The least recently
	// used are dropped and recorded again on request. 0 means 256 MB.
	Keep int
	// MaxText is the largest number of bytes of a text; 0 means 4000.
	MaxText int
}

// Open adds a file of weights, which the system closes when the program ends, or the film of a run.
//
// Errors: *flags.Error for a second film; those of heads.ReadFilm and heads.Open.
func (o *Options) Open(path string) error {
	film, err := heads.ReadFilm(path)
	switch {
	case err == nil && o.Film != nil:
		return flags.Errorf("--weights %s is a second film, want at most one", quote.Shell(path))
	case err == nil:
		o.Film = film
		return nil
	case !errors.Is(err, heads.ErrNotFilm):
		return err
	}
	f, err := heads.Open(path)
	if err == nil {
		o.Files = append(o.Files, f)
	}
	return err
}

// Second describes the field for a second text.
type Second struct {
	Label string `json:"label"`
	Hint  string `json:"hint"` // shown in the empty field
}

// Server serves the page.
type Server struct {
	options Options
	models  []Model // of the page
	host    string  // accepted host name, besides localhost and IP addresses
	secret  string  // gives access to the page
	store   *store
	asking  chan struct{} // a semaphore, full while a model runs
	handler http.Handler
}

// embedded has the files for the browser: a folder for the page of attn view, and one for that of attn follow.
//
//go:embed page training
var embedded embed.FS

// serveFolder returns a handler that serves a folder of embedded. The caller adds the other paths of its page.
func serveFolder(name string) *http.ServeMux {
	folder, err := fs.Sub(embedded, name)
	if err != nil {
		panic(err) // the name is wrong
	}
	mux, files := http.NewServeMux(), http.FileServerFS(folder)
	mux.Handle("GET /{$}", files)
	mux.Handle("GET /page/", http.StripPrefix("/page/", files))
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux
}

// New returns a server for the given records and models.
func New(o Options) *Server {
	o.MaxText, o.Keep = cmp.Or(o.MaxText, 4000), cmp.Or(o.Keep, 256<<20)
	o.Second = cmp.Or(o.Second, Second{"Translation", "as the model writes it"})
	s := &Server{options: o, secret: newSecret(), store: newStore(o, o.Keep), asking: make(chan struct{}, 1)}
	if o.Recorder != nil {
		s.models = append([]Model{{o.Name, o.Recorder}}, o.Others...)
	}
	s.handler = s.guard(s.routes())
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// garbage is the value of GOGC while a Server serves: garbage in percent of the live heap.
const garbage = 25

// Serve answers requests until the context ends, and closes the listener. It returns the
// error of the context or of the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	// Each text leaves as much garbage as live data. By default the heap would grow to twice the live data.
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(garbage))
	}
	server := s.httpServer(ctx)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Browsers keep idle connections open.
	patience, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := server.Shutdown(patience); errors.Is(err, context.DeadlineExceeded) {
		server.Close()
	}
	return ctx.Err()
}
