package models_test

import (
	"context"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// TestSession continues a text turn by turn. It compares each answer with that of a model that reads the
// whole text, and the number of tokens read with the number of new tokens.
func TestSession(t *testing.T) {
	turns := []struct {
		said  []int
		keeps func(text []int) int // how many of the cached tokens the text keeps
		stop  int                  // tokens after which the caller leaves, 0 for none
	}{
		{said: []int{10, 25, 8, 14}},
		{said: []int{3, 12}, keeps: func(text []int) int { return len(text) }},
		{said: []int{9}, keeps: func(text []int) int { return len(text) }, stop: 2},
		{said: []int{4, 4}, keeps: func(text []int) int { return len(text) - 1 }},
		{said: []int{30, 2, 11}, keeps: func(text []int) int { return 4 }},
		{said: nil, keeps: func(text []int) int { return 4 }},
		{said: []int{7, 7}, keeps: func(text []int) int { return 0 }},
	}
	for _, name := range fewer(decoderCases(t)) {
		m, _ := openDecoder(t, name)
		if m.Head() == nil || m.Head().Task != models.NextWord {
			continue
		}
		s, err := m.NewSession(attn.CacheConfig{})
		if err != nil {
			t.Fatal(err)
		}
		z := m.Sizes()
		var text, prompt, read []int // read contains the tokens in the session's cache
		for n, turn := range turns {
			if turn.keeps != nil {
				text = text[:turn.keeps(text)]
			}
			text = append(slices.Clip(text), turn.said...)
			for i := range text {
				text[i] %= z.Vocabulary
			}
			o := models.Generation{Tokens: 3, Ends: []int{}, Sampling: models.Sampling{Temperature: 1, Seed: uint64(n)}}
			want := generate(t, m, text, o)
			var lengths []int
			o.Run.States = func(number int, x *tensor.Tensor) {
				if number == 0 {
					lengths = append(lengths, x.Dim(1))
				}
			}
			tokens, err := s.Generate(t.Context(), text, o)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for id := range tokens {
				if got = append(got, id); len(got) == turn.stop {
					want = want[:turn.stop]
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, turn %d: %v, want %v", name, n, got, want)
			}
			same := 0
			for same < min(len(read), len(text)-1) && read[same] == text[same] {
				same++
			}
			wants := []int{len(text) - same}
			switch {
			case same == len(read) || !slides(m):
			case hybrid(m) && same >= len(prompt) && len(prompt) < len(text): // the state after the last prompt is kept
				wants = append(wants, len(text)-len(prompt))
			default:
				wants = append(wants, len(text))
			}
			if fresh := lengths[0]; fresh != s.Fresh() || !slices.Contains(wants, fresh) {
				t.Errorf("%s, turn %d: %d tokens were read, %d by Fresh, want one of %v", name, n, fresh, s.Fresh(), wants)
			}
			prompt = slices.Clone(text)
			read = append(slices.Clone(text), got[:len(got)-1]...) // the last one is not read
			text = append(text, got...)
		}
	}
}

// slides reports whether a layer has a sliding window, whose discarded keys cannot be restored, or a state.
func slides(m *models.Model) bool {
	cache, err := models.NewCache(m, 1, attn.CacheConfig{})
	return err == nil && slices.ContainsFunc(cache.Layers, func(c models.LayerCache) bool {
		attention, ok := c.(models.CacheOf[*attn.Cache])
		return !ok || attention.Cache.Config().Window > 0
	})
}

// hybrid reports whether some layers are not softmax attention.
func hybrid(m *models.Model) bool {
	c, err := models.NewCache(m, 1, attn.CacheConfig{})
	return err == nil && slices.ContainsFunc(c.Layers, func(l models.LayerCache) bool {
		_, attends := l.(models.CacheOf[*attn.Cache])
		return !attends
	})
}

// After a panic in the loop, the session reads the whole text again.
func TestSessionAfterPanic(t *testing.T) {
	for _, name := range []string{"llama3", "qwen3_5", "lfm2", "mamba2", "falcon_h1", "deepseek_v3"} {
		testAfterPanic(t, name)
	}
}

func testAfterPanic(t *testing.T, name string) {
	m, g := openDecoder(t, name)
	s, err := m.NewSession(attn.CacheConfig{Format: tensor.BFloat16})
	if err != nil {
		t.Fatal(err)
	}
	ids := g.Ints("in.ids")
	o := models.Generation{Tokens: 9, Ends: []int{}, Cache: attn.CacheConfig{Format: tensor.BFloat16}}
	want := generate(t, m, ids, o)
	loop := func(o models.Generation) (got []int) {
		tokens, err := s.Generate(t.Context(), ids, o)
		if err != nil {
			t.Fatal(err)
		}
		for id := range tokens {
			got = append(got, id)
		}
		return got
	}
	spoilt, states := o, 0
	spoilt.Run.States = func(int, *tensor.Tensor) {
		if states++; states == 5 {
			panic("in the middle of a step")
		}
	}
	func() {
		defer func() { _ = recover() }()
		loop(spoilt)
	}()
	if got := loop(o); !slices.Equal(got, want) || s.Fresh() != len(ids) {
		t.Errorf("%v after %d tokens read, want %v after %d", got, s.Fresh(), want, len(ids))
	}
	fresh := 1
	if hybrid(m) { // the state of the last token but one is not kept
		fresh = len(ids)
	}
	if got := loop(o); !slices.Equal(got, want) || s.Fresh() != fresh {
		t.Errorf("%s: %v after %d tokens read, want %v after %d", name, got, s.Fresh(), want, fresh)
	}
}

// A session whose context ends in the middle of a step, of a prompt or behind it, reads what it needs to read again. A
// prompt that diverges behind the last prompt is read from the end of that.
func TestSessionStopped(t *testing.T) {
	for _, name := range []string{"qwen3_5", "lfm2", "mamba2", "falcon_h1"} {
		m, g := openDecoder(t, name)
		ids := g.Ints("in.ids")
		o := models.Generation{Tokens: 5, Ends: []int{}}
		for after := 1; after < 16; after++ { // layers
			s, err := m.NewSession(attn.CacheConfig{})
			if err != nil {
				t.Fatal(err)
			}
			loop := func(ctx context.Context, ids []int, o models.Generation) (got []int) {
				tokens, err := s.Generate(ctx, ids, o)
				if err != nil {
					t.Fatal(err)
				}
				for id := range tokens {
					got = append(got, id)
				}
				return got
			}
			ctx, cancel := context.WithCancel(t.Context())
			stopped, states := o, 0
			stopped.Run.States = func(int, *tensor.Tensor) {
				if states++; states == after {
					cancel()
				}
			}
			got, want := loop(ctx, ids, stopped), generate(t, m, ids, o)
			if len(got) == len(want) {
				t.Errorf("%s, %d: the loop did not end", name, after)
			}
			if again := loop(t.Context(), ids, o); !slices.Equal(again, want) {
				t.Errorf("%s, stopped after %d states: %v, want %v", name, after, again, want)
			}
			other := append(slices.Clone(ids), want[0], (want[1]+1)%m.Sizes().Vocabulary, 3)
			if again := loop(t.Context(), other, o); !slices.Equal(again, generate(t, m, other, o)) || s.Fresh() != 3 {
				t.Errorf("%s, stopped after %d states: %v, after %d tokens read, want 3", name, after, again, s.Fresh())
			}
		}
	}
}

func TestSessionErrors(t *testing.T) {
	for dir, want := range map[string]string{
		"testdata/seq2seq/marian": "models: NewSession: the model is an encoder-decoder, want a decoder",
		"testdata/bert_words":     "models: NewCache: the layers are not causal, want a decoder",
	} {
		m, err := models.Load(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.NewSession(attn.CacheConfig{}); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", dir, err, want)
		}
	}
}

// narrow is a user-defined network with a sliding window.
type narrow struct{ models.Network }

func (n narrow) NewLayerCache(layer, batch int, c attn.CacheConfig) (models.LayerCache, error) {
	c.Window = 4
	cache, err := n.Attention()[layer].NewCache(batch, c)
	return models.CacheOf[*attn.Cache]{Cache: cache}, err
}

// A user-defined network makes the caches of its layers.
func TestWindowsOfUsersNetworks(t *testing.T) {
	m, _ := openDecoder(t, "gpt2")
	cache, err := models.NewCache(narrow{m.Network}, 1, attn.CacheConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for i, layer := range cache.Layers {
		if window := layer.(models.CacheOf[*attn.Cache]).Cache.Config().Window; window != 4 {
			t.Errorf("layer %d has a window of %d keys, want 4", i, window)
		}
	}
}
