package models

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
)

// TranslatorConfig is the architecture and the sizes of a translator's network. attn train stores
// it with the model as config.json.
type TranslatorConfig struct {
	Arch  string `json:"arch"`  // "transformer" or "gru"
	Score string `json:"score"` // a name of score.Kinds
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

// translatorFamily is an architecture of translators of attn train.
type translatorFamily struct {
	Family
	network func(c TranslatorConfig, rng *rand.Rand) trainable
	// check returns an error for fields that only other architectures support.
	check func(c TranslatorConfig) error
	// params returns the approximate number of parameters without embeddings in a network with
	// all heads: the elements of its matrices.
	params func(c TranslatorConfig) int64
	// layers returns the names of the multi-head attention layers.
	layers func(c TranslatorConfig) []string
	// matrices returns names and row counts of matrices that determine the size of the network,
	// from every layer. Each has as many columns as the width.
	matrices func(c TranslatorConfig) []namedRows
}

// trainable is the network of a translator.
type trainable interface {
	Network
	nn.Module
}

// translatorFamilies are the available architectures. The entries are beside their constructors.
var translatorFamilies = []*translatorFamily{&transformerFamily, &recurrentFamily}

// family returns the architecture of a configuration, nil if it is not known.
func (c TranslatorConfig) family() *translatorFamily {
	for _, f := range translatorFamilies {
		if f.Type == c.Arch {
			return f
		}
	}
	return nil
}

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
	scores, own := score.Kinds().Names(), c.family()
	switch {
	case own == nil:
		var names []string
		for _, f := range translatorFamilies {
			names = append(names, f.Type)
		}
		return fmt.Errorf("arch %s, want %s", quote.Text(c.Arch), strings.Join(names, " or "))
	case !slices.Contains(scores, c.Score):
		return fmt.Errorf("score %s, want one of %s", quote.Text(c.Score), strings.Join(scores, ", "))
	case c.Width < 2 || c.Width%2 != 0 || c.Width > maxWidth:
		return fmt.Errorf("width %d, want an even number from 2 to %d", c.Width, maxWidth)
	case c.Heads < 0:
		return fmt.Errorf("heads %d, want at least 1", c.Heads)
	case c.Heads > 0 && c.Width%c.Heads != 0:
		return fmt.Errorf("width %d is not divisible by %d heads", c.Width, c.Heads)
	case c.Layers < 1 || c.Layers > maxLayers:
		return fmt.Errorf("layers %d, want 1 to %d", c.Layers, maxLayers)
	case !(c.Dropout >= 0 && c.Dropout < 1):
		return fmt.Errorf("dropout %v is outside [0, 1)", c.Dropout)
	case min(c.SourceVocab, c.TargetVocab) < specialTokens || max(c.SourceVocab, c.TargetVocab) > mostTokens:
		return fmt.Errorf("vocabularies of %d and %d entries, want %d to %d",
			c.SourceVocab, c.TargetVocab, specialTokens, mostTokens)
	}
	if err := cmp.Or(own.check(c), c.checkPruned()); err != nil {
		return err
	}
	if n := c.params(); n > maxParams {
		return fmt.Errorf("a network of %.1e parameters, want at most %.1e", float64(n), float64(maxParams))
	}
	return nil
}

// params returns the approximate number of parameters of the network: the elements of its matrices. Biases,
// normalisations and scores are left out, so the network never has fewer. The number may overflow an int.
func (c TranslatorConfig) params() int64 {
	width := int64(c.Width)
	n := int64(c.SourceVocab+c.TargetVocab)*width + c.family().params(c)
	for _, heads := range c.PrunedHeads {
		n -= int64(len(heads)) * 4 * width * width / int64(c.Heads)
	}
	return n
}

// newScore returns a fresh scoring function between vectors of size e.
func (c TranslatorConfig) newScore(e int, rng *rand.Rand) attn.Score {
	kind, ok := score.Kinds().Find(c.Score)
	if !ok {
		panic("models: newScore of an invalid config")
	}
	return kind.New(score.Sizes{Query: e, Key: e}, rng)
}

// layers returns the names of the multi-head attention layers.
func (c TranslatorConfig) layers() []string {
	if c.Heads == 0 {
		return nil
	}
	return c.family().layers(c)
}

// Kept returns the heads of a layer that are not in PrunedHeads, by their numbers in the
// unpruned model: element h belongs to head h of the layer. c must be valid.
func (c TranslatorConfig) Kept(layer string) []int {
	return others(c.PrunedHeads[layer], c.Heads)
}

// checkPruned returns an error unless the pruned heads are heads of the network.
func (c TranslatorConfig) checkPruned() error {
	known := c.layers()
	for _, name := range slices.Sorted(maps.Keys(c.PrunedHeads)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("pruned heads of layer %s, want %s", quote.Text(name), listed(known))
		}
		if err := checkHeads(c.PrunedHeads[name], c.Heads); err != nil {
			return fmt.Errorf("pruned heads of layer %s: %w", quote.Text(name), err)
		}
	}
	return nil
}

// checkHeads returns an error unless the numbers are ascending and below n.
func checkHeads(numbers []int, n int) error {
	for i, h := range numbers {
		if h < 0 || h >= n {
			return fmt.Errorf("head %d, want 0 to %d", h, n-1)
		}
		if i > 0 && h <= numbers[i-1] {
			return fmt.Errorf("head %d follows %d, want ascending numbers", h, numbers[i-1])
		}
	}
	return nil
}

// listed returns the names for an error message.
func listed(names []string) string {
	switch {
	case len(names) == 0:
		return "none: the model has no heads"
	case len(names) > 7:
		names = []string{names[0], "…", names[len(names)-1]}
	}
	return "one of " + strings.Join(names, ", ")
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
	rest := make([]int, 0, n-len(list))
	for i := range n {
		if len(list) > 0 && list[0] == i {
			list = list[1:]
		} else {
			rest = append(rest, i)
		}
	}
	return rest
}
