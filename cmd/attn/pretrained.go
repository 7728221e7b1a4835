package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/view"
	"github.com/attn-go/attn/models"
)

// isPretrained reports whether a directory is a pretrained model in the form of Hugging
// Face, which has a model_type in its config.json, and not one of attn train. What is wrong
// with it is said by who loads it.
func isPretrained(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return false
	}
	var config struct {
		Type string `json:"model_type"`
	}
	return json.Unmarshal(data, &config) == nil && config.Type != ""
}

// loadTranslator loads a model of attn train, and says so of a pretrained one.
func loadTranslator(dir string) (*models.Model, error) {
	if isPretrained(dir) {
		return nil, input.Errorf(dir, "is a pretrained model, want one of attn train; attn models says what is in it, and attn view, map, heads, prune, run and embed take it")
	}
	return models.LoadTranslator(dir)
}

// openSource loads a model whose attention can be recorded.
func openSource(dir string, c console) (view.Source, error) {
	if !isPretrained(dir) {
		m, err := models.LoadTranslator(dir)
		if err != nil {
			return nil, err
		}
		return translatorSource{m, newUnknown(c.err)}, nil
	}
	m, err := load(c, models.Load, dir, models.Options{})
	if err != nil {
		return nil, err
	}
	if _, err := m.Tokenizer(); err != nil {
		return nil, err
	}
	return pretrainedSource{m: m}, nil
}

// pretrainedSource is a pretrained model that the page can ask.
type pretrainedSource struct {
	m *models.Model
	// generate is by how many tokens each text is continued, of a decoder.
	generate int
}

// continued returns a source whose texts are continued by n tokens, the source itself for 0.
func continued(s view.Source, n int, dir string) (view.Source, error) {
	if n == 0 {
		return s, nil
	}
	p, ok := s.(pretrainedSource)
	if !ok {
		return nil, usage("--generate goes with a pretrained decoder, and %s is a translator", quoted(dir))
	}
	if h := p.m.Head(); h == nil || h.Task != models.NextWord || p.m.Sizes().Decoder != nil {
		return nil, usage("--generate goes with a pretrained decoder, and %s is a %s model", quoted(dir), p.m.Family.Name)
	}
	p.generate = n
	return p, nil
}

const (
	// mostPretrained bounds the weights that a command holds of a text: BERT-large has 400 MB
	// of them for the longest that it takes.
	mostPretrained = 512 << 20
	// mostPretrainedTokens are those of a text whose heads are drawn: the weights of one head
	// are then 64 MB.
	mostPretrainedTokens = 4096
	// mostHeld bounds what is kept of a text to compute the weights of its heads from: 226 MB
	// for 2,048 tokens of 24 layers of width 896.
	mostHeld = 768 << 20
	// longestPretrained is the number of bytes of the longest text for such a model: more
	// than these tokens most often have.
	longestPretrained = 32 << 10
)

// held returns about how many bytes a record of n tokens, and m of a target, keeps.
func held(z models.Sizes, n, m int) int64 {
	layer := func(z models.Sizes) int64 {
		return 4 * int64(z.Layers) * int64(z.Heads+2*z.KVHeads) * int64(z.HeadSize)
	}
	all := int64(n) * layer(z)
	if z.Decoder != nil { // which also attends to the source
		all += int64(n+2*m) * layer(*z.Decoder)
	}
	return all
}

// lengths returns how many tokens a model reads of a text or a pair, and how many there are of
// the target. In an encoder-decoder second is the target; one that is not given counts as long
// as the text.
func lengths(m *models.Model, first, second string) (source, target int, err error) {
	if m.Sizes().Decoder == nil || second == "" {
		e, err := m.Encode(first, second)
		if err != nil {
			return 0, 0, err
		}
		return len(e.IDs), len(e.IDs), nil
	}
	e, err := m.TranslationExample(first, second)
	return len(e.IDs), len(e.Reads), err
}

// Record records a text, or a pair of texts, of which second may be empty. Weights are computed
// when somebody asks for a head.
func (s pretrainedSource) Record(ctx context.Context, first, second string) (*heads.Record, error) {
	source, target, err := lengths(s.m, first, second)
	if err != nil {
		return nil, err
	}
	z, n := s.m.Sizes(), max(source, target)+s.generate
	if n > mostPretrainedTokens {
		return nil, fmt.Errorf("the text has %d tokens, want at most %d", n, mostPretrainedTokens)
	}
	bytes := held(z, source+s.generate, target)
	if bytes > mostHeld {
		return nil, fmt.Errorf("the queries and keys of %d tokens take %d MB, want at most %d MB, which %d tokens take", n, bytes>>20, mostHeld>>20, int64(n)*mostHeld/bytes)
	}
	o := heads.RecorderOptions{OnRequest: true, ValueNorms: true, Vectors: 2*bytes <= mostVectors}
	switch {
	case s.generate == 0:
		return s.m.Record(first, second, o)
	case second != "":
		return nil, errors.New("a second text and --generate exclude each other")
	case z.Positions > 0 && n > z.Positions:
		return nil, fmt.Errorf("the text has %d tokens and is to get %d more, want at most %d in all", source, s.generate, z.Positions)
	}
	return s.m.RecordGenerated(ctx, first, models.Generation{Tokens: s.generate}, o)
}

// NoVectors is shown by the page.
func (pretrainedSource) NoVectors(*heads.Record) string { return tooManyVectors }

// deref returns the text that a flag has, empty if it was not given.
func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// recordError is what is wrong with a text of the command line.
func recordError(number int, err error) error {
	return &input.Error{Name: "argument", Line: number, Err: err}
}
