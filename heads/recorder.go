package heads

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
)

// RecorderOptions selects the data that a Recorder keeps. The zero value keeps the weights of every head of
// every layer, for the first sequence of the batch.
type RecorderOptions struct {
	// Layers reports whether to keep a layer. Nil means all.
	Layers func(name string) bool
	// Kinds are the kinds of layers to keep. Empty means all.
	Kinds []Kind
	// Heads reports whether to keep a head of a layer. Nil means all.
	Heads func(layer string, head int) bool
	// Sequence is the index in the batch of the sequence to keep.
	Sequence int
	// ValueNorms and Vectors select what Inspect keeps: the norms of values, and the queries and keys.
	ValueNorms, Vectors bool
	// OnRequest computes the weights of a head in each call of Layer.Head instead of keeping them. Inspect
	// keeps the inputs of that computation, which for long texts are much smaller, and the rows are not
	// kept. The weights are the same bit for bit. The tapes of the runs must not be reset.
	OnRequest bool
}

// Recorder keeps weights while a model runs. It is an attn.Observer:
//
//	recorder := heads.NewRecorder(heads.RecorderOptions{})
//	layer.Forward(nil, x, x, x, attn.Options{Observers: []attn.Observer{recorder}})
//	record, err := recorder.Record(heads.Texts{SourceTokens: tokens})
//
// Its method Inspect is an attn.Inspector that keeps the further data which the options select. Callbacks
// returns what the options need of both.
//
// A layer may process a whole text in one call or step by step: the rows of all calls are stacked, and keys
// that did not exist yet have weight 0.
//
// The kind of a layer follows from its name: Cross if the name contains "cross", or both "decoder" and
// "encoder"; otherwise Decoder if it contains "decoder" (Mamba with ".mamba"), and Encoder if it contains "encoder". A layer with
// none of these in its name is Cross if its numbers of queries and keys differ, Decoder if no query attends
// to a later key, and otherwise Encoder. The index of a layer is the first number among the parts of its
// name, as in "model.layers.3.attention". Layers without a number are numbered in the order of their first
// calls.
//
// A Recorder is for one call at a time.
type Recorder struct {
	options RecorderOptions
	now     *call // the present call, nil if its weights are not kept
	order   []*observed
	byName  map[string]*observed
	err     error // the first
}

// observed has the calls of a layer.
type observed struct {
	name         string
	batch, heads int // of the model
	signed       bool
	chosen       []int // numbers of the heads to keep
	steps        steps
	held         int // bytes that the steps keep to compute weights from

	inspected bool        // Inspect has received the norms or vectors that the options select
	norms     []float32   // [chosen keys], of all keys so far
	queries   [][]float32 // [rows E] of each kept head, over all steps
	keys      []float32   // [chosen keys E]; nil if the score is not a dot product
	scale     float32
}

// step is one call.
type step struct {
	rows, keys int
	head       func(i int) []float32 // returns or computes the weights [rows keys] of the i-th kept head
}

// steps are all calls of a layer. A record that computes weights keeps them alive, and nothing else of the Recorder.
type steps []step

// NewRecorder returns an empty Recorder.
func NewRecorder(o RecorderOptions) *Recorder {
	return &Recorder{options: o, byName: map[string]*observed{}}
}

// Reset removes all recorded data. Call it before another run.
func (r *Recorder) Reset() { *r = *NewRecorder(r.options) }

// Callbacks returns what to give to a model: the Recorder as the only observer, and Inspect, or nil for what the
// options do not need.
func (r *Recorder) Callbacks() ([]attn.Observer, attn.Inspector) {
	var inspect attn.Inspector
	if r.options.OnRequest || r.options.ValueNorms || r.options.Vectors {
		inspect = r.Inspect
	}
	if r.options.OnRequest {
		return nil, inspect
	}
	return []attn.Observer{r}, inspect
}

// call keeps the weights of one call of a layer.
type call struct {
	keys  int
	place []int     // of the weights of each head, or -1
	kept  []float32 // [chosen rows keys]
}

// Begin begins a call of a layer. Record returns its errors.
func (r *Recorder) Begin(s attn.Sizes) {
	r.now = nil
	if r.options.OnRequest || !r.keeps(s.Layer) {
		return
	}
	o, err := r.add(s.Layer, s.B, s.H, s.Lk)
	if err != nil {
		r.err = fmt.Errorf("heads: layer %s: %w", quote.Text(s.Layer), err)
		return
	}
	n := s.Lq * s.Lk
	c := &call{s.Lk, slices.Repeat([]int{-1}, s.H), make([]float32, len(o.chosen)*n)}
	for i, h := range o.chosen {
		c.place[h] = i * n
	}
	o.signed = s.Signed
	o.steps = append(o.steps, step{s.Lq, s.Lk, func(i int) []float32 { return c.kept[i*n : (i+1)*n] }})
	r.now = c
}

// Row keeps a copy of the weights of a query.
func (r *Recorder) Row(at attn.Row, weights []float32) {
	c := r.now
	if c == nil || at.Batch != r.options.Sequence || c.place[at.Head] < 0 {
		return
	}
	copy(c.kept[c.place[at.Head]+at.Query*c.keys:][:c.keys], weights)
}

// keeps reports whether the options select a layer, as far as its name shows.
func (r *Recorder) keeps(layer string) bool {
	if r.err != nil || r.options.Layers != nil && !r.options.Layers(layer) {
		return false
	}
	kind, said := kindOf(layer)
	return !said || r.wants(kind)
}

func (r *Recorder) wants(k Kind) bool {
	return len(r.options.Kinds) == 0 || slices.Contains(r.options.Kinds, k)
}

// add returns the earlier calls of a layer, or a new observed for its first call. It returns an error if
// the sizes do not match the earlier calls.
func (r *Recorder) add(name string, batch, heads, keys int) (*observed, error) {
	if n := r.options.Sequence; n < 0 || n >= batch {
		return nil, fmt.Errorf("sequence %d, but the batch has %d", n, batch)
	}
	o := r.byName[name]
	if o == nil {
		o = &observed{name: name, batch: batch, heads: heads}
		for h := range heads {
			if r.options.Heads == nil || r.options.Heads(name, h) {
				o.chosen = append(o.chosen, h)
			}
		}
		o.queries = make([][]float32, len(o.chosen))
		r.byName[name] = o
		r.order = append(r.order, o)
	}
	if o.batch != batch || o.heads != heads {
		return nil, fmt.Errorf("batch size %d and %d heads, want %d and %d as in the previous call", batch, heads, o.batch, o.heads)
	}
	if n := len(o.steps); n > 0 && keys < o.steps[n-1].keys {
		return nil, fmt.Errorf("%d keys after %d in the previous call: call Reset before another run", keys, o.steps[n-1].keys)
	}
	return o, nil
}

// stack returns all steps as one layer, which computes its weights. Its axes have the right lengths, but no tokens.
func (o *observed) stack() Layer {
	l := Layer{Name: o.name, Heads: len(o.chosen), Held: o.held, Signed: o.signed, again: o.steps.head}
	lq, lk := o.steps.sizes()
	l.Queries, l.Keys = make([]string, lq), make([]string, lk)
	if len(o.chosen) < o.heads {
		l.Chosen = slices.Clone(o.chosen)
	}
	return l
}

// sizes returns the numbers of queries and keys of all steps.
func (all steps) sizes() (lq, lk int) {
	for _, s := range all {
		lq, lk = lq+s.rows, s.keys // keys only grow
	}
	return lq, lk
}

// head returns the weights [Lq Lk] of the i-th kept head, over all steps.
func (all steps) head(i int) []float32 {
	if len(all) == 1 {
		return all[0].head(i)
	}
	rows, keys := all.sizes()
	whole, row := make([]float32, rows*keys), 0
	for _, s := range all {
		for from, weights := 0, s.head(i); from < len(weights); from += s.keys {
			copy(whole[row*keys:], weights[from:from+s.keys])
			row++
		}
	}
	return whole
}

// Texts are the texts that a model has processed, and their tokens.
//
//	layer    queries       keys
//	Encoder  SourceTokens  SourceTokens
//	Decoder  TargetTokens  ReadTokens
//	Cross    TargetTokens  SourceTokens
//
// The token of a decoder's query is the token that is written at that step. A model with only one text has
// SourceTokens on every axis.
type Texts struct {
	Source, Target             string
	SourceTokens, TargetTokens []string
	// ReadTokens are the tokens that the decoder has read: usually a start token and TargetTokens without
	// the last. Nil means TargetTokens.
	ReadTokens []string
	// Special lists the special tokens.
	Special []string
}

// axes returns the tokens of the queries and keys of layers of a kind.
func (t *Texts) axes(k Kind) (queries, keys []string) {
	target, read := t.TargetTokens, t.ReadTokens
	if target == nil && k.Causal() {
		target = t.SourceTokens
	}
	if read == nil {
		read = target
	}
	switch k {
	case Decoder, Mamba:
		return target, read
	case Cross:
		return target, t.SourceTokens
	case Alignment:
		return t.SourceTokens, target
	}
	return t.SourceTokens, t.SourceTokens
}

// Record returns the data observed since the last Reset, with the tokens of the axes. Layers are sorted by
// kind and index. In a batch of several sequences, rows and columns beyond the tokens are removed as
// padding.
//
// Errors: no layer was observed; the number of tokens differs from the number of queries or keys of a
// layer; padding has weight; the sizes of calls do not match.
//
// Aliasing: the tokens are those of t, the weights are copies.
func (r *Recorder) Record(t Texts) (*Record, error) {
	if r.err != nil {
		return nil, r.err
	}
	record := &Record{Source: t.Source, Target: t.Target, Special: t.Special}
	for _, o := range r.order {
		l := o.stack()
		if l.Heads == 0 || len(o.steps) == 0 {
			continue
		}
		if err := o.addTo(&l, r.options); err != nil {
			return nil, fmt.Errorf("heads: layer %s: %w", quote.Text(l.Name), err)
		}
		identify(&l, record.Layers, false, false)
		if !r.wants(l.Kind) {
			continue
		}
		queries, keys := t.axes(l.Kind)
		if err := l.label(queries, keys, o.batch > 1); err != nil {
			return nil, fmt.Errorf("heads: layer %s (%s): %w", quote.Text(l.Name), l.Kind, err)
		}
		if !r.options.OnRequest {
			l.Weights = make([]float32, 0, l.Heads*len(l.Queries)*len(l.Keys))
			for h := range l.Heads {
				l.Weights = append(l.Weights, l.again(h)...)
			}
			l.again = nil
		}
		record.Layers = append(record.Layers, l)
	}
	if len(record.Layers) == 0 {
		return nil, errors.New("heads: none of the selected layers was observed")
	}
	arrange(record.Layers)
	return record, nil
}

// label sets the tokens of the axes. If padded, the axes may be longer than the tokens.
func (l *Layer) label(queries, keys []string, padded bool) error {
	lq, lk := len(l.Queries), len(l.Keys)
	fits := func(got, want int) bool { return got == want || padded && got > want }
	if !fits(lq, len(queries)) || !fits(lk, len(keys)) {
		return fmt.Errorf("weights of %d queries and %d keys, but there are %d and %d tokens", lq, lk, len(queries), len(keys))
	}
	l.Queries, l.Keys = queries, keys
	if lq == len(queries) && lk == len(keys) {
		return nil
	}
	first := func(x []float32, n, kept int) []float32 { return chosen(x, l.Heads, n, stats.Numbers(kept)) }
	l.ValueNorms = first(l.ValueNorms, lk, len(keys))
	l.QueryVectors, l.KeyVectors = first(l.QueryVectors, lq, len(queries)), first(l.KeyVectors, lk, len(keys))
	whole := l.again
	for h := range l.Heads {
		for z, w := range whole(h)[:len(queries)*lk] {
			if w != 0 && z%lk >= len(keys) {
				return fmt.Errorf("query %d attends to key %d, but there are %d tokens", z/lk, z%lk, len(keys))
			}
		}
	}
	l.again = func(h int) []float32 {
		kept, weights := make([]float32, 0, len(queries)*len(keys)), whole(h)
		for i := range queries {
			kept = append(kept, weights[i*lk:][:len(keys)]...)
		}
		return kept
	}
	return nil
}
