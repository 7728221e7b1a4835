//go:build js

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"regexp"
	"time"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/train"
)

// main measures the rows whose names match the first argument, and prints a result as JSON.
func main() {
	only, ctx := regexp.MustCompile(os.Args[1]), context.Background()
	r := result{Implementation: simd.Implementation(), Values: map[string]float64{}}
	for i, measure := range []func(ctx context.Context) (float64, error){
		func(ctx context.Context) (float64, error) { return product(ctx, 256, 256, 256, multiply) },
		func(ctx context.Context) (float64, error) { return product(ctx, 32, 256, 256, packed) },
		dates, record, untilExact,
	} {
		name := rows[i].name
		if !only.MatchString(name) {
			continue
		}
		v, err := measure(ctx)
		if err != nil {
			log.Fatalf("%s: %v", name, err)
		}
		r.Values[name] = v
	}
	line, err := json.Marshal(r)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
}

// product returns the median time of a product.
func product(ctx context.Context, m, n, k int, prepare func(c, a, b []float32, m, n, k int) func()) (float64, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	numbers := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return x
	}
	s, err := bench.Measure(ctx, time.Second, prepare(make([]float32, m*n), numbers(m*k), numbers(k*n), m, n, k))
	return s.Median, err
}

func multiply(c, a, b []float32, m, n, k int) func() {
	p := &simd.Product{M: m, N: n, K: k,
		A: simd.RowMajor(a, k), B: simd.RowMajor(b, n), C: simd.RowMajor(c, n)}
	return func() { simd.Multiply(p) }
}

func packed(c, a, b []float32, m, n, k int) func() {
	var p simd.Panels
	p.Copy(simd.RowMajor(b, n), k, n)
	return func() { simd.MultiplyPanels(simd.RowMajor(c, n), simd.RowMajor(a, k), m, &p, 0, k, 0, n, false) }
}

// dates returns the milliseconds for 1,000 tokens of training on dates, after the first steps.
func dates(ctx context.Context) (float64, error) {
	_, t, _, err := train.DatesRecipe().New()
	if err != nil {
		return 0, err
	}
	const warm, most = 20, 6 * time.Second
	var times time.Duration
	tokens := 0
	err = t.Run(ctx, func(p train.Progress) error {
		if p.Total <= warm {
			return nil
		}
		times, tokens = times+p.Time, tokens+p.Tokens
		if times > most {
			return train.ErrStop
		}
		return nil
	})
	return 1e6 * times.Seconds() / float64(tokens), err
}

// record returns the milliseconds of translating a date and recording all heads.
func record(ctx context.Context) (float64, error) {
	model, t, data, err := train.DatesRecipe().New()
	if err != nil {
		return 0, err
	}
	// A model that is not trained translates to as many tokens as it may.
	err = t.Run(ctx, func(p train.Progress) error {
		if p.Total == 300 {
			return train.ErrStop
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	source := data.Test[0].Source
	s, err := bench.Measure(ctx, time.Second, func() {
		var out []string
		if out, err = model.Translate(ctx, []string{source}, 1); err == nil {
			_, err = probe.RecordTexts(ctx, model, source, out[0], heads.RecorderOptions{})
		}
		if err != nil {
			log.Fatal(err)
		}
	})
	return s.Median, err
}

// untilExact returns the milliseconds of training on dates until 97% of the test are translated exactly.
func untilExact(ctx context.Context) (float64, error) {
	model, t, data, err := train.DatesRecipe().New()
	if err != nil {
		return 0, err
	}
	start, reached := time.Now(), false
	err = t.Run(ctx, func(p train.Progress) error {
		if !p.EpochDone {
			return nil
		}
		m, err := train.Evaluate(ctx, model, data.Test[:200], 1)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "epoch %d: %.0f s, %.1f%% exact\n", p.Epoch, time.Since(start).Seconds(), 100*m.ExactMatch)
		if reached = m.ExactMatch >= 0.97; reached {
			return train.ErrStop
		}
		return nil
	})
	if err == nil && !reached {
		err = errors.New("fewer than 97% of the dates are exact")
	}
	return 1000 * time.Since(start).Seconds(), err
}
