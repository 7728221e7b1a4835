package heads

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/tensor"
)

func TestWords(t *testing.T) {
	for _, c := range []struct {
		tokens, want string
		special      string
	}{
		{"▁the ▁gi raf fe s . </s>", "the giraffes . </s>", "</s>"},
		{"The Ġgi raf fe , ĠI Ċ x", "The giraffe , I x", ""},
		{"[CLS] gi ##raf ##fe ' s [SEP] ##x", "[CLS] giraffe ' s [SEP] x", "[CLS] [SEP]"},
		{"gi raf fe</w> eats</w> <e> a</w> b", "giraffe eats <e> a b", "<e>"},
		{"gi@@ raf@@ fe eats <e> a@@ <e>", "giraffe eats <e> a <e>", "<e>"},
		{"2 0 4 9", "2 0 4 9", ""},                            // no marks
		{"5 ▁ m a r c h , ▁ 2 <e>", "5 march , 2 <e>", "<e>"}, // single characters, some of them spaces
		{"▁ ▁ a ▁ . ▁", "▁ a ▁ . ▁", ""},
		{"▁l ' homme", "l ' homme", ""},
		{"▁<s> b", "▁<s> b", "▁<s>"}, // a special token keeps its name
		{"", "", ""},
	} {
		tokens := strings.Fields(c.tokens)
		words := Words(tokens, strings.Fields(c.special)...)
		var list []string
		at := 0
		for _, w := range words {
			list = append(list, w.Text)
			if w.From != at || w.To <= w.From {
				t.Errorf("%q: word %q is of tokens %d to %d, the one before it ends at %d", c.tokens, w.Text, w.From, w.To, at)
			}
			at = w.To
		}
		got := strings.Join(list, " ")
		if got != c.want || at != len(tokens) {
			t.Errorf("%q: words %q of %d tokens, want %q", c.tokens, got, at, c.want)
		}
	}
}

// A label is the text of a token: marks of its vocabulary are a space, a line feed or nothing. Texts that only look like
// marks of another vocabulary stay.
func TestLabels(t *testing.T) {
	for _, c := range []struct{ tokens, want []string }{
		{[]string{"the", "Ġcat", "Ġ", "ĊĊ", "ĠĠa", "##", "###", "aĠ"}, []string{"the", "▁cat", "▁", "\n\n", "▁▁a", "##", "###", "aĠ"}},
		{[]string{"▁the", "▁", "s", "##s"}, []string{"▁the", "▁", "s", "##s"}},
		{[]string{"[CLS]", "cat", "##s", "#", "##", "##sep"}, []string{"[CLS]", "cat", "s", "#", "##", "##sep"}},
		{[]string{"ca", "ts</w>"}, []string{"ca", "ts"}},
		{[]string{"ca@@", "ts"}, []string{"ca", "ts"}},
		{[]string{"a", "Ġ", "b"}, []string{"a", "▁", "b"}},
		{[]string{"a", "b@", "#"}, []string{"a", "b@", "#"}},
		{[]string{"Ġa", "b", "<eos>"}, []string{"▁a", "b", "∎"}},
		{[]string{"[CLS]", "a", "<eos>"}, []string{"[CLS]", "a", "<eos>"}},
		{nil, nil},
	} {
		r := &Record{Special: []string{"[CLS]", "##sep", "<eos>"}, Layers: []Layer{{Queries: c.tokens}}}
		before := slices.Clone(c.tokens)
		if got := r.Labels(c.tokens); !slices.Equal(got, c.want) || !slices.Equal(c.tokens, before) {
			t.Errorf("%q is shown as %q, want %q", before, got, c.want)
		}
	}
}

func TestMergeWords(t *testing.T) {
	weights := []float32{
		0.5, 0.25, 0.25,
		0.1, 0.2, 0.7,
		0, 0, 1,
	}
	words := []Word{{"ab", 0, 2}, {"c", 2, 3}}
	// To ab: ½ + ¼ = 0.75 and 0.1 + 0.2 = 0.3, mean 0.525; to c: ¼ and 0.7.
	want := []float32{0.525, 0.475, 0, 1}
	got := MergeWords(weights, words, words)
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-7 {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	err := tensor.Catch(func() { MergeWords(weights, words, words[:1]) })
	wantError(t, "too few", err, "heads: MergeWords: weights has 9 values, want 3·2 for the words")
	if got := MergeWords(nil, nil, words); len(got) != 0 {
		t.Errorf("no rows give %v", got)
	}
}

func (l *Layer) axes() string {
	return fmt.Sprint(l.Queries, l.QueryPlaces, l.Keys, l.KeyPlaces)
}

// example is a translation. Its target consists of single characters without marks of words.
func example() *Record {
	src, read, write := []string{"▁b", "a", "<e>"}, []string{"<s>", "▁x", "y", "▁z"}, []string{"▁x", "y", "▁z", "<e>"}
	return &Record{Special: []string{"<s>", "<e>"}, Layers: []Layer{
		{Name: "e", Kind: Encoder, Heads: 1, Queries: src, Keys: src, Weights: []float32{
			0.5, 0.25, 0.25,
			0, 0.5, 0.5,
			0, 0, 1,
		}},
		{Name: "d", Kind: Decoder, Heads: 1, Queries: write, Keys: read, Weights: []float32{
			1, 0, 0, 0, // writes x
			0.5, 0.5, 0, 0, // y
			0.25, 0.25, 0.5, 0, // z
			0, 0.125, 0.375, 0.5, // the end token
		}},
		{Name: "c", Kind: Cross, Heads: 1, Queries: write[1:3], Keys: src, Weights: []float32{
			0.25, 0.5, 0.25,
			0, 0, 1,
		}},
	}}
}

func TestMergeWordsOfRecord(t *testing.T) {
	r := example()
	m := r.MergeWords()
	for i, want := range []struct {
		axes    string
		weights []float32
	}{
		{"[ba <e>] [0 1] [ba <e>] []", []float32{0.625, 0.375, 0, 1}},
		// When y is written, x has been read, so the query's position is the word xy itself.
		{"[xy z <e>] [1 1 2] [<s> xy z] []", []float32{0.75, 0.25, 0, 0.25, 0.75, 0, 0, 0.5, 0.5}},
		{"[y z] [] [ba <e>] []", []float32{0.75, 0.25, 0, 1}},
	} {
		if l := &m.Layers[i]; l.axes() != want.axes || !slices.Equal(l.Weights, want.weights) {
			t.Errorf("layer %d: %s %v, want %s %v", i, l.axes(), l.Weights, want.axes, want.weights)
		}
	}
	if r.Layers[1].axes() != example().Layers[1].axes() || m.Validate() != nil {
		t.Errorf("MergeWords changed the record to %s; merged: %v", r.Layers[1].axes(), m.Validate())
	}
	// Positions 1, 1 and 2 can attend to 2, 2 and 3 words; only the last query can attend to the last word.
	got := m.Layers[1].Measure(0, nil)
	if math.Abs(got.Bound-(2*math.Ln2+math.Log(3))/3) > 1e-6 || got.Same != (0.25+0.75+0.5)/3 || got.Previous != 0.5 || got.Last != 0.5 {
		t.Errorf("measures of words %+v", got)
	}
}

// The special tokens of one text apply to the other text too.
func TestMarksAreThoseOfTheRecord(t *testing.T) {
	r := &Record{Layers: []Layer{{Kind: Cross, Heads: 1, Queries: []string{"2", "0"}, Keys: []string{"a", "▁", "b"}, Weights: make([]float32, 6)}}}
	if got, want := r.MergeWords().Layers[0].axes(), "[20] [] [a b] []"; got != want {
		t.Errorf("words %s, want %s", got, want)
	}
}

func TestWithoutSpecial(t *testing.T) {
	for i, want := range []struct {
		axes            string
		weights, scaled []float32
	}{
		{"[▁b a] [0 1] [▁b a] [0 1]", []float32{0.5, 0.25, 0, 0.5}, []float32{2. / 3, 1. / 3, 0, 1}},
		{"[▁x y ▁z] [0 1 2] [▁x y ▁z] [1 2 3]", []float32{0, 0, 0, 0.5, 0, 0, 0.25, 0.5, 0}, []float32{0, 0, 0, 1, 0, 0, 1. / 3, 2. / 3, 0}},
		{"[y ▁z] [] [▁b a] []", []float32{0.25, 0.5, 0, 0}, []float32{1. / 3, 2. / 3, 0, 0}},
	} {
		for _, scale := range []bool{false, true} {
			l := &example().WithoutSpecial(scale).Layers[i]
			weights := want.weights
			if scale {
				weights = want.scaled
			}
			if l.axes() != want.axes || !slices.Equal(l.Weights, weights) {
				t.Errorf("layer %d: %s %v, want %s %v", i, l.axes(), l.Weights, want.axes, weights)
			}
		}
	}
	// Positions are those in the text. The first query no longer attends to any key and does not count. The
	// second and third can attend to one and two keys.
	m := example().WithoutSpecial(true).Layers[1].Measure(0, nil)
	near(t, "decoder", m, Measures{
		Entropy: (math.Log(3)/3 + 2./3*math.Log(1.5)) / 2, Bound: math.Ln2 / 2, Distance: 1. / 6, Confidence: 2.5 / 3,
		Previous: 1. / 3, Same: 2.5 / 3, Next: nan, First: 2. / 3, Last: nan, Special: nan, Punctuation: nan, Induction: nan, Duplicate: nan, Retrieval: nan,
	})
	// After merging, positions are indices of the remaining words.
	both := example().WithoutSpecial(true).MergeWords()
	if got, want := both.Layers[1].axes(), "[xy z] [0 0] [xy z] []"; got != want {
		t.Errorf("words without special tokens %s, want %s", got, want)
	}
	// Pieces that spell out a special token are a word of the text.
	spelt := &Record{Special: []string{"</s>"}, Layers: []Layer{{
		Kind: Encoder, Heads: 1, Queries: []string{"▁</", "s>", "</s>"}, Keys: []string{"</s>"}, Weights: []float32{1, 1, 1},
	}}}
	if l := spelt.MergeWords().WithoutSpecial(false).Layers[0]; !slices.Equal(l.Queries, []string{"▁</s>"}) {
		t.Errorf("words %q, want only the one that is not special", l.Queries)
	}
	none := &Record{Special: []string{"t0"}, Layers: []Layer{layerOf(Encoder, 1, 1, func(int, int) float32 { return 1 })}}
	if l := none.WithoutSpecial(true).Layers[0]; len(l.Queries)+len(l.Keys)+len(l.Weights) > 0 {
		t.Errorf("%+v, want nothing", l)
	}
}
