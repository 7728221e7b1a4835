package prune

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// hybrid is a model with a layer of linear attention and one of softmax attention.
type hybrid struct {
	linear  *linear.Layer
	softmax *attn.MultiHead
	x, want *tensor.Tensor
}

func newHybrid(t *testing.T) *hybrid {
	r := rand.New(rand.NewPCG(31, 32))
	m := &hybrid{x: tensor.Randn(r, 3, 5, 8), want: tensor.Randn(r, 3, 5, 8)}
	var err error
	if m.linear, err = linear.NewLayer(linear.LayerConfig{
		Name: "linear", Width: 8, Heads: 4, KeyHeads: 2, KeySize: 3, ValueSize: 2, Beta: 1, Feature: linear.Unit,
		Decay: linear.NewStepDecay(8, 4, 1, r), Conv: 2, OutNorm: nn.NewRMSNorm(2), OutGate: tensor.SiLU,
	}, r); err != nil {
		t.Fatal(err)
	}
	if m.softmax, err = attn.NewMultiHead(attn.MultiHeadConfig{Name: "softmax", Width: 8, Heads: 2}, r); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *hybrid) Layers() []attn.LayerHeads {
	return []attn.LayerHeads{m.linear.Heads(), m.softmax.Heads()}
}
func (m *hybrid) Batches() []int { return []int{3} }

func (m *hybrid) Run(t *tensor.Tape, _ int, p Pass) Outcome {
	gates := func(layer string) *tensor.Tensor {
		if p.Gates == nil {
			return nil
		}
		return p.Gates(layer)
	}
	x := tensor.Add(t, m.x, m.linear.Forward(t, m.x, linear.Options{Gates: gates("linear")}).Out)
	x = tensor.Add(t, x, m.softmax.Forward(t, x, x, x, attn.Options{Gates: gates("softmax")}).Out)
	return Outcome{Loss: tensor.Sum(t, tensor.Square(t, tensor.Sub(t, x, m.want))), Terms: 15}
}

func (m *hybrid) Without(heads []Head) (*hybrid, error) {
	left := func(l attn.LayerHeads) []int {
		return slices.DeleteFunc(stats.Numbers(l.Heads), func(h int) bool { return slices.Contains(heads, Head{l.Name, h}) })
	}
	rest := *m
	var err error
	if rest.linear, err = m.linear.Keep(left(m.linear.Heads())); err != nil {
		return nil, err
	}
	rest.softmax, err = m.softmax.Keep(left(m.softmax.Heads()))
	return &rest, err
}

// Heads of linear attention are scored and removed like others: those that share keys together.
func TestLinearLayers(t *testing.T) {
	m := newHybrid(t)
	scores, err := Importance(t.Context(), m, ImportanceOptions{Methods: []Method{LeaveOneOut, Taylor, WeightNorm}})
	if err != nil {
		t.Fatal(err)
	}
	loss := func(gates *tensor.Tensor) float64 {
		return float64(m.Run(nil, 0, Pass{Gates: func(layer string) *tensor.Tensor {
			if layer != "linear" {
				return nil
			}
			return gates
		}}).Loss.Item())
	}
	for h := range 4 {
		gates := tensor.Full(1, 4)
		at := func(gate float32) float64 {
			gates.Data()[h] = gate
			return loss(gates)
		}
		sum := 0.
		for i, w := range m.linear.Out.Weight.Data() {
			if i%8/2 == h {
				sum += float64(w * w)
			}
		}
		slope := math.Abs(at(1+1./128)-at(1-1./128)) * 64 / 15
		for i, want := range []float64{(at(0) - at(1)) / 15, slope, math.Sqrt(sum)} {
			if got := scores[i].Values["linear"][h]; !(math.Abs(got-want) <= 1e-3*(1+math.Abs(want))) {
				t.Errorf("%s of head %d: %v, want %v", scores[i].Method, h, got, want)
			}
		}
	}
	pruned, err := Heads(t.Context(), m, Options[*hybrid]{Method: LeaveOneOut, Keep: 3})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(pruned.Subject.linear.Heads().Heads, pruned.Subject.softmax.Heads().Heads, len(pruned.Removed)); got != "2 1 3" {
		t.Errorf("heads that are left, and removed: %s", got)
	}
}
