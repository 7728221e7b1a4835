package train

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// The golden file contains sacrebleu's results; testdata/bleu.py writes it.
func TestBLEUAgainstSacrebleu(t *testing.T) {
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
			Name       string
			Hypotheses []string
			References [][]string
			Score      float64
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
	for _, c := range golden.Corpora {
		j, err := Judge(c.Hypotheses, c.References)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		} else if got := j.Value(MetricBLEU); math.Abs(got-c.Score) > 1e-9 {
			t.Errorf("%s: BLEU %v, want %v", c.Name, got, c.Score)
		}
	}
}

func TestJudgeDoesNotTouchItsInput(t *testing.T) {
	translations, references := []string{"a b"}, [][]string{{"a b c", "b"}}
	if _, err := Judge(translations, references); err != nil || translations[0] != "a b" || references[0][0] != "a b c" {
		t.Errorf("%v: %q, %q", err, translations, references)
	}
}

func BenchmarkBLEU(b *testing.B) {
	hypotheses := slices.Repeat([]string{"I think it's highly unlikely that Tom will take Mary to the party."}, 1000)
	references := slices.Repeat([][]string{{"I think it's unlikely that Tom will take Mary to that party, really."}}, 1000)
	for b.Loop() {
		j, err := Judge(hypotheses, references)
		if err != nil {
			b.Fatal(err)
		}
		j.Value(MetricBLEU)
	}
}
