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

// loadModel loads a model of either kind.
func loadModel(dir string, c console, o models.Options) (*models.Model, error) {
	if !isPretrained(dir) {
		return models.LoadTranslator(dir)
	}
	return load(c, models.Load, dir, o)
}

// modelSource is a model that the page can ask.
type modelSource struct {
	m       *models.Model
	unknown *unknowns
	// generate is by how many tokens each text is continued, of a pretrained decoder.
	generate int
}

// openSource loads a model whose attention can be recorded, and whose texts are continued by
// generate tokens.
func openSource(dir string, c console, generate int) (s modelSource, err error) {
	m, err := loadModel(dir, c, models.Options{})
	if err != nil {
		return s, err
	}
	s = modelSource{m, newUnknown(c.err), generate}
	switch h := m.Head(); {
	case m.Translator != nil && generate > 0:
		return s, usage("--generate requires a pretrained decoder, and %s is a translator", quoted(dir))
	case m.Translator != nil:
		return s, nil
	case generate > 0 && (h == nil || h.Task != models.NextWord || m.Sizes().Decoder != nil):
		err = usage("--generate requires a pretrained decoder, and %s is a %s model", quoted(dir), m.Family.Name)
	}
	if _, untokened := m.Tokenizer(); untokened != nil {
		err = untokened
	}
	return s, err
}

const (
	// mostPretrained bounds the memory of the weights of a text: BERT-large has 400 MB
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
func (s modelSource) Record(ctx context.Context, first, second string) (*heads.Record, error) {
	if s.m.Translator != nil {
		return s.recordPair(ctx, first, second)
	}
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

const (
	mostTokens  = 2048    // of a text, and of a translation
	mostVectors = 8 << 20 // of queries and keys that are shown: of longer texts they are not
)

// vectors returns how many bytes the queries and keys of such a record take.
func (s modelSource) vectors(n, m int) int64 {
	k, q := int64(n+1), int64(m+1)
	c := s.m.Translator.Config
	if c.Arch == models.GRU {
		return 4 * int64(c.Width) * 2 * (q + k) // keys have both directions
	}
	return 4 * int64(c.Layers) * int64(c.Width) * (2*k + 2*q + q + k)
}

// check bounds what the page may ask for.
func (s modelSource) check(source, target string) error {
	n, m := len(s.m.Translator.Source.Encode(source)), len(s.m.Translator.Target.Encode(target))
	if n > mostTokens {
		return fmt.Errorf("the text has %d tokens, want at most %d", n, mostTokens)
	}
	if m > mostTokens {
		return fmt.Errorf("the translation has %d tokens, want at most %d", m, mostTokens)
	}
	return nil
}

// recordPair is Record of a translator of attn train. Without a target, it is what the model
// writes.
func (s modelSource) recordPair(ctx context.Context, source, target string) (*heads.Record, error) {
	if err := s.check(source, target); err != nil {
		return nil, err
	}
	s.unknown.source(s.m, source)
	s.unknown.target(s.m, target)
	if target == "" {
		written, err := s.m.Translate(ctx, []string{source}, 1)
		if err != nil {
			return nil, err
		}
		target = written[0]
		if err := s.check(source, target); err != nil {
			return nil, err
		}
	}
	n, m := len(s.m.Translator.Source.Encode(source)), len(s.m.Translator.Target.Encode(target))
	r, err := s.m.Record(source, target, heads.RecorderOptions{OnRequest: true, ValueNorms: true, Vectors: s.vectors(n, m) <= mostVectors})
	if err != nil {
		return nil, err
	}
	s.numberHeads(r)
	return r, nil
}

// tooManyVectors is why a long text has no queries and keys.
var tooManyVectors = fmt.Sprintf("The queries and keys of this text take more than %d MB; a shorter text has them.", mostVectors>>20)

// NoVectors is shown by the page.
func (s modelSource) NoVectors(r *heads.Record) string {
	if s.m.Translator == nil || s.vectors(len(s.m.Translator.Source.Encode(r.Source)), len(s.m.Translator.Target.Encode(r.Target))) > mostVectors {
		return tooManyVectors
	}
	return "The scores of this model are not products of queries and keys."
}

// numberHeads gives the heads of a pruned model the numbers that they had before,
// so that they can be found in the whole model.
func (s modelSource) numberHeads(r *heads.Record) {
	for i := range r.Layers {
		if l := &r.Layers[i]; len(s.m.Translator.Config.PrunedHeads[l.Name]) > 0 {
			l.Chosen = s.m.HeadNumbers(l.Name)
		}
	}
}

// deref returns the text that a flag has, empty if it was not given.
func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// recordError returns the error of a text of the command line.
func recordError(number int, err error) error {
	return &input.Error{Name: "argument", Line: number, Err: err}
}
