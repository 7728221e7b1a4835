package models_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// writer is one way to let a model write.
type writer struct {
	name  string
	write func(ctx context.Context) ([]int, error)
}

// writers returns every way in which a model writes, after prompts of several lengths, with every format of caches.
func writers(t *testing.T, m *models.Model) (all []writer) {
	t.Helper()
	for _, storage := range []tensor.Format{tensor.Float32, tensor.BFloat16, tensor.Int8} {
		cache := attn.CacheConfig{Format: storage}
		var together *models.Batcher
		if m.Sizes().Decoder == nil {
			var err error
			if together, err = m.NewBatcher(cache); err != nil {
				t.Fatal(err)
			}
		}
		for n, prompt := range [][]int{{}, {3}, {5, 4}, {7, 2, 9, 4, 6, 3, 8}} {
			for i := range prompt {
				prompt[i] %= m.Sizes().Vocabulary
			}
			g := models.Generation{Tokens: 6, Ends: []int{}, Cache: cache}
			if n%2 == 1 {
				g.Sampling = models.Sampling{Temperature: 1, Seed: uint64(n)}
			}
			add := func(name string, write func(ctx context.Context) ([]int, error)) {
				all = append(all, writer{fmt.Sprintf("%s %d %v", name, n, storage), write})
			}
			collect := func(ctx context.Context, generate func(context.Context, []int, models.Generation) (iter.Seq[int], error)) ([]int, error) {
				tokens, err := generate(ctx, prompt, g)
				if err != nil {
					return nil, err
				}
				return slices.Collect(tokens), ctx.Err()
			}
			converse := func(ctx context.Context, s *models.Session, err error) ([]int, error) {
				if err != nil {
					return nil, err
				}
				first, err := collect(ctx, s.Generate)
				if err != nil {
					return first, err
				}
				again, err := collect(ctx, s.Generate) // reads only the last token of the prompt
				return append(first, again...), err
			}
			add("Generate", func(ctx context.Context) ([]int, error) { return collect(ctx, m.Generate) })
			add("Beam", func(ctx context.Context) ([]int, error) { return m.Beam(ctx, prompt, 2, g) })
			add("Write", func(ctx context.Context) ([]int, error) {
				written, err := m.Write(ctx, [][]int{prompt}, g)
				return written[0], err
			})
			if together != nil {
				add("Batcher", func(ctx context.Context) ([]int, error) { return collect(ctx, together.Generate) })
				add("Batcher.NewSession", func(ctx context.Context) ([]int, error) {
					s, err := together.NewSession()
					return converse(ctx, s, err)
				})
				add("NewSession", func(ctx context.Context) ([]int, error) {
					s, err := m.NewSession(cache)
					return converse(ctx, s, err)
				})
			}
		}
	}
	return all
}

// writingModels returns the directory of a model of each family that writes.
func writingModels(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, pattern := range []string{"testdata/decoders/*", "testdata/seq2seq/*", "../testdata/translators/*"} {
		some, err := filepath.Glob(pattern)
		if err != nil || len(some) == 0 {
			t.Fatalf("%s: no models, %v", pattern, err)
		}
		dirs = append(dirs, some...)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		m, err := models.Load(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Head() == nil || m.Head().Task != models.NextWord {
			return true
		}
		again := seen[m.Family.Name]
		seen[m.Family.Name] = true
		return again
	})
}

// A model of every family writes in every way at the same time, in float32 and another format of weights, with every format
// of caches, while contexts end at any moment. Each text and each error is that of the same call alone.
func TestWritingAtOnce(t *testing.T) {
	formats := tensor.Formats()
	for i, dir := range fewer(writingModels(t)) {
		for _, format := range []tensor.Format{formats[0], formats[1+i%(len(formats)-1)]} {
			t.Run(fmt.Sprint(filepath.Base(dir), " ", format), func(t *testing.T) {
				m, err := models.Load(dir, models.Options{Format: format})
				if err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				for n, w := range writers(t, m) {
					want, failed := w.write(t.Context())
					rng := rand.New(rand.NewPCG(5, uint64(n)))
					all.Go(func() {
						for range 2 {
							ctx, cancel := t.Context(), func() {}
							if rng.IntN(2) == 0 {
								ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(20_000))*time.Microsecond)
							}
							got, err := w.write(ctx)
							switch {
							case ctx.Err() != nil && errors.Is(err, ctx.Err()):
								if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
									t.Errorf("%s: %v after its end, want the beginning of %v", w.name, got, want)
								}
							case fmt.Sprint(err) != fmt.Sprint(failed), !slices.Equal(got, want):
								t.Errorf("%s: %v, %v, want %v, %v", w.name, got, err, want, failed)
							}
							cancel()
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// A model may be used in a bubble of testing/synctest, outside, and in another bubble, with what it keeps between calls.
func TestWritingInABubble(t *testing.T) {
	for _, dir := range fewer(writingModels(t)) {
		m, err := models.Load(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wants := map[string][]int{}
		write := func(t *testing.T) {
			var all sync.WaitGroup
			for _, w := range writers(t, m) {
				want, there := wants[w.name]
				if !there {
					want, _ = w.write(t.Context())
					wants[w.name] = want
				}
				all.Go(func() {
					if got, _ := w.write(t.Context()); !slices.Equal(got, want) {
						t.Errorf("%s, %s: %v, want %v", dir, w.name, got, want)
					}
				})
			}
			all.Wait()
		}
		synctest.Test(t, write)
		write(t)
		synctest.Test(t, write)
	}
}

// rows is a network that counts the texts of its largest step, and panics in a step that reads a given token.
type rows struct {
	models.Network
	most  *atomic.Int64
	wrong int
}

func (r rows) Hidden(t *tensor.Tape, x models.Batch, run models.Run) *tensor.Tensor {
	for _, ids := range x.IDs {
		if slices.Equal(ids, []int{r.wrong}) {
			panic("wrong token")
		}
	}
	if n := int64(len(x.IDs)); n > r.most.Load() {
		r.most.Store(n)
	}
	time.Sleep(time.Millisecond)
	return r.Network.Hidden(t, x, run)
}

// The texts of a Batcher share steps. A panic in one reaches only the text that causes it.
func TestBatcherPanic(t *testing.T) {
	m, _ := openDecoder(t, "llama3")
	g := models.Generation{Tokens: 20, Ends: []int{}}
	prompts := [][]int{{10, 25, 8}, {3, 4}, {12}, {9, 9, 9, 9}}
	var wants [][]int
	for _, p := range prompts {
		wants = append(wants, generate(t, m, p, g))
	}
	wrong := slices.IndexFunc(wants[0], func(id int) bool { // a token that only the first text has, or whose beginning the others share
		return !slices.Contains(slices.Concat(wants[1:]...), id)
	})
	if wrong < 0 {
		t.Fatal("each token of the first text is in another, too")
	}
	var largest atomic.Int64
	m.Network = rows{m.Network, &largest, wants[0][wrong]}
	together, err := m.NewBatcher(attn.CacheConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i, prompt := range prompts {
		all.Go(func() {
			var got []int
			defer func() {
				e := recover()
				want := wants[i]
				if i == 0 {
					want = want[:wrong+1]
				}
				if (e != nil) != (i == 0) || !slices.Equal(got, want) {
					t.Errorf("text %d: %v, panic %v, want %v, and a panic in text 0 only", i, got, e, want)
				}
			}()
			tokens, err := together.Generate(t.Context(), prompt, g)
			if err != nil {
				t.Error(err)
				return
			}
			for id := range tokens {
				got = append(got, id)
			}
		})
	}
	if all.Wait(); largest.Load() < 2 {
		t.Error("no step had two texts")
	}
}

func TestBatcherErrors(t *testing.T) {
	m, _, _ := openSeq2seq(t, "testdata/seq2seq/marian")
	if _, err := m.NewBatcher(attn.CacheConfig{}); err == nil {
		t.Error("a Batcher of an encoder-decoder")
	}
	m, _ = openDecoder(t, "llama3")
	together, err := m.NewBatcher(attn.CacheConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var g models.Generation
	g.Run.States = func(int, *tensor.Tensor) {}
	const want = "models: Generate: Run has a callback, want none in a Batcher: its steps read several texts"
	if _, err := together.Generate(t.Context(), []int{3}, g); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Chosen receives each token with its scores, and an end token too.
func TestChosen(t *testing.T) {
	m, _ := openDecoder(t, "llama3")
	var chosen []int
	g := models.Generation{Tokens: 9, Ends: []int{}}
	want := generate(t, m, []int{10, 25, 8}, g)
	g.Ends = want[4:5]
	g.Chosen = func(id int, scores []float32) {
		chosen = append(chosen, id)
		if len(scores) != m.Sizes().Vocabulary || scores[id] != slices.Max(scores) {
			t.Errorf("token %d with score %v of %d, want the best one", id, scores[id], len(scores))
		}
	}
	end := slices.Index(want, want[4])
	if got := generate(t, m, []int{10, 25, 8}, g); !slices.Equal(got, want[:end]) || !slices.Equal(chosen, want[:end+1]) {
		t.Errorf("%v, chosen %v, want %v", got, chosen, want[:end+1])
	}
	_, err := m.Write(t.Context(), [][]int{{1}}, g)
	if want := "models: Write: Chosen is set, want nil: only Generate calls it"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
