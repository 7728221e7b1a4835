package attn_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// merged is a call whose keys are split at the given keys: the parts attend separately, and are
// merged. options returns the options of the part with keys lo to hi.
func (c call) merged(splits []int, options func(lo, hi int) attn.Options) trace {
	tape := tensortest.Tape(tensor.Train)
	leaves := paramsOf(c.o.Score)
	leaves["dq"], leaves["dk"], leaves["dv"] = c.q.Clone().Param(), c.k.Clone().Param(), c.v.Clone().Param()
	axis := c.k.Rank() - 2
	var parts []attn.Output
	lo := 0
	for _, hi := range append(splits, c.k.Dim(axis)) {
		part := func(name string) *tensor.Tensor { return tensor.Slice(tape, leaves[name], axis, lo, hi) }
		parts = append(parts, attn.Attend(tape, leaves["dq"], part("dk"), part("dv"), options(lo, hi)))
		lo = hi
	}
	y := attn.Merge(tape, parts...)
	return c.backward(tape, y, leaves)
}

// whole is the same call with all keys at once.
func (c call) whole() trace {
	tape := tensortest.Tape(tensor.Train)
	leaves := paramsOf(c.o.Score)
	leaves["dq"], leaves["dk"], leaves["dv"] = c.q.Clone().Param(), c.k.Clone().Param(), c.v.Clone().Param()
	c.o.LogSumExp = true
	return c.backward(tape, attn.Attend(tape, leaves["dq"], leaves["dk"], leaves["dv"], c.o), leaves)
}

// backward sends a gradient through everything that was returned.
func (c call) backward(tape *tensor.Tape, y attn.Output, leaves trace) trace {
	outs, douts := []*tensor.Tensor{y.Out, y.LogSumExp}, []*tensor.Tensor{c.dout, tensor.Randn(newRand(5), y.LogSumExp.Shape()...)}
	if y.Weights != nil {
		outs, douts = append(outs, y.Weights), append(douts, c.dweights)
	}
	tape.BackwardAll(outs, douts)
	got := leave(y, leaves)
	got["log-sum-exp"] = y.LogSumExp.Clone()
	return got
}

// nearly compares with a tolerance of a few roundings of the log-sum-exps.
func nearly(t *testing.T, what string, got, want trace) {
	t.Helper()
	compare(t, got, want, func(name string, got, want *tensor.Tensor) {
		t.Helper()
		exact := make([]float64, want.Len())
		for i, v := range want.Data() {
			exact[i] = float64(v)
		}
		tensortest.Close(t, what+": "+name, got.Data(), exact, 1e-5)
	})
}

// Merged attention to parts of the keys equals attention to all keys, for every score, forward
// and backward, wherever the keys are split.
func TestMerge(t *testing.T) {
	eachScore(t, func(t *testing.T, sc scoreCase) {
		for _, weights := range []bool{true, false} {
			c := newCall(sc, usual)
			c.o.Weights = weights
			want := c.whole()
			for _, splits := range [][]int{nil, {3}, {0, 2, 2, 5, 7}} {
				got := c.merged(splits, func(int, int) attn.Options {
					o := c.o
					o.LogSumExp = true
					return o
				})
				nearly(t, fmt.Sprint("split at ", splits), got, want)
			}
		}
	})
}

// Parts with adjusted causal offsets equal the whole causal mask: blocks of keys, few queries and
// many, groups of heads.
func TestMergeCausal(t *testing.T) {
	for _, s := range []sizes{
		{b: 2, h: 6, g: 3, lq: 7, lk: 7, v: 3},
		{b: 1, h: 2, g: 1, lq: 601, lk: 1031, v: 5},
		{b: 3, h: 2, g: 2, lq: 2, lk: 1031, v: 5},
	} {
		c := newCall(kindCase("scaled"), s)
		c.o.Weights = false
		offset := s.lk - s.lq
		c.o.Mask = mask.CausalAt(offset)
		want := c.whole()
		got := c.merged([]int{s.lk / 3, s.lk / 2}, func(lo, hi int) attn.Options {
			return attn.Options{Score: c.o.Score, Mask: mask.CausalAt(offset - lo), LogSumExp: true}
		})
		nearly(t, fmt.Sprintf("%+v", s), got, want)
	}
}

// Without a head axis, and with a sink, which belongs to one part.
func TestMergeThreeAxesWithSink(t *testing.T) {
	rng := newRand(7)
	c := call{q: tensor.Randn(rng, 2, 5, 3), k: tensor.Randn(rng, 2, 11, 3), v: tensor.Randn(rng, 2, 11, 7)}
	c.dout, c.dweights = tensor.Randn(rng, 2, 5, 7), tensor.Randn(rng, 2, 5, 11)
	sinks := tensor.Randn(rng, 1)
	c.o = attn.Options{Sinks: sinks, Weights: true, LogSumExp: true}
	got := c.merged([]int{4}, func(lo, _ int) attn.Options {
		o := c.o
		if lo > 0 {
			o.Sinks = nil
		}
		return o
	})
	nearly(t, "three axes", got, c.whole())
}

func TestMergeGradients(t *testing.T) {
	rng := newRand(13)
	in := []*tensor.Tensor{
		tensor.Randn(rng, 2, 3, 5), tensor.Randn(rng, 2, 3), tensor.Randn(rng, 2, 3, 7),
		tensor.Randn(rng, 2, 3, 5), tensor.Randn(rng, 2, 3), tensor.Randn(rng, 2, 3, 11),
	}
	tensortest.GradCheck(t, "Merge", func(tape *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
		y := attn.Merge(tape,
			attn.Output{Out: in[0], LogSumExp: in[1], Weights: in[2]},
			attn.Output{Out: in[3], LogSumExp: in[4], Weights: in[5]})
		return tensor.Concat(tape, 2, y.Out, tensor.Reshape(tape, y.LogSumExp, 2, 3, 1), y.Weights)
	}, in)
}

// A query that attends to no key of a part has the bits of the other part; one that attends to no
// key at all gets zeros. Hidden elements may be NaN, also in the parts.
func TestMergeOfNothing(t *testing.T) {
	nan := float32(math.NaN())
	for _, poison := range poisons {
		c := newCall(kindCase("scaled"), usual)
		// Sequence 0 attends to the first three keys, sequence 1 to none.
		lens := func(lo, hi int) attn.Options {
			return attn.Options{Mask: mask.Lengths(min(max(3-lo, 0), hi-lo), 0), LogSumExp: true, Weights: true}
		}
		each(c.k, func(b, _, j, _ int, v *float32) {
			if b == 1 || j >= 3 {
				*v = poison
			}
		})
		each(c.v, func(b, _, j, _ int, v *float32) {
			if b == 1 || j >= 3 {
				*v = poison
			}
		})
		c.o = lens(0, usual.lk)
		same(t, fmt.Sprint("beside ", poison), c.merged([]int{3}, lens), c.whole())
	}

	// The contents of a part with weight 0 do not matter.
	rng := newRand(17)
	few, none := attn.Output{Out: tensor.Randn(rng, 1, 2, 3), LogSumExp: tensor.Randn(rng, 1, 2)},
		attn.Output{Out: tensor.Full(nan, 1, 2, 3), LogSumExp: tensor.Full(float32(math.Inf(-1)), 1, 2)}
	for _, parts := range [][]attn.Output{{few, none}, {none, few}} {
		y := attn.Merge(nil, parts...)
		tensortest.Same(t, "out", y.Out.Data(), few.Out.Data())
		tensortest.Same(t, "log-sum-exp", y.LogSumExp.Data(), few.LogSumExp.Data())
	}
	y := attn.Merge(nil, none, none)
	tensortest.Same(t, "out of nothing", y.Out.Data(), make([]float32, 6))
	tensortest.Same(t, "log-sum-exp of nothing", y.LogSumExp.Data(), none.LogSumExp.Data())
}

func TestMergeErrors(t *testing.T) {
	part := func() attn.Output {
		return attn.Output{Out: shaped(2, 3, 5, 7), LogSumExp: shaped(2, 3, 5), Weights: shaped(2, 3, 5, 11)}
	}
	for _, c := range []struct {
		name  string
		spoil func(p *attn.Output)
		want  string
	}{
		{"output", func(p *attn.Output) { p.Out = nil }, `^attn: Merge: output of part 1 is nil, want a tensor$`},
		{"log-sum-exp", func(p *attn.Output) { p.LogSumExp = nil }, `^attn: Merge: log-sum-exp of part 1 is nil, want a tensor: ask for it with Options.LogSumExp$`},
		{"rank", func(p *attn.Output) { p.Out = shaped(5, 7) }, `^attn: Merge: output of part 1 has shape \[5 7\], want \[B H Lq V\] or \[B Lq V\]$`},
		{"values", func(p *attn.Output) { p.Out = shaped(2, 3, 5, 8) }, `^attn: Merge: output of part 1 has shape \[2 3 5 8\], want \[2 3 5 7\] as in part 0$`},
		{"queries", func(p *attn.Output) { p.LogSumExp = shaped(2, 5, 3) }, `^attn: Merge: log-sum-exp of part 1 has shape \[2 5 3\], want \[2 3 5\] as in its output$`},
		{"weights", func(p *attn.Output) { p.Weights = shaped(2, 3, 4, 11) }, `^attn: Merge: weights of part 1 has shape \[2 3 4 11\], want \[2 3 5\] and an axis of keys$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := part()
			c.spoil(&bad)
			wantError(t, tensor.Catch(func() { attn.Merge(nil, part(), bad) }), c.want)
		})
	}
	wantError(t, tensor.Catch(func() { attn.Merge(nil) }), `^attn: Merge: parts is none, want at least one$`)
	// Outputs of a layer include its output projection, so parts of them cannot be merged.
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3})
	x := shaped(2, 5, 12)
	y := m.Forward(nil, x, x, x, attn.Options{LogSumExp: true})
	wantError(t, tensor.Catch(func() { attn.Merge(nil, y, y) }), `^attn: Merge: log-sum-exp of part 0 has shape \[2 3 5\], want \[2 5\] as in its output$`)
}

func BenchmarkMerge(b *testing.B) {
	rng := newRand(1)
	q, k := tensor.Randn(rng, 1, 12, 512, 64), tensor.Randn(rng, 1, 12, 512, 64)
	part := attn.Attend(nil, q, k, k, attn.Options{LogSumExp: true})
	b.Run("a part", func(b *testing.B) {
		for b.Loop() {
			attn.Attend(nil, q, k, k, attn.Options{LogSumExp: true})
		}
	})
	b.Run("two parts merged", func(b *testing.B) {
		for b.Loop() {
			attn.Merge(nil, part, part)
		}
	})
}
