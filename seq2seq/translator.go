package seq2seq

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
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
	if source == nil || target == nil || rng == nil {
		return nil, errors.New("seq2seq: New: a vocabulary or rng is nil, want both vocabularies and a *rand.Rand")
	}
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
	configFile = "config.json"
	sourceFile = "source.json" // vocabularies
	targetFile = "target.json"

	// WeightsFile holds the parameters.
	WeightsFile = "model.safetensors"
)

// ModelFiles returns the names of the files that Translator.Save writes.
func ModelFiles() []string { return []string{configFile, sourceFile, targetFile, WeightsFile} }

// Save writes the translator to a directory, which it makes if need be. The
// files are replaced all together or, after an error or if the process is killed,
// not at all.
func (m *Translator) Save(dir string) error { return save(dir, m.Files("")) }

func save(dir string, files []atomicfile.File) error {
	d, err := atomicfile.Lock(dir)
	if err != nil {
		return err
	}
	defer d.Unlock()
	return d.Replace(files)
}

// Files returns the files that Save writes, within a folder of the directory unless
// that is "": for who saves others with them. Weights are those of the moment at which
// they are written.
func (m *Translator) Files(folder string) []atomicfile.File {
	weights := func(w io.Writer) error {
		return nn.SaveTo(w, m, nn.SaveOptions{Metadata: m.identity()})
	}
	return []atomicfile.File{
		atomicfile.JSON(filepath.Join(folder, configFile), m.Config),
		atomicfile.JSON(filepath.Join(folder, sourceFile), m.Source),
		atomicfile.JSON(filepath.Join(folder, targetFile), m.Target),
		{Path: filepath.Join(folder, WeightsFile), Write: weights},
	}
}

// The metadata of the weights: what stands in the other files. A number of heads, or
// the order of a vocabulary, changes no shape, but all results.
const (
	configKey = "config"
	sourceKey = "source_sha256" // of the vocabulary, as JSON without white space
	targetKey = "target_sha256"
)

func (m *Translator) identity() map[string]string {
	return map[string]string{
		"format":  "pt",
		configKey: string(compact(m.Config)), sourceKey: hash(m.Source), targetKey: hash(m.Target),
	}
}

// compact returns data, which can be written as JSON, as JSON.
func compact(data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		panic("seq2seq: " + err.Error())
	}
	return text
}

func hash(v *Vocabulary) string {
	sum := sha256.Sum256(compact(v.old()))
	return hex.EncodeToString(sum[:])
}

// checkIdentity returns an error unless config and vocabularies are those that the
// weights were saved with, as far as these tell: other programs may leave it out.
func (m *Translator) checkIdentity(dir string, saved map[string]string) error {
	bad := func(name, format string, args ...any) error {
		return input.Errorf(filepath.Join(dir, name), format, args...)
	}
	if text, ok := saved[configKey]; ok {
		var c Config
		if err := strictjson.Lenient([]byte(text), &c); err != nil {
			return bad(WeightsFile, "its metadata hold no config: %v", err)
		}
		if !c.Equal(m.Config) {
			return bad(configFile, "%s, but the weights in %s are of a network with %s", difference(m.Config, c), WeightsFile, difference(c, m.Config))
		}
	}
	for _, v := range []struct {
		key, name string
		v         *Vocabulary
	}{{sourceKey, sourceFile, m.Source}, {targetKey, targetFile, m.Target}} {
		if sum, ok := saved[v.key]; ok && sum != hash(v.v) {
			return bad(v.name, "is not the vocabulary that the weights in %s were saved with", WeightsFile)
		}
	}
	return nil
}

// difference returns the fields of c that b does not have so, as JSON.
func difference(c, b Config) string {
	var x, y map[string]json.RawMessage
	for _, m := range []struct {
		c  Config
		to *map[string]json.RawMessage
	}{{c, &x}, {b, &y}} {
		if err := json.Unmarshal(compact(m.c), m.to); err != nil {
			panic("seq2seq: " + err.Error())
		}
	}
	var fields []string
	for key := range y {
		if _, ok := x[key]; !ok {
			fields = append(fields, "no "+key)
		}
	}
	for key, value := range x {
		if !bytes.Equal(value, y[key]) {
			fields = append(fields, fmt.Sprintf("%s %s", key, value))
		}
	}
	slices.Sort(fields)
	return strings.Join(fields, ", ")
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
		return input.Errorf(filepath.Join(dir, configFile), reason, args...)
	}
	if err := c.Validate(); err != nil {
		return nil, bad("%v", err)
	}
	if c.SourceVocab != source.Len() || c.TargetVocab != target.Len() {
		return nil, bad("vocabularies of %d and %d entries, but %s and %s hold %d and %d",
			c.SourceVocab, c.TargetVocab, sourceFile, targetFile, source.Len(), target.Len())
	}
	path := filepath.Join(dir, WeightsFile)
	weights, err := readTensors(path)
	if err != nil {
		return nil, err
	}
	defer weights.Close()
	if err := c.plausible(path, weights); err != nil {
		return nil, err
	}
	m := &Translator{Config: c, Source: source, Target: target, net: newNetwork(c, rand.New(rand.NewPCG(0, 0)))}
	if err := nn.LoadFrom(weights, m, nn.LoadOptions{}); err != nil {
		return nil, badTensors(path, err)
	}
	if err := m.checkIdentity(dir, weights.Metadata()); err != nil {
		return nil, err
	}
	return m, nil
}

// plausible checks that the file has the matrices that the network's size
// follows from, so that a network made from the config is about as large as the
// file, whatever the config claims.
func (c Config) plausible(path string, weights *safetensors.Reader) error {
	want := func(rows, columns int, name string, args ...any) error {
		name = fmt.Sprintf(name, args...)
		t, there := weights.Lookup(name)
		if !there {
			return input.Errorf(path, "tensor %s is missing", quote.Text(name))
		}
		if shape := []int{rows, columns}; !slices.Equal(t.Shape, shape) {
			return input.Errorf(path, "tensor %s has shape %v, want %v for this config",
				quote.Text(name), t.Shape, shape)
		}
		return nil
	}
	err := cmp.Or(want(c.SourceVocab, c.Width, "source.weight"), want(c.TargetVocab, c.Width, "target.weight"))
	// A pruned layer may have few heads or none, so every layer is checked.
	queries := func(layer string) error {
		return want(len(c.Kept(layer))*(c.Width/c.Heads), c.Width, "%s.q.weight", layer)
	}
	for i := 0; i < c.Layers && err == nil; i++ {
		if c.Arch == Transformer {
			err = cmp.Or(queries(encoderSelf(i)), queries(decoderSelf(i)), queries(decoderCross(i)),
				want(c.Hidden, c.Width, "encoder.%d.ff.in.weight", i))
		} else {
			err = want(3*c.Width, c.Width, "decoder.%d.weight_hh", i)
		}
	}
	return err
}

// readTensors opens a safetensors file; content that is not one is an
// *InputError.
func readTensors(path string) (*safetensors.Reader, error) {
	var r *safetensors.Reader
	err := atomicfile.Read(path, func(place string) (err error) {
		r, err = safetensors.Open(place)
		return err
	})
	if err != nil {
		return nil, missing(path, badTensors(path, err))
	}
	return r, nil
}

// badTensors makes an *InputError of what is wrong with the content of a
// safetensors file.
func badTensors(path string, err error) error {
	var format *safetensors.FormatError
	if errors.As(err, &format) {
		return input.Errorf(path, "%v", format.Err) // not wrapped: the file itself is there
	}
	return err
}

// missing makes an *InputError of a file that a model directory lacks: the
// directory is then no model.
func missing(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return input.Errorf(path, "no such file")
	}
	return err
}

// maxJSON is far beyond any vocabulary's file.
const maxJSON = 64 << 20

func readJSON(path string, to any) error {
	var f *os.File
	err := atomicfile.Read(path, func(place string) (err error) {
		f, err = os.Open(place)
		return err
	})
	if err != nil {
		return missing(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJSON+1))
	if err != nil {
		return err
	}
	if len(data) > maxJSON {
		return input.Errorf(path, "longer than %d bytes", maxJSON)
	}
	if err := strictjson.Unmarshal(data, to); err != nil {
		var vocabulary *vocabularyError
		if errors.As(err, &vocabulary) {
			err = vocabulary.err
		}
		return &input.Error{Name: path, Err: err}
	}
	return nil
}

// encodeSource returns the ids of a source text. EOS at its end gives the
// decoder a key to attend to even if the text is empty.
func (m *Translator) encodeSource(text string) []int { return append(m.Source.Encode(text), EOS) }

// encodeTarget returns the tokens that the decoder reads, from BOS on, and
// those that it is to write, up to EOS.
func (m *Translator) encodeTarget(text string) (read, write []int) {
	ids := m.Target.Encode(text)
	return append([]int{BOS}, ids...), append(ids, EOS)
}

// logits runs the network over examples whose targets are known: teacher
// forcing. It returns the targets of all examples, one behind the other, and for
// each its logits, [N TargetVocab].
func (m *Translator) logits(t *tensor.Tape, examples []example, h hooks) (*tensor.Tensor, []int) {
	x, write := m.vectors(t, examples, h)
	return m.net.logits(t, x), write
}

// vectors is logits without the last map: it returns [N Width]. Nothing is
// computed behind a text's end from here on, for the last map is the largest of
// all.
func (m *Translator) vectors(t *tensor.Tape, examples []example, h hooks) (*tensor.Tensor, []int) {
	src, read := make([][]int, len(examples)), make([][]int, len(examples))
	var targets int
	for i, e := range examples {
		src[i], read[i] = e.src, e.read
		targets += len(e.write)
	}
	in := newBatch(read)
	x, _ := m.net.read(t, m.net.encode(t, newBatch(src), h), in.ids, in.l, h)
	x = tensor.Reshape(t, x, len(in.ids), -1)
	at, write := make([]int, 0, targets), make([]int, 0, targets)
	for i, e := range examples {
		for j, token := range e.write {
			at, write = append(at, i*in.l+j), append(write, token)
		}
	}
	if targets < len(in.ids) {
		x = tensor.Gather(t, x, at)
	}
	return x, write
}

// example is a pair as numbers.
type example struct{ src, read, write []int }

func (m *Translator) example(p Pair) example {
	read, write := m.encodeTarget(p.Target)
	return example{m.encodeSource(p.Source), read, write}
}

// tokens returns how many tokens of an example are read and written.
func (e example) tokens() int { return len(e.src) + len(e.write) }
