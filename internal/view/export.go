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
	"strings"

	"github.com/attn-go/attn/heads"
)

// mostFrozen bounds the weights in an exported page, in bytes.
const mostFrozen = 12 << 20

// Page returns the page with the records of o as one file, which needs neither the
// server nor the network. It contains every head, and the variants with merged words and
// hidden special tokens that fit into 12 MB. state is the part of the page's address
// after #; nil shows the first head.
//
// Errors: the heads do not fit; the error says how many tokens would.
func Page(ctx context.Context, o Options, state url.Values) ([]byte, error) {
	s, err := New(Options{Name: o.Name, Records: o.Records, Scores: o.Scores})
	if err != nil {
		return nil, err
	}
	routes := s.routes()
	answers, size := map[string][]byte{}, 0
	take := func(paths ...string) error {
		for _, path := range paths {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/"+path, nil)
			if err != nil {
				return err
			}
			w := &taken{header: http.Header{}}
			routes.ServeHTTP(w, r)
			if w.status != http.StatusOK {
				return fmt.Errorf("view: %s: %s", path, w.body.Bytes())
			}
			answers[path] = w.body.Bytes()
			size += w.body.Len()
		}
		return ctx.Err()
	}
	if err := take("api/start"); err != nil {
		return nil, err
	}
	full := false
	for _, l := range []string{
		"", "&words=1", "&special=hide", "&special=hide&words=1", "&special=renorm", "&special=renorm&words=1", "&values=1",
	} {
		for e, layer := range s.store.layers() {
			if l == "&values=1" && !e.outline.Layers[layer].Values {
				continue
			}
			_, need := e.maps(layer)
			if full = full || size+need > mostFrozen; full {
				if l == "" {
					return nil, tooMuch(s.store)
				}
				continue
			}
			if err := take(e.paths(layer, l)...); err != nil {
				return nil, err
			}
		}
	}
	for e, layer := range s.store.layers() {
		o := e.outline.Layers[layer]
		q, k := e.axes(layer)
		if o.Vectors == 0 || size+4*o.Vectors*o.Heads*(len(q.Tokens)+len(k.Tokens)) > mostFrozen {
			continue
		}
		for h := range o.Heads {
			if err := take(fmt.Sprintf("api/neurons?record=%s&layer=%d&head=%d", e.outline.ID, layer, h)); err != nil {
				return nil, err
			}
		}
	}
	data, err := json.Marshal(map[string]any{"address": state.Encode(), "answers": answers})
	if err != nil {
		return nil, err
	}
	return PageOf(data)
}

// PageOf returns the page of this program with the data of an exported page: the JSON of its element "frozen".
func PageOf(data []byte) ([]byte, error) {
	if !json.Valid(data) || bytes.IndexByte(data, '<') >= 0 { // Go escapes < in JSON, so no text can end the script
		return nil, errors.New("view: the data of an exported page must be JSON without <")
	}
	shell, err := frozenPage()
	if err != nil {
		return nil, err
	}
	return bytes.Replace(shell, []byte(frozenMark), data, 1), nil
}

// layers returns each layer of the entries given at the start.
func (s *store) layers() iter.Seq2[*entry, int] {
	return func(yield func(*entry, int) bool) {
		for _, e := range s.fixed {
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
func tooMuch(s *store) error {
	maps, bytes, tokens := 0, 0, 0
	for e, layer := range s.layers() {
		q, k := e.axes(layer)
		n, need := e.maps(layer)
		maps, bytes, tokens = maps+n, bytes+need, max(tokens, len(q.Tokens), len(k.Tokens))
	}
	fit := int(math.Sqrt(max(0, (mostFrozen-256<<10)/float64(maps)-thumbSize*thumbSize))) // with room for tokens
	what := fmt.Sprintf("use at most about %d tokens, or write one map as a picture", fit)
	if fit < thumbSize {
		what = "write one map as a picture"
	}
	return fmt.Errorf("view: %d maps of up to %d tokens take %d MB, more than the %d MB that fit into a page: %s", maps, tokens, bytes>>20, mostFrozen>>20, what)
}

// taken is a ResponseWriter that stores the answer.
type taken struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (t *taken) Header() http.Header         { return t.header }
func (t *taken) WriteHeader(status int)      { t.status = status }
func (t *taken) Write(b []byte) (int, error) { return t.body.Write(b) }

// Embed returns a page as an HTML fragment for notebooks and blogs: a sandboxed iframe
// with the page inside. It is one line, because an empty line would end it in Markdown.
func Embed(page []byte, title string) []byte {
	escape := strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", "&#10;", "\r", "&#13;")
	return fmt.Appendf(nil, `<div><iframe title="%s" sandbox="allow-scripts allow-downloads" style="width:100%%;height:720px;border:1px solid #858d9b;border-radius:8px" srcdoc="%s"></iframe></div>`+"\n",
		escape.Replace(title), escape.Replace(string(page)))
}

// WriteEmbed writes the page with one record as Embed does. state is the part of the page's address after #.
//
// Errors: those of Page.
func WriteEmbed(ctx context.Context, w io.Writer, title string, r *heads.Record, state url.Values) error {
	page, err := Page(ctx, Options{Name: title, Records: []*heads.Record{r}}, state)
	if err == nil {
		_, err = w.Write(Embed(page, "Attention: "+title))
	}
	return err
}
