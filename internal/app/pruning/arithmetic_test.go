package pruning

import (
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
)

// toy returns a translator of letters with fresh parameters.
func toy(t testing.TB, c models.TranslatorConfig) *models.Model {
	t.Helper()
	v := seq2seq.BuildVocabulary([]string{"abc"}, seq2seq.Chars, 100)
	m, err := models.NewTranslator(c, v, v, newRand())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The numbers are worked out by hand, for 2 sources of 3 tokens and targets of 5,
// width 8 in 2 heads of 4.
func TestCount(t *testing.T) {
	c := models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 8, Heads: 2, Layers: 1, Hidden: 16}
	m := toy(t, c)
	vocab := float64(m.Sizes().Decoder.Vocabulary)
	rest := 2 * (2*8*16*(3+5) + 5*8*vocab) // feed-forward networks and logits
	reads := Reads{Batch: 2, Source: 3, Target: 5}
	for _, w := range []struct {
		what string
		keep map[string][]int
		r    Reads
		want float64
	}{
		// Encoder: four maps 4·3·8·8 and 9 pairs·8·2; decoder: 4·5·8·8 and
		// 15·16; cross: two maps of queries 2·5·64, two of keys 2·3·64, 15·16.
		{"all", nil, reads, 2*(768+144+1280+240+640+384+240) + rest},
		// One token after 7: four maps and 8 pairs·16; two maps and 3 pairs·16.
		{"a step", nil, Reads{Batch: 2, Source: 3, Target: 1, Cached: 7}, 2*(256+128+128+48) + 2*(2*8*16+8*vocab)},
		{"half the heads", map[string][]int{"encoder.0.self": {1}, "decoder.0.self": {0}, "decoder.0.cross": {1}}, reads,
			768 + 144 + 1280 + 240 + 640 + 384 + 240 + rest},
		{"no heads", map[string][]int{"encoder.0.self": {}, "decoder.0.self": {}, "decoder.0.cross": {}}, reads, rest},
	} {
		small := keep(t, m, w.keep)
		if got := Count(small.Network, w.r); got != w.want {
			t.Errorf("%s: %v, want %v", w.what, got, w.want)
		}
	}

	// In heads of 4 a bilinear score maps each query by 4·4, an additive one each query
	// and each key; queries of all three layers: 3 + 5 + 5, keys 3 + 5 + 3.
	scaled := Count(m.Network, reads)
	for score, want := range map[string]float64{"bilinear": 2 * 2 * 16 * 13, "additive": 2 * 2 * 16 * (13 + 11)} {
		c.Score = score
		if got := Count(toy(t, c).Network, reads) - scaled; got != want {
			t.Errorf("a %s score adds %v, want %v", score, got, want)
		}
	}

	c = models.TranslatorConfig{Arch: models.GRU, Score: "scaled", Width: 8, Heads: 2, Layers: 1}
	// Encoder: two units of 4 that read 8, 3·4·12 a token, and the first state;
	// decoder: 3·8·24 and the last map 3·8·8 a token; cross as above.
	rest = 2 * (3*2*144 + 64 + 5*(576+192) + 5*8*vocab)
	if got, want := Count(toy(t, c).Network, reads), 2*(640+384+240)+rest; got != want {
		t.Errorf("GRU: %v, want %v", got, want)
	}
	c.Heads = 0
	if got, want := Count(toy(t, c).Network, reads), 2*2*15*8+rest; got != want {
		t.Errorf("GRU without heads: %v of attention, want %v", got, want)
	}
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
