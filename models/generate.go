package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Generation says how a text is continued. The zero value is greedy, until the end.
type Generation struct {
	Sampling
	// Tokens is how many tokens there are at most. 0 means as many as the model takes,
	// and for one without a limit as many as the caller does.
	Tokens int
	// Ends are the tokens at which a text ends. Nil means EndTokens.
	Ends []int
	// Cache says how keys and values are held. Only Storage has a meaning here.
	Cache attn.CacheConfig
	// Run is told of the weights and states of each step, the first of which is the whole
	// prompt. Its Cache is not used.
	Run Run
}

// Generate returns the tokens that follow a prompt, each as soon as it is known: the
// caller ends a text by leaving the loop. A token of Ends is not among them. The result is
// for one loop.
//
//	for id := range tokens {
//		fmt.Print(stream.Next(id))
//	}
//
// Each step reads one token and the keys and values of those before it, and comes to the
// same as the model would from all tokens at once.
//
// Errors: a model that does not predict the next token; a prompt that Sizes.Check refuses;
// a field of g out of range; those of EndTokens.
func (m *Model) Generate(prompt []int, g Generation) (tokens iter.Seq[int], err error) {
	head := m.Head()
	if head == nil || head.Task != NextWord {
		return nil, fmt.Errorf("models: Generate: %s does not predict the next token, want a model with a head for the %s", m.Family.Name, NextWord)
	}
	if err := errors.Join(g.Check(), m.Sizes().Check(Batch{IDs: [][]int{prompt}})); err != nil {
		return nil, err
	}
	if g.Tokens < 0 {
		return nil, fmt.Errorf("models: Generate: %d tokens, want at least 1, or 0 for no limit", g.Tokens)
	}
	if g.Ends == nil {
		if g.Ends, err = m.EndTokens(); err != nil {
			return nil, err
		}
	}
	g.Run.Cache, err = NewCache(m, 1, attn.CacheConfig{Storage: g.Cache.Storage})
	if err != nil {
		return nil, err
	}
	return func(yield func(int) bool) {
		tape, draw := tensor.NewTape(tensor.Infer), newSampler(g.Sampling)
		next, most := prompt, m.Sizes().Positions
		for n := 0; g.Tokens == 0 || n < g.Tokens; n++ {
			if read := len(prompt) + n; n > 0 && most > 0 && read > most {
				return
			}
			tape.Reset()
			h := m.Hidden(tape, Batch{IDs: [][]int{next}}, g.Run)
			logits := head.Logits(tape, tensor.Slice(tape, h, 1, len(next)-1, len(next)))
			id := draw.next(logits.Data())
			if slices.Contains(g.Ends, id) || !yield(id) {
				return
			}
			next = []int{id}
		}
	}, nil
}

// generationFile has settings of generation, of which the end tokens are read.
const generationFile = "generation_config.json"

// EndTokens returns the tokens at which a text ends: eos_token_id of
// generation_config.json, one token or a list of them, or else that of config.json. It
// returns nil if there are none.
//
// Errors: a *FormatError; an error of the operating system.
func (m *Model) EndTokens() ([]int, error) {
	const key = "eos_token_id"
	path := filepath.Join(m.Dir, generationFile)
	var settings map[string]json.RawMessage
	switch data, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("models: %w", err)
	default:
		if err := json.Unmarshal(data, &settings); err != nil {
			return nil, &FormatError{path, fmt.Errorf("is not a JSON object: %w", err)}
		}
	}
	value, there := settings[key]
	if !there {
		path = filepath.Join(m.Dir, configFile)
		if value, there = m.Settings.values[key]; !there && m.Settings.parts["text_config"] != nil {
			value, there = m.Settings.parts["text_config"].values[key]
		}
	}
	if !there || string(value) == "null" {
		return nil, nil
	}
	var one int
	var list []int
	if json.Unmarshal(value, &one) == nil {
		list = []int{one}
	} else if json.Unmarshal(value, &list) != nil {
		return nil, &FormatError{path, fmt.Errorf("%s is %s, want a token id or a list of them", key, short(value))}
	}
	if err := within("token id", list, m.Sizes().Vocabulary); err != nil {
		return nil, &FormatError{path, fmt.Errorf("%s has %w", key, err)}
	}
	return list, nil
}
