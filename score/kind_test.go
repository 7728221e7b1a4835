package score_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// paramsOf returns the parameters of a module by name. Other values have none.
func paramsOf(module any) map[string]*tensor.Tensor {
	m, ok := module.(nn.Module)
	if !ok {
		return nil
	}
	return maps.Collect(m.Params())
}

// The parameters in a table entry match those of its scores.
func TestScoreKinds(t *testing.T) {
	kinds := score.Kinds()
	for i, kind := range kinds {
		if found, ok := kinds.Find(kind.Name); !ok || found.Formula != kind.Formula || slices.Index(kinds.Names(), kind.Name) != i {
			t.Errorf("%s: there are two of that name", kind.Name)
		}
		s := score.Sizes{Query: 5, Key: 7, Hidden: 11}
		if !slices.ContainsFunc(kind.Params, func(p score.Param) bool { return slices.Contains(p.Axes, "Ek") }) {
			s.Key = s.Query // they are compared element by element
		}
		axes := map[string]int{"Eq": s.Query, "Ek": s.Key, "E": s.Query, "h": s.Hidden, "1": 1}
		want := map[string][]int{}
		for _, p := range kind.Params {
			for _, axis := range p.Axes {
				want[p.Name] = append(want[p.Name], axes[axis])
			}
			if !strings.Contains(kind.Formula, p.Name) {
				t.Errorf("%s: the formula %s lacks %s", kind.Name, kind.Formula, p.Name)
			}
		}
		for name, p := range paramsOf(kind.New(s, newRand(1))) {
			if !slices.Equal(p.Shape(), want[name]) || !p.NeedsGrad() {
				t.Errorf("%s: %s has shape %v, want a parameter of shape %v", kind.Name, name, p.Shape(), want[name])
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("%s: a new score lacks %v", kind.Name, want)
		}
	}
	if _, ok := kinds.Find("nothing"); ok {
		t.Error("a kind of a name that there is not")
	}
	kinds[0].Name = "changed"
	if score.Kinds()[0].Name == "changed" {
		t.Error("a caller can change the table")
	}
}

func TestScoreKindErrors(t *testing.T) {
	type params = map[string]*tensor.Tensor
	for _, c := range []struct {
		kind   string
		params params
		want   string
	}{
		{"dot", params{"w": tensor.Zeros(3)}, `score: Kind: dot score: unknown parameter "w"`},
		{"bilinear", nil, `score: Kind: bilinear score: parameter "w" is missing`},
		{"bilinear", params{"w": tensor.Zeros(3, 4), "W": tensor.Zeros(1)}, `score: Kind: bilinear score: unknown parameter "W"`},
		{"bilinear", params{"w": tensor.Zeros(3)}, `score: Kind: w of the bilinear score has shape [3], want [Eq Ek]`},
		{"additive", params{"wq": tensor.Zeros(3, 4), "wk": tensor.Zeros(2, 4), "wv": tensor.Zeros(3)}, `score: Kind: wk of the additive score has shape [2 4], want [h=3 Ek]`},
		{"additive", params{"wq": tensor.Zeros(3, 4), "wk": tensor.Zeros(3, 4), "wv": tensor.Zeros(1)}, `score: Kind: wv of the additive score has shape [1], want [h=3]`},
		{"gaussian", params{"w": tensor.Zeros(3, 1)}, `score: Kind: w of the gaussian score has shape [3 1], want [E]`},
		{"cosine", params{"scale": tensor.Zeros(2)}, `score: Kind: scale of the cosine score has shape [2], want [1]`},
	} {
		kind, _ := score.Kinds().Find(c.kind)
		if _, err := kind.With(c.params); err == nil || err.Error() != c.want {
			t.Errorf("%s with %v: %v, want %s", c.kind, c.params, err, c.want)
		}
	}
	cosine, _ := score.Kinds().Find("cosine")
	if _, err := cosine.With(params{"scale": tensor.Zeros()}); err != nil {
		t.Errorf("a scale without axes: %v", err)
	}
}

// Layers created by Keep have separate scores.
func TestKeepCopiesScores(t *testing.T) {
	for _, kind := range append(score.Kinds(), manhattan) {
		score := kind.New(score.Sizes{Query: 3, Key: 3}, newRand(1))
		m, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 6, Heads: 2, Score: score}, newRand(23))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := m.Keep([]int{1})
		if err != nil {
			t.Fatal(err)
		}
		whole, part := paramsOf(m), paramsOf(kept)
		for _, p := range kind.Params {
			name := "score." + p.Name
			if !slices.Equal(part[name].Data(), whole[name].Data()) || !part[name].NeedsGrad() {
				t.Errorf("%s: %s is %v, want %v", kind.Name, name, part[name], whole[name])
			}
			if &part[name].Data()[0] == &whole[name].Data()[0] {
				t.Errorf("%s: both layers share %s", kind.Name, name)
			}
		}
	}
}
