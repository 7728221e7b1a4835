package lens_test

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// TestAttribute compares estimates of small changes with exact effects: to first order they are the same.
func TestAttribute(t *testing.T) {
	for _, dir := range decoders(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			m, err := models.Load(dir, models.Options{Trainable: true})
			if err != nil {
				t.Fatal(err)
			}
			l, err := lens.New(m, logits)
			if err != nil {
				t.Skip(err)
			}
			ctx, a := context.Background(), lens.Text(3, 9, 4, 11, 2, 8)
			own, err := l.Record(ctx, a, every...)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			noise := map[lens.Site]*tensor.Tensor{}
			near := func(factor float32) lens.Source {
				return func(at lens.Site) (*tensor.Tensor, error) {
					v, err := own.Value(at)
					if err != nil {
						return nil, err
					}
					all := at
					if all.Position = lens.All; noise[all] == nil {
						norm := tensor.Sum(nil, tensor.Square(nil, v)).Item()
						noise[all] = tensor.Scale(nil, tensor.Randn(rng, v.Shape()...), float32(math.Sqrt(float64(norm)/float64(v.Len()))))
						for i := range v.Data() {
							if at.Part == lens.Pattern && i%v.Dim(1) > i/v.Dim(1) {
								noise[all].Data()[i] = 0
							}
						}
					}
					return tensor.Add(nil, v, tensor.Scale(nil, noise[all], factor)), nil
				}
			}
			sites := sitesOf(m, 3, 5)
			_, exact, err := l.Effects(ctx, a, "patch", near(0.0005), sites)
			if err != nil {
				t.Fatal(err)
			}
			_, opposite, err := l.Effects(ctx, a, "patch", near(-0.0005), sites)
			if err != nil {
				t.Fatal(err)
			}
			base, estimates, err := l.Attribute(ctx, a, near(0.0005), sites)
			if err != nil {
				t.Fatal(err)
			}
			for i := range exact {
				exact[i].Effect = (exact[i].Effect - opposite[i].Effect) / 2
			}
			if math.Abs(base-own.Metric) > 1e-4*(1+math.Abs(base)) {
				t.Errorf("the metric is %v, want %v", base, own.Metric)
			}
			largest := map[lens.Part]float64{}
			for _, e := range exact {
				largest[e.Part] = max(largest[e.Part], math.Abs(e.Effect))
			}
			for i, e := range exact {
				if d := math.Abs(estimates[i].Effect - e.Effect); d > 0.05*largest[e.Part]+2e-6 || largest[e.Part] == 0 {
					t.Errorf("%v: %.6f, want about %.6f; the largest of this part is %.6f", e.Site, estimates[i].Effect, e.Effect, largest[e.Part])
				}
			}
		})
	}
}
