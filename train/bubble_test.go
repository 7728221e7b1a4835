package train

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// bubbled names the computation that TestFirstUseInABubble makes in a fresh process.
const bubbled = "ATTN_TEST_BUBBLED"

// A program may use attn first in a bubble of testing/synctest, where time stops while a goroutine of the bubble
// runs, and may raise GOMAXPROCS there. Each computation has a process, since workers outlive the first use.
func TestFirstUseInABubble(t *testing.T) {
	computations := map[string]func(t *testing.T, rng *rand.Rand){
		"Attend": func(t *testing.T, rng *rand.Rand) {
			tape, x := tensor.NewTape(tensor.Train), tensor.Randn(rng, 2, 8, 70, 32).Param()
			y := attn.Attend(tape, x, x, x, attn.Options{Mask: mask.Causal(), Weights: true})
			tape.Backward(tensor.Mean(tape, y.Out), nil)
		},
		"MultiHead": func(t *testing.T, rng *rand.Rand) {
			layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 128, Heads: 8}, rng)
			if err != nil {
				t.Fatal(err)
			}
			x := tensor.Randn(rng, 2, 100, 128)
			layer.Forward(nil, x, x, x, attn.Options{})
		},
		"training": func(t *testing.T, _ *rand.Rand) {
			pairs := toyPairs(32)
			m := newToy(t, models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 64, Heads: 4, Layers: 1, Hidden: 128}, pairs)
			run(t, newToyTrainer(t, m, pairs, toySettings(1)))
			if _, err := Evaluate(t.Context(), m, pairs, 2); err != nil {
				t.Error(err)
			}
		},
		"Generate": func(t *testing.T, _ *rand.Rand) {
			m, err := models.Load("../models/testdata/decoders/llama3", models.Options{})
			if err != nil {
				t.Fatal(err)
			}
			tokens, err := m.Generate(t.Context(), []int{10, 25, 8, 14, 6, 13, 21, 3, 12, 25, 2}, models.Generation{Tokens: 20, Ends: []int{}})
			if err != nil {
				t.Fatal(err)
			}
			for range tokens {
			}
		},
	}
	if compute := computations[os.Getenv(bubbled)]; compute != nil {
		synctest.Test(t, func(t *testing.T) {
			start, hours := time.Now(), 0
			go func() {
				for range 3 {
					time.Sleep(time.Hour)
					hours++
				}
			}()
			rng := rand.New(rand.NewPCG(1, 2))
			compute(t, rng)
			runtime.GOMAXPROCS(4)
			compute(t, rng)
			if d := time.Since(start); d != 0 {
				t.Errorf("while attn computed, %v passed in the bubble", d)
			}
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			if hours != 3 {
				t.Errorf("another goroutine of the bubble slept %d times, want 3", hours)
			}
		})
		return
	}
	for name := range computations {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestFirstUseInABubble$")
			cmd.Env = append(os.Environ(), bubbled+"="+name, "GOMAXPROCS=2")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		})
	}
}
