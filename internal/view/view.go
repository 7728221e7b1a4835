// Package view serves one page that shows what the heads of a model attend to.
//
// The page is plain HTML, CSS and JavaScript inside the program; it fetches
// structure as JSON and weights, one head at a time, as bytes. Nothing comes
// from the network, and nothing that the page sends names a file. Every request
// has to bring a secret that only the user of the program has.
package view

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"math"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/attn-go/attn/heads"
)

// Source is a model that can be asked.
type Source interface {
	// Record returns the attention of every head while the model reads source and
	// writes target, or, if target is empty, what it writes by itself. An error
	// is shown on the page.
	Record(ctx context.Context, source, target string) (*heads.Record, error)
}

// Explainer is a Source that knows why a record of its own has no queries and keys.
type Explainer interface {
	// NoVectors returns that as a sentence for the page.
	NoVectors(r *heads.Record) string
}

// Model is a source with a name.
type Model struct {
	Name   string
	Source Source
}

// Scores are numbers about heads that somebody else has worked out, such as their
// importance. The page shows them as it shows measures.
type Scores struct {
	Name, Help string
	// Values are those of the heads of each layer, by its name: of every head of the
	// record, or by the numbers that heads have in the model. NaN is none.
	Values map[string][]float64
}

// of returns the score of head h of a layer, NaN if there is none.
func (s *Scores) of(l *heads.Layer, h int) float64 {
	values := s.Values[l.Name]
	if len(values) != l.Heads {
		h = l.Number(h)
	}
	if h >= len(values) {
		return math.NaN()
	}
	return values[h]
}

// Options are what a Server shows.
type Options struct {
	// Name is that of the model or the file; it is in the title.
	Name string
	// Records are there from the start.
	Records []*heads.Record
	// Files come after them: records whose weights are read when the page asks.
	Files []*heads.File
	// Source answers for texts that somebody types; nil if there is none.
	Source Source
	// Second is the second text that Source takes. The zero value is a translation.
	Second Second
	// Others are models to compare it with, about the same texts.
	Others []Model
	// Scores are of the heads of the records, and of those of Source.
	Scores []Scores
	// Keep is how many bytes of the records of typed texts are held: those used
	// last; the page asks for the others again. 0 means 256 MB.
	Keep int
	// MaxText is the number of bytes of the longest text; 0 means 4000.
	MaxText int
}

// Second is what the page says of the field for a second text.
type Second struct {
	Label string `json:"label"`
	Hint  string `json:"hint"` // what an empty field means
}

// Server serves the page.
type Server struct {
	options Options
	host    string // a name, besides localhost and numeric addresses, under which browsers may ask for the page
	secret  string // whoever has it may use the page
	store   *store
	frozen  []byte        // the page as one file, without data
	script  []byte        // all modules of the page
	asking  chan struct{} // holds a token while the model runs
	handler http.Handler
}

//go:embed page
var embedded embed.FS

// page is the folder of what the browser is given.
func page() fs.FS {
	sub, err := fs.Sub(embedded, "page")
	if err != nil {
		panic(err) // the name above is wrong
	}
	return sub
}

// script is what the page runs, the same for every server.
var script = sync.OnceValues(func() (string, error) { return bundled(page()) })

// frozenPage is the page as one file, which is the same for every server.
var frozenPage = sync.OnceValues(func() ([]byte, error) { return freeze(page()) })

// New returns a server of the given records and source.
func New(o Options) (*Server, error) {
	if o.MaxText == 0 {
		o.MaxText = 4000
	}
	if o.Second == (Second{}) {
		o.Second = Second{"Translation", "as the model writes it"}
	}
	if o.Keep == 0 {
		o.Keep = 256 << 20
	}
	frozen, err := frozenPage()
	if err != nil {
		return nil, err
	}
	script, err := script()
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, secret: newSecret(), store: newStore(o, o.Keep), frozen: frozen, script: []byte(script), asking: make(chan struct{}, 1)}
	s.handler = s.guard(s.routes())
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// garbage is how much of it may be in memory, in percent of what is kept, while a Server serves.
const garbage = 25

// Serve answers requests until the context ends, and returns its error, or that
// of the listener. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	// Each text leaves as much garbage as it keeps. By default the heap grows to twice of what is kept.
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
	// A browser keeps connections open for as long as it likes.
	patience, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := server.Shutdown(patience); errors.Is(err, context.DeadlineExceeded) {
		server.Close()
	}
	return ctx.Err()
}
