package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
)

// These are small variants of the measured models. They have the features in which a library could differ: positions,
// heads that share keys, biases, gains.
var (
	smallEncoders = []shape{
		{name: "a small BERT", layers: 2, heads: 6, kvHeads: 6, width: 60, hidden: 97, vocabulary: 101, positions: 17},
	}
	smallDecoders = []shape{
		{name: "a small Llama", layers: 2, heads: 6, kvHeads: 3, width: 60, hidden: 97, vocabulary: 101},
		{name: "a small Qwen2", layers: 2, heads: 6, kvHeads: 3, width: 60, hidden: 97, vocabulary: 101, bias: true},
	}
)

// tolerance is for float32 numbers of up to about 10, summed in any order.
const tolerance = 1e-3

// checkOutputs returns an error unless a peer computes the same as attn. A peer that is not available is not checked.
func checkOutputs(p *peer, threads int) error {
	if p.missing != "" {
		return nil
	}
	for _, s := range p.checked {
		if err := s.checkOutputs(p, threads); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (s shape) checkOutputs(p *peer, threads int) error {
	dir, err := os.MkdirTemp("", "attn-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	rng := rand.New(rand.NewPCG(3, 5))
	if err := s.write(dir, safetensors.F32, func(w io.Writer, info safetensors.Info) error { return normalWeights(w, info, rng) }); err != nil {
		return err
	}
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		return err
	}
	ids := []int{3, 1, 4, 1, 5, 92, 65, 35, 89, 79, 3}
	want, width := m.Hidden(nil, models.Batch{IDs: [][]int{ids}}, models.Run{}), s.width
	if s.positions == 0 {
		want, width = m.Head().Logits(nil, want), s.vocabulary
	}
	a, err := p.exchange(request{Work: bench.Work{Op: "outputs"}, File: dir, IDs: ids, Threads: threads})
	if err == nil && a.missing() != "" {
		err = errors.New(a.missing())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return sameOutputs(p.name, a.Outputs, want.Data(), width)
}

// sameOutputs returns an error unless two libraries compute the same numbers, width for each token.
func sameOutputs(name string, got, want []float32, width int) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s has %d outputs, want %d", name, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= tolerance) {
			return fmt.Errorf("%s computes something else: output %d of token %d is %.4f, want %.4f", name, i%width, i/width, got[i], want[i])
		}
	}
	return nil
}

// normalWeights writes numbers of about ±0.3, in float32.
func normalWeights(w io.Writer, info safetensors.Info, rng *rand.Rand) error {
	weights := make([]float32, info.Len())
	for i := range weights {
		weights[i] = float32(0.3 * rng.NormFloat64())
	}
	return binary.Write(w, binary.LittleEndian, weights)
}
