package seq2seq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// toyPairs makes n pairs of a text of 2 to 6 letters and the same letters in
// reverse, all sources different: a task that nothing but attention can do, and
// that is learnt in seconds.
func toyPairs(n int) []Pair {
	rng := rand.New(rand.NewPCG(11, 13))
	seen := map[string]bool{}
	var pairs []Pair
	for len(pairs) < n {
		var source, target string
		for range 2 + rng.IntN(5) {
			letter := string(rune('a' + rng.IntN(7)))
			source, target = source+letter, letter+target
		}
		if !seen[source] {
			seen[source] = true
			pairs = append(pairs, Pair{source, target})
		}
	}
	return pairs
}

// toyConfigs are small networks: both architectures with every score, the
// recurrent one with heads and without.
func toyConfigs() []Config {
	var all []Config
	for _, score := range score.Kinds().Names() {
		all = append(all,
			Config{Arch: Transformer, Score: score, Width: 12, Heads: 3, Layers: 2, Hidden: 10},
			Config{Arch: GRU, Score: score, Width: 12, Layers: 2},
			Config{Arch: GRU, Score: score, Width: 12, Heads: 3, Layers: 1})
	}
	return all
}

func (c Config) name() string {
	return fmt.Sprintf("%s with %s scores and %d heads", c.Arch, c.Score, c.Heads)
}

// newToy returns an untrained translator for the letters of pairs.
func newToy(tb testing.TB, c Config, pairs []Pair) *Translator {
	tb.Helper()
	var sources, targets []string
	for _, p := range pairs {
		sources, targets = append(sources, p.Source), append(targets, p.Target)
	}
	m, err := New(c, BuildVocabulary(sources, Chars, 0), BuildVocabulary(targets, Chars, 0), rand.New(rand.NewPCG(3, 5)))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// learn trains on the pairs, eight a step.
func learn(tb testing.TB, m *Translator, pairs []Pair, epochs int) {
	tb.Helper()
	params, tape := nn.Vars{}, tensor.NewTape(tensor.Train)
	for name, p := range m.Params() {
		params = append(params, nn.Var{Name: name, Tensor: p})
	}
	optim, rng := nn.NewAdamW(params), rand.New(rand.NewPCG(7, 7))
	for range epochs {
		rng.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		for batch := range slices.Chunk(pairs, 8) {
			tape.Reset()
			nn.ZeroGrad(params)
			tape.Backward(toyLoss(m, tape, batch), nil)
			nn.ClipGradNorm(params, 1)
			optim.Step(0.003)
		}
	}
}

// translate returns the translations of texts.
func translate(tb testing.TB, m *Translator, d Decoding, texts ...string) []string {
	tb.Helper()
	out, err := m.Translate(context.Background(), texts, d)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// sameParams fails the test unless two translators have the same bits.
func sameParams(t *testing.T, got, want *Translator) {
	t.Helper()
	wanted := map[string][]float32{}
	for name, p := range want.Params() {
		wanted[name] = p.Data()
	}
	for name, p := range got.Params() {
		tensortest.Same(t, name, p.Data(), wanted[name])
		delete(wanted, name)
	}
	if len(wanted) > 0 {
		t.Errorf("%d parameters are missing", len(wanted))
	}
}

// contents returns the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(data)
	}
	return all
}
