package models

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par/partest"
)

// TestContextEnds: whatever takes a context stops at the check at which the context ends, returns its error, and
// computes the same afterwards. Only parts in progress on other processors check once more. The work between
// two checks is limited by the tests of package tensor.
func TestContextEnds(t *testing.T) {
	const procs = 3
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	must := func(m *Model, err error) *Model {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	llama := must(Load("testdata/decoders/llama3", Options{}))
	t5 := must(Load("testdata/seq2seq/t5", Options{}))
	e, err := LoadEmbedder("testdata/sentence_mean", Options{})
	if err != nil {
		t.Fatal(err)
	}
	bert := must(Load("testdata/bert_text", Options{}))
	bert.tokenizer, bert.untokened = e.Model.tokenizer, nil
	c, err := NewClassifier(bert)
	if err != nil {
		t.Fatal(err)
	}
	texts := slices.Repeat([]string{"the cat sat on the mat.", "who?"}, 30)
	prompt, source := []int{10, 25, 8, 14, 6, 13, 21, 3, 12, 25, 2}, [][]int{{5, 6, 7, 1}, {8, 1}}
	collect := func(tokens func(func(int) bool), err error) (ids []int, _ error) {
		if err == nil {
			ids = slices.Collect(tokens)
		}
		return ids, err
	}
	endless := Generation{Tokens: 8, Ends: []int{}}
	calls := map[string]func(ctx context.Context) (any, error){
		"Embed": func(ctx context.Context) (any, error) {
			y, err := e.Embed(ctx, texts...)
			if err != nil {
				return nil, err
			}
			return y.Data(), nil
		},
		"Embed of a long text": func(ctx context.Context) (any, error) {
			y, err := e.Embed(ctx, strings.Repeat(" ", 1<<17)+"cat")
			if err != nil {
				return nil, err
			}
			return y.Data(), nil
		},
		"Embedder.Encode": func(ctx context.Context) (any, error) {
			x, _, err := e.Encode(ctx, strings.Repeat(" ", 1<<17)+"cat")
			return x, err
		},
		"Classifier.Encode": func(ctx context.Context) (any, error) {
			x, _, err := c.Encode(ctx, "who?", strings.Repeat(" ", 1<<17)+"cat")
			return x, err
		},
		"Generate": func(ctx context.Context) (any, error) {
			ids, err := collect(llama.Generate(ctx, prompt, endless))
			return ids, errors.Join(err, ctx.Err())
		},
		"Generate of an encoder-decoder": func(ctx context.Context) (any, error) {
			ids, err := collect(t5.Generate(ctx, source[0], endless))
			return ids, errors.Join(err, ctx.Err())
		},
		"Write": func(ctx context.Context) (any, error) { return t5.Write(ctx, source, endless) },
		"Beam":  func(ctx context.Context) (any, error) { return t5.Beam(ctx, source[0], 3, endless) },
	}
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyPairs(9))
		calls["Translate, "+c.name()] = func(ctx context.Context) (any, error) { return m.Translate(ctx, []string{"abc", "fe"}, 1) }
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			whole := partest.NewCountdown(math.MaxInt)
			want, err := call(whole)
			if err != nil {
				t.Fatal(err)
			}
			n := whole.Checks()
			if n < 10 {
				t.Errorf("the context is checked %d times", n)
			}
			for _, end := range []int{1, 2, 3, n / 3, n / 2, n - n/10} {
				ctx := partest.NewCountdown(end)
				_, err := call(ctx)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("end at check %d of %d: error %v", end, n, err)
				}
				if most := procs + 3; ctx.Late() > most { // the functions themselves ask for the error
					t.Errorf("end at check %d of %d: %d later checks, want at most %d", end, n, ctx.Late(), most)
				}
			}
			if again, err := call(t.Context()); err != nil || fmt.Sprint(again) != fmt.Sprint(want) {
				t.Errorf("after interruptions: %v, %v, want %v", again, err, want)
			}
		})
	}
}

// TestSessionAfterTheEnd: a session whose context has ended, at any check, continues with the tokens of a new one.
func TestSessionAfterTheEnd(t *testing.T) {
	for _, name := range []string{"llama3", "mistral"} { // mistral has a sliding window
		m, err := Load("testdata/decoders/"+name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		prompt, g := []int{10, 25, 8, 14, 6, 13, 21, 3, 12, 25, 2}, Generation{Tokens: 6, Ends: []int{}}
		write := func(s *Session, ctx context.Context, prompt []int) []int {
			t.Helper()
			tokens, err := s.Generate(ctx, prompt, g)
			if err != nil {
				t.Fatal(err)
			}
			return slices.Collect(tokens)
		}
		fresh := func() *Session {
			s, err := m.NewSession(attn.CacheConfig{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		whole := partest.NewCountdown(math.MaxInt)
		longer := append(slices.Clone(prompt), write(fresh(), whole, prompt)...)
		want := write(fresh(), t.Context(), longer)
		for end := 1; end < whole.Checks(); end += 1 + whole.Checks()/40 {
			s, ctx := fresh(), partest.NewCountdown(end)
			if got := write(s, ctx, prompt); len(got) == g.Tokens && ctx.Late() > 0 {
				t.Errorf("%s: end at check %d: all tokens", name, end)
			}
			if got := write(s, t.Context(), longer); !slices.Equal(got, want) {
				t.Errorf("%s: after an end at check %d of %d: tokens %v, want %v", name, end, whole.Checks(), got, want)
			}
		}
	}
}

// TestEmbedChecksTexts: a context also ends while texts are tokenized, before the model runs.
func TestEmbedChecksTexts(t *testing.T) {
	e, err := LoadEmbedder("testdata/sentence_mean", Options{})
	if err != nil {
		t.Fatal(err)
	}
	texts := slices.Repeat([]string{"who?"}, 2000)
	if n := testing.AllocsPerRun(1, func() {
		if _, err := e.Embed(partest.NewCountdown(2), texts...); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}); n > 1000 {
		t.Errorf("%.0f allocations for one of %d texts", n, len(texts))
	}
	if _, err := e.Embed(t.Context(), "who?", strings.Repeat("a", 9)+"\xff"); err != nil && !strings.HasPrefix(err.Error(), "text 1: ") {
		t.Errorf("error %v, want the number of the text", err)
	}
}
