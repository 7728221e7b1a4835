package lens_test

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
)

// TestCircuits: all edges are the clean run, none the corrupted one, and a small difference of texts makes edges exact.
func TestCircuits(t *testing.T) {
	ctx, a, b := context.Background(), lens.Text(3, 9, 4, 11, 2, 8), lens.Text(7, 1, 12, 5, 6, 10)
	for _, name := range []string{"gpt2", "llama3", "qwen2", "qwen3", "gpt_neox", "gemma", "phi3", "starcoder2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := models.Load("../models/testdata/decoders/"+name, models.Options{Trainable: true})
			if err != nil {
				t.Fatal(err)
			}
			l, err := lens.New(m, logits)
			if err != nil {
				t.Fatal(err)
			}
			c, err := l.Edges(ctx, a, b, 0)
			if err != nil {
				t.Fatal(err)
			}
			n := len(c.Edges())
			got, err := l.MeasureCircuits(ctx, a, b, c.Top(n), c.Top(0))
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range []models.Batch{a, b} {
				r, err := l.Record(ctx, x)
				if err != nil {
					t.Fatal(err)
				}
				if math.Abs(got[i]-r.Metric) > 1e-5 {
					t.Errorf("%v, want %v", got[i], r.Metric)
				}
			}
			var file bytes.Buffer
			if err := c.Top(5).Write(&file); err != nil {
				t.Fatal(err)
			}
			text := file.String()
			read, err := lens.ReadCircuit(&file, m)
			if err != nil {
				t.Fatal(err)
			}
			in := 0
			for i, e := range read.Edges() {
				if want := c.Edges()[i]; e.String() != want.String() || e.Score != want.Score {
					t.Fatalf("edge %v, want %v", e, want)
				}
				if e.In {
					in++
				}
			}
			if in != 5 {
				t.Errorf("%d edges in the circuit, want 5", in)
			}
			if _, err := lens.ReadCircuit(strings.NewReader(strings.Replace(text, "input->a0.h0<q>", "a1.h0->a0.h0<q>", 1)), m); err == nil || !strings.Contains(err.Error(), "a1.h0->a0.h0<q>") {
				t.Errorf("an edge backwards: %v", err)
			}
		})
	}
}
