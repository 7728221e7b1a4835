package reports

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/prune"
)

// evil is a name that becomes a tag, an attribute or a script in a page that does not escape it.
const evil = `</script><img src=x onerror=1>"'&`

// filled returns the report of a model with 3 + 3 layers of 8 heads each, as an experiment could
// write it: with several methods, an encoder layer that lost all its heads, and values that
// were not measured.
func filled() *Report {
	r := &Report{
		Version: "v0.9.0", Started: "2026-11-20T14:03:05Z", Seconds: 1834.2,
		Settings: Settings{
			Methods: []string{"gradient", "leave-one-out", "norm", "entropy"}, Goal: "keep 36 heads", Metric: "BLEU", LossUnit: "nats per token", Normalize: true,
			Empty: true, Orders: 20, Resamples: 1000, Seed: 7,
		},
		Model:   Model{Dir: "runs/fra.run", SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Arch: "transformer translator", Task: "translation", Heads: 72, Parameters: 7412736},
		Data:    Data{File: "fra-eng.tsv", SHA256: "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752", Score: 1999, Select: 1000, Report: 2017},
		Machine: Machine{OS: "linux/amd64", CPU: "AMD EPYC 9654", Threads: 2, Kernels: "avx512", Go: "go1.26.8"},
	}
	for i := range 9 {
		kind := []string{"encoder", "decoder", "cross"}[i/3]
		r.Layers = append(r.Layers, Layer{Name: fmt.Sprintf("%s.%d.attention", kind, i%3), Kind: kind, Index: i % 3, Heads: 8})
	}
	for m, method := range r.Settings.Methods {
		r.Curves = append(r.Curves, curve(method, []float64{0.93, 0.8, 8, 14}[m]))
		if m == 0 {
			r.Curves = append(r.Curves, curve(method+", reversed", 150))
		}
	}
	r.Curves[3].Points[5].Metric = NaN // interrupts a line

	// Every second head of all layers but the last, and all heads of encoder layer 1.
	var removed []prune.Head
	for i := range r.Layers {
		l := &r.Layers[i]
		l.Measures = map[string][]Number{Moved: slices.Repeat([]Number{NaN}, l.Heads)}
		for head := range l.Heads {
			if i == 1 || i < 8 && head%2 == 1 {
				removed = append(removed, prune.Head{Layer: l.Name, Number: head})
				continue
			}
			l.Kept = append(l.Kept, head)
			l.Measures[Moved][head] = Number(i) / 100
		}
	}
	r.Result = Result{
		Method: "gradient", Removed: removed, Left: 36, Low: -0.91, High: 0.24, Difference: 3.6e-6,
		Before:  Quality{Parameters: 7412736, Metric: 44.13, Loss: 1.2104, KL: 0, Others: []Named{{"exact match", "%", 31.2}}},
		After:   Quality{Parameters: 6597000, Metric: 43.81, Loss: 1.2263, KL: 0.0214, Others: []Named{{"exact match", "%", 30.9}}},
		Compact: "runs/fra.pruned/compact", Masked: "runs/fra.pruned/masked", Page: "runs/fra.pruned/report.html",
	}
	r.Random.Orders = 20
	for _, p := range curve("", 25).Points {
		spread := func(v, width Number) Spread {
			width *= Number(72-p.Left) / 72
			return Spread{Mean: v, Low: v - width, High: v + 0.8*width, Min: v - 1.4*width, Max: v + width}
		}
		r.Random.Points = append(r.Random.Points, BandPoint{Left: p.Left, Metric: spread(p.Metric, 0.2*p.Metric), Loss: spread(p.Loss, 0.2*p.Loss), KL: spread(p.KL, 0.3*p.KL)})
	}
	r.Speed = []Speed{
		{Work: "translate", Batch: 1, Length: 20, Before: 21.83, After: 19.52, Ratio: 1.118, Low: 1.093, High: 1.141, Bound: 1.161, Repeats: 41},
		{Work: "translate", Batch: 32, Length: 20, Before: 312.4, After: 281.1, Ratio: 1.111, Low: 1.087, High: 1.13, Bound: 1.161, Repeats: 41},
		{Work: "decode one token", Batch: 1, Length: 128, Before: 0.931, After: 0.784, Ratio: 1.19, Low: 1.16, High: 1.21, Bound: 1.24, Repeats: 41},
		{Work: "attention layers", Batch: 32, Length: 128, Before: 1240, After: 661, Ratio: 1.876, Low: 1.85, High: 1.9, Bound: 2, Repeats: 41},
	}
	return r
}

// curve returns a curve of the model of filled; it falls faster with a larger harm.
func curve(name string, harm float64) Curve {
	c := Curve{Name: name}
	for left := 72; left >= 0; left -= 4 {
		gone := Number(72-left) / 72
		hurt := Number(harm * math.Pow(float64(gone), 7))
		p := Point{Left: left, Metric: 44.13 * Number(math.Exp(-float64(hurt))), Loss: 1.2104 + 1.9*hurt/(1+hurt/3), KL: 1.4 * hurt / (1 + hurt/4)}
		p.Low, p.High = p.Metric-44.13-0.62, p.Metric-44.13+0.55
		if left == 72 {
			p.Low, p.High = 0, 0
		}
		c.Points = append(c.Points, p)
	}
	return c
}

// written returns the output of write.
func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// full is a writer for a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
