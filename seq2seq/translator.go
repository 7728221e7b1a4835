package seq2seq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/safetensors"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Translator is a network with the vocabularies of the two languages.
type Translator struct {
	Config         Config
	Source, Target *Vocabulary
	net            network
}

// New returns a translator with fresh parameters. The sizes of the vocabularies
// in c are filled in.
func New(c Config, source, target *Vocabulary, rng *rand.Rand) (*Translator, error) {
	c.SourceVocab, c.TargetVocab = source.Len(), target.Len()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("seq2seq: %w", err)
	}
	return &Translator{Config: c, Source: source, Target: target, net: newNetwork(c, rng)}, nil
}

// Params returns the network's parameters by name.
func (m *Translator) Params() nn.Params { return m.net.Params() }

// The files of a model directory.
const (
	configFile  = "config.json"
	sourceFile  = "source.json" // vocabularies
	targetFile  = "target.json"
	weightsFile = "model.safetensors"
)

// Save writes the translator to a directory, which it makes if need be. Each
// file is replaced as a whole or not at all.
func (m *Translator) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data any
	}{{configFile, m.Config}, {sourceFile, m.Source}, {targetFile, m.Target}} {
		if err := writeJSON(filepath.Join(dir, f.name), f.data); err != nil {
			return err
		}
	}
	file := safetensors.File{Metadata: map[string]string{"format": "pt"}, Tensors: tensorsOf(m.Params(), "")}
	return file.WriteFile(filepath.Join(dir, weightsFile))
}

// Load reads a translator from a directory that Save has written. What is
// wrong with the content of a file is told by an *InputError; every shape is
// checked before memory of that size is asked for.
func Load(dir string) (*Translator, error) {
	var c Config
	if err := readJSON(filepath.Join(dir, configFile), &c); err != nil {
		return nil, err
	}
	source, target := new(Vocabulary), new(Vocabulary)
	if err := readJSON(filepath.Join(dir, sourceFile), source); err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(dir, targetFile), target); err != nil {
		return nil, err
	}
	bad := func(reason string, args ...any) error {
		return &InputError{Name: filepath.Join(dir, configFile), Reason: fmt.Sprintf(reason, args...)}
	}
	if err := c.Validate(); err != nil {
		return nil, bad("%v", err)
	}
	if c.SourceVocab != source.Len() || c.TargetVocab != target.Len() {
		return nil, bad("vocabularies of %d and %d entries, but %s and %s hold %d and %d",
			c.SourceVocab, c.TargetVocab, sourceFile, targetFile, source.Len(), target.Len())
	}
	path := filepath.Join(dir, weightsFile)
	weights, err := readTensors(path)
	if err != nil {
		return nil, err
	}
	if err := c.plausible(path, weights); err != nil {
		return nil, err
	}
	m := &Translator{Config: c, Source: source, Target: target, net: newNetwork(c, rand.New(rand.NewPCG(0, 0)))}
	if err := loadInto(path, weights, m.Params(), ""); err != nil {
		return nil, err
	}
	if n := len(weights.Tensors); n != count(m.Params()) {
		return nil, &InputError{Name: path, Reason: fmt.Sprintf("%d tensors, want %d for this config", n, count(m.Params()))}
	}
	return m, nil
}

// plausible checks that the sizes in the config are those of tensors in the
// file, so that a network made from the config is about as large as the file.
func (c Config) plausible(path string, weights *safetensors.File) error {
	want := map[string][]int{
		"source.weight": {c.SourceVocab, c.Width},
		"target.weight": {c.TargetVocab, c.Width},
	}
	if c.Arch == Transformer {
		want["encoder.0.ff.in.weight"] = []int{c.Hidden, c.Width}
		if c.Score == "additive" {
			want["encoder.0.self.score.wv"] = []int{c.Width / c.Heads}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		t := weights.Lookup(name)
		if t == nil {
			return &InputError{Name: path, Reason: fmt.Sprintf("tensor %q is missing", name)}
		}
		if !slices.Equal(t.Shape, want[name]) {
			return &InputError{Name: path, Reason: fmt.Sprintf("tensor %q has shape %v, want %v for this config", name, t.Shape, want[name])}
		}
	}
	if c.Layers > len(weights.Tensors) {
		return &InputError{Name: path, Reason: fmt.Sprintf("%d tensors are too few for %d layers", len(weights.Tensors), c.Layers)}
	}
	return nil
}

// tensorsOf returns parameters as tensors of a file, their names behind prefix.
func tensorsOf(params nn.Params, prefix string) []safetensors.Tensor {
	var list []safetensors.Tensor
	for name, p := range params {
		list = append(list, safetensors.FromFloat32s(prefix+name, p.Shape(), p.Data()))
	}
	return list
}

// loadInto copies the tensors of a file into parameters of the same names,
// behind prefix, and shapes.
func loadInto(path string, file *safetensors.File, params nn.Params, prefix string) error {
	byName := make(map[string]*safetensors.Tensor, len(file.Tensors))
	for i := range file.Tensors {
		byName[file.Tensors[i].Name] = &file.Tensors[i]
	}
	for name, p := range params {
		t := byName[prefix+name]
		if t == nil {
			return &InputError{Name: path, Reason: fmt.Sprintf("tensor %q is missing", prefix+name)}
		}
		if !slices.Equal(t.Shape, p.Shape()) {
			return &InputError{Name: path, Reason: fmt.Sprintf("tensor %q has shape %v, want %v for this config", prefix+name, t.Shape, p.Shape())}
		}
		x, err := t.Float32s()
		if err != nil {
			return &InputError{Name: path, Reason: err.Error()}
		}
		copy(p.Data(), x)
	}
	return nil
}

func count(params nn.Params) int {
	n := 0
	for range params {
		n++
	}
	return n
}

// readTensors reads a safetensors file; content that is not one is an
// *InputError.
func readTensors(path string) (*safetensors.File, error) {
	f, err := safetensors.Read(path)
	var format *safetensors.FormatError
	if errors.As(err, &format) {
		return nil, &InputError{Name: path, Reason: format.Err.Error()}
	}
	return f, missing(path, err)
}

// missing makes an *InputError of a file that a model directory lacks: the
// directory is then no model.
func missing(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &InputError{Name: path, Reason: "no such file"}
	}
	return err
}

// maxJSON is far beyond any vocabulary's file.
const maxJSON = 64 << 20

func readJSON(path string, to any) error {
	f, err := os.Open(path)
	if err != nil {
		return missing(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJSON+1))
	if err != nil {
		return err
	}
	if len(data) > maxJSON {
		return &InputError{Name: path, Reason: fmt.Sprintf("longer than %d bytes", maxJSON)}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return &InputError{Name: path, Reason: err.Error()}
	}
	if _, err := d.Token(); err != io.EOF {
		return &InputError{Name: path, Reason: "something follows the JSON value"}
	}
	return nil
}

func writeJSON(path string, data any) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(data)
	})
}

// encodeSource returns the ids of a source text. EOS at its end makes even an
// empty text something to look at.
func (m *Translator) encodeSource(text string) []int { return append(m.Source.Encode(text), EOS) }

// encodeTarget returns the tokens that the decoder reads, from BOS on, and
// those that it is to write, up to EOS.
func (m *Translator) encodeTarget(text string) (read, write []int) {
	ids := m.Target.Encode(text)
	return append([]int{BOS}, ids...), append(ids, EOS)
}

// logits runs the network over examples whose targets are known: teacher
// forcing. It returns the logits [B Lt TargetVocab] and the targets, Pad behind
// each text's end.
func (m *Translator) logits(t *tensor.Tape, examples []example) (*tensor.Tensor, []int) {
	src, read, write := make([][]int, len(examples)), make([][]int, len(examples)), make([][]int, len(examples))
	for i, e := range examples {
		src[i], read[i], write[i] = e.src, e.read, e.write
	}
	in, out := newBatch(read), newBatch(write)
	s := m.net.encode(t, newBatch(src), nil)
	logits, _ := m.net.decode(t, s, in.ids, in.l, nil)
	return logits, out.ids
}

// example is a pair as numbers.
type example struct{ src, read, write []int }

func (m *Translator) example(p Pair) example {
	read, write := m.encodeTarget(p.Target)
	return example{m.encodeSource(p.Source), read, write}
}

// tokens returns how many tokens of an example are read and written.
func (e example) tokens() int { return len(e.src) + len(e.write) }
