package view

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/strictjson"
)

// axis contains the tokens of one side of a matrix.
type axis struct {
	Tokens  []string `json:"tokens"`
	Special []int    `json:"special"`          // indices of special tokens
	Words   [][2]int `json:"words"`            // [from, to) of each word
	Labels  []string `json:"labels,omitempty"` // of the tokens, if they differ
}

// outline describes a record to the page without its weights.
type outline struct {
	ID       string         `json:"id"`
	Source   string         `json:"source"`
	Target   string         `json:"target"`
	Layers   []layerOutline `json:"layers"`
	Axes     []*axis        `json:"axes"`
	Warnings []string       `json:"warnings"`
	// Unread reports that the weights are in a file or computed on request: the page then
	// requests warnings layer by layer.
	Unread bool `json:"unread,omitempty"`
	// NoVectors is the reason why no layer has queries and keys, if the recorder has one.
	NoVectors string `json:"no_vectors,omitempty"`
	// Runs reports that the model is there, and can run without heads.
	Runs bool `json:"runs,omitempty"`
	// PrunesTo is the directory for the model without some heads, or empty.
	PrunesTo string `json:"prunes_to,omitempty"`
}

type layerOutline struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Index int    `json:"index"`
	Heads int    `json:"heads"`
	// Numbers are the numbers of the heads in the model, if some were pruned or not recorded.
	Numbers []int `json:"numbers,omitempty"`
	// KeyHeads are the numbers of the key/value heads, if heads share them.
	KeyHeads []int `json:"key_heads,omitempty"`
	// Summaries are the names of the summaries that can be opened besides the heads.
	Summaries []string `json:"summaries,omitempty"`
	Q         int      `json:"q"` // Q and K are indices in Axes
	K         int      `json:"k"`
	// Visible is the number of keys that each query can attend to, if some are masked.
	Visible []int `json:"visible,omitempty"`
	// Values reports whether there are norms of values. Vectors is the size of the queries
	// and keys, if there are any, and Scale the factor of their product.
	Values  bool    `json:"values,omitempty"`
	Vectors int     `json:"vectors,omitempty"`
	Scale   float32 `json:"scale,omitempty"`
}

// entry is a record with the results computed from it.
type entry struct {
	record  *heads.Record
	outline outline
	bytes   int // of memory, approximately
	// head returns the weights of a head, and vectors its queries and keys: from the record or from its file.
	head    func(layer, h int) ([]float32, error)
	vectors func(layer, h int) (queries, keys []float32, err error)

	memo     *recent[summaryKey, []float32] // of the store
	scores   []Scores
	recorder Recorder // of a typed text
	effects  effects

	mu       sync.Mutex
	measures map[seen][][]strictjson.Number // [heads columns]
	sums     sync.Mutex
	totals   map[totalKey]total
	wrong    sync.Map // lines of warnings by layer, for the layers checked so far
}

// Approximate bytes of an entry besides weights and texts, rather too many than too few.
const (
	entryBytes   = 4 << 10
	layerBytes   = 2 << 10
	tokenBytes   = 128 // of an axis: string, word and index
	measureBytes = 8
)

func newEntry(id string, r *heads.Record) *entry {
	e := &entry{record: r, measures: map[seen][][]strictjson.Number{}, totals: map[totalKey]total{}, bytes: entryBytes + len(r.Source) + len(r.Target)}
	e.head = func(layer, h int) ([]float32, error) { return r.Layers[layer].Head(h), nil }
	e.vectors = func(layer, h int) (queries, keys []float32, err error) {
		queries, keys = r.Layers[layer].Vectors(h)
		return queries, keys, nil
	}
	e.outline = outline{ID: id, Source: r.Source, Target: r.Target, Layers: []layerOutline{}, Axes: []*axis{}, Warnings: allWarnings(r)}
	// The layers of a model share their tokens, which are sent once.
	place := func(tokens []string) int {
		if i := slices.IndexFunc(e.outline.Axes, func(a *axis) bool { return slices.Equal(a.Tokens, tokens) }); i >= 0 {
			return i
		}
		e.outline.Axes = append(e.outline.Axes, newAxis(tokens, r))
		for _, t := range tokens {
			e.bytes += tokenBytes + len(t)
		}
		return len(e.outline.Axes) - 1
	}
	for i := range r.Layers {
		l := &r.Layers[i]
		e.outline.Unread = e.outline.Unread || l.Weights == nil && len(l.Queries)*len(l.Keys) > 0
		e.bytes += layerBytes + l.Held + 4*(len(l.Weights)+len(l.ValueNorms)+len(l.QueryVectors)+len(l.KeyVectors)) + l.Heads*len(columns)*measureBytes
		o := outlineOf(l, place(l.Queries), place(l.Keys))
		o.Summaries = summariesOf(r, i)
		e.outline.Layers = append(e.outline.Layers, o)
	}
	return e
}

// from sets the recorder of a record, if there is one, and what follows from it. It explains why no layer has queries and
// keys.
func (e *entry) from(of Recorder) {
	e.recorder = of
	_, runs := of.(Switcher)
	e.outline.Runs = runs && e.record.Layer(heads.Alignment, 0) == nil // which is no run of a model
	if p, ok := of.(Pruner); ok {
		e.outline.PrunesTo = p.PrunesTo()
	}
	if of != nil && !slices.ContainsFunc(e.outline.Layers, func(l layerOutline) bool { return l.Vectors > 0 }) {
		e.outline.NoVectors = of.NoVectors(e.record)
	}
}

func outlineOf(l *heads.Layer, q, k int) layerOutline {
	o := layerOutline{Name: l.Name, Kind: l.Kind.String(), Index: l.Index, Heads: l.Heads, Numbers: l.Chosen, KeyHeads: l.KeyHeads, Q: q, K: k,
		Values: l.ValueNorms != nil, Vectors: l.VectorSize(), Scale: l.ScoreScale}
	if l.Kind.Causal() {
		o.Visible = l.Visible()
	}
	return o
}

func newAxis(tokens []string, r *heads.Record) *axis {
	a := &axis{Tokens: append([]string{}, tokens...), Special: []int{}, Words: [][2]int{}}
	for i, t := range tokens {
		if slices.Contains(r.Special, t) {
			a.Special = append(a.Special, i)
		}
	}
	if labels := r.Labels(tokens); !slices.Equal(labels, tokens) {
		a.Labels = labels
	}
	for _, s := range r.Words(tokens) {
		a.Words = append(a.Words, [2]int{s.From, s.To})
	}
	return a
}

// axes returns the axes of a layer.
func (e *entry) axes(layer int) (q, k *axis) {
	l := e.outline.Layers[layer]
	return e.outline.Axes[l.Q], e.outline.Axes[l.K]
}

// store contains the records that the page may request: those given at the start, and
// the most recently used records of typed texts, up to a number of bytes.
type store struct {
	fixed  []*entry
	frames []heads.Frame          // of the film; they become entries on request
	last   []Scores               // of the last frame, which is the trained model
	typed  recent[string, *entry] // by id
	memo   *recent[summaryKey, []float32]
}

func newStore(o Options, most int) *store {
	s := &store{last: o.Scores, memo: newMemo()}
	if o.Film != nil {
		s.frames = o.Film.Frames
	}
	s.typed = recent[string, *entry]{most: most, size: func(e *entry) int { return e.bytes }}
	add := func(r *heads.Record) *entry {
		e := newEntry(fmt.Sprintf("r%d", len(s.fixed)), r)
		e.memo, e.scores = s.memo, o.Scores
		s.fixed = append(s.fixed, e)
		return e
	}
	for _, r := range o.Records {
		add(r).from(o.Recorder)
	}
	for _, f := range o.Files {
		e := add(f.Record)
		e.head, e.vectors = f.Head, f.Vectors
	}
	return s
}

// textID returns the id of the record of two texts by a model, so that the same texts
// are recorded once.
func textID(model int, source, target string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s%s", model, len(source), source, target))
	return "t" + hex.EncodeToString(sum[:8])
}

// get returns a record, or nil if the store does not contain it, or no longer does.
func (s *store) get(id string) *entry {
	for _, e := range s.fixed {
		if e.outline.ID == id {
			return e
		}
	}
	if e, ok := s.typed.get(id); ok {
		return e
	}
	return s.frame(id)
}

// frameID returns the id of the record of a frame of the film.
func frameID(n int) string { return fmt.Sprintf("f%d", n) }

// frame returns the record of a frame by its id, or nil if there is none.
func (s *store) frame(id string) *entry {
	for n := range s.frames {
		if id == frameID(n) {
			e := newEntry(id, s.frames[n].Record)
			if n == len(s.frames)-1 {
				e.scores = s.last
			}
			s.add(e)
			return e
		}
	}
	return nil
}

// add stores a record.
func (s *store) add(e *entry) {
	e.memo = s.memo
	s.typed.put(e.outline.ID, e)
}
