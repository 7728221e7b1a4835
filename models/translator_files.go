package models

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/modeldir"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/seq2seq"
)

// Translator is the configuration of a translator of attn train and the vocabularies of its two
// languages. They replace settings and a tokenizer.
type Translator struct {
	Config         TranslatorConfig
	Source, Target *seq2seq.Vocabulary
}

// NewTranslator returns a translator with randomly initialised parameters. It sets the vocabulary
// sizes in c.
func NewTranslator(c TranslatorConfig, source, target *seq2seq.Vocabulary, rng *rand.Rand) (*Model, error) {
	if source == nil || target == nil || rng == nil {
		return nil, errors.New("models: NewTranslator: a vocabulary or rng is nil, " +
			"want both vocabularies and a *rand.Rand")
	}
	c.SourceVocab, c.TargetVocab = source.Len(), target.Len()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	return newTranslator(&Translator{c, source, target}, rng), nil
}

// newTranslator returns the model of a valid configuration.
func newTranslator(v *Translator, rng *rand.Rand) *Model {
	f := v.Config.family()
	n := f.network(v.Config, rng)
	m := &Model{
		Network: n, Family: f.Family, Translator: v, language: v, untokened: errVocabularies, kept: map[string][]int{},
	}
	for name, p := range n.Params() {
		m.params = append(m.params, nn.Var{Name: name, Tensor: p})
	}
	for layer := range v.Config.PrunedHeads {
		m.kept[layer] = v.Config.Kept(layer)
	}
	return m
}

var errVocabularies = errors.New("contains a translator of attn train, which has vocabularies and no tokenizer")

// WeightsFile contains the parameters of a translator of attn train.
const WeightsFile = "model.safetensors"

// The vocabularies of a translator.
const (
	sourceFile = "source.json"
	targetFile = "target.json"
)

// TranslatorFiles returns the names of the files that Model.Save writes.
func TranslatorFiles() []string { return []string{configFile, sourceFile, targetFile, WeightsFile} }

// Save writes a translator to a directory, which it creates if necessary. It replaces all files
// together or, after an error or if the process is killed, none of them.
//
// Errors: a model that is not a translator of attn train (use nn.Save for its parameters); errors
// of the file system.
func (m *Model) Save(dir string) error {
	if m.Translator == nil {
		return fmt.Errorf("models: Save: %s is not a translator of attn train; use nn.Save", m.Family.Name)
	}
	return atomicfile.Save(dir, m.Saved(""))
}

// Saved returns the files that Save writes, in the given folder of the directory unless that is
// "". A caller can save them together with other files. The parameters are read when the file is
// written.
func (m *Model) Saved(folder string) []atomicfile.File {
	v := m.Translator
	weights := func(w io.Writer) error {
		return nn.SaveTo(w, m, nn.SaveOptions{Metadata: v.identity()})
	}
	return []atomicfile.File{
		atomicfile.JSON(filepath.Join(folder, configFile), v.Config),
		atomicfile.JSON(filepath.Join(folder, sourceFile), v.Source),
		atomicfile.JSON(filepath.Join(folder, targetFile), v.Target),
		{Path: filepath.Join(folder, WeightsFile), Write: weights},
	}
}

// The metadata of the weights identify the contents of the other files: the number of heads or
// the order of a vocabulary changes all results, but no shape.
const (
	configKey = "config"
	sourceKey = "source_sha256" // of the vocabulary as JSON without white space
	targetKey = "target_sha256"
)

func (v *Translator) identity() map[string]string {
	return map[string]string{
		"format":  "pt",
		configKey: string(compactJSON(v.Config)), sourceKey: v.Source.Hash(), targetKey: v.Target.Hash(),
	}
}

// compactJSON returns data as JSON without white space. It panics if that is impossible.
func compactJSON(data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		panic("models: " + err.Error())
	}
	return text
}

// checkIdentity returns an error unless the weights were saved with this configuration and these
// vocabularies. Files from other programs may lack the metadata; they are accepted.
func (v *Translator) checkIdentity(dir string, saved map[string]string) error {
	bad := func(name, format string, args ...any) error {
		return input.Errorf(filepath.Join(dir, name), format, args...)
	}
	if text, ok := saved[configKey]; ok {
		var c TranslatorConfig
		if err := strictjson.Lenient([]byte(text), &c); err != nil {
			return bad(WeightsFile, "its metadata contain no config: %v", err)
		}
		if !c.Equal(v.Config) {
			return bad(configFile, "%s, but the weights in %s are of a network with %s",
				difference(v.Config, c), WeightsFile, difference(c, v.Config))
		}
	}
	for _, x := range []struct {
		key, name string
		of        *seq2seq.Vocabulary
	}{{sourceKey, sourceFile, v.Source}, {targetKey, targetFile, v.Target}} {
		if sum, ok := saved[x.key]; ok && sum != x.of.Hash() {
			return bad(x.name, "differs from the vocabulary with which the weights in %s were saved", WeightsFile)
		}
	}
	return nil
}

// difference returns the fields of c that differ from b, as JSON.
func difference(c, b TranslatorConfig) string {
	var x, y map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(compactJSON(c), &x), json.Unmarshal(compactJSON(b), &y)); err != nil {
		panic("models: " + err.Error())
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

// kindOf returns the settings of a config.json that tell models apart: a pretrained model has a
// model_type, a translator of attn train has an arch and no model_type. Both are empty in an invalid
// file.
func kindOf(config []byte) (modelType, arch string) {
	var k struct {
		Type string `json:"model_type"`
		Arch string
	}
	if json.Unmarshal(config, &k) != nil {
		return "", ""
	}
	return k.Type, k.Arch
}

// IsTranslator reports whether a directory contains a translator of attn train, which Load loads with
// LoadTranslator. Only config.json is read.
func IsTranslator(dir string) (is bool) {
	_ = readJSON(dir, configFile, func(data []byte) error { // loading reports errors
		modelType, arch := kindOf(data)
		is = modelType == "" && arch != ""
		return nil
	})
	return is
}

// LoadTranslator loads a translator from a directory that Save has written. An invalid file, or a
// directory with a pretrained model, gives an *input.Error; a configuration that needs much more memory
// than the file of weights is refused before the memory is allocated.
func LoadTranslator(dir string) (*Model, error) {
	v := new(Translator)
	c := &v.Config
	if why := modeldir.Explain(dir, configFile); why != nil && !atomicfile.Exists(filepath.Join(dir, configFile)) {
		return nil, &input.Error{Name: dir, Err: why}
	}
	pretrained := false
	err := readJSON(dir, configFile, func(data []byte) error {
		modelType, _ := kindOf(data)
		pretrained = modelType != ""
		return strictjson.Unmarshal(data, c)
	})
	if pretrained {
		return nil, input.Errorf(dir, "contains a pretrained model, want a translator of attn train")
	}
	for _, side := range []struct {
		name string
		v    **seq2seq.Vocabulary
	}{{sourceFile, &v.Source}, {targetFile, &v.Target}} {
		if err != nil {
			return nil, err
		}
		err = readJSON(dir, side.name, func(data []byte) (err error) {
			*side.v, err = seq2seq.ParseVocabulary(data)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	bad := func(reason string, args ...any) error {
		return input.Errorf(filepath.Join(dir, configFile), reason, args...)
	}
	if err := c.Validate(); err != nil {
		return nil, bad("%v", err)
	}
	if c.SourceVocab != v.Source.Len() || c.TargetVocab != v.Target.Len() {
		return nil, bad("vocabularies of %d and %d entries, but %s and %s have %d and %d",
			c.SourceVocab, c.TargetVocab, sourceFile, targetFile, v.Source.Len(), v.Target.Len())
	}
	path := filepath.Join(dir, WeightsFile)
	weights, err := input.Tensors(path)
	if err != nil {
		return nil, err
	}
	defer weights.Close()
	if err := c.plausible(path, weights); err != nil {
		return nil, err
	}
	m := newTranslator(v, rand.New(rand.NewPCG(0, 0)))
	if err := nn.LoadFrom(weights, m, nn.LoadOptions{}); err != nil {
		return nil, input.BadFile(path, err)
	}
	if err := v.checkIdentity(dir, weights.Metadata()); err != nil {
		return nil, err
	}
	m.Dir, m.untokened = dir, &FormatError{dir, errVocabularies}
	for _, name := range TranslatorFiles() {
		m.files = append(m.files, filepath.Join(dir, name))
	}
	return m, nil
}

// namedRows is the name of a matrix and its number of rows.
type namedRows struct {
	name string
	rows int
}

// plausible checks that the file contains the matrices that determine the network's size, so that
// a forged config cannot make the network much larger than the file.
func (c TranslatorConfig) plausible(path string, weights *safetensors.Reader) error {
	want := func(rows, columns int, name string) error {
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
	for _, m := range c.family().matrices(c) {
		err = cmp.Or(err, want(m.rows, c.Width, m.name))
	}
	return err
}

// maxJSON limits the size of a JSON file, far above that of any vocabulary.
const maxJSON = 64 << 20

// readJSON reads a file and calls parse with its content.
func readJSON(dir, name string, parse func(data []byte) error) error {
	path := filepath.Join(dir, name)
	f, err := atomicfile.Read(path, os.Open)
	if err != nil {
		return input.BadFile(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJSON+1))
	if err != nil {
		return err
	}
	if len(data) > maxJSON {
		return input.Errorf(path, "longer than %d bytes", maxJSON)
	}
	if err := parse(data); err != nil {
		return &input.Error{Name: path, Err: err}
	}
	return nil
}
