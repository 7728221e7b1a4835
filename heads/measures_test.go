package heads

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/tensor"
)

var nan = math.NaN()

// near fails unless two structs of float64 are equal to 1e-6; NaN equals NaN.
func near(t *testing.T, what string, got, want Measures) {
	t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		a, b := g.Field(i).Float(), w.Field(i).Float()
		if math.Abs(a-b) > 1e-6 || math.IsNaN(a) != math.IsNaN(b) {
			t.Errorf("%s: %s is %v, want %v", what, g.Type().Field(i).Name, a, b)
		}
	}
}

func TestMeasuresByHand(t *testing.T) {
	for _, c := range []struct {
		what string
		l    Layer
		want Measures
	}{
		{"encoder", Layer{
			Kind: Encoder, Queries: []string{"[S]", "##,", "a"}, Keys: []string{"[S]", "##,", "a"},
			Weights: []float32{
				0.5, 0.25, 0.25,
				1, 0, 0,
				0, 0.25, 0.75,
			},
		}, Measures{
			// ½·ln 2 + 2·¼·ln 4 = 1.0397208, 0, ¼·ln 4 + ¾·ln 4/3 = 0.5623351
			Entropy:     0.5340186,
			Bound:       1.0986123, // ln 3
			Distance:    2. / 3,    // ¼ + 2·¼, 1, ¼
			Confidence:  0.75,      // ½, 1, ¾
			Previous:    0.625,     // –, 1, ¼
			Same:        1.25 / 3,  // ½, 0, ¾
			Next:        0.125,     // ¼, 0, –
			First:       0.5,       // ½, 1, 0
			Last:        1. / 3,    // ¼, 0, ¾
			Special:     0.5,       // same as First
			Punctuation: 0.5 / 3,   // ¼, 0, ¼
			Induction:   nan,       // no token occurs twice
			Duplicate:   nan,
			Retrieval:   nan,
		}},
		// Two queries at positions 3 and 4, after a cache of three keys.
		{"decoder", Layer{
			Kind: Decoder, Queries: []string{"b", "c"}, Keys: []string{"a", "b", "c", "a", "b"},
			Weights: []float32{
				0.1, 0.5, 0.15, 0.25, 0,
				0.2, 0, 0.4, 0.1, 0.3,
			},
		}, Measures{
			// 0.1·ln 10 + ½·ln 2 + 0.15·ln 1/0.15 + ¼·ln 4 = 1.2079737
			// 0.2·ln 5 + 0.4·ln 2.5 + 0.1·ln 10 + 0.3·ln 1/0.3 = 1.2798542
			Entropy:     1.2439139,
			Bound:       1.4978661, // (ln 4 + ln 5)/2
			Distance:    1.575,     // 3·0.1 + 2·0.5 + 0.15, 4·0.2 + 2·0.4 + 0.1
			Confidence:  0.45,
			Previous:    0.125, // 0.15, 0.1
			Same:        0.275, // 0.25, 0.3
			Next:        nan,   // the next token is not visible
			First:       0.15,
			Last:        0.3, // only the second query can attend to the last key
			Special:     nan,
			Punctuation: nan,
			Induction:   0.45, // "a" was followed by "b": 0.5; "b" by "c": 0.4
			Duplicate:   0.05, // 0.1, 0
			Retrieval:   1,    // of "a", which "b" follows again: "b" has the largest weight
		}},
		{"cross", Layer{
			Kind: Cross, Queries: []string{"x", "y", "z"}, Keys: []string{"a", "a", ".", "[S]", "a", "a"},
			Weights: []float32{
				0, 0, 0, 0, 0, 0, // attends to no key and does not count
				0, 0, 0.5, 0.5, 0, 0,
				0, 0, 0, 0, 0, 1,
			},
		}, Measures{
			Entropy: 0.5 * math.Ln2, Bound: 1.7917595, // ln 6
			// Query y is at 1½·6/3 = 3, which is ½ from the midpoints 2½ and 3½ of its keys. Query z is at 5,
			// ½ from 5½.
			Distance:   0.5,
			Confidence: 0.75, First: 0, Last: 0.5, Special: 0.25, Punctuation: 0.25,
			Previous: nan, Same: nan, Next: nan, Induction: nan, Duplicate: nan, Retrieval: nan,
		}},
		{"nothing", Layer{Kind: Encoder, Queries: []string{"x"}, Keys: []string{"x"}, Weights: []float32{0}},
			Measures{nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan}},
		{"induction to itself", Layer{Kind: Decoder, Queries: []string{"a", "a", "a"}, Keys: []string{"a", "a", "a"},
			Weights: []float32{1, 0, 0, 0.5, 0.5, 0, 0.25, 0.25, 0.5},
		}, Measures{
			// 0, ln 2, 2·¼·ln 4 + ½·ln 2 = 1.5·ln 2
			Entropy: 2.5 * math.Ln2 / 3, Bound: (math.Ln2 + math.Log(3)) / 3,
			Distance: 1.25 / 3, Confidence: 2. / 3, Previous: 0.375, Same: 2. / 3, Next: nan,
			First: 1.75 / 3, Last: 0.5, Special: nan, Punctuation: nan,
			Induction: 0.625,             // –, ½ to the token after the first, ¾ to the tokens after the first two
			Duplicate: 0.5, Retrieval: 1, // – and –, ½ and 1, ½ and –
		}},
	} {
		c.l.Heads = 2 // the second head is measured
		c.l.Weights = append(make([]float32, len(c.l.Weights)), c.l.Weights...)
		near(t, c.what, c.l.Measure(1, []string{"[S]"}), c.want)
	}
}

// Retrieval counts the queries whose token and next token have followed each other before.
func TestRetrieval(t *testing.T) {
	tokens := strings.Fields("a b c a b d a b c a")
	l := Layer{Kind: Decoder, Heads: 1, Queries: tokens, Keys: tokens, Weights: make([]float32, 100)}
	set := func(query int, weights ...float32) { copy(l.Weights[query*10:], weights) }
	want := func(what string, want float64) {
		t.Helper()
		if got := l.Measure(0, nil).Retrieval; math.Abs(got-want) > 1e-9 || math.IsNaN(got) != math.IsNaN(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	set(0, 1)
	set(1, 0, 1)
	set(2, 1)
	want("nothing has happened before", nan)
	set(3, 0.25, 0.5, 0.25) // a, before b: key 1 is the b that has followed a
	want("the first b", 1)
	set(4, 0, 0, 1) // b, before d, which has not followed it
	want("b before d", 1)
	set(6, 0, 0.125, 0, 0, 0.5, 0, 0.375) // a, before b, which key 4 is, too
	want("the second b", 1)
	set(7, 0, 0, 0.25, 0, 0, 0.75) // b, before c, which key 2 is, and not key 5
	want("d in place of c", 2./3)
	set(8, 0, 0, 1) // c, before a
	want("c itself in place of a", 2./4)
	set(9, 1) // the next token is unknown
	want("the last token", 2./4)
	l.Weights[80] = float32(nan)
	want("NaN", nan)
	l.Weights[80], l.Kind = 0, Encoder
	want("an encoder, which sees the next token", nan)
}

// layerOf returns a layer with one head, in which pair i, j has the weight f(i, j).
func layerOf(k Kind, lq, lk int, f func(i, j int) float32) Layer {
	l := Layer{Kind: k, Heads: 1, Queries: named("t", lq), Keys: named("t", lk)}
	for i := range lq {
		for j := range lk {
			l.Weights = append(l.Weights, f(i, j))
		}
	}
	return l
}

func TestUniformHeadsReachTheBound(t *testing.T) {
	for _, k := range []Kind{Encoder, Decoder, Cross} {
		for _, lengths := range [][2]int{{1, 1}, {7, 7}, {3, 7}, {7, 3}} {
			lq, lk := lengths[0], lengths[1]
			seen := func(i int) int {
				if k == Decoder {
					return max(i+1+lk-lq, 0)
				}
				return lk
			}
			l := layerOf(k, lq, lk, func(i, j int) float32 {
				if j < seen(i) {
					return 1 / float32(seen(i))
				}
				return 0
			})
			if m := l.Measure(0, nil); math.Abs(m.Entropy-m.Bound) > 1e-6 {
				t.Errorf("%v %v: entropy %v, bound %v", k, lengths, m.Entropy, m.Bound)
			}
		}
	}
}

func TestHeadsOfOnePlace(t *testing.T) {
	const n = 7
	for offset, measure := range map[int]func(Measures) float64{
		-1: func(m Measures) float64 { return m.Previous },
		0:  func(m Measures) float64 { return m.Same },
		1:  func(m Measures) float64 { return m.Next },
	} {
		l := layerOf(Encoder, n, n, func(i, j int) float32 {
			if j == min(max(i+offset, 0), n-1) {
				return 1
			}
			return 0
		})
		m := l.Measure(0, nil)
		if sum := m.Previous + m.Same + m.Next; measure(m) != 1 || m.Entropy != 0 || m.Confidence != 1 || math.Abs(sum-1) > 0.2 {
			t.Errorf("offset %d: measures %+v", offset, m)
		}
	}
}

func TestMeasuresStayWithinBounds(t *testing.T) {
	for seed := range uint64(20) {
		for _, k := range []Kind{Encoder, Decoder, Cross} {
			l := Layer{Kind: k, Heads: 1, Queries: named("t", 5), Keys: named("t", 7), Weights: softmaxed(seed, 1, 1, 5, 7, k == Decoder).Data()}
			m := l.Measure(0, []string{"t3"})
			if m.Entropy > m.Bound+1e-6 || m.Entropy < 0 || m.Distance > 6 || m.Distance <= 0 || m.Confidence < 1./7 || m.Special < 0 || m.Special > 1 {
				t.Errorf("%v: measures %+v", k, m)
			}
		}
	}
}

// NaN weights give NaN measures.
func TestMeasuresOfNaN(t *testing.T) {
	l := Layer{Kind: Encoder, Heads: 1, Queries: named("t", 2), Keys: named("t", 2), Weights: []float32{float32(nan), 0, 0, 1}}
	if m := l.Measure(0, nil); !math.IsNaN(m.Entropy) || !math.IsNaN(m.Same) || !math.IsNaN(m.Confidence) || m.Previous != 0 {
		t.Errorf("measures %+v", m)
	}
}

func TestPunctuation(t *testing.T) {
	for token, want := range map[string]bool{
		".": true, "▁,": true, "##'": true, "Ġ...": true, "«</w>": true, "¿": true, "、": true, "-@@": true, "##": true,
		"": false, "▁": false, "Ġ": false, "a.": false, "<s>": false, "[S]": false, "1": false, "▁+": false, "</w>": false,
	} {
		if got := punctuation(token); got != want {
			t.Errorf("%q is punctuation: %v", token, got)
		}
	}
}

func TestDivergence(t *testing.T) {
	for _, c := range []struct {
		what string
		a, b []float32
		rows int
		want float64
	}{
		// m = (¾, ¼): ½·ln 4/3 + ½·(½·ln 2/3 + ½·ln 2) = 0.2157616. The second row gives 0, the third does
		// not count.
		{"by hand", []float32{1, 0, 0.2, 0.8, 0, 0}, []float32{0.5, 0.5, 0.2, 0.8, 0, 0}, 3, 0.2157616 / 2},
		{"nothing in common", []float32{0.5, 0.5, 0, 0}, []float32{0, 0, 0.1, 0.9}, 1, math.Ln2},
		{"the same", []float32{0.5, 0.5, 0.25, 0.75}, []float32{0.5, 0.5, 0.25, 0.75}, 2, 0},
		{"zeros", []float32{0, 0}, []float32{0, 0}, 1, nan},
		{"no rows", nil, nil, 0, nan},
	} {
		for _, got := range []float64{Divergence(c.a, c.b, c.rows), Divergence(c.b, c.a, c.rows)} {
			if math.Abs(got-c.want) > 1e-6 || math.IsNaN(got) != math.IsNaN(c.want) {
				t.Errorf("%s: %v, want %v", c.what, got, c.want)
			}
		}
	}
	for _, rows := range []int{-1, 0, 2} {
		err := tensor.Catch(func() { Divergence(make([]float32, 3), make([]float32, 3), rows) })
		if err == nil {
			t.Errorf("%d rows of 3 weights: no error", rows)
		}
	}
	err := tensor.Catch(func() { Divergence(make([]float32, 3), make([]float32, 4), 1) })
	wantError(t, "lengths", err, "heads: Divergence: heads has sizes [3 4], want 1·Lk for both")
}

func TestRollout(t *testing.T) {
	// Mean (1 0; ½ ½), plus identity, divided by 2: (1 0; ¼ ¾).
	first := Layer{Kind: Encoder, Heads: 2, Queries: named("t", 2), Keys: named("t", 2), Weights: []float32{1, 0, 0, 1, 1, 0, 1, 0}}
	// Plus identity, divided by 2: ½ everywhere.
	second := Layer{Kind: Encoder, Index: 1, Heads: 1, Queries: named("t", 2), Keys: named("t", 2), Weights: []float32{0, 1, 1, 0}}
	for _, c := range []struct {
		layers []Layer
		want   []float32
	}{
		{[]Layer{first}, []float32{1, 0, 0.25, 0.75}},
		{[]Layer{first, second}, []float32{0.625, 0.375, 0.625, 0.375}}, // ½·(1 0) + ½·(¼ ¾)
	} {
		if got, err := Rollout(c.layers); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("rollout %v, %v, want %v", got, err, c.want)
		}
	}
	var deep []Layer
	for i := range 5 {
		deep = append(deep, Layer{Kind: Decoder, Index: i, Heads: 3, Queries: named("q", 7), Keys: named("k", 7), Weights: softmaxed(uint64(i), 1, 3, 7, 7, true).Data()})
	}
	got, err := Rollout(deep)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		sum := float32(0)
		for j, w := range got[i*7 : (i+1)*7] {
			if sum += w; j > i && w != 0 {
				t.Errorf("the vector of token %d contains %v of the later token %d", i, w, j)
			}
		}
		if math.Abs(float64(sum)-1) > 1e-6 {
			t.Errorf("row %d sums to %v", i, sum)
		}
	}
}

func TestRolloutRefuses(t *testing.T) {
	layer := func(change func(*Layer)) Layer {
		l := Layer{Name: "a", Kind: Encoder, Index: 1, Heads: 1, Queries: named("t", 2), Keys: named("t", 2), Weights: make([]float32, 4)}
		change(&l)
		return l
	}
	first := layer(func(l *Layer) { l.Index = 0 })
	for want, change := range map[string]func(*Layer){
		`heads: rollout: layer "a": is of kind cross, want encoder or decoder`:                                  func(l *Layer) { l.Kind = Cross },
		`heads: rollout: layer "a": is of kind decoder, the first of kind encoder`:                              func(l *Layer) { l.Kind = Decoder },
		`heads: rollout: layer "a": has index 2, want 1: every layer from the first on is needed, with weights`: func(l *Layer) { l.Index = 2 },
		`heads: rollout: layer "a": has 3 queries and 2 keys, want 2 of both`:                                   func(l *Layer) { l.Queries = named("t", 3) },
		`heads: rollout: layer "a": has some of its heads only`:                                                 func(l *Layer) { l.Chosen = []int{1} },
	} {
		_, err := Rollout([]Layer{first, layer(change)})
		wantError(t, want, err, want)
	}
	_, err := Rollout(nil)
	wantError(t, "none", err, "heads: rollout of no layers")
}

// The mean of layers is the mean of their means, regardless of their numbers of heads. MeanOf returns the
// first error of at.
func TestMeanOf(t *testing.T) {
	one := Layer{Heads: 2, Queries: named("q", 2), Keys: named("k", 3), Weights: []float32{1, 0, 0, 0, 1, 0, 0, 1, 0, 0.5, 0.5, 0}}
	two := Layer{Heads: 1, Queries: one.Queries, Keys: one.Keys, Weights: []float32{0, 0, 1, 0, 0.25, 0.75}}
	if got, want := one.Mean(), []float32{0.5, 0.5, 0, 0.25, 0.75, 0}; !slices.Equal(got, want) {
		t.Errorf("the mean of two heads is %v, want %v", got, want)
	}
	layers := []*Layer{&one, &two}
	got, err := MeanOf(2, func(i int) ([]float32, error) { return layers[i].Mean(), nil })
	if want := []float32{0.25, 0.25, 0.5, 0.125, 0.5, 0.375}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the mean of two layers is %v, %v, want %v", got, err, want)
	}
	failed := errors.New("failed")
	if _, err := MeanOf(2, func(int) ([]float32, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	if err := tensor.Catch(func() {
		MeanOf(2, func(i int) ([]float32, error) { return make([]float32, 3+i), nil })
	}); err == nil {
		t.Error("MeanOf accepts maps of different sizes")
	}
	if err := tensor.Catch(func() { RollOn(make([]float32, 4), make([]float32, 9)) }); err == nil {
		t.Error("RollOn accepts matrices of different sizes")
	}
}
