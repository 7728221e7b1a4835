package probe

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/exact"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

func pairProbe(tb testing.TB, m *models.Model, pairs []seq2seq.Pair) *Probe {
	tb.Helper()
	p, err := New(m, examplesOf(tb, m, pairs))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// The losses of all batches add up to Probe.Loss.
func TestProbeLoss(t *testing.T) {
	pairs := toyPairs(101)
	for _, c := range headed() {
		c.Dropout = 0.5 // in training only
		m := newShaken(t, c, pairs)
		p := pairProbe(t, m, pairs)
		sum, terms, examples := 0.0, 0, 0
		for i, n := range p.Batches() {
			out := p.Run(tensor.NewTape(tensor.Eval), i, prune.Pass{})
			sum += float64(out.Loss.Item())
			terms += out.Terms
			examples += n
			source, target := 0, 0
			for e := range n {
				source += out.Queries("encoder.0.self")[e]
				target += out.Queries("decoder.0.cross")[e]
			}
			if target != out.Terms || source != target || len(out.Queries("decoder.0.self")) != n {
				// The toy's texts are as long as their translations.
				t.Errorf("%s: %d and %d queries for %d terms", titleOf(c), source, target, out.Terms)
			}
		}
		want, err := p.Loss(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if got := sum / float64(terms); math.Abs(got-want) > 1e-5*want || examples != len(pairs) || slices.Max(p.Batches()) > 64 {
			t.Errorf("%s: loss %v of %d examples in batches of %v, want %v", titleOf(c), got, examples, p.Batches(), want)
		}
	}
}

// Importance over all pairs is the exact sum of the importance of each pair alone: a pair's contribution does
// not depend on the other pairs, bit for bit.
func TestProbeAddsUp(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: importance on each pair alone")
	}
	pairs := toyPairs(66) // two batches
	methods := []prune.Method{prune.LeaveOneOut, prune.Gradient, prune.Fisher, prune.Confidence}
	for i, c := range headed() {
		if i > 1 && i/2%2 != i%2 {
			continue // both architectures with the first score, one of them with each other score
		}
		m := newShaken(t, c, pairs)
		importance := func(pairs ...seq2seq.Pair) []prune.Scores {
			list, err := prune.Importance(t.Context(), pairProbe(t, m, pairs), prune.ImportanceOptions{Methods: methods})
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		each := make([][]prune.Scores, len(pairs))
		for i, p := range pairs {
			each[i] = importance(p)
		}
		for i, whole := range importance(pairs...) {
			for layer, values := range whole.Values {
				for h, value := range values {
					var sum exact.Sum
					count := 0
					for _, one := range each {
						sum.Add(one[i].Sums[layer][h])
						count += one[i].Counts[layer][h]
					}
					if sum.Float64() != whole.Sums[layer][h] || count != whole.Counts[layer][h] || value != sum.Float64()/float64(count) || value == 0 {
						t.Errorf("%s: %v of head %d of %s is %v = %v/%d, want %v/%d", titleOf(c), methods[i], h, layer, value, whole.Sums[layer][h], whole.Counts[layer][h], sum.Float64(), count)
					}
				}
			}
		}
	}
}

// Separate gates for each example work in every layer, their gradients match finite differences, and observed weights have
// the shape of the remaining heads.
func TestProbeGates(t *testing.T) {
	pairs := []seq2seq.Pair{{Source: "abcdef", Target: "fed"}, {Source: "ga", Target: "agbc"}, {Source: "bcfa", Target: "a"}}
	for _, c := range headed() {
		p := pairProbe(t, newShaken(t, c, pairs), pairs)
		gates := map[string]*tensor.Tensor{}
		for _, l := range p.Layers() {
			gates[l.Name] = tensor.Full(1, len(pairs), c.Heads).Param()
		}
		seen := map[string][]int{}
		pass := prune.Pass{
			Gates:   func(layer string) *tensor.Tensor { return gates[layer] },
			Observe: func(layer string, w *tensor.Tensor) { seen[layer] = slices.Clone(w.Shape()) },
		}
		loss := func() float64 { return float64(p.Run(nil, 0, pass).Loss.Item()) }
		tape := tensortest.Tape(tensor.Eval)
		out := p.Run(tape, 0, pass)
		tape.Backward(out.Loss, nil)
		for _, l := range p.Layers() {
			name := l.Name
			queries := slices.Max(out.Queries(name))
			if shape := seen[name]; len(shape) != 4 || shape[0] != 3 || shape[1] != 3 || shape[2] != queries {
				t.Errorf("%s: weights of %s have shape %v, want [3 3 %d Lk]", titleOf(c), name, shape, queries)
			}
			for _, i := range []int{0, 4, 8} {
				g := gates[name].Data()
				const step = 1. / 256 // small compared with the distance to the kink of a ReLU
				g[i] = 1 + step
				up := loss()
				g[i] = 1 - step
				slope := (up - loss()) / (2 * step)
				g[i] = 1
				if got := float64(gates[name].Grad().Data()[i]); math.Abs(got-slope) > 0.01+0.05*math.Abs(slope) || got == 0 {
					t.Errorf("%s: gate %d of %s has the gradient %v, want about %v", titleOf(c), i, name, got, slope)
				}
			}
		}
	}
}

func TestProbeWithout(t *testing.T) {
	c := headed()[0]
	p := pairProbe(t, newShaken(t, c, toyBatch), toyBatch)
	gone := []prune.Head{{Layer: "decoder.0.cross", Number: 2}, {Layer: "encoder.1.self", Number: 1}, {Layer: "decoder.0.cross", Number: 0}}
	less, err := p.Without(gone)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string][]int{"decoder.0.cross": {1}, "encoder.1.self": {0, 2}}
	want := p.Run(nil, 0, prune.Pass{Gates: gatesFor(p.Model(), kept)}).Loss.Item()
	if got := less.Run(nil, 0, prune.Pass{}).Loss.Item(); math.Abs(float64(got-want)) > 1e-4 {
		t.Errorf("loss %v without the heads, want %v", got, want)
	}
	small, err := p.Model().Keep(less.Kept())
	if err != nil {
		t.Fatal(err)
	}
	its, _ := small.TranslatorConfig()
	if pruned := fmt.Sprint(its.PrunedHeads); pruned != "map[decoder.0.cross:[0 2] encoder.1.self:[1]]" {
		t.Errorf("pruned are %s", pruned)
	}
	var all []prune.Head
	for _, l := range less.Layers() {
		for h := range l.Heads {
			all = append(all, prune.Head{Layer: l.Name, Number: h})
		}
	}
	none, err := less.Without(all)
	if err != nil {
		t.Fatal(err)
	}
	if loss := none.Run(nil, 0, prune.Pass{}).Loss.Item(); !(loss > 0) {
		t.Errorf("loss %v without any head", loss)
	}
	for _, c := range []struct {
		want string
		err  func() error
	}{
		{"probe: Without: a head that the model lacks or that is given twice", func() error {
			_, err := less.Without([]prune.Head{{Layer: "decoder.0.cross", Number: 1}})
			return err
		}},
		{"probe: Without: a head that the model lacks or that is given twice", func() error { _, err := p.Without([]prune.Head{{Layer: "x"}}); return err }},
		{"probe: New: no examples, want one or more", func() error { _, err := New(p.Model(), nil); return err }},
	} {
		if err := c.err(); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
