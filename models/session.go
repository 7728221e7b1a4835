package models

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Session is a text that a decoder repeatedly reads and continues, such as a conversation. It
// caches the keys and values of the tokens read so far, so each call only reads new tokens.
//
// Only one goroutine at a time may use a Session. Several sessions of a model may generate at the same
// time; they share the processors, and those of a Batcher also the steps.
type Session struct {
	m       *Model
	batcher *Batcher // nil if its texts are read alone
	cache   *Cache
	read    []int // the tokens whose keys and values are cached; nil if unknown
	fresh   int   // tokens of the last prompt that were read
	// begin is the cache after the last prompt. It is kept for layers with a state, which cannot take tokens back.
	prompt []int
	begin  *Cache
}

// NewSession returns an empty session. c configures how keys and values are stored; only Format
// is used.
//
// Errors: a model that is not a decoder; an encoder–decoder, whose prompts are sources.
func (m *Model) NewSession(c attn.CacheConfig) (*Session, error) {
	if m.Sizes().Decoder != nil {
		return nil, errors.New("models: NewSession: the model is an encoder-decoder, want a decoder")
	}
	cache, err := NewCache(m, 1, attn.CacheConfig{Format: c.Format})
	if err != nil {
		return nil, err
	}
	return &Session{m: m, cache: cache}, nil
}

// Generate returns the tokens that follow a prompt, the same as Model.Generate. The prompt is the
// whole text. Its longest common prefix with the previous prompt and answer is not read again,
// and the callbacks of g.Run do not receive it. g.Cache is not used. The loop over a result must
// end before the next call. If ctx ends, the tokens end as in Model.Generate, and the session can
// be used again.
//
// Errors: those of Model.Generate; callbacks in g.Run in a session of a Batcher.
func (s *Session) Generate(ctx context.Context, prompt []int, g Generation) (tokens iter.Seq[int], err error) {
	w, err := s.m.stepper("Generate", [][]int{prompt}, &g, s.cache)
	if err != nil {
		return nil, err
	}
	if r := &g.Run; s.batcher != nil && r.together() {
		return nil, errors.New("models: Generate: Run has a callback, want none in a Batcher: its steps read several texts")
	}
	return func(yield func(int) bool) {
		if w.batcher = s.batcher; w.batcher != nil {
			defer w.batcher.end(w)
		}
		n := s.rewind(prompt)
		s.fresh, s.read = len(prompt)-n, nil // during a step, some layers have read more than others
		w.begin, w.written = prompt[n:], [][]int{prompt[:n:n]}
		_ = w.write(ctx, g, 1, func(_, id int) bool {
			if s.read = w.written[0]; len(s.read) == len(prompt) && slices.ContainsFunc(s.cache.Layers, hasState) {
				s.prompt, s.begin = slices.Clone(prompt), s.cache.Select([]int{0}).(*Cache)
			}
			more := yield(id)
			if more {
				s.read = nil
			}
			return more
		})
		s.read = w.written[0] // if ctx has ended, some layers may have read less, which rewind finds out
	}, nil
}

// Fresh returns the number of tokens of the last prompt that were read rather than found in the
// cache.
func (s *Session) Fresh() int { return s.fresh }

// rewind removes all tokens from the cache that are not a prefix of the prompt, and returns the
// number of tokens left. This is always less than the whole prompt, because the scores after its
// last token are needed.
func (s *Session) rewind(prompt []int) int {
	n := 0
	for n < min(len(s.read), len(prompt)-1) && s.read[n] == prompt[n] {
		n++
	}
	if s.fits(n) {
		return n
	}
	// A window has dropped keys, a state cannot take tokens back, or a layer has not read them.
	if n = len(s.prompt); n > 0 && n < len(prompt) && slices.Equal(s.prompt, prompt[:n]) {
		*s.cache = *s.begin.Select([]int{0}).(*Cache)
		return n
	}
	s.fits(0)
	return 0
}

// hasState reports whether a layer has a state in place of keys and values.
func hasState(c LayerCache) bool {
	_, attends := c.(CacheOf[*attn.Cache])
	return !attends
}

// fits makes the cache as short as n tokens and reports whether all layers can be.
func (s *Session) fits(n int) bool {
	return tensor.Catch(func() {
		for _, layer := range s.cache.Layers {
			layer.Truncate(n)
		}
	}) == nil
}
