package models_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// Texts that are generated at the same time are those that are generated alone, in every format of weights, whatever
// the others do: they begin and end at any time, and a context may end within a step.
func TestSharedSteps(t *testing.T) {
	for _, name := range fewer(decoderCases(t)) {
		for _, o := range []models.Options{{}, {Weights: tensor.Int8}, {Precision: tensor.BFloat16}} {
			m, err := models.Load("testdata/decoders/"+name, o)
			if err != nil {
				t.Fatal(err)
			}
			if m.Head() == nil || m.Head().Task != models.NextWord {
				continue
			}
			t.Run(fmt.Sprint(name, o.Weights, o.Precision), func(t *testing.T) {
				var all sync.WaitGroup
				for n := range 6 {
					rng := rand.New(rand.NewPCG(5, uint64(n)))
					s, err := m.NewSession(attn.CacheConfig{})
					if err != nil {
						t.Fatal(err)
					}
					prompt := make([]int, 1+rng.IntN(6))
					for i := range prompt {
						prompt[i] = rng.IntN(m.Sizes().Vocabulary)
					}
					g := models.Generation{Tokens: 8, Ends: []int{}, Sampling: models.Sampling{Temperature: 1, Seed: uint64(n)}}
					want := generate(t, m, prompt, g)
					all.Go(func() {
						for range 4 {
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(3000))*time.Microsecond)
							if rng.IntN(2) == 0 {
								ctx = t.Context()
							}
							tokens, err := s.Generate(ctx, prompt, g)
							if err != nil {
								t.Error(err)
							}
							got := slices.Collect(tokens)
							if cancel(); !slices.Equal(got, want[:len(got)]) || len(got) < len(want) && ctx.Err() == nil {
								t.Errorf("text %d: %v, want %v", n, got, want)
							}
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// rows is a network that counts the texts of its largest step, and panics in a step that read a given token.
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

// Steps are shared. A panic in one reaches every text that it has, and later texts work.
func TestSharedStepsPanic(t *testing.T) {
	m, _ := openDecoder(t, "llama3")
	g := models.Generation{Tokens: 20, Ends: []int{}}
	want := generate(t, m, []int{10, 25, 8}, g)
	own := m.Network
	write := func(wrong int) (most int64, panics int64) {
		var all sync.WaitGroup
		var largest, panicked atomic.Int64
		m.Network = rows{own, &largest, wrong}
		for range 4 {
			all.Go(func() {
				defer func() {
					if recover() != nil {
						panicked.Add(1)
					}
				}()
				tokens, err := m.Generate(t.Context(), []int{10, 25, 8}, g)
				if err != nil {
					t.Error(err)
				} else if got := slices.Collect(tokens); !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			})
		}
		all.Wait()
		return largest.Load(), panicked.Load()
	}
	if most, panics := write(want[5]); most < 2 || panics != 4 {
		t.Errorf("at most %d texts in a step, %d panics, want 2 or more, and 4", most, panics)
	}
	if most, panics := write(-1); most < 2 || panics != 0 {
		t.Errorf("at most %d texts in a step, %d panics, want 2 or more, and none", most, panics)
	}
}

// Callbacks of a text never receive the states of another one.
func TestSharedStepsCallbacks(t *testing.T) {
	m, _ := openDecoder(t, "llama3")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			g := models.Generation{Tokens: 6, Ends: []int{}}
			g.Run.States = func(_ int, x *tensor.Tensor) {
				if x.Dim(0) != 1 {
					t.Errorf("states %v, want those of one text", x.Shape())
				}
			}
			generate(t, m, []int{10, 25}, g)
			generate(t, m, []int{10, 25}, models.Generation{Tokens: 6, Ends: []int{}})
		})
	}
	all.Wait()
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
