package models

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/statedict"
)

// WeightsFile contains the parameters of a model that Save has written.
const WeightsFile = "model.safetensors"

// The tokenizers of a translator of attn train.
const (
	tokenizerFile = "tokenizer.json"
	targetFile    = "target.json"
)

// TranslatorFiles returns the names of the files that Model.Save writes for a translator of attn train.
func TranslatorFiles() []string { return []string{configFile, tokenizerFile, targetFile, WeightsFile} }

// Save writes a model to a directory, which it creates if necessary: its parameters, as float32, and
// the other files that it was read from. It replaces all files together or, after an error or if the
// process is killed, none of them.
//
// Errors: a model loaded without Options.Trainable; errors of the file system.
func (m *Model) Save(dir string) error {
	if err := m.WantTrainable("models: Save"); err != nil {
		return err
	}
	return atomicfile.Save(dir, m.Saved())
}

// Saved returns the files that Save writes. A caller can save them together with other files. The parameters are read when
// the file is written.
func (m *Model) Saved() []atomicfile.File {
	files := []atomicfile.File{{Path: configFile, Write: func(w io.Writer) error {
		text := m.config(nil, true)
		if m.Dir == "" {
			text = m.Settings.pythonic(plainJSON(json.RawMessage(pythonNumbers(text)))) // with lines
		}
		_, err := w.Write(text)
		return err
	}}}
	return append(append(files, m.beside...), atomicfile.File{Path: WeightsFile, Write: func(w io.Writer) error {
		about, err := m.identity()
		if err != nil {
			return err
		}
		return statedict.SaveTo(w, m, statedict.SaveOptions{Names: StateDict, Metadata: about})
	}})
}

// configKey is the entry of the weights' metadata with the config.json of the model. Entries with the names of tokenizers
// have the SHA-256 of these files. They identify what changes all results but no shape, such as the number of heads or
// the order of a vocabulary.
const configKey = "config"

// identity returns the metadata of the weights.
func (m *Model) identity() (map[string]string, error) {
	about := map[string]string{"format": "pt", configKey: compacted(string(m.config(nil, true)))}
	for _, f := range m.beside {
		if f.Path != tokenizerFile && f.Path != targetFile {
			continue
		}
		sum := sha256.New()
		if err := f.Write(sum); err != nil {
			return nil, err
		}
		about[f.Path] = hex.EncodeToString(sum.Sum(nil))
	}
	return about, nil
}

// compacted returns JSON without white space.
func compacted(text string) string {
	var raw json.RawMessage
	if json.Unmarshal([]byte(text), &raw) != nil {
		return text
	}
	return string(compactJSON(raw))
}

// compactJSON returns data as JSON without white space. It panics if that is impossible.
func compactJSON(data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		panic("models: " + err.Error())
	}
	return text
}

// checkIdentity returns an error unless the weights were saved with the config.json and the tokenizers of the directory.
// Files from other programs lack the metadata; they are accepted.
func (m *Model) checkIdentity(about map[string]string) error {
	bad := func(name, format string, args ...any) error {
		return &FormatError{filepath.Join(m.Dir, name), fmt.Errorf(format, args...)}
	}
	if text, ok := about[configKey]; ok {
		var saved Settings
		if err := saved.parse([]byte(text)); err != nil {
			return bad(WeightsFile, "its metadata contain no config: %v", err)
		}
		if mine, its := difference(m.Settings, &saved), difference(&saved, m.Settings); mine != its {
			return bad(configFile, "%s, but the weights in %s are of a network with %s", mine, WeightsFile, its)
		}
	}
	for _, f := range m.beside {
		sum, ok := about[f.Path]
		if !ok {
			continue
		}
		h := sha256.New()
		if err := f.Write(h); err != nil {
			return err
		}
		if hex.EncodeToString(h.Sum(nil)) != sum {
			return bad(f.Path, "differs from the tokenizer with which the weights in %s were saved", WeightsFile)
		}
	}
	return nil
}

// difference returns the settings of s that differ from those of t.
func difference(s, t *Settings) string {
	var fields []string
	for key := range t.values {
		if !s.Has(key) && t.Has(key) {
			fields = append(fields, "no "+key)
		}
	}
	for key, value := range s.values {
		var x, y any
		_ = json.Unmarshal(value, &x) // both have been parsed
		_ = json.Unmarshal(t.values[key], &y)
		if !reflect.DeepEqual(x, y) {
			fields = append(fields, fmt.Sprintf("%s %s", key, value))
		}
	}
	slices.Sort(fields)
	return strings.Join(fields, ", ")
}
