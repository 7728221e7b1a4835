package models

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
)

// Generation configures how a text is continued. The zero value is greedy, until an end token.
type Generation struct {
	Sampling
	// Tokens is the maximum number of tokens. 0 means the model's limit; a model without a limit
	// continues until the caller stops.
	Tokens int
	// Beam is the number of hypotheses that Write keeps at each step of a beam search. 0 and 1
	// mean that Write works like Generate.
	Beam int
	// Ends are the tokens at which a text ends. Nil means EndTokens.
	Ends []int
	// Cache configures how keys and values are stored. Only Format is used.
	Cache attn.CacheConfig
	// Chosen, if not nil, is called by Generate with each token, before it is yielded, and with an end token, which is not.
	// scores [V] are the scores of all tokens, from which it was chosen: the logits after bad_words_ids and before
	// Sampling. They are valid during the call.
	Chosen func(id int, scores []float32)
	// Run's callbacks receive the weights and states of each step; the first step is the whole
	// prompt. Its State is not used.
	Run Run
}

// Generate returns the tokens that follow a prompt, each as soon as it is generated. The caller
// stops early by leaving the loop. The end token is not included. The iterator can be used once.
// In an encoder–decoder, the prompt is the source, and the tokens are the whole target. If ctx
// ends, the tokens end too, even within a step, and ctx.Err() is not nil:
//
//	for id := range tokens {
//		fmt.Print(stream.Next(id))
//	}
//	if err := ctx.Err(); err != nil {
//		return err // the text is incomplete
//	}
//
// Several goroutines may call Generate of the same model; the tokens of one call belong to one of
// them. A step uses all processors and runs within the loop, so nothing is computed ahead while the
// caller handles a token. A Batcher reads the next tokens of several texts in one step, which is faster.
//
// Each step reads one token and the cached keys and values of earlier tokens. The result is the
// same as running the model on all tokens at once. Words in bad_words_ids of
// generation_config.json or config.json are never generated.
//
// Errors: a model that does not predict the next token; a prompt that Sizes.Check rejects; a
// field of g out of range; invalid settings.
func (m *Model) Generate(ctx context.Context, prompt []int, g Generation) (tokens iter.Seq[int], err error) {
	w, err := m.stepper("Generate", [][]int{prompt}, &g, nil)
	if err != nil {
		return nil, err
	}
	return func(yield func(int) bool) {
		_ = w.write(ctx, g, 1, func(_, id int) bool { return yield(id) })
	}, nil
}

// generationFile contains settings of generation.
const generationFile = "generation_config.json"

// EndTokens returns the tokens at which a text ends: eos_token_id of
// generation_config.json, one token or a list of them, or else that of config.json. It
// returns nil if there are none.
//
// Errors: a *FormatError.
func (m *Model) EndTokens() ([]int, error) {
	const key = "eos_token_id"
	path, value, given := m.generationSetting(key)
	if !given {
		return nil, nil
	}
	var one int
	var list []int
	if json.Unmarshal(value, &one) == nil {
		list = []int{one}
	} else if json.Unmarshal(value, &list) != nil {
		return nil, &FormatError{path, fmt.Errorf("%s is %s, want a token id or a list of them", key, quote.JSON(value))}
	}
	if err := within("token id", list, m.Sizes().Output().Vocabulary); err != nil {
		return nil, &FormatError{path, fmt.Errorf("%s has %w", key, err)}
	}
	return list, nil
}

// badWords returns the token sequences in bad_words_ids, which must not be generated.
func (m *Model) badWords() ([][]int, error) {
	const key = "bad_words_ids"
	path, value, given := m.generationSetting(key)
	if !given {
		return nil, nil
	}
	var words [][]int
	if json.Unmarshal(value, &words) != nil || slices.ContainsFunc(words, func(w []int) bool { return len(w) == 0 }) {
		return nil, &FormatError{path, fmt.Errorf("%s is %s, want a list of words, each a list of token ids",
			key, quote.JSON(value))}
	}
	if err := within("token id", slices.Concat(words...), m.Sizes().Output().Vocabulary); err != nil {
		return nil, &FormatError{path, fmt.Errorf("%s has %w", key, err)}
	}
	return words, nil
}

// generationSetting returns a setting of generation_config.json, or else of config.json, and the
// file that contains it. given is false if neither does.
func (m *Model) generationSetting(key string) (path string, value json.RawMessage, given bool) {
	for _, s := range []*Settings{m.generation, m.Settings, m.Settings.parts[textConfig]} {
		if s == nil {
			continue
		}
		if value, given = s.values[key]; given {
			return s.path, value, string(value) != "null"
		}
	}
	value, given = m.Settings.usual[key]
	return m.Settings.path, value, given
}
