package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// TranslatorConfig is the architecture and the sizes of a translator's network. attn train stores
// it with the model as config.json.
type TranslatorConfig struct {
	Arch  string `json:"arch,omitempty"` // "transformer" or "gru"
	Score string `json:"score"`          // a name of score.Kinds
	// Width is the size of embeddings and states.
	Width int `json:"width"`
	// Heads is the number of attention heads. 0, which only the recurrent
	// network takes, means attention without projections.
	Heads int `json:"heads"`
	// Layers is the number of layers of the encoder and of the decoder.
	Layers int `json:"layers"`
	// Hidden is the size of the transformer's feed-forward layers.
	Hidden int `json:"hidden,omitempty"`
	// Dropout is the probability of dropping an activation in training.
	Dropout float32 `json:"dropout"`
	// SourceVocab and TargetVocab are the numbers of entries of the
	// vocabularies.
	SourceVocab int `json:"source_vocab"`
	TargetVocab int `json:"target_vocab"`
	// PrunedHeads are the removed heads by the name of their layer, as ascending numbers in the
	// unpruned network. The remaining heads keep their size, Width/Heads.
	PrunedHeads map[string][]int `json:"pruned_heads,omitempty"`
}

// translatorType is the model_type in config.json, before the name of the architecture.
const translatorType = "attn-"

// translatorFamilies are the families of translators of attn train. The entries are beside their constructors.
var translatorFamilies = Table{transformerFamily, recurrentFamily}

// specialTokens is the minimum number of special tokens in a vocabulary.
const specialTokens = seq2seq.UNK + 1

// Limits of a network, far above the size that a computer without a GPU can train. They prevent a
// typo or an untrusted file from allocating all memory.
const (
	maxWidth   = 1 << 16
	maxHidden  = 1 << 20
	maxLayers  = 1 << 10
	maxParams  = 1 << 30
	mostTokens = 1 << 20 // of a vocabulary
)

// Validate returns an error unless the configuration describes a network.
func (c TranslatorConfig) Validate() error {
	_, _, err := c.build(nil)
	return err
}

// build returns a network whose parameters rng draws. If rng is nil, the network has no tensors.
func (c TranslatorConfig) build(rng *rand.Rand) (Network, *Builder, error) {
	family, known := translatorFamilies.Find(translatorType + c.Arch)
	if !known {
		var names []string
		for _, f := range translatorFamilies {
			names = append(names, strings.TrimPrefix(f.Type, translatorType))
		}
		return nil, nil, fmt.Errorf("arch %s, want %s", quote.Text(c.Arch), strings.Join(names, " or "))
	}
	if err := c.check(); err != nil { // among others NaN, which JSON lacks
		return nil, nil, err
	}
	s := &Settings{wrong: new([]error)}
	if err := s.parse(compactJSON(c.file())); err != nil {
		return nil, nil, err
	}
	b := newBuilder(&directory{settings: s}, rng == nil)
	b.rng = rng
	n := family.New(b)
	b.checkLost(s)
	switch err := b.finish(); {
	case len(*s.wrong) > 0:
		return nil, nil, (*s.wrong)[0]
	case err != nil:
		return nil, nil, err
	case b.size > maxParams:
		return nil, nil, fmt.Errorf("a network of %.1e parameters, want at most %.1e", float64(b.size), float64(maxParams))
	}
	return n, b, nil
}

// file returns the content of config.json.
func (c TranslatorConfig) file() any {
	type sizes TranslatorConfig
	kind := translatorType + c.Arch
	c.Arch = ""
	return struct {
		Type string `json:"model_type"`
		sizes
	}{kind, sizes(c)}
}

// check returns an error unless the sizes are those of a network.
func (c TranslatorConfig) check() error {
	scores := score.Kinds().Names()
	switch {
	case !slices.Contains(scores, c.Score):
		return fmt.Errorf("score %s, want one of %s", quote.Text(c.Score), strings.Join(scores, ", "))
	case c.Width < 2 || c.Width%2 != 0 || c.Width > maxWidth:
		return fmt.Errorf("width %d, want an even number from 2 to %d", c.Width, maxWidth)
	case c.Heads < 0 || c.Heads == 0 && c.Arch == Transformer:
		return fmt.Errorf("heads %d, want at least 1", c.Heads)
	case c.Heads > 0 && c.Width%c.Heads != 0:
		return fmt.Errorf("width %d is not divisible by %d heads", c.Width, c.Heads)
	case c.Layers < 1 || c.Layers > maxLayers:
		return fmt.Errorf("layers %d, want 1 to %d", c.Layers, maxLayers)
	case c.Arch == GRU && c.Hidden != 0:
		return fmt.Errorf("hidden %d, but a %s has no such layers", c.Hidden, GRU)
	case c.Arch == Transformer && (c.Hidden < 1 || c.Hidden > maxHidden):
		return fmt.Errorf("hidden %d, want 1 to %d", c.Hidden, maxHidden)
	case !(c.Dropout >= 0 && c.Dropout < 1):
		return fmt.Errorf("dropout %v is outside [0, 1)", c.Dropout)
	case min(c.SourceVocab, c.TargetVocab) < specialTokens || max(c.SourceVocab, c.TargetVocab) > mostTokens:
		return fmt.Errorf("vocabularies of %d and %d entries, want %d to %d",
			c.SourceVocab, c.TargetVocab, specialTokens, mostTokens)
	}
	return nil
}

// translator returns the settings of a translator of attn train. ok is false if they are invalid.
func (b *Builder) translator(arch string) (c TranslatorConfig, ok bool) {
	s := b.Config
	c, err := s.translator()
	c.Arch = arch
	s.Ignore("score", "width", "heads", "layers", "hidden", "dropout", "source_vocab", "target_vocab")
	s.usual = map[string]json.RawMessage{
		"eos_token_id":  compactJSON(seq2seq.EOS),
		"bad_words_ids": compactJSON([][]int{{seq2seq.Pad}, {seq2seq.BOS}}),
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		*s.wrong = append(*s.wrong, err)
	} else if b.r != nil && c.Layers > len(b.r.Tensors()) {
		s.Fail("layers", "is %d, but the file has %d tensors", c.Layers, len(b.r.Tensors()))
	}
	return c, len(*s.wrong) == 0
}

// translator returns the settings as a TranslatorConfig without an architecture.
func (s *Settings) translator() (c TranslatorConfig, err error) {
	return c, strictjson.Lenient(compactJSON(s.values), &c)
}

// scoredHeads returns a multi-head layer with the heads that remain, and the parameters name.q, name.k, name.v, name.out
// and name.score.
func (b *Builder) scoredHeads(c TranslatorConfig, name, layer string) *attn.MultiHead {
	config := b.KeptByName(attn.MultiHeadConfig{
		Name: layer, Width: c.Width, Heads: c.Heads, HeadSize: c.Width / c.Heads,
		Bias: attn.AllProjections, Dropout: c.Dropout,
	})
	from := len(b.params)
	if config.Heads > 0 {
		config.Score = b.score(c.Score, name+".score", config.HeadSize)
	}
	m := b.MultiHead(config, Maps{Q: name + ".q", K: name + ".k", V: name + ".v", Out: name + ".out"})
	b.order(from, name+".q", name+".k", name+".v", name+".out", name+".score")
	return m
}

// score returns a score between vectors of the given size, with the parameters name.PARAM. It is nil in the first call of
// a Family.New.
func (b *Builder) score(kind, name string, size int) attn.Score {
	k, _ := score.Kinds().Find(kind)
	z, params := score.Sizes{Query: size, Key: size}, map[string]*tensor.Tensor{}
	for _, p := range k.Params {
		x := b.Tensor(name+"."+p.Name, p.Shape(z)...)
		if params[p.Name] = x; b.rng != nil {
			copy(x.Data(), p.New(z, b.rng).Data())
		}
	}
	if b.plan {
		return nil
	}
	s, err := k.With(params)
	if err != nil {
		b.Fail("%w", err)
	}
	return s
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
	n, b, err := c.build(rng)
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	family, _ := translatorFamilies.Find(translatorType + c.Arch)
	m := newModel(n, b, family, Options{Trainable: true})
	m.tokenizer = source.Tokenizer().WithTarget(target.Tokenizer())
	m.beside = []atomicfile.File{atomicfile.JSON(tokenizerFile, source), atomicfile.JSON(targetFile, target)}
	return m, nil
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

// TranslatorConfig returns the configuration of a translator of attn train. ok is false for other models.
func (m *Model) TranslatorConfig() (c TranslatorConfig, ok bool) {
	arch, ok := strings.CutPrefix(m.Family.Type, translatorType)
	if !ok {
		return c, false
	}
	c, err := m.Settings.translator()
	if err != nil {
		panic("models: " + err.Error()) // the settings have been checked
	}
	c.Arch = arch
	return c, true
}

// Equal reports whether two configurations are of the same network.
func (c TranslatorConfig) Equal(d TranslatorConfig) bool {
	lost := func(c TranslatorConfig) map[string][]int { // without empty lists, which are equivalent to missing ones
		lists := maps.Clone(c.PrunedHeads)
		maps.DeleteFunc(lists, func(_ string, heads []int) bool { return len(heads) == 0 })
		return lists
	}
	if !maps.EqualFunc(lost(c), lost(d), slices.Equal) {
		return false
	}
	c.PrunedHeads, d.PrunedHeads = nil, nil
	return reflect.DeepEqual(c, d)
}

// others returns the numbers below n that are not in an ascending list.
func others(list []int, n int) []int {
	return slices.DeleteFunc(stats.Numbers(n), func(i int) bool {
		_, listed := slices.BinarySearch(list, i)
		return listed
	})
}
