package models

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tokenizer"
)

// sourceFile is the vocabulary of the sources in a translator of an earlier version, beside that of the targets.
const sourceFile = "source.json"

// readTokenizer reads the tokenizer of a directory with a model of the given family. untokened says why there is none. sides
// are the vocabularies of a translator of an earlier version, from the given files.
func readTokenizer(dir, family string, about map[string]string) (
	t *tokenizer.Tokenizer, sides []*seq2seq.Vocabulary, files []string, untokened, err error,
) {
	t, untokened = tokenizer.Load(dir)
	if untokened == nil || !strings.HasPrefix(family, translatorType) || !atomicfile.Exists(filepath.Join(dir, sourceFile)) {
		return t, nil, nil, untokened, nil
	}
	for i, name := range []string{sourceFile, targetFile} {
		path := filepath.Join(dir, name)
		data, err := atomicfile.ReadFile(path, atomicfile.Large)
		if err != nil {
			return nil, nil, nil, nil, fmt.Errorf("models: %w", err)
		}
		v, err := seq2seq.ParseVocabulary(data)
		if err != nil {
			return nil, nil, nil, nil, &FormatError{path, err}
		}
		if sum, ok := about[[]string{"source_sha256", "target_sha256"}[i]]; ok && sum != v.Hash() {
			return nil, nil, nil, nil, &FormatError{path, fmt.Errorf("differs from the vocabulary with which the weights in %s were saved", WeightsFile)}
		}
		sides, files = append(sides, v), append(files, path)
	}
	return sides[0].Tokenizer().WithTarget(sides[1].Tokenizer()), sides, files, nil, nil
}

// side has the content of a vocabulary. A Model has no *seq2seq.Vocabulary, because every program with a Model would then
// contain the functions that read and write one.
type side struct {
	units  seq2seq.Units
	pieces []string
	merges [][2]int32
}

// file returns the vocabulary as a file.
func (s side) file(path string) atomicfile.File {
	return atomicfile.File{Path: path, Write: func(w io.Writer) error {
		v, err := seq2seq.NewVocabulary(s.units, s.pieces, s.merges)
		if err != nil {
			return err
		}
		return atomicfile.JSON(path, v).Write(w)
	}}
}

// setVocabularies makes two vocabularies the tokenizer of the model.
func (m *Model) setVocabularies(source, target *seq2seq.Vocabulary) {
	m.tokenizer = source.Tokenizer().WithTarget(target.Tokenizer())
	m.sides = nil
	for _, v := range []*seq2seq.Vocabulary{source, target} {
		m.sides = append(m.sides, side{v.Units(), v.Pieces(), v.Merges()})
	}
}

// wantVocabularies returns an error unless a translator of attn train has the tokenizers of its vocabularies.
func (m *Model) wantVocabularies() error {
	c, ok := m.TranslatorConfig()
	switch {
	case !ok:
		return nil
	case m.untokened != nil:
		return m.untokened
	}
	if n, k := m.tokenizer.Size(), m.tokenizer.Target().Size(); c.SourceVocab != n || c.TargetVocab != k {
		return &FormatError{m.Settings.path, fmt.Errorf("vocabularies of %d and %d entries, but the tokenizers have %d and %d",
			c.SourceVocab, c.TargetVocab, n, k)}
	}
	return nil
}
