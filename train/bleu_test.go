package train

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The golden file contains sacrebleu's results; testdata/bleu.py writes it.
func TestCorpusBLEUAgainstSacrebleu(t *testing.T) {
	data, err := os.ReadFile("testdata/bleu.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Tokens []struct {
			Text   string
			Tokens []string
		}
		Corpora []struct {
			Name, Line       string
			Hypotheses       []string
			References       [][]string
			Score, BP, Ratio float64
			Precisions       []float64
			HypothesisLength int `json:"hypothesis_length"`
			ReferenceLength  int `json:"reference_length"`
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Tokens) < 50 || len(golden.Corpora) < 40 {
		t.Fatalf("golden file has %d texts and %d corpora", len(golden.Tokens), len(golden.Corpora))
	}
	for _, c := range golden.Tokens {
		if got := tokens13a(c.Text); !slices.Equal(got, c.Tokens) {
			t.Errorf("tokens of %q: got %q, want %q", c.Text, got, c.Tokens)
		}
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9 }
	for _, c := range golden.Corpora {
		got, err := CorpusBLEU(c.Hypotheses, c.References)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		same := near(got.Score, c.Score) && near(got.BrevityPenalty, c.BP) && near(got.Ratio, c.Ratio) &&
			got.HypothesisLength == c.HypothesisLength && got.ReferenceLength == c.ReferenceLength && got.String() == c.Line
		for n, p := range c.Precisions {
			same = same && near(got.Precisions[n], p)
		}
		if !same {
			t.Errorf("%s:\n got %v\nwant %v", c.Name, got, c.Line)
		}
	}
}

func TestCorpusBLEUDoesNotTouchItsInput(t *testing.T) {
	hypotheses, references := []string{"a b"}, [][]string{{"a b c", "b"}}
	first, err := CorpusBLEU(hypotheses, references)
	second, err2 := CorpusBLEU(hypotheses, references)
	if err != nil || err2 != nil || first != second || hypotheses[0] != "a b" || references[0][0] != "a b c" {
		t.Errorf("%v %v, %v %v", first, err, second, err2)
	}
}

func TestCorpusBLEURefuses(t *testing.T) {
	for _, c := range []struct {
		hypotheses []string
		references [][]string
		want       string
	}{
		{nil, nil, "no hypotheses"},
		{[]string{"a"}, nil, "1 hypotheses, but references for 0"},
		{[]string{"a"}, [][]string{{"a"}, {"b"}}, "1 hypotheses, but references for 2"},
		{[]string{"a", "b"}, [][]string{{"a"}, {}}, "sentence 1 has no reference"},
	} {
		if _, err := CorpusBLEU(c.hypotheses, c.references); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func BenchmarkCorpusBLEU(b *testing.B) {
	hypotheses := slices.Repeat([]string{"I think it's highly unlikely that Tom will take Mary to the party."}, 1000)
	references := slices.Repeat([][]string{{"I think it's unlikely that Tom will take Mary to that party, really."}}, 1000)
	for b.Loop() {
		if _, err := CorpusBLEU(hypotheses, references); err != nil {
			b.Fatal(err)
		}
	}
}

// The rules of the tokeniser equal the regular expressions of mteval-v13a, overlaps and invalid UTF-8 included.
func TestRules13a(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	rules := []struct {
		from *regexp.Regexp
		to   string
	}{
		{regexp.MustCompile(`[ -&(-+/:-@\[-\x60{-~]`), " $0 "}, {regexp.MustCompile(`([^0-9])([.,])`), "$1 $2 "},
		{regexp.MustCompile(`([.,])([^0-9])`), " $1 $2"}, {regexp.MustCompile(`([0-9])(-)`), "$1 $2 "},
	}
	want := func(text string) []string {
		text = " " + text + " "
		for _, r := range rules {
			text = r.from.ReplaceAllString(text, r.to)
		}
		return strings.FieldsFunc(text, isSpace13a)
	}
	texts := []string{"", "a.,b", "1.,2", "1-2--3", "\xff.\xc3,\xa9"}
	for c := range rune(0x180) {
		texts = append(texts, string(c), "a"+string(c)+"1.")
	}
	pieces := []string{".", ",", "-", "1", "a", " ", "é", "'", "(", "\xff", "\u2014", "世"}
	for range 2000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		texts = append(texts, b.String())
	}
	for _, text := range texts {
		if got := tokens13a(text); !slices.Equal(got, want(text)) {
			t.Errorf("%q is %q, want %q", text, got, want(text))
		}
	}
}
