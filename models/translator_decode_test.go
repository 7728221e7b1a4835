package models

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// halfTrained returns partly trained translators, whose translations differ between texts and end.
func halfTrained(t *testing.T) map[string]*Model {
	trained.Do(func() { trained.models = trainHalf(t) })
	return trained.models
}

// trained are the models of halfTrained, which no test changes.
var trained struct {
	sync.Once
	models map[string]*Model
}

func trainHalf(t *testing.T) map[string]*Model {
	pairs := toyPairs(64)
	all := map[string]*Model{}
	for _, c := range []TranslatorConfig{
		{Arch: Transformer, Score: "scaled", Width: 16, Heads: 2, Layers: 2, Hidden: 16},
		{Arch: GRU, Score: "additive", Width: 16, Layers: 2},
		{Arch: GRU, Score: "cosine", Width: 16, Heads: 2, Layers: 1},
	} {
		m := newToy(t, c, pairs)
		learn(t, m, pairs, 12)
		all[c.name()] = m
	}
	return all
}

// A translation does not depend on the other texts of the call.
func TestTranslateManyAsEachAlone(t *testing.T) {
	var texts []string
	for _, p := range toyPairs(2 * mostSources) {
		texts = append(texts, p.Source)
	}
	texts[5], texts[17] = "", "漢字"
	for name, m := range halfTrained(t) {
		for _, beam := range []int{1, 3} {
			some := texts[:mostSources*2/beam]
			together := translate(t, m, beam, some...)
			different := map[string]bool{}
			for i, text := range some {
				if alone := translate(t, m, beam, text); alone[0] != together[i] {
					t.Errorf("%s, beam %d: %q becomes %q among others and %q alone", name, beam, text, together[i], alone[0])
				}
				different[together[i]] = true
			}
			if len(different) < 10 {
				t.Errorf("%s: only %d different translations, which shows little", name, len(different))
			}
		}
	}
}

// write returns the tokens that a model writes for a source, without the end token.
func write(tb testing.TB, m *Model, source []int, g Generation) []int {
	tb.Helper()
	written, err := m.Write(context.Background(), [][]int{source}, g)
	if err != nil {
		tb.Fatal(err)
	}
	return written[0]
}

func TestBeamOfOneIsGreedy(t *testing.T) {
	for name, m := range halfTrained(t) {
		for _, p := range toyPairs(40) {
			src := exampleOfPair(t, m, p).IDs
			for _, length := range []int{2*len(src) + 20, 3} {
				greedy := write(t, m, src, Generation{Tokens: length})
				beam, err := m.Beam(context.Background(), src, 1, Generation{Tokens: length})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := m.Decode(beam), m.Decode(greedy); got != want {
					t.Errorf("%s: %q becomes %q with a beam of one, %q greedily", name, p.Source, got, want)
				}
			}
		}
	}
}

// logp returns the log probability of tokens, computed in one run.
func logp(tb testing.TB, m *Model, src, tokens []int) float64 {
	p := tensor.LogSoftmax(nil, newReader(tb, m, [][]int{src}).read([][]int{append([]int{seq2seq.BOS}, tokens[:len(tokens)-1]...)}, Run{}))
	sum := 0.0
	for i, token := range tokens {
		sum += float64(p.At(0, i, token))
	}
	return sum
}

// scored returns the score by which beam search compares texts.
func scored(h hypothesis) float64 { return bestSearch.Score(h.logp, len(h.tokens)) }

// ended appends the end token, unless the tokens reach the limit.
func ended(tokens []int, most int) []int {
	if len(tokens) < most {
		tokens = append(tokens, seq2seq.EOS)
	}
	return tokens
}

// A beam that is wide enough for all beginnings finds the best translation, as an exhaustive search does.
func TestBeamIsExactIfWideEnough(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: tries every translation")
	}
	const length = 3
	for name, m := range halfTrained(t) {
		for _, p := range toyPairs(5) {
			src := exampleOfPair(t, m, p).IDs
			best := hypothesis{logp: math.Inf(-1)}
			var try func(tokens []int)
			try = func(tokens []int) {
				for token := range m.Sizes().Decoder.Vocabulary {
					if token == seq2seq.Pad || token == seq2seq.BOS {
						continue
					}
					next := append(slices.Clone(tokens), token)
					if token != seq2seq.EOS && len(next) < length {
						try(next)
						continue
					}
					if h := (hypothesis{tokens: next, logp: logp(t, m, src, next)}); scored(h) > scored(best) {
						best = h
					}
				}
			}
			try(nil)
			got, err := m.Beam(context.Background(), src, 1000, Generation{Tokens: length})
			if err != nil {
				t.Fatal(err)
			}
			if got = ended(got, length); !slices.Equal(got, best.tokens) {
				h := hypothesis{tokens: got, logp: logp(t, m, src, got)}
				if math.Abs(scored(h)-scored(best)) > 1e-5 {
					t.Errorf("%s: %q becomes %v of score %.4f, want %v of %.4f", name, p.Source, got, scored(h), best.tokens, scored(best))
				}
			}
		}
	}
}

func TestBeamIsBetterThanGreedy(t *testing.T) {
	for name, m := range halfTrained(t) {
		var greedySum, beamSum float64
		better := 0
		for _, p := range toyPairs(64) {
			src := exampleOfPair(t, m, p).IDs
			most := 2*len(src) + 20
			greedy, beam := ended(write(t, m, src, Generation{}), most+1), ended(write(t, m, src, Generation{Beam: 5}), most)
			g := hypothesis{tokens: greedy, logp: logp(t, m, src, greedy)}
			b := hypothesis{tokens: beam, logp: logp(t, m, src, beam)}
			greedySum += scored(g)
			beamSum += scored(b)
			if scored(b) > scored(g)+1e-6 {
				better++
			}
		}
		if beamSum < greedySum || better == 0 {
			t.Errorf("%s: with a beam the scores are %.3f on average, greedily %.3f; better in %d cases", name, beamSum/64, greedySum/64, better)
		}
	}
}

func TestInsert(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 7 {
		n++
		var list, all []hypothesis
		for i := range 40 {
			h := hypothesis{logp: float64(rng.IntN(9)), from: i}
			if h.logp == 8 {
				h.logp = math.NaN()
			}
			all = append(all, h)
			list = keep(list, h, n, func(h hypothesis) float64 { return h.logp })
		}
		slices.SortStableFunc(all, func(a, b hypothesis) int {
			switch { // NaN last
			case a.logp != a.logp && b.logp != b.logp:
				return 0
			case a.logp != a.logp:
				return 1
			case b.logp != b.logp:
				return -1
			}
			return int(b.logp - a.logp)
		})
		for i := range list {
			if list[i].from != all[i].from {
				t.Fatalf("the %d likeliest are %v, want %v", n, list, all[:n])
			}
		}
	}
}

// A model with NaN parameters stops.
func TestDecodingEndsWithNaN(t *testing.T) {
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyBatch)
		for _, p := range m.Params() {
			for i := range p.Data() {
				p.Data()[i] = float32(math.NaN())
			}
		}
		for _, beam := range []int{1, 2, 7} {
			for _, text := range []string{"abc", ""} {
				e := exampleOfPair(t, m, seq2seq.Pair{Source: text})
				if n := len(write(t, m, e.IDs, Generation{Beam: beam, Tokens: 9})); n > 9 {
					t.Errorf("%s: %d tokens, want at most 9", c.name(), n)
				}
			}
		}
	}
}

func TestMaxLength(t *testing.T) {
	pairs := toyPairs(9)
	m := newToy(t, toyConfigs()[0], pairs)
	// Without an end, the length is what stops.
	embedding := m.Network.(transformer).target.logits.Weight
	for i := range embedding.Dim(1) {
		embedding.Data()[seq2seq.EOS*embedding.Dim(1)+i] = 0
	}
	norm := m.Network.(transformer).target.norm.(*nn.LayerNorm)
	for i := range norm.Bias.Data() { // every state, and with it some letter's logit, is large
		norm.Bias.Data()[i] = 9 * embedding.At(specialTokens, i)
	}
	src := exampleOfPair(t, m, seq2seq.Pair{Source: "abc"}).IDs
	for _, length := range []int{0, 1, 2, 11} {
		want := length
		if length == 0 {
			want = 2*len(src) + 20
		}
		greedy, err := m.Write(context.Background(), [][]int{src, src[1:]}, Generation{Tokens: length})
		if err != nil {
			t.Fatal(err)
		}
		if len(greedy[0]) != want {
			t.Errorf("at most %d: %d tokens, want %d", length, len(greedy[0]), want)
		}
		if beam := write(t, m, src, Generation{Beam: 3, Tokens: length}); len(beam) > want {
			t.Errorf("at most %d: %d tokens with a beam, want at most %d", length, len(beam), want)
		}
	}
}

func TestDecodingInterrupted(t *testing.T) {
	pairs := toyPairs(9)
	m := newToy(t, toyConfigs()[0], pairs)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, beam := range []int{1, 2} {
		if _, err := m.Translate(ctx, []string{"abc"}, beam); !errors.Is(err, context.Canceled) {
			t.Errorf("beam %d: error %v, want %v", beam, err, context.Canceled)
		}
	}
}

// Long texts are translated in smaller batches, because memory grows with the square of the length.
func TestBatched(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 7))
	for _, longest := range []int{1, 30, 700, 9000} {
		lengths := make([]int, 300)
		for i := range lengths {
			lengths[i] = 1 + rng.IntN(longest)
		}
		slices.Sort(lengths)
		var all []int
		for rest := lengths; len(rest) > 0; {
			b := rest[:firstBatch(len(rest), func(i int) int { return rest[i] })]
			all, rest = append(all, b...), rest[len(b):]
			if n := slices.Max(b); len(b) == 0 || len(b) > mostSources || (len(b) > 1 && len(b)*n*n > mostPairs) {
				t.Errorf("a batch of %d sequences of up to %d tokens", len(b), n)
			}
		}
		if !slices.Equal(all, lengths) {
			t.Errorf("lengths up to %d: the batches together are not the list", longest)
		}
	}
}
