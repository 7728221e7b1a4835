package models

import (
	"errors"
	"iter"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Session is a text that a decoder reads and continues again and again, such as a
// conversation: it keeps the keys and values of what has been read, so that each time only
// the tokens are read that are new.
type Session struct {
	m     *Model
	cache *Cache
	read  []int // the tokens whose keys and values the cache has; nil if that is not known
	fresh int   // tokens of the last prompt that were read
}

// NewSession returns a session in which nothing has been read. c says how keys and values are
// held; only Storage has a meaning here.
//
// Errors: a model that is no decoder, or an encoder–decoder, whose prompts are sources.
func (m *Model) NewSession(c attn.CacheConfig) (*Session, error) {
	if m.Sizes().Decoder != nil {
		return nil, errors.New("models: NewSession: the model is an encoder-decoder, want a decoder")
	}
	cache, err := NewCache(m, 1, attn.CacheConfig{Storage: c.Storage})
	if err != nil {
		return nil, err
	}
	return &Session{m: m, cache: cache}, nil
}

// Generate returns the tokens that follow a prompt, the same as Model.Generate. The prompt is
// the whole text. The tokens at its start that it shares with the prompt before and the
// model's answer to that are not read again, and g.Run is not told of them. g.Cache has no
// meaning here. The loop over a result must end before the next one begins.
//
// Errors: those of Model.Generate.
func (s *Session) Generate(prompt []int, g Generation) (tokens iter.Seq[int], err error) {
	w, err := s.m.writer("Generate", [][]int{prompt}, &g, s.cache)
	if err != nil {
		return nil, err
	}
	return func(yield func(int) bool) {
		n := s.rewind(prompt)
		s.fresh, s.read = len(prompt)-n, nil // within a step, some layers have read more than others
		w.begin, w.written = prompt[n:], [][]int{prompt[:n:n]}
		w.write(g, func(id int) bool {
			s.read = w.written[0]
			more := yield(id)
			if more {
				s.read = nil
			}
			return more
		})
		s.read = w.written[0]
	}, nil
}

// Fresh returns how many tokens of the last prompt have been read for it.
func (s *Session) Fresh() int { return s.fresh }

// rewind takes out of the cache what a prompt does not begin with, and returns how many
// tokens are left: not all of the prompt, as the scores behind its last one are wanted.
func (s *Session) rewind(prompt []int) int {
	n := 0
	for n < min(len(s.read), len(prompt)-1) && s.read[n] == prompt[n] {
		n++
	}
	truncate := func() {
		for _, layer := range s.cache.Layers {
			layer.Truncate(n)
		}
	}
	if tensor.Catch(truncate) != nil { // a sliding window has passed what would be needed
		n = 0
		truncate()
	}
	return n
}
