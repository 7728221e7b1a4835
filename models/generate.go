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
	"strconv"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/seq2seq"
)

// Generation says how a text is continued. The zero value is greedy, until the end.
type Generation struct {
	Sampling
	// Tokens is how many tokens there are at most. 0 means as many as the model takes,
	// and for one without a limit as many as the caller does.
	Tokens int
	// Beam is how many beginnings Write keeps at each step of a beam search. 0 and 1 mean
	// that it writes one text as Generate does.
	Beam int
	// Ends are the tokens at which a text ends. Nil means EndTokens.
	Ends []int
	// Cache says how keys and values are held. Only Storage has a meaning here.
	Cache attn.CacheConfig
	// Run is told of the weights and states of each step, the first of which is the whole
	// prompt. Its State is not used.
	Run Run
}

// Generate returns the tokens that follow a prompt, each as soon as it is known: the
// caller ends a text by leaving the loop. A token of Ends is not among them. The result is
// for one loop. In an encoder–decoder the prompt is the source, and the tokens are all of
// the target.
//
//	for id := range tokens {
//		fmt.Print(stream.Next(id))
//	}
//
// Each step reads one token and the keys and values of those before it, and comes to the
// same as the model would from all tokens at once. Words that bad_words_ids of
// generation_config.json or config.json has are not written.
//
// Errors: a model that does not predict the next token; a prompt that Sizes.Check refuses;
// a field of g out of range; settings that cannot be.
func (m *Model) Generate(prompt []int, g Generation) (tokens iter.Seq[int], err error) {
	w, err := m.writer("Generate", [][]int{prompt}, &g, nil)
	if err != nil {
		return nil, err
	}
	return func(yield func(int) bool) { w.write(g, yield) }, nil
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
	path, value, err := m.generationSetting(key)
	if err != nil || value == nil {
		return nil, err
	}
	var one int
	var list []int
	if json.Unmarshal(value, &one) == nil {
		list = []int{one}
	} else if json.Unmarshal(value, &list) != nil {
		return nil, &FormatError{path, fmt.Errorf("%s is %s, want a token id or a list of them", key, quote.JSON(value))}
	}
	if err := within("token id", list, m.Sizes().output().Vocabulary); err != nil {
		return nil, &FormatError{path, fmt.Errorf("%s has %w", key, err)}
	}
	return list, nil
}

// badWords returns the words that are not to be written: bad_words_ids.
func (m *Model) badWords() ([][]int, error) {
	const key = "bad_words_ids"
	path, value, err := m.generationSetting(key)
	if err != nil || value == nil {
		return nil, err
	}
	var words [][]int
	if json.Unmarshal(value, &words) != nil || slices.ContainsFunc(words, func(w []int) bool { return len(w) == 0 }) {
		return nil, &FormatError{path, fmt.Errorf("%s is %s, want a list of words, each a list of token ids",
			key, quote.JSON(value))}
	}
	for _, word := range words {
		if err := within("token id", word, m.Sizes().output().Vocabulary); err != nil {
			return nil, &FormatError{path, fmt.Errorf("%s has %w", key, err)}
		}
	}
	return words, nil
}

// translatorSettings are what generationSetting returns of a translator of attn train.
var translatorSettings = map[string]json.RawMessage{
	"eos_token_id":  json.RawMessage(strconv.Itoa(seq2seq.EOS)),
	"bad_words_ids": json.RawMessage(fmt.Sprintf("[[%d], [%d]]", seq2seq.Pad, seq2seq.BOS)),
}

// generationSetting returns a setting of generation_config.json, or else of config.json, and
// the file that has it; nil if none has.
func (m *Model) generationSetting(key string) (path string, value json.RawMessage, err error) {
	if m.Translator != nil {
		return configFile, translatorSettings[key], nil
	}
	path = filepath.Join(m.Dir, generationFile)
	var settings map[string]json.RawMessage
	switch data, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return path, nil, fmt.Errorf("models: %w", err)
	default:
		if err := strictjson.Lenient(data, &settings); err != nil {
			return path, nil, &FormatError{path, err}
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
		return path, nil, nil
	}
	return path, value, nil
}
