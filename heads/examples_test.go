package heads

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// plainCriteria are the formulas of criteria, for a query of a causal layer or not: the weight of a key in the score, or
// the summand of sharp.
var plainCriteria = map[string]func(keys []string, i, j, n int, w float64, causal bool) (part float64, in bool){
	"sharp": func(keys []string, _, j, n int, w float64, causal bool) (float64, bool) {
		return w * math.Log(float64(n)*w), keys[j] != "[S]" && !(causal && j == 0)
	},
	"sharp:all": func(_ []string, _, _, n int, w float64, _ bool) (float64, bool) {
		return w * math.Log(float64(n)*w), true
	},
	"token:b": func(keys []string, _, j, _ int, w float64, causal bool) (float64, bool) {
		return w, (keys[j] == "b" || keys[j] == "##b") && !(causal && j == 0)
	},
	"token: b": func(keys []string, _, j, _ int, w float64, causal bool) (float64, bool) {
		return w, keys[j] == "b" && !(causal && j == 0)
	},
	"offset:-2": func(_ []string, i, j, _ int, w float64, causal bool) (float64, bool) {
		return w, j == i-2 && !(causal && j == 0)
	},
	"special": func(keys []string, _, j, _ int, w float64, _ bool) (float64, bool) { return w, keys[j] == "[S]" },
	"punctuation": func(keys []string, _, j, _ int, w float64, causal bool) (float64, bool) {
		return w, keys[j] == "," && !(causal && j == 0)
	},
	"number": func(keys []string, _, j, _ int, w float64, causal bool) (float64, bool) {
		return w, keys[j] == "##12" && !(causal && j == 0)
	},
	"capital": func(keys []string, _, j, _ int, w float64, causal bool) (float64, bool) {
		return w, keys[j] == "Éa" && !(causal && j == 0)
	},
	"induction": func(keys []string, i, j, _ int, w float64, _ bool) (float64, bool) {
		return w, j > 0 && j-1 < i && keys[j-1] == keys[i]
	},
}

// plainExamples returns the examples of a head by the definition. weights [Lq Lk] are those of each text.
func plainExamples(name string, texts []Texts, weights [][]float32, causal bool, most int) (list []Example) {
	for number, text := range texts {
		keys := text.SourceTokens
		var best *Example
		for i := range keys {
			n := len(keys)
			if causal {
				n = i + 1
			}
			score, some, key := 0., false, 0
			for j := range n {
				w := weights[number][i*len(keys)+j]
				if part, in := plainCriteria[name](keys, i, j, n, float64(w), causal); in {
					if score += part; !some || w > weights[number][i*len(keys)+key] {
						key = j
					}
					some = true
				}
			}
			if some && (best == nil || score > best.Score) {
				best = &Example{Score: score, Number: number, Query: i, Key: key}
			}
		}
		if best != nil {
			list = append(list, *best)
		}
	}
	slices.SortStableFunc(list, func(a, b Example) int { return cmp.Compare(b.Score, a.Score) })
	return list[:min(most, len(list))]
}

// TestExamples compares the examples of random weights with the definition, in batches with padding, with the
// texts in two orders.
func TestExamples(t *testing.T) {
	const h, most = 3, 4
	rng := rand.New(rand.NewPCG(1, 2))
	var texts []Texts
	for n := range 11 {
		tokens := []string{"[S]"}
		for range 2 + n%5*3 {
			tokens = append(tokens, []string{"b", "##b", "a", ",", "##12", "Éa"}[rng.IntN(6)])
		}
		texts = append(texts, Texts{Source: fmt.Sprint(n), SourceTokens: tokens, Special: []string{"[S]"}})
	}
	for _, layer := range []string{"encoder.0.self", "decoder.1.self"} {
		causal := strings.HasPrefix(layer, "decoder")
		weights := make([][][]float32, h) // by head and text
		for n, text := range texts {
			l := len(text.SourceTokens)
			w := softmaxed(uint64(n), 1, h, l, l, causal).Data()
			for head := range h {
				weights[head] = append(weights[head], w[head*l*l:(head+1)*l*l])
			}
		}
		for name := range plainCriteria {
			c, err := ParseCriterion(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, reversed := range []bool{false, true} {
				order := numbersOf(len(texts))
				if reversed {
					slices.Reverse(order)
				}
				e := NewExamples(c, most, nil)
				for batch := range slices.Chunk(order, 3) {
					show(e, layer, h, batch, texts, func(head, text int) []float32 { return weights[head][text] })
				}
				for head := range h {
					want := plainExamples(name, texts, weights[head], causal, most)
					got := e.Of(layer, head)
					if len(got) != len(want) {
						t.Fatalf("%s of %s, head %d: %d examples, want %d", name, layer, head, len(got), len(want))
					}
					for i, x := range got {
						w, n := want[i], len(x.Keys)
						if x.Number != w.Number || x.Query != w.Query || x.Key != w.Key || math.Abs(x.Score-w.Score) > 1e-5 {
							t.Errorf("%s of %s, head %d: example %d is %d %d %d %v, want %d %d %d %v", name, layer, head, i,
								x.Number, x.Query, x.Key, x.Score, w.Number, w.Query, w.Key, w.Score)
						}
						if !slices.Equal(x.Weights, weights[head][x.Number][x.Query*n:(x.Query+1)*n]) {
							t.Errorf("%s: weights %v", name, x.Weights)
						}
						if x.Texts.Source != fmt.Sprint(x.Number) || !slices.Equal(x.Keys, texts[x.Number].SourceTokens) {
							t.Errorf("%s: text %q with the tokens %q", name, x.Texts.Source, x.Keys)
						}
					}
				}
			}
		}
	}
}

func numbersOf(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// show calls an observer with the weights of a batch of texts, with padding whose weights are NaN in queries and 0 in
// keys, in several goroutines.
func show(e *Examples, layer string, h int, batch []int, texts []Texts, weights func(head, text int) []float32) {
	var of []Texts
	longest := 0
	for _, n := range batch {
		of = append(of, texts[n])
		longest = max(longest, len(texts[n].SourceTokens)+1)
	}
	e.Read(batch, of...)
	e.Begin(attn.Sizes{B: len(batch), H: h, G: h, Lq: longest, Lk: longest, Layer: layer})
	var all sync.WaitGroup
	for b, n := range batch {
		for head := range h {
			all.Go(func() {
				l := len(texts[n].SourceTokens)
				for i := range longest {
					row := make([]float32, longest)
					if i < l {
						copy(row, weights(head, n)[i*l:(i+1)*l])
					} else {
						row[0] = float32(math.NaN())
					}
					e.Row(attn.Row{Batch: b, Head: head, Query: i}, row)
					clear(row)
				}
			})
		}
	}
	all.Wait()
	e.End()
}

// TestExamplesOfOneText: equal texts have one example, with the first number; heads that are not chosen have none;
// the shares of a signed layer are rated; a query that attends to nothing is no example.
func TestExamplesOfOneText(t *testing.T) {
	same := Texts{Source: "same", SourceTokens: []string{"a", "b"}}
	e := NewExamples(Sharp(true), 3, func(layer string, head int) bool { return head == 1 })
	for _, n := range []int{5, 2, 7} {
		e.Read([]int{n}, same)
		e.Begin(attn.Sizes{B: 1, H: 2, G: 2, Lq: 2, Lk: 2, Layer: "encoder.0", Signed: true})
		for h := range 2 {
			e.Row(attn.Row{Head: h}, []float32{0, 0})
			e.Row(attn.Row{Head: h, Query: 1}, []float32{-6, 2})
		}
		e.End()
	}
	got := e.Of("encoder.0", 1)
	if len(got) != 1 || got[0].Number != 2 || got[0].Query != 1 || !slices.Equal(got[0].Weights, []float32{0.75, 0.25}) {
		t.Fatalf("examples %+v, want text 2, query 1 with the shares", got)
	}
	if want := 0.75*math.Log(1.5) + 0.25*math.Log(0.5); math.Abs(got[0].Score-want) > 1e-6 {
		t.Errorf("score %v, want %v", got[0].Score, want)
	}
	if e.Of("encoder.0", 0) != nil || e.Of("encoder.0", 2) != nil || e.Of("encoder.1", 1) != nil {
		t.Error("heads that are not chosen or not observed have examples")
	}
}

// TestExamplesOfCross: queries and keys are of two texts, between which there is no offset.
func TestExamplesOfCross(t *testing.T) {
	texts := Texts{Source: "x", Target: "y", SourceTokens: []string{"a", "b", "c"}, TargetTokens: []string{"d", "e"}}
	for name, want := range map[string]int{"sharp": 1, "offset:0": 0, "induction": 0} {
		c, err := ParseCriterion(name)
		if err != nil {
			t.Fatal(err)
		}
		e := NewExamples(c, 3, nil)
		e.Read([]int{0}, texts)
		e.Begin(attn.Sizes{B: 1, H: 1, G: 1, Lq: 2, Lk: 3, Layer: "decoder.0.cross"})
		e.Row(attn.Row{}, []float32{0.25, 0.25, 0.5})
		e.Row(attn.Row{Query: 1}, []float32{0.1, 0.9, 0})
		e.End()
		got := e.Of("decoder.0.cross", 0)
		if len(got) != want || want == 1 && (got[0].Query != 1 || got[0].Key != 1 || !slices.Equal(got[0].Queries, texts.TargetTokens) || !slices.Equal(got[0].Keys, texts.SourceTokens)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestExamplesOfWrongSizes(t *testing.T) {
	text := Texts{SourceTokens: []string{"a", "b"}}
	for want, s := range map[string]attn.Sizes{
		`heads: Examples: layer "encoder.0" has 2 sequences, want that of the texts, 1, and of their numbers, 1`:       {B: 2, H: 1, G: 1, Lq: 2, Lk: 2, Layer: "encoder.0"},
		`heads: Examples: layer "encoder.0" has queries and keys [1 2], want at least the tokens of the text, 2 and 2`: {B: 1, H: 1, G: 1, Lq: 1, Lk: 2, Layer: "encoder.0"},
	} {
		e := NewExamples(Sharp(true), 1, nil)
		e.Read([]int{0}, text)
		wantError(t, "sizes", tensor.Catch(func() { e.Begin(s) }), want)
	}
}

func TestParseCriterion(t *testing.T) {
	for _, name := range []string{"", "sharp:", "sharp:x", "token:", "offset:", "offset:1.5", "word"} {
		_, err := ParseCriterion(name)
		wantError(t, name, err, fmt.Sprintf("unknown criterion %q, want sharp, sharp:all, token:TEXT, offset:N, special, punctuation, number, capital or induction", name))
	}
}

func TestSelect(t *testing.T) {
	layers := []attn.LayerHeads{{Name: "encoder.0.self", Heads: 2}, {Name: "encoder.1.self", Heads: 3}, {Name: "decoder.1.cross", Heads: 2}}
	for _, c := range []struct {
		names string
		want  map[string][]int
	}{
		{"1.0", map[string][]int{"encoder.1.self": {0}, "decoder.1.cross": {0}}},
		{"encoder.*.1 1.*", map[string][]int{"encoder.0.self": {1}, "encoder.1.self": {1, 0, 2}, "decoder.1.cross": {0, 1}}},
		{"cross.1.1", map[string][]int{"decoder.1.cross": {1}}},
	} {
		got, err := Select(layers, strings.Fields(c.names)...)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, %v, want %v", c.names, got, err, c.want)
		}
	}
	for _, name := range []string{"2.0", "0.2", "decoder.1.0", "", "1", "a.b.c.d", "01.0"} {
		_, err := Select(layers, name)
		wantError(t, name, err, fmt.Sprintf("no head is named %q, want LAYER.HEAD such as 1.1, or KIND.LAYER.HEAD, where * is any", name))
	}
	_, err := Select([]attn.LayerHeads{{Name: "decoder.0.self"}, {Name: "decoder.2.self", Heads: 2}, {Name: "decoder.3.self"}}, "0.0")
	wantError(t, "a hybrid", err, `no head is named "0.0", want LAYER.HEAD such as 2.1, or KIND.LAYER.HEAD, where * is any`)
}
