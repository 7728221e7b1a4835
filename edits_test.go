package attn_test

import (
	"fmt"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// multiplied returns an edit that multiplies by f.
func multiplied(f float32) attn.Edit {
	return func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Scale(t, x, f) }
}

// allEdits makes edits of each value with f.
func allEdits(f attn.Edit) map[string]attn.Edits {
	return map[string]attn.Edits{
		"queries": {Queries: f}, "keys": {Keys: f}, "values": {Values: f}, "weights": {Weights: f}, "outputs": {Outputs: f},
		"all": {Queries: f, Keys: f, Values: f, Weights: f, Outputs: f},
	}
}

func editedLayer(t *testing.T, layout attn.Layout) *attn.MultiHead {
	t.Helper()
	rope, err := position.NewRoPE(position.RoPEConfig{Base: 100})
	if err != nil {
		t.Fatal(err)
	}
	return mustMultiHead(t, attn.MultiHeadConfig{
		Width: 12, Heads: 6, KVHeads: 3, HeadSize: 4, ValueSize: 5, Bias: attn.AllProjections, Layout: layout, Position: rope,
		QueryNorm: nn.NewRMSNorm(4), KeyNorm: nn.NewRMSNorm(4), ValueNorm: nn.NewRMSNorm(5),
	})
}

// An edit that returns what it gets, or a copy, changes no bit: whole sequences, projected keys, a cache; and each edit is
// called.
func TestEditsOfNothing(t *testing.T) {
	for _, layout := range []attn.Layout{attn.BatchFirst, attn.SequenceFirst} {
		m, x, time := editedLayer(t, layout), tensor.Randn(newRand(3), 7, 7, 12), 1-int(layout)
		o := attn.Options{Mask: mask.Causal()}
		want := m.Forward(nil, x, x, x, o).Out
		for _, copied := range []bool{false, true} {
			calls := 0
			same := func(_ *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
				if calls++; copied {
					return x.Clone()
				}
				return x
			}
			for name, edits := range allEdits(same) {
				o.Edits, calls = edits, 0
				each := 1
				if name == "all" {
					each = 5
				}
				check := func(how string, parts int, got *tensor.Tensor) {
					t.Helper()
					tensortest.Same(t, fmt.Sprintf("%s, copied %v, %s", name, copied, how), got.Data(), want.Data())
					if calls != parts*each {
						t.Errorf("%s, %s: %d calls, want %d", name, how, calls, parts*each)
					}
					calls = 0
				}
				check("at once", 1, m.Forward(nil, x, x, x, o).Out)
				check("recorded", 1, m.Forward(tensor.NewTape(tensor.Eval), x, x, x, o).Out)
				check("other keys", 1, m.Forward(nil, x, x.Clone(), x, o).Out)
				check("projected keys", 1, m.Query(nil, x, m.Project(nil, x, x), o).Out)
				cache, parts := mustCache(t, m, 7, attn.CacheConfig{}), []*tensor.Tensor(nil)
				for at := 0; at < 7; at += 3 {
					parts = append(parts, m.Extend(nil, pick(x, time, at, min(at+3, 7)), cache, o).Out)
				}
				check("a cache", 3, tensor.Concat(nil, time, parts...))
			}
		}
	}
}

// Edits are what their definitions say, and gradients flow through them.
func TestEdits(t *testing.T) {
	rng := newRand(8)
	in := []*tensor.Tensor{
		tensor.Randn(rng, 2, 4, 3, 5).Param(), tensor.Randn(rng, 2, 2, 3, 5).Param(), tensor.Randn(rng, 2, 2, 3, 6).Param(),
	}
	mixed := func(t *tensor.Tape, w, v *tensor.Tensor) *tensor.Tensor {
		y := tensor.MatMul(t, tensor.Reshape(t, w, 2, 2, 6, 3), v)
		return tensor.Reshape(t, y, 2, 4, 3, 6)
	}
	attend := func(t *tensor.Tape, in []*tensor.Tensor, o attn.Options) attn.Output {
		o.Mask = mask.Causal()
		return attn.Attend(t, in[0], in[1], in[2], o)
	}
	scaled := func(t *tensor.Tape, in []*tensor.Tensor, i int) []*tensor.Tensor {
		list := append([]*tensor.Tensor(nil), in...)
		list[i] = tensor.Scale(t, in[i], 3)
		return list
	}
	want := map[string]func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor{
		"queries": func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			return attend(t, scaled(t, in, 0), attn.Options{}).Out
		},
		"keys": func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			return attend(t, scaled(t, in, 1), attn.Options{}).Out
		},
		"values": func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			return attend(t, scaled(t, in, 2), attn.Options{}).Out
		},
		"outputs": func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			return tensor.Scale(t, attend(t, in, attn.Options{}).Out, 3)
		},
		"weights": func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			return mixed(t, tensor.Scale(t, attend(t, in, attn.Options{Weights: true}).Weights, 3), in[2])
		},
		"all": func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			in = scaled(t, scaled(t, scaled(t, in, 0), 1), 2)
			y := attend(t, in, attn.Options{Weights: true})
			return tensor.Scale(t, mixed(t, tensor.Scale(t, y.Weights, 3), in[2]), 3)
		},
	}
	for name, edits := range allEdits(multiplied(3)) {
		edited := func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			return attend(t, in, attn.Options{Edits: edits}).Out
		}
		tensortest.Near(t, name, edited(nil, in), want[name](nil, in))
		tensortest.GradCheck(t, name, edited, in)
	}
}

// What cannot be edited is refused.
func TestEditsRefused(t *testing.T) {
	x := tensor.Randn(newRand(1), 1, 3, 12)
	m := editedLayer(t, attn.BatchFirst)
	cut := func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Slice(t, x, 2, 0, 1) }
	for _, edits := range allEdits(cut) {
		wantError(t, tensor.Catch(func() { m.Forward(nil, x, x, x, attn.Options{Edits: edits}) }), `attn: MultiHead: edit of .* has shape .*`)
	}
	cache := mustCache(t, m, 1, attn.CacheConfig{})
	m.Extend(nil, x, cache, attn.Options{})
	query := func() { m.Query(nil, x, cache.KV(), attn.Options{Edits: attn.Edits{Keys: multiplied(1)}}) }
	wantError(t, tensor.Catch(query), `attn: MultiHead: edits is of keys or values that are in a cache .*`)
}
