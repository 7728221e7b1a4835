package lens_test

import (
	"context"
	"os"
	"testing"

	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
)

// The benchmarks measure a decoder in the directory ATTN_LENS_MODEL on texts of 64 tokens: bench/README.md says how.
// bench/peers/lens_peer.py measures the same in PyTorch.
func benchmark(b *testing.B, trainable bool, measure func(ctx context.Context, l *lens.Lens, m *models.Model, x, y models.Batch) error) {
	dir := os.Getenv("ATTN_LENS_MODEL")
	if dir == "" {
		b.Skip("ATTN_LENS_MODEL is not set")
	}
	m, err := models.Load(dir, models.Options{Trainable: trainable})
	if err != nil {
		b.Fatal(err)
	}
	l, err := lens.New(m, lens.Logits{Terms: []lens.Logit{{Token: 65, Factor: 1}, {Token: 66, Factor: -1}}, At: lens.All})
	if err != nil {
		b.Fatal(err)
	}
	ids := [2][]int{{256}, {256}}
	for i := range 63 {
		ids[0], ids[1] = append(ids[0], 32+i*7%90), append(ids[1], 32+i*11%90)
	}
	for b.Loop() {
		if err := measure(context.Background(), l, m, lens.Text(ids[0]...), lens.Text(ids[1]...)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	benchmark(b, false, func(ctx context.Context, l *lens.Lens, _ *models.Model, x, _ models.Batch) error {
		_, err := l.Record(ctx, x)
		return err
	})
}

func BenchmarkSilenceEachHead(b *testing.B) {
	benchmark(b, false, func(ctx context.Context, l *lens.Lens, m *models.Model, x, _ models.Batch) error {
		_, _, err := l.Effects(ctx, x, "zero", lens.Zero, lens.Sites(m, lens.Head))
		return err
	})
}

func BenchmarkSilenceEachHeadAtTheLastPosition(b *testing.B) {
	benchmark(b, false, func(ctx context.Context, l *lens.Lens, m *models.Model, x, _ models.Batch) error {
		sites := lens.Sites(m, lens.Head)
		for i := range sites {
			sites[i].Position = 63
		}
		_, _, err := l.Effects(ctx, x, "zero", lens.Zero, sites)
		return err
	})
}

func BenchmarkAttributeEachHead(b *testing.B) {
	benchmark(b, true, func(ctx context.Context, l *lens.Lens, m *models.Model, x, y models.Batch) error {
		r, err := l.Record(ctx, y, lens.Head)
		if err != nil {
			return err
		}
		_, _, err = l.Attribute(ctx, x, r.Value, lens.Sites(m, lens.Head))
		return err
	})
}

func BenchmarkEdges(b *testing.B) {
	benchmark(b, true, func(ctx context.Context, l *lens.Lens, _ *models.Model, x, y models.Batch) error {
		_, err := l.Edges(ctx, x, y, 5)
		return err
	})
}
