package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/stats"
)

// system returns n translations, of which a fraction is correct, and the references.
func system(n int, right float64, seed uint64) ([]string, [][]string) {
	rng := rand.New(rand.NewPCG(seed, 1))
	translations, references := make([]string, n), make([][]string, n)
	for i := range n {
		words := strings.Fields(fmt.Sprintf("the %d mice of house %d, at 7.%d, ran off to see the world", i, i%7, i%10))
		references[i] = []string{strings.Join(words, " "), strings.Join(words[:4+i%5], " ")}
		if rng.Float64() >= right {
			words[rng.IntN(len(words))] = "cat"
			words = words[:5+rng.IntN(len(words)-5)]
		}
		translations[i] = strings.Join(words, " ")
	}
	return translations, references
}

func judged(tb testing.TB, n int, right float64, seed uint64) *Judged {
	tb.Helper()
	j, err := Judge(system(n, right, seed))
	if err != nil {
		tb.Fatal(err)
	}
	return j
}

// BLEU is the same number sentence by sentence and all at once.
func TestJudge(t *testing.T) {
	for _, n := range []int{1, 2, 97} {
		translations, references := system(n, 0.6, 5)
		j := judged(t, n, 0.6, 5)
		var all tally
		exact := 0
		for i, text := range translations {
			all.add(text, references[i])
			if slices.Contains(references[i], text) {
				exact++
			}
		}
		if j.Value(MetricBLEU) != all.bleu() || j.Len() != n {
			t.Errorf("BLEU %v of %d sentences, want %v of %d", j.Value(MetricBLEU), j.Len(), all.bleu(), n)
		}
		if share := float64(exact) / float64(n); j.Exact() != share || j.Value(MetricExact) != 100*share {
			t.Errorf("%v exact, or %v%%, want %v", j.Exact(), j.Value(MetricExact), share)
		}
	}
	for _, c := range []struct {
		translations []string
		references   [][]string
	}{{nil, nil}, {[]string{"a"}, nil}, {[]string{"a"}, [][]string{{}}}} {
		if _, err := Judge(c.translations, c.references); err == nil || !strings.HasPrefix(err.Error(), "train: Judge: ") {
			t.Errorf("error %v for %v and %v", err, c.translations, c.references)
		}
	}
	if s := fmt.Sprint(MetricBLEU, MetricExact, Metric(7)); s != "BLEU exact match Metric(7)" {
		t.Errorf("the metrics are called %s", s)
	}
}

// interval is the paired bootstrap of b minus a.
func interval(a, b *Judged, m Metric, resamples int, seed uint64) (low, high float64) {
	of := func(j *Judged) stats.Statistic {
		return func(sample []int) float64 { return j.Sample(m, sample) }
	}
	return stats.Difference(a.Len(), resamples, seed, of(a), of(b))
}

func TestBootstrap(t *testing.T) {
	const n = 400
	worse, better := judged(t, n, 0.5, 1), judged(t, n, 0.7, 2)
	for _, m := range []Metric{MetricBLEU, MetricExact} {
		difference := better.Value(m) - worse.Value(m)
		low, high := interval(worse, better, m, 1000, 3)
		if !(0 < low && low < difference && difference < high) {
			t.Errorf("%s: %v to %v, want both above 0 and around %v", m, low, high, difference)
		}
		if l, h := interval(worse, better, m, 1000, 3); l != low || h != high {
			t.Errorf("%s: again, it is %v to %v, not %v to %v", m, l, h, low, high)
		}
		if l, h := interval(better, worse, m, 1000, 3); l != -high || h != -low {
			t.Errorf("%s: the other way round, it is %v to %v, want %v to %v", m, l, h, -high, -low)
		}
		// A system is not better than itself on any sample.
		if l, h := interval(worse, worse, m, 1000, 3); l != 0 || h != 0 {
			t.Errorf("%s of a system less its own: %v to %v", m, l, h)
		}
	}
	// The standard error of a fraction is known: √(p·(1−p)/n) if b is always correct.
	half, whole := judged(t, n, 0.5, 4), judged(t, n, 1, 4)
	low, high := interval(half, whole, MetricExact, 2000, 5)
	p := half.Exact()
	if want := 2 * 1.96 * 100 * math.Sqrt(p*(1-p)/n); math.Abs(high-low-want) > 0.15*want {
		t.Errorf("an interval of %v to %v, want one as wide as %v", low, high, want)
	}
}

// BenchmarkBootstrap computes an interval of BLEU, as attn prune does for each point of a
// curve.
func BenchmarkBootstrap(b *testing.B) {
	one, other := judged(b, 1000, 0.5, 1), judged(b, 1000, 0.7, 2)
	for b.Loop() {
		interval(one, other, MetricBLEU, 1000, 3)
	}
}

// The mean of logarithms may be rounded to slightly more than 1.
func TestPerfectBLEU(t *testing.T) {
	for n := 4; n < 200; n++ {
		text := strings.TrimSpace(strings.Repeat("a b c ", n))
		j, err := Judge([]string{text}, [][]string{{text}})
		if err != nil || j.Value(MetricBLEU) > 100 || j.Value(MetricBLEU) < 99.999 {
			t.Fatalf("%d words: %v, %v", 3*n, j, err)
		}
	}
}
