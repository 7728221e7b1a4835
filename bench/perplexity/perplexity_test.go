// Package perplexity measures the perplexity of a decoder in each format, and with each format of its KV cache. See
// bench/perplexity.py.
package perplexity

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

var (
	dir  = flag.String("model", "", "directory of a decoder")
	file = flag.String("windows", "", "JSON file with lists of token ids, each of which is a text")
)

// BenchmarkPerplexity reports the perplexity of the windows, by how much it is above that of float32, and the standard
// error of that difference. A window is read at once into a cache, which gives the bits of reading token by token.
func BenchmarkPerplexity(b *testing.B) {
	if *dir == "" {
		b.Skip("needs -model")
	}
	data, err := os.ReadFile(*file)
	if err != nil {
		b.Fatal(err)
	}
	var windows [][]int
	if err := json.Unmarshal(data, &windows); err != nil {
		b.Fatal(err)
	}
	var exact []float64
	for _, c := range []struct {
		name    string
		options models.Options
		cache   tensor.Format // 0 is the default of the options
	}{
		{"float32", models.Options{}, 0}, // the first is what the others are compared with
		{"cache=bfloat16", models.Options{}, tensor.BFloat16},
		{"cache=int8", models.Options{}, tensor.Int8},
		{"weights=bfloat16", models.Options{Format: tensor.BFloat16Weights}, 0},
		{"precision=bfloat16", models.Options{Format: tensor.BFloat16}, 0},
		{"precision=bfloat16,cache=int8", models.Options{Format: tensor.BFloat16}, tensor.Int8},
		{"precision=int8", models.Options{Format: tensor.Int8}, 0},
		{"precision=int8,cache=int8", models.Options{Format: tensor.Int8}, tensor.Int8},
	} {
		b.Run(c.name, func(b *testing.B) {
			m, err := models.Load(*dir, c.options)
			if err != nil {
				b.Fatal(err)
			}
			losses := make([]float64, len(windows))
			for b.Loop() {
				for i, ids := range windows {
					losses[i] = loss(b, m, ids, c.cache)
				}
			}
			if exact == nil {
				exact = losses
			}
			report(b, losses, exact)
		})
	}
}

// loss returns the mean cross-entropy of the tokens of a text after its first, in nats.
func loss(b *testing.B, m *models.Model, ids []int, storage tensor.Format) float64 {
	cache, err := models.NewCache(m, 1, attn.CacheConfig{Format: storage})
	if err != nil {
		b.Fatal(err)
	}
	tape := tensor.NewTape(tensor.Infer)
	hidden := m.Hidden(tape, models.Batch{IDs: [][]int{ids}}, models.Run{State: cache})
	next := append(ids[1:len(ids):len(ids)], -1)
	return float64(nn.CrossEntropy(tape, m.Head().Logits(tape, hidden), next, -1, 0).Data()[0])
}

// report reports the perplexity of losses, and how it differs from that of exact ones.
func report(b *testing.B, losses, exact []float64) {
	n := float64(len(losses))
	var sum, difference, squares float64
	for i, l := range losses {
		d := l - exact[i]
		sum, difference, squares = sum+l, difference+d, squares+d*d
	}
	mean := difference / n
	b.ReportMetric(math.Exp(sum/n), "perplexity")
	b.ReportMetric(100*math.Expm1(mean), "%-more")
	b.ReportMetric(100*math.Sqrt((squares/n-mean*mean)/(n-1)), "%-error")
	b.ReportMetric(0, "ns/op") // which this does not measure
}
