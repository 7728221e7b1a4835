package seq2seq

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/tensor"
)

// halfTrained returns translators that know the toy task a little, so that what
// they write differs from text to text and has an end.
func halfTrained(t *testing.T) map[string]*Translator {
	pairs := toyPairs(64)
	all := map[string]*Translator{}
	for _, c := range []Config{
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

// What a text becomes depends on nothing else that is translated with it.
func TestTranslateManyAsEachAlone(t *testing.T) {
	var texts []string
	for _, p := range toyPairs(2 * decodeBatch) {
		texts = append(texts, p.Source)
	}
	texts[5], texts[17] = "", "漢字"
	for name, m := range halfTrained(t) {
		for _, d := range []Decoding{{}, {Beam: 3}} {
			some := texts[:decodeBatch*2/max(d.Beam, 1)]
			together := translate(t, m, d, some...)
			different := map[string]bool{}
			for i, text := range some {
				if alone := translate(t, m, d, text); alone[0] != together[i] {
					t.Errorf("%s, beam %d: %q becomes %q among others and %q alone", name, d.Beam, text, together[i], alone[0])
				}
				different[together[i]] = true
			}
			if len(different) < 10 {
				t.Errorf("%s: only %d different translations, which shows little", name, len(different))
			}
		}
	}
}

func TestBeamOfOneIsGreedy(t *testing.T) {
	ctx := context.Background()
	for name, m := range halfTrained(t) {
		for _, p := range toyPairs(40) {
			src := m.encodeSource(p.Source)
			for _, length := range []int{0, 3} {
				greedy, err := m.greedy(ctx, [][]int{src}, Decoding{MaxLength: length})
				if err != nil {
					t.Fatal(err)
				}
				beam, err := m.beam(ctx, src, Decoding{Beam: 1, MaxLength: length})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := m.Target.Decode(beam), m.Target.Decode(greedy[0]); got != want {
					t.Errorf("%s: %q becomes %q with a beam of one, %q greedily", name, p.Source, got, want)
				}
			}
		}
	}
}

// logp returns the log probability of tokens, worked out in one go.
func logp(m *Translator, src, tokens []int) float64 {
	s := m.net.encode(nil, newBatch([][]int{src}), hooks{})
	read := append([]int{BOS}, tokens[:len(tokens)-1]...)
	logits, _ := decode(m.net, nil, s, read, len(read), hooks{})
	p := tensor.LogSoftmax(nil, logits)
	sum := 0.0
	for i, token := range tokens {
		sum += float64(p.At(0, i, token))
	}
	return sum
}

// A beam that holds every beginning there is finds the best translation of all,
// the one that trying them all finds.
func TestBeamIsExactIfWideEnough(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: tries every translation")
	}
	const length = 3
	for name, m := range halfTrained(t) {
		for _, p := range toyPairs(5) {
			src := m.encodeSource(p.Source)
			best := hypothesis{logp: math.Inf(-1)}
			var try func(tokens []int)
			try = func(tokens []int) {
				for token := range m.Target.Len() {
					if token == Pad || token == BOS {
						continue
					}
					next := append(slices.Clone(tokens), token)
					if token != EOS && len(next) < length {
						try(next)
						continue
					}
					if h := (hypothesis{tokens: next, logp: logp(m, src, next)}); h.score() > best.score() {
						best = h
					}
				}
			}
			try(nil)
			got, err := m.beam(context.Background(), src, Decoding{Beam: 1000, MaxLength: length})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, best.tokens) {
				h := hypothesis{tokens: got, logp: logp(m, src, got)}
				if math.Abs(h.score()-best.score()) > 1e-5 {
					t.Errorf("%s: %q becomes %v of score %.4f, want %v of %.4f", name, p.Source, got, h.score(), best.tokens, best.score())
				}
			}
		}
	}
}

func TestBeamIsBetterThanGreedy(t *testing.T) {
	ctx := context.Background()
	for name, m := range halfTrained(t) {
		var greedySum, beamSum float64
		better := 0
		for _, p := range toyPairs(64) {
			src := m.encodeSource(p.Source)
			greedy, err := m.greedy(ctx, [][]int{src}, Decoding{})
			if err != nil {
				t.Fatal(err)
			}
			beam, err := m.beam(ctx, src, Decoding{Beam: 5})
			if err != nil {
				t.Fatal(err)
			}
			written := append(greedy[0], EOS)
			g := hypothesis{tokens: written, logp: logp(m, src, written)}
			b := hypothesis{tokens: beam, logp: logp(m, src, beam)}
			greedySum += g.score()
			beamSum += b.score()
			if b.score() > g.score()+1e-6 {
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
			h := hypothesis{logp: float64(rng.IntN(9)), last: i}
			if h.logp == 8 {
				h.logp = math.NaN()
			}
			all = append(all, h)
			list = insert(list, h, n)
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
			if list[i].last != all[i].last {
				t.Fatalf("the %d likeliest are %v, want %v", n, list, all[:n])
			}
		}
	}
}

// A model of NaN knows nothing, but it has to stop.
func TestDecodingEndsWithNaN(t *testing.T) {
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyBatch)
		for _, p := range m.Params() {
			for i := range p.Data() {
				p.Data()[i] = float32(math.NaN())
			}
		}
		for _, beam := range []int{1, 2, 7} {
			for _, text := range translate(t, m, Decoding{Beam: beam, MaxLength: 9}, "abc", "") {
				if n := len(text); n > 9 {
					t.Errorf("%s: %d letters, want at most 9", c.name(), n)
				}
			}
		}
	}
}

func TestMaxLength(t *testing.T) {
	pairs := toyPairs(9)
	m := newToy(t, toyConfigs()[0], pairs)
	// Without an end, the length is what stops.
	embedding := m.net.(*transformer).target.Weight
	for i := range embedding.Dim(1) {
		embedding.Data()[EOS*embedding.Dim(1)+i] = 0
	}
	norm := m.net.(*transformer).decoderNorm
	for i := range norm.Bias.Data() { // every state, and with it some letter's logit, is large
		norm.Bias.Data()[i] = 9 * embedding.At(specials, i)
	}
	src := m.encodeSource("abc")
	for _, length := range []int{0, 1, 2, 11} {
		want := length
		if length == 0 {
			want = 2*len(src) + 20
		}
		greedy, err := m.greedy(context.Background(), [][]int{src, src[1:]}, Decoding{MaxLength: length})
		if err != nil {
			t.Fatal(err)
		}
		if len(greedy[0]) != want {
			t.Errorf("MaxLength %d: %d tokens, want %d", length, len(greedy[0]), want)
		}
		beam, err := m.beam(context.Background(), src, Decoding{Beam: 3, MaxLength: length})
		if err != nil {
			t.Fatal(err)
		}
		if len(beam) > want {
			t.Errorf("MaxLength %d: %d tokens with a beam, want at most %d", length, len(beam), want)
		}
	}
}

func TestDecodingInterrupted(t *testing.T) {
	pairs := toyPairs(9)
	m := newToy(t, toyConfigs()[0], pairs)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, d := range []Decoding{{}, {Beam: 2}} {
		if _, err := m.Translate(ctx, []string{"abc"}, d); !errors.Is(err, context.Canceled) {
			t.Errorf("beam %d: error %v, want %v", d.Beam, err, context.Canceled)
		}
	}
	if _, err := m.Loss(ctx, pairs); !errors.Is(err, context.Canceled) {
		t.Errorf("loss: error %v, want %v", err, context.Canceled)
	}
}

// Long texts go in smaller batches, because the square of their length has to
// fit into memory.
func TestBatched(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 7))
	for _, longest := range []int{1, 30, 700, 9000} {
		lengths := make([]int, 300)
		for i := range lengths {
			lengths[i] = 1 + rng.IntN(longest)
		}
		var all []int
		for b := range batched(lengths, func(n int) int { return n }) {
			all = append(all, b...)
			if n := slices.Max(b); len(b) == 0 || len(b) > decodeBatch || (len(b) > 1 && len(b)*n*n > decodeCells) {
				t.Errorf("a batch of %d sequences of up to %d tokens", len(b), n)
			}
		}
		if !slices.Equal(all, lengths) {
			t.Errorf("lengths up to %d: the batches together are not the list", longest)
		}
	}
	for range batched([]int{1, 2, 3}, func(n int) int { return n }) {
		break // must not go on
	}
}
