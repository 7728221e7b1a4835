package lens_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
)

// TestDirect: without biases, what the parts add is the metric, whatever the final norm is. Where it is not, the model is
// refused.
func TestDirect(t *testing.T) {
	refused := map[string]string{
		"granite": "block 0 is not one", "gemma2": "block 0 is not one", "falcon_h1": "block 0 is not one", "olmo2": "block 0 is not one",
		"modernbert": "the head is not linear", "deepseek_v3": "block 0 is not one",
	}
	ctx, a, summed := context.Background(), lens.Text(3, 9, 4, 11, 2, 8), map[string]bool{}
	for _, dir := range decoders(t) {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			m, err := models.Load(dir, models.Options{Trainable: true})
			if err != nil {
				t.Fatal(err)
			}
			for name, p := range m.Params() {
				if strings.HasSuffix(name, "bias") {
					clear(p.Data())
				}
			}
			l, err := lens.New(m, logits)
			if err != nil {
				t.Skip(err)
			}
			d, err := l.Direct(ctx, a)
			if want := refused[name]; err != nil || want != "" {
				if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "lens: ") {
					t.Errorf("error %v, want one with %q", err, want)
				}
				return
			}
			r, err := l.Record(ctx, a)
			if err != nil {
				t.Fatal(err)
			}
			sum, largest := 0., 0.
			for _, e := range d.Parts {
				if largest = max(largest, math.Abs(e.Effect)); e.Position == len(a.IDs[0])-1 {
					sum += e.Effect
				}
			}
			if math.Abs(sum-r.Metric) > 1e-5*(1+largest) || largest < 0.01 {
				t.Errorf("the parts add to %v, the largest is %v, want %v", sum, largest, r.Metric)
			}
			for p, rest := range d.Rest {
				if math.Abs(rest) > 1e-5*(1+largest) {
					t.Errorf("without biases, the rest at position %d is %v", p, rest)
				}
			}
			summed[name] = true
		})
	}
	for _, name := range []string{"gemma", "gpt2", "gpt_neox", "llama3", "starcoder2"} {
		if !summed[name] {
			t.Errorf("%s was refused", name)
		}
	}
}
