package reports

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/prune"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

func TestPossible(t *testing.T) {
	r := &Report{}
	for n, want := range map[Number]Number{-1: 0, 0: 0, 37.5: 37.5, 100: 100, 101.5: 100} {
		if got := r.possible(n); got != want {
			t.Errorf("a metric of %v is held at %v, want %v", n, got, want)
		}
	}
	r.Settings.Least = -100
	if got := r.possible(-3); got != -3 {
		t.Errorf("a correlation of -3 is held at %v", got)
	}
	r.Settings = Settings{Lower: true}
	if got := r.possible(101.5); got != 101.5 {
		t.Errorf("a loss of 101.5 is held at %v", got)
	}
}

func TestSummary(t *testing.T) {
	for name, text := range map[string]string{"summary.txt": written(t, filled().Summary), "summary_loss.txt": written(t, filledByLoss().Summary)} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if text != string(want) {
			t.Errorf("%s is not what it was; check what go test -update makes of it:\n%s", path, text)
		}
		for line := range strings.Lines(text) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > summaryWidth {
				t.Errorf("%s: %q is wider than a terminal", name, line)
			}
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		change func(*Report)
		want   string
	}{
		{func(r *Report) { r.Result.High = -0.05 }, "36 of 72 heads removed by gradient: BLEU 44.1 → 43.8 (−0.3, 95% interval −0.9 to −0.1: significant), translation (batch 1) 12% faster, 11% fewer parameters"},
		{func(r *Report) { r.Result.Low, r.Speed[0].Low = NaN, 0.99 }, "36 of 72 heads removed by gradient: BLEU 44.1 → 43.8 (−0.3), no significant change in the speed of translation (batch 1) (1.12 ×, 95% interval 0.99 to 1.14), 11% fewer parameters"},
		{func(r *Report) { r.Speed = []Speed{{Work: "decode one token", Ratio: 0.9, Low: 0.8, High: 0.95}} }, "36 of 72 heads removed by gradient: BLEU 44.1 → 43.8 (−0.3, 95% interval −0.9 to +0.2: not significant), decode one token 10% slower, 11% fewer parameters"},
		{func(r *Report) {
			r.Settings.Metric, r.Result.After.Metric, r.Speed, r.Result.After.Parameters = "exact match", NaN, nil, 0
		}, "36 of 72 heads removed by gradient"},
		{func(r *Report) {
			r.Settings.Metric, r.Settings.Unit, r.Result.After.Metric, r.Speed = "exact match", "%", 44.1, nil
			r.Result.Before.Metric, r.Result.Low, r.Result.High = 44.1, -0.4, 0.4
		}, "36 of 72 heads removed by gradient: exact match 44.1% before and after (95% interval ±0.4 points: not significant), 11% fewer parameters"},
		{func(r *Report) {
			r.Result.After.Metric = r.Result.Before.Metric
			r.Speed = []Speed{{Work: "translate", Batch: 1, Ratio: 2.3, Low: 2.1, High: 2.4}}
		}, "36 of 72 heads removed by gradient: BLEU 44.1 before and after (95% interval −0.9 to +0.2: not significant), translation (batch 1) 2.30 × as fast, 11% fewer parameters"},
		{func(r *Report) {
			r.Settings.Metric, r.Settings.Unit, r.Result.Removed = "exact match", "%", []prune.Head{}
		}, "None of the 72 heads was removed: exact match is still 44.1%"},
	} {
		r := filled()
		c.change(r)
		if got, err := r.Verdict(); err != nil || got != c.want {
			t.Errorf("verdict: %s, %v\nwant     %s", got, err, c.want)
		}
	}
}

// If the chosen method is worse than random orders, the headline says so.
func TestWorseThanChance(t *testing.T) {
	dates := func(orders int, metric ...Number) *Report {
		r := &Report{Settings: Settings{Metric: "exact match", Unit: "%"}, Random: Band{Orders: orders}}
		r.Result.Method, r.Result.Before.Metric = "gradient", 98
		c := Curve{Name: "gradient"}
		for i, v := range metric {
			left := 12 - 2*i
			c.Points = append(c.Points, Point{Left: left, Metric: v})
			mean := []Number{98, 90, 50.6, 30, 10}[i]
			r.Random.Points = append(r.Random.Points, BandPoint{Left: left, Metric: Spread{Mean: mean, Low: mean - 8, High: mean + 8}})
		}
		r.Curves = []Curve{c, {Name: "gradient, reversed", Points: c.Points}}
		return r
	}
	for _, c := range []struct {
		r    *Report
		want string
	}{
		{dates(16, 98, 97, 29.2, 11, 4), "with 8 heads left, gradient is worse than random orders: 29.2 against 50.6%"},
		{dates(16, 98, 80, 29.2, 3, 2), "with 6 heads left, gradient is worse than random orders: 3.0 against 30.0%"},
		{dates(16, 98, 88.5, 49, 28.5, 9), ""}, // within the uncertainty of the mean
		{dates(1, 98, 97, 29.2, 11, 4), ""},
		{dates(16, 98, NaN, NaN, NaN, NaN), ""},
	} {
		if got := c.r.WorseThanChance(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	r := dates(16, 98, 97, 29.2, 11, 4)
	r.Settings.Step = 4
	want := "ith heads scored once, with 8 heads left, gradient is worse than random orders: 29.2 against 50.6%"
	if got, err := r.Verdict(); err != nil || !strings.HasSuffix(got, ". W"+want) {
		t.Errorf("verdict %s, %v, want W%s at its end", got, err, want)
	}
	r.Settings.Lower = true
	want = "with heads scored once, with 10 heads left, gradient is worse than random orders: 97.000 against 90.000%"
	if got := r.WorseThanChance(); got != want {
		t.Errorf("by loss %s, want %s", got, want)
	}
	r.Result.Method = "taylor"
	if got := r.WorseThanChance(); got != "" {
		t.Errorf("of a method without a curve: %s", got)
	}
}

func TestNumbers(t *testing.T) {
	for got, want := range map[string]string{
		fixed(-0.04, 1): "0.0", fixed(-1.25, 1): "−1.2", fixed(NaN, 1): "–", fixed(Number(math.Inf(1)), 1): "–",
		signed(0.26, 1): "+0.3", signed(0.04, 1): "0.0", signed(-3, 0): "−3", signed(NaN, 0): "–",
		quote.Count(7412736): "7,412,736", quote.Count(-1000): "-1,000", quote.Count(999): "999",
		three(0.9312): "0.931", three(1.875): "1.88", three(21.83): "21.8", three(1240): "1,240", three(NaN): "–",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
