package models

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// TestMain sets one thread; tests of threads set more.
func TestMain(m *testing.M) {
	partest.OneThread()
	m.Run()
}

// toyPairs returns n pairs of a text of 2 to 6 letters and the same letters in reverse. All sources differ.
// The task needs attention and is learnt in seconds.
func toyPairs(n int) []seq2seq.Pair {
	rng := rand.New(rand.NewPCG(11, 13))
	seen := map[string]bool{}
	var pairs []seq2seq.Pair
	for len(pairs) < n {
		var source, target string
		for range 2 + rng.IntN(5) {
			letter := string(rune('a' + rng.IntN(7)))
			source, target = source+letter, letter+target
		}
		if !seen[source] {
			seen[source] = true
			pairs = append(pairs, seq2seq.Pair{Source: source, Target: target})
		}
	}
	return pairs
}

// toyConfigs are small networks: both architectures with every score, the recurrent one with heads and
// without. With -short, each score after the first has one of them.
func toyConfigs() []TranslatorConfig {
	var all []TranslatorConfig
	for i, score := range score.Kinds().Names() {
		some := []TranslatorConfig{
			{Arch: Transformer, Score: score, Width: 12, Heads: 3, Layers: 2, Hidden: 10},
			{Arch: GRU, Score: score, Width: 12, Layers: 2},
			{Arch: GRU, Score: score, Width: 12, Heads: 3, Layers: 1},
		}
		if testing.Short() && i > 0 {
			some = some[i%3:][:1]
		}
		all = append(all, some...)
	}
	return all
}

func (c TranslatorConfig) name() string {
	return fmt.Sprintf("%s with %s scores and %d heads", c.Arch, c.Score, c.Heads)
}

// newToy returns an untrained translator for the letters of pairs.
func newToy(tb testing.TB, c TranslatorConfig, pairs []seq2seq.Pair) *Model {
	tb.Helper()
	var sources, targets []string
	for _, p := range pairs {
		sources, targets = append(sources, p.Source), append(targets, p.Target)
	}
	m, err := NewTranslator(c, seq2seq.BuildVocabulary(sources, seq2seq.Chars, 0), seq2seq.BuildVocabulary(targets, seq2seq.Chars, 0), rand.New(rand.NewPCG(3, 5)))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// learn trains on the pairs, in batches of eight.
func learn(tb testing.TB, m *Model, pairs []seq2seq.Pair, epochs int) {
	tb.Helper()
	params, tape := nn.Vars{}, tensor.NewTape(tensor.Train)
	for name, p := range m.Params() {
		params = append(params, nn.Var{Name: name, Tensor: p})
	}
	optimizer, rng := optim.NewAdamW(params), rand.New(rand.NewPCG(7, 7))
	for range epochs {
		rng.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		for batch := range slices.Chunk(pairs, 8) {
			tape.Reset()
			optim.ZeroGrad(params)
			tape.Backward(toyLoss(m, tape, batch), nil)
			optim.ClipGradNorm(params, 1)
			optimizer.Step(0.003)
		}
	}
}

// translate returns the translations of texts.
func translate(tb testing.TB, m *Model, beam int, texts ...string) []string {
	tb.Helper()
	out, err := m.Translate(context.Background(), texts, beam)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// sameParams fails the test unless two translators have the same bits.
func sameParams(t *testing.T, got, want *Model) {
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

// example is a pair as tokens.
type example struct{ IDs, Reads, Targets []int }

// exampleOfPair returns the example of a pair.
func exampleOfPair(tb testing.TB, m *Model, p seq2seq.Pair) example {
	tb.Helper()
	e, err := pairOf(m, p)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func pairOf(m *Model, p seq2seq.Pair) (e example, err error) {
	source, err := m.Encode(p.Source, "")
	if err != nil {
		return e, err
	}
	target, err := m.EncodeTarget(p.Target)
	if err != nil {
		return e, err
	}
	start, err := m.DecoderStart()
	return example{source.IDs, append([]int{start}, target.IDs[:len(target.IDs)-1]...), target.IDs}, err
}

// examplesOf returns the examples of pairs.
func examplesOf(tb testing.TB, m *Model, pairs []seq2seq.Pair) []example {
	tb.Helper()
	var all []example
	for _, p := range pairs {
		all = append(all, exampleOfPair(tb, m, p))
	}
	return all
}

// predict returns the logits of all targets, and the targets.
func predict(t *tensor.Tape, m *Model, examples []example, r Run) (logits *tensor.Tensor, targets []int) {
	var x Batch
	for _, e := range examples {
		x.IDs, x.Targets = append(x.IDs, e.IDs), append(x.Targets, e.Reads)
	}
	var places []int
	longest := Batch{IDs: x.Targets}.longest()
	for i, e := range examples {
		for at, target := range e.Targets {
			places, targets = append(places, i*longest+at), append(targets, target)
		}
	}
	h := m.Hidden(t, x, r)
	rows := tensor.Gather(t, tensor.Reshape(t, h, h.Dim(0)*h.Dim(1), h.Dim(2)), places)
	logits = m.Head().Logits(t, tensor.Reshape(t, rows, 1, len(places), h.Dim(2)))
	return tensor.Reshape(t, logits, len(places), logits.Dim(2)), targets
}

// shaken returns an untrained translator in which every parameter affects the result.
func shaken(t *testing.T, c TranslatorConfig) *Model {
	t.Helper()
	m := newToy(t, c, toyPairs(5))
	rng := rand.New(rand.NewPCG(9, 10))
	for _, p := range m.Params() {
		for i := range p.Data() {
			p.Data()[i] += 0.2 * float32(rng.NormFloat64())
		}
	}
	return m
}
