package observe_test

import (
	"fmt"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/tensor"
)

// BenchmarkRows measures the cost of observers in addition to attention, with 12 heads of size
// 64. "none" is attention alone.
func BenchmarkRows(b *testing.B) {
	for _, l := range []int{512, 1024, 2048} {
		rng := newRand(1)
		q, k, v := tensor.Randn(rng, 1, 12, l, 64), tensor.Randn(rng, 1, 12, l, 64), tensor.Randn(rng, 1, 12, l, 64)
		for _, c := range []struct {
			name string
			rows []attn.Observer
		}{
			{"none", nil},
			{"nothing", []attn.Observer{idle{}}},
			{"top 8", []attn.Observer{&observe.TopKeys{K: 8}}},
			{"received", []attn.Observer{new(observe.Received)}},
			{"both", []attn.Observer{&observe.TopKeys{K: 8}, new(observe.Received)}},
			{"entropy", []attn.Observer{new(observe.Entropy)}},
		} {
			b.Run(fmt.Sprintf("%d/%s", l, c.name), func(b *testing.B) {
				t := tensor.NewTape(tensor.Infer)
				for b.Loop() {
					t.Reset()
					attn.Attend(t, q, k, v, attn.Options{Observers: c.rows})
				}
			})
		}
	}
}

// idle is an observer that does nothing.
type idle struct{}

func (idle) Begin(attn.Sizes)        {}
func (idle) Row(attn.Row, []float32) {}
