package heads

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/safetensors"
)

// Keys of a file's metadata. All values except the texts are JSON.
const (
	keySource       = "source"
	keyTarget       = "target"
	keySourceTokens = "source_tokens"
	keyTargetTokens = "target_tokens"
	keyReadTokens   = "read_tokens"
	keySpecial      = "special"
	keyLayers       = "layers"
	keyOthers       = "not_layers" // names of tensors
)

// maxJSON limits the bytes of one value: an empty token takes three bytes in a file and many more in
// memory.
const maxJSON = 1 << 24

// layerJSON is the metadata of a layer, without the parts that follow from its name and the texts.
type layerJSON struct {
	Kind        string   `json:"kind,omitempty"`
	Index       *int     `json:"index,omitempty"`
	Heads       []int    `json:"heads,omitempty"`
	KeyHeads    []int    `json:"key_heads,omitempty"`
	Queries     []string `json:"queries,omitempty"`
	Keys        []string `json:"keys,omitempty"`
	Signed      bool     `json:"signed,omitempty"`
	QueryPlaces []int    `json:"query_places,omitempty"`
	KeyPlaces   []int    `json:"key_places,omitempty"`

	// Names of further tensors of the file, and the factor of the score.
	ValueNorms   string  `json:"value_norms,omitempty"`
	QueryVectors string  `json:"query_vectors,omitempty"`
	KeyVectors   string  `json:"key_vectors,omitempty"`
	ScoreScale   float32 `json:"score_scale,omitempty"`
}

// parts returns the names of a layer's further tensors.
func (j *layerJSON) parts() []string {
	return slices.DeleteFunc([]string{j.ValueNorms, j.QueryVectors, j.KeyVectors}, func(name string) bool { return name == "" })
}

// WriteFile writes the record to the file at path. It replaces an existing file only if there was no error.
func (r *Record) WriteFile(path string) error {
	return atomicfile.Write(path, r.Write)
}

// Write writes the record as a safetensors file, in the layout of docs/heads.md.
//
// Errors: those of Validate and of w, and texts that are not UTF-8.
func (r *Record) Write(w io.Writer) error {
	f, err := r.file()
	if err != nil {
		return fmt.Errorf("heads: %w", err)
	}
	return f.Write(w)
}

func (r *Record) file() (*safetensors.File, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	for _, s := range append([]string{r.Source, r.Target}, r.Special...) {
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("%s is not UTF-8", quote.Text(s))
		}
	}
	f := &safetensors.File{Metadata: map[string]string{}}
	names := map[string]bool{}
	for i := range r.Layers {
		names[r.Layers[i].Name] = true
	}
	var long error
	put := func(key string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			panic(err) // strings and integers have a form
		}
		if len(text) > maxJSON {
			long = fmt.Errorf("%s takes %d bytes, want at most %d", key, len(text), maxJSON)
		}
		f.Metadata[key] = string(text)
	}
	texts := r.texts()
	for key, tokens := range map[string][]string{
		keySourceTokens: texts.SourceTokens, keyTargetTokens: texts.TargetTokens, keyReadTokens: texts.ReadTokens, keySpecial: r.Special,
	} {
		if tokens != nil {
			put(key, tokens)
		}
	}
	for key, text := range map[string]string{keySource: r.Source, keyTarget: r.Target} {
		if text != "" {
			f.Metadata[key] = text
		}
	}
	layers := map[string]layerJSON{}
	for i := range r.Layers {
		l := &r.Layers[i]
		f.Tensors = append(f.Tensors, safetensors.FromFloat32s(l.Name, []int{l.Heads, len(l.Queries), len(l.Keys)}, l.Weights))
		j := l.json(&texts)
		for _, part := range []struct {
			name  string
			to    *string
			shape []int
			x     []float32
		}{
			{"value_norms", &j.ValueNorms, []int{l.Heads, len(l.Keys)}, l.ValueNorms},
			{"query_vectors", &j.QueryVectors, []int{l.Heads, len(l.Queries), l.VectorSize()}, l.QueryVectors},
			{"key_vectors", &j.KeyVectors, []int{l.Heads, len(l.Keys), l.VectorSize()}, l.KeyVectors},
		} {
			if part.x == nil {
				continue
			}
			*part.to = l.Name + "." + part.name
			if names[*part.to] {
				return nil, fmt.Errorf("layer %s: its %s would have the name of another layer", quote.Text(l.Name), part.name)
			}
			f.Tensors = append(f.Tensors, safetensors.FromFloat32s(*part.to, part.shape, part.x))
		}
		if j.QueryVectors != "" {
			j.ScoreScale = l.ScoreScale
		}
		if !reflect.ValueOf(j).IsZero() {
			layers[l.Name] = j
		}
	}
	if len(layers) > 0 {
		put(keyLayers, layers)
	}
	return f, long
}

// texts returns the tokens that are correct for most layers: those of the first layer of each kind.
func (r *Record) texts() Texts {
	var t Texts
	first := func(to *[]string, tokens []string) {
		if *to == nil {
			*to = tokens
		}
	}
	for i := range r.Layers {
		switch l := &r.Layers[i]; l.Kind {
		case Encoder:
			first(&t.SourceTokens, l.Keys)
		case Decoder, Mamba:
			first(&t.TargetTokens, l.Queries)
			first(&t.ReadTokens, l.Keys)
		case Cross:
			first(&t.TargetTokens, l.Queries)
			first(&t.SourceTokens, l.Keys)
		case Alignment:
			first(&t.SourceTokens, l.Queries)
			first(&t.TargetTokens, l.Keys)
		}
	}
	return t
}

// json returns the metadata of a layer, without those of its further tensors.
func (l *Layer) json(t *Texts) layerJSON {
	j := layerJSON{Heads: l.Chosen, KeyHeads: l.KeyHeads, Signed: l.Signed, QueryPlaces: l.QueryPlaces, KeyPlaces: l.KeyPlaces}
	if kind, said := kindOf(l.Name); !said || kind != l.Kind {
		j.Kind = l.Kind.String()
	}
	if index, said := indexOf(l.Name); !said || index != l.Index {
		j.Index = &l.Index
	}
	queries, keys := t.axes(l.Kind)
	if !slices.Equal(queries, l.Queries) {
		j.Queries = l.Queries
	}
	if !slices.Equal(keys, l.Keys) {
		j.Keys = l.Keys
	}
	return j
}

// Read reads a record from a safetensors file that Write or another program has written, see docs/heads.md.
// Each tensor is a layer: [H Lq Lk], [1 H Lq Lk], or [Lq Lk] for one head. Tokens that are not in the
// metadata become numbers. If the metadata do not have the kind of a layer, Read derives it from the
// layer's name and weights, as a Recorder does. Layers are sorted by kind and index.
//
// Errors: a file in another format, with its path; errors of the operating system. Read accepts weights
// whose rows do not sum to 1, which Check reports. But it rejects a file without tokens in which not a
// single row sums to 1, because such a file does not contain attention weights. Weights without a softmax are read if the
// metadata say that their layer is signed.
func Read(path string) (*Record, error) {
	return fromPath(path, fromFile)
}

// fromPath reads a file. Errors of read get the path.
func fromPath[T any](path string, read func(f *safetensors.Reader) (*T, error)) (*T, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	x, err := read(f)
	return x, inFile(path, err)
}

// inFile adds the path to an error, unless the error already has it.
func inFile(path string, err error) error {
	var reading *readError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &reading):
		return reading.error
	}
	return &safetensors.FormatError{Path: path, Err: err}
}

// readError is an error of reading a tensor's data. Its message already has the path and the name.
type readError struct{ error }

func fromFile(f *safetensors.Reader) (*Record, error) {
	r, err := outline(f, 0, true)
	if err != nil {
		return nil, err
	}
	for i := range r.Layers {
		l := &r.Layers[i]
		parts := map[string][]float32{}
		if l.Weights == nil {
			l.Weights = make([]float32, l.Heads*len(l.Queries)*len(l.Keys))
			parts[l.Name] = l.Weights
		}
		if size := l.inFile.size; size > 0 {
			l.QueryVectors, l.KeyVectors = make([]float32, l.Heads*len(l.Queries)*size), make([]float32, l.Heads*len(l.Keys)*size)
			parts[l.inFile.queries], parts[l.inFile.keys] = l.QueryVectors, l.KeyVectors
		}
		for name, to := range parts {
			if err := f.ReadFloat32s(name, to, 0); err != nil {
				return nil, &readError{err}
			}
		}
		l.inFile = storedVectors{}
	}
	return r, nil
}

// outline returns the record in a file without its weights and vectors. If the file is a film, frames is the number of
// its frames, and otherwise 0. If keep, layers whose kind was derived from their weights have these weights, so that
// they are read once.
func outline(f *safetensors.Reader, frames int, keep bool) (*Record, error) {
	if len(f.Tensors()) == 0 {
		return nil, errors.New("no tensors, want one for each attention layer")
	}
	r := &Record{Source: f.Metadata()[keySource], Target: f.Metadata()[keyTarget]}
	var texts Texts
	layers := map[string]layerJSON{}
	var others []string
	for _, part := range []struct {
		key string
		to  any
	}{
		{keySourceTokens, &texts.SourceTokens},
		{keyTargetTokens, &texts.TargetTokens},
		{keyReadTokens, &texts.ReadTokens},
		{keySpecial, &r.Special},
		{keyLayers, &layers},
		{keyOthers, &others},
	} {
		if _, err := metadata(f, part.key, part.to); err != nil {
			return nil, err
		}
	}
	parts := map[string]bool{}
	for _, name := range others {
		if _, layer := layers[name]; layer || parts[name] {
			return nil, fmt.Errorf("metadata %s: tensor %s is used twice", quote.Text(keyOthers), quote.Text(name))
		}
		parts[name] = true
	}
	for name, j := range layers {
		for _, name := range append([]string{name}, j.parts()...) {
			if _, there := f.Lookup(name); !there {
				return nil, fmt.Errorf("metadata %s: there is no tensor %s", quote.Text(keyLayers), quote.Text(name))
			}
		}
		for _, part := range j.parts() {
			if _, layer := layers[part]; layer || parts[part] {
				return nil, fmt.Errorf("metadata %s: tensor %s is used twice", quote.Text(keyLayers), quote.Text(part))
			}
			parts[part] = true
		}
	}
	for _, t := range f.Tensors() {
		if parts[t.Name] {
			continue // the layer it belongs to reads it
		}
		l, err := layerFrom(f, t, layers[t.Name], &texts, r.Layers, frames)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quote.Text(t.Name), err)
		}
		if !keep {
			l.Weights = nil
		}
		r.Layers = append(r.Layers, l)
	}
	if len(r.Layers) == 0 {
		return nil, errors.New("no tensor is a layer")
	}
	if texts.SourceTokens == nil && texts.TargetTokens == nil && len(layers) == 0 {
		some, err := anyDistribution(f, r.Layers)
		if err != nil {
			return nil, err
		}
		if !some {
			return nil, errors.New("no row of any tensor sums to 1: these are not attention weights, or signed ones without metadata that say so")
		}
	}
	arrange(r.Layers)
	return r, nil
}

// metadata decodes a value of a file's metadata, if the file has it.
func metadata(f *safetensors.Reader, key string, to any) (given bool, err error) {
	text, given := f.Metadata()[key]
	if !given {
		return false, nil
	}
	if len(text) > maxJSON {
		return true, fmt.Errorf("metadata %s has %d bytes, want at most %d", quote.Text(key), len(text), maxJSON)
	}
	if err := strictjson.Unmarshal([]byte(text), to); err != nil {
		return true, fmt.Errorf("metadata %s: %w", quote.Text(key), err)
	}
	return true, nil
}

// layerFrom makes a layer from a tensor, its metadata and the texts. It has weights only if its kind was derived from
// them. others are the layers before it, and frames is as for outline.
func layerFrom(f *safetensors.Reader, t safetensors.Info, j layerJSON, texts *Texts, others []Layer, frames int) (Layer, error) {
	l := Layer{Name: t.Name, Chosen: j.Heads, KeyHeads: j.KeyHeads, Signed: j.Signed, QueryPlaces: j.QueryPlaces, KeyPlaces: j.KeyPlaces}
	_, said := kindOf(t.Name)
	said = said || j.Kind != ""
	if frames > 0 {
		switch {
		case len(t.Shape) != 4 || t.Shape[0] != frames:
			return l, fmt.Errorf("shape %v, want [%d H Lq Lk] for %d steps", t.Shape, frames, frames)
		case !said:
			return l, errors.New("neither its metadata nor its name contains the kind of the layer")
		case len(j.parts()) > 0:
			return l, errors.New("metadata name norms or vectors, want weights only")
		}
		t.Shape = t.Shape[1:]
	}
	shape := t.Shape
	switch len(shape) {
	case 2:
		shape = []int{1, shape[0], shape[1]}
	case 3:
	case 4:
		if _, film := f.Metadata()[keySteps]; film && shape[0] != 1 {
			return l, fmt.Errorf("is a film of %d steps, want a record; read it with ReadFilm", shape[0])
		}
		if shape[0] != 1 {
			return l, fmt.Errorf("shape %v is a batch of %d, want one sequence", shape, shape[0])
		}
		shape = shape[1:]
	default:
		return l, fmt.Errorf("shape %v, want [H Lq Lk] as attention weights have", shape)
	}
	lq, lk := shape[1], shape[2]
	// An empty axis would allow any size of the others.
	if min(shape[0], lq, lk) < 1 || max(lq, lk) > maxTokens {
		return l, fmt.Errorf("shape %v, want at least one head and 1 to %d tokens", t.Shape, maxTokens)
	}
	l.Heads, l.Queries, l.Keys = shape[0], make([]string, lq), make([]string, lk)
	if !said && lq == lk { // identify derives the kind from the weights
		l.Weights = make([]float32, shape[0]*lq*lk)
		if err := f.ReadFloat32s(t.Name, l.Weights, 0); err != nil {
			return l, &readError{err}
		}
	}
	var err error
	if j.Kind != "" {
		if l.Kind, err = ParseKind(j.Kind); err != nil {
			return l, err
		}
	}
	if j.Index != nil {
		l.Index = *j.Index
	}
	identify(&l, others, j.Kind != "", j.Index != nil)
	queries, keys := texts.axes(l.Kind)
	for _, axis := range []struct {
		name         string
		to           *[]string
		given, usual []string
	}{{"queries", &l.Queries, j.Queries, queries}, {"keys", &l.Keys, j.Keys, keys}} {
		tokens := axis.given
		if tokens == nil {
			tokens = axis.usual
		}
		if tokens == nil {
			tokens = numbers(len(*axis.to))
		}
		if len(tokens) != len(*axis.to) {
			return l, fmt.Errorf("shape %v of a layer of kind %s, but there are %d tokens for its %s", t.Shape, l.Kind, len(tokens), axis.name)
		}
		*axis.to = tokens
	}
	if err := l.readParts(f, j); err != nil {
		return l, err
	}
	return l, l.validateAxes()
}

// numbers returns "0", "1", … as tokens for an axis without tokens.
func numbers(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = strconv.Itoa(i)
	}
	return list
}

// anyDistribution reports whether a row of any layer sums to 1, as after a softmax. It reads one head at a time.
func anyDistribution(f *safetensors.Reader, layers []Layer) (bool, error) {
	for i := range layers {
		l := &layers[i]
		n := len(l.Keys)
		for h := range l.Heads {
			weights, err := headOf(f, l, h)
			if err != nil {
				return false, err
			}
			for row := 0; row < len(weights); row += n {
				if cause, sum := judge(weights[row:row+n], l.Signed); cause == "" && sum > 0 {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// headOf reads the weights of a head.
func headOf(f *safetensors.Reader, l *Layer, h int) ([]float32, error) {
	n := len(l.Queries) * len(l.Keys)
	weights := make([]float32, n)
	if err := f.ReadFloat32s(l.Name, weights, h*n); err != nil {
		return nil, &readError{err}
	}
	return weights, nil
}
