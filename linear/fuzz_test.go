package linear_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/tensor"
)

// Calls of any sizes compute the formula; a state that is forked anywhere continues with the same bits.
func FuzzAttend(f *testing.F) {
	f.Add(uint64(1), uint8(2), uint8(1), uint8(2), uint8(7), uint8(3), uint8(40), uint8(5))
	f.Add(uint64(2), uint8(1), uint8(1), uint8(1), uint8(70), uint8(17), uint8(33), uint8(6))
	f.Fuzz(func(t *testing.T, seed uint64, kh, groups, queries, l, e, v, rule uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		k, g := int(kh%3)+1, 0
		g = k * (int(groups%3) + 1)
		h := g * (int(queries%3) + 1)
		if queries%4 == 0 {
			h = k // fewer heads of queries than of values
		}
		length := int(l%80) + 1
		x := newInputs(r, rules[int(rule)%len(rules)], 2, h, k, g, length, int(e%20)+1, int(v%70)+1)
		o := x.options()
		o.Lens, o.Scale = []int{length, r.IntN(length + 1)}, 1
		y := linear.Attend(nil, x.q, x.k, x.v, o)
		for b, n := range o.Lens {
			want, last := x.formula(b, 0, n, true, 1)
			near(t, "out", y.Out.Data()[b*len(want):], want)
			near(t, "state", y.State.Data()[b*len(last):], last)
		}
		x.state = nil
		whole := linear.Attend(nil, x.q, x.k, x.v, linear.Options{Decay: x.decay, Beta: x.beta})
		s, err := linear.NewState(linear.StateConfig{Batch: 2, Heads: g, KeySize: x.e, ValueSize: x.vs})
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < length; {
			n := min(1+r.IntN(9), length-at)
			part := func(x *tensor.Tensor) *tensor.Tensor {
				if x == nil || x.Rank() < 3 {
					return x
				}
				return tensor.Slice(nil, x, 2, at, at+n)
			}
			s = s.Select([]int{0, 1})
			y := s.Attend(nil, part(x.q), part(x.k), part(x.v), linear.Options{Decay: part(x.decay), Beta: part(x.beta)})
			if want := part(whole.Out); !slices.Equal(y.Out.Data(), want.Data()) {
				t.Fatalf("tokens %d to %d have other bits", at, at+n)
			}
			at += n
		}
	})
}
