package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/cells"
)

// mostFrozen bounds the weights in an exported page, in bytes.
const mostFrozen = 12 << 20

// Page returns the page with the records of o as one file, which needs neither the
// server nor the network. It contains every head, and the variants with merged words and
// hidden special tokens that fit into 12 MB. It contains the frames of a film likewise: if not
// all of them fit, the page says so and, without records, contains the last one.
// state is the part of the page's address after #; nil shows the first head.
//
// Errors: the heads do not fit; the error says how many tokens would.
func Page(ctx context.Context, o Options, state url.Values) ([]byte, error) {
	s := New(Options{Name: o.Name, Records: o.Records, Film: o.Film, Scores: o.Scores, Examples: o.Examples})
	entries := s.store.fixed
	if len(entries) == 0 && o.Film != nil {
		entries = []*entry{s.store.get(frameID(len(o.Film.Frames) - 1))}
	}
	a := newAnswers(s)
	if err := a.take(ctx, "api/start"); err != nil {
		return nil, err
	}
	full, film := false, false
	for _, l := range []string{
		"", "&words=1", "&special=hide", "&special=hide&words=1", "&special=renorm", "&special=renorm&words=1", "&values=1",
	} {
		for e, layer := range layersOf(entries) {
			if l == "&values=1" && !e.outline.Layers[layer].Values {
				continue
			}
			_, need := e.maps(layer)
			if full = full || a.size+need > mostFrozen; full {
				if l == "" {
					return nil, tooMuch(entries)
				}
				continue
			}
			if err := a.take(ctx, e.paths(layer, l)...); err != nil {
				return nil, err
			}
		}
		if l == "" || film && !full && l != "&values=1" { // a film has no norms of values
			frames, err := s.frozenFilm(ctx, l, mostFrozen-a.size)
			if err != nil {
				return nil, err
			}
			a.add(frames)
			film, full = film || frames != nil, full || film && frames == nil
		}
	}
	for e, layer := range layersOf(entries) {
		o := e.outline.Layers[layer]
		q, k := e.axes(layer)
		if o.Vectors == 0 || a.size+4*o.Vectors*o.Heads*(len(q.Tokens)+len(k.Tokens)) > mostFrozen {
			continue
		}
		for h := range o.Heads {
			if err := a.take(ctx, fmt.Sprintf("api/neurons?record=%s&layer=%d&head=%d", e.outline.ID, layer, h)); err != nil {
				return nil, err
			}
		}
	}
	for e, layer := range layersOf(entries) {
		for h := range e.outline.Layers[layer].Heads {
			if o.Examples == nil || a.size > mostFrozen {
				break
			}
			if err := a.take(ctx, fmt.Sprintf("api/examples?record=%s&layer=%d&head=%d", e.outline.ID, layer, h)); err != nil {
				return nil, err
			}
		}
	}
	_, data := encode(map[string]any{"address": state.Encode(), "answers": a.list, "film": film, "text": len(o.Records) > 0})
	return PageOf(data)
}

// PageOf returns the page of this program with the data of an exported page: the JSON of its element "frozen".
func PageOf(data []byte) ([]byte, error) {
	if !json.Valid(data) || bytes.IndexByte(data, '<') >= 0 { // Go escapes < in JSON, so no text can end the script
		return nil, errors.New("view: the data of an exported page must be JSON without <")
	}
	before, after, _ := strings.Cut(frozenPage(), frozenMark)
	return slices.Concat([]byte(before), data, []byte(after)), nil
}

// answers are the answers of a server that a page contains, by address.
type answers struct {
	of   map[string]func(r *http.Request) (any, error)
	list map[string][]byte
	size int // bytes in list
}

func newAnswers(s *Server) *answers { return &answers{of: s.answers(), list: map[string][]byte{}} }

// take requests answers from the server.
func (a *answers) take(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		value, err := a.of[r.URL.Path](r)
		if err != nil {
			return fmt.Errorf("view: %s: %w", path, err)
		}
		_, body := encode(value)
		a.add(map[string][]byte{path: body})
	}
	return ctx.Err()
}

func (a *answers) add(list map[string][]byte) {
	for path, body := range list {
		a.list[path] = body
		a.size += len(body)
	}
}

// frozenFilm returns the answers for all frames of the film in a lens, or nil if there is no film or they take
// more than most bytes.
func (s *Server) frozenFilm(ctx context.Context, lens string, most int) (map[string][]byte, error) {
	if s.options.Film == nil {
		return nil, nil
	}
	a := newAnswers(s)
	for i := range s.options.Film.Frames {
		e := s.store.get(frameID(i))
		for layer := range e.outline.Layers {
			if _, need := e.maps(layer); a.size+need > most {
				return nil, nil
			}
			// The page requests warnings of each frame, but not through a lens.
			paths := append(e.paths(layer, lens), fmt.Sprintf("api/check?record=%s&layer=%d", e.outline.ID, layer))
			if err := a.take(ctx, paths...); err != nil {
				return nil, err
			}
		}
	}
	if a.size > most {
		return nil, nil
	}
	return a.list, nil
}

// filmAnswers answers a page that exports itself: as frozenFilm, up to the number of bytes in the request.
func (s *Server) filmAnswers(r *http.Request) (any, error) {
	values := r.URL.Query()
	most, err := number("bytes", values.Get("bytes"), mostFrozen+1)
	if err != nil {
		return nil, err
	}
	lens := ""
	for _, key := range []string{"special", "words"} { // in the order of the page's addresses
		if values.Has(key) {
			lens += "&" + key + "=" + url.QueryEscape(values.Get(key))
		}
	}
	list, err := s.frozenFilm(r.Context(), lens, most)
	if err != nil {
		return nil, bad("%w", err)
	}
	return list, nil
}

// layersOf returns each layer of the entries.
func layersOf(entries []*entry) iter.Seq2[*entry, int] {
	return func(yield func(*entry, int) bool) {
		for _, e := range entries {
			for layer := range e.outline.Layers {
				if !yield(e, layer) {
					return
				}
			}
		}
	}
}

// paths returns the requests of the page for a layer in a lens.
func (e *entry) paths(layer int, lens string) []string {
	path := func(kind, more string) string {
		return fmt.Sprintf("api/%s?record=%s&layer=%d%s%s", kind, e.outline.ID, layer, more, lens)
	}
	o := e.outline.Layers[layer]
	list := []string{path("thumbs", ""), path("measures", "")}
	for h := range o.Heads {
		list = append(list, path("head", fmt.Sprintf("&head=%d", h)))
	}
	for _, name := range o.Summaries {
		list = append(list, path("head", "&head="+name), path("measures", "&head="+name))
	}
	if len(o.Summaries) > 0 {
		list = append(list, path("thumbs", "&summaries=1"))
	}
	return list
}

// maps returns the number of maps of a layer, including summaries, and the number of bytes that
// they and their thumbnails take in a page.
func (e *entry) maps(layer int) (n, bytes int) {
	o := e.outline.Layers[layer]
	q, k := e.axes(layer)
	of := func(side int) int { return min(len(q.Tokens), side) * min(len(k.Tokens), side) }
	n = o.Heads + len(o.Summaries)
	return n, n * (of(headSize) + of(thumbSize))
}

// tooMuch returns the error for records that do not fit into a page, with the size that would.
func tooMuch(entries []*entry) error {
	maps, bytes, tokens := 0, 0, 0
	for e, layer := range layersOf(entries) {
		q, k := e.axes(layer)
		n, need := e.maps(layer)
		maps, bytes, tokens = maps+n, bytes+need, max(tokens, len(q.Tokens), len(k.Tokens))
	}
	fit := int(math.Sqrt(max(0, (mostFrozen-256<<10)/float64(maps)-thumbSize*thumbSize))) // with room for tokens
	what := fmt.Sprintf("use at most about %d tokens, or write one map as a picture", fit)
	if fit < thumbSize {
		what = "write one map as a picture"
	}
	return fmt.Errorf("view: %d maps of up to %d tokens take %d MB, more than the %d MB that fit into a page: %s", maps, tokens, (bytes+1<<20-1)>>20, mostFrozen>>20, what) // a little too much is not “12 MB, more than 12 MB”
}

// Embed returns a page as an HTML fragment for notebooks and blogs: a sandboxed iframe
// with the page inside. It is one line, because an empty line would end it in Markdown.
func Embed(page []byte, title string) []byte {
	escape := strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", "&#10;", "\r", "&#13;")
	return fmt.Appendf(nil, `<div><iframe title="%s" sandbox="allow-scripts allow-downloads" style="width:100%%;height:720px;border:1px solid #858d9b;border-radius:8px" srcdoc="%s"></iframe></div>`+"\n",
		escape.Replace(cells.Label(title, 200)), escape.Replace(string(page)))
}

// WriteEmbed writes the page with the records or the film of o as Embed does. state is the part of the page's address
// after #.
//
// Errors: those of Page.
func WriteEmbed(ctx context.Context, w io.Writer, o Options, state url.Values) error {
	page, err := Page(ctx, o, state)
	if err == nil {
		_, err = w.Write(Embed(page, "Attention: "+o.Name))
	}
	return err
}
