package linear_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	_ "github.com/attn-go/attn/internal/par/partest" // as many threads as GOMAXPROCS
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/tensor"
)

// Outputs, states and gradients have the same bits for any number of threads.
func TestThreads(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, rule := range rules {
		for _, heads := range [][3]int{{1, 1, 1}, {6, 3, 3}} {
			x := newInputs(r, rule, 2, heads[0], heads[1], heads[2], 90, 12, 70)
			for _, p := range []*tensor.Tensor{x.q, x.k, x.v} {
				p.Param()
			}
			var want [][]float32
			for _, n := range []int{1, 2, 5} {
				runtime.GOMAXPROCS(n)
				tape := tensor.NewTape(tensor.Eval)
				for _, p := range []*tensor.Tensor{x.q, x.k, x.v} {
					p.ZeroGrad()
				}
				y := linear.Attend(tape, x.q, x.k, x.v, x.options())
				tape.Backward(tensor.Sum(tape, y.Out), nil)
				got := [][]float32{y.Out.Data(), y.State.Data()}
				for _, p := range []*tensor.Tensor{x.q, x.k, x.v} {
					got = append(got, slices.Clone(p.Grad().Data()))
				}
				if want == nil {
					want = got
				}
				for i := range got {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("%s, heads %v, %d threads: result %d has other bits", rule, heads, n, i)
					}
				}
			}
		}
	}
}

// Goroutines may share a layer, and continue forks of one state at the same time.
func TestForksAtOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(53, 54))
	for name, l := range layers(t, r) {
		x := tensor.Randn(r, 1, 9, 24)
		s, err := l.NewState(1)
		if err != nil {
			t.Fatal(err)
		}
		l.Extend(nil, tensor.Slice(nil, x, 1, 0, 5), s, linear.Options{})
		want := tensor.Slice(nil, l.Forward(nil, x, linear.Options{}).Out, 1, 5, 9)
		var all sync.WaitGroup
		for range 8 {
			fork := s.Select([]int{0})
			all.Go(func() {
				y := l.Extend(nil, tensor.Slice(nil, x, 1, 5, 9), fork, linear.Options{})
				if !slices.Equal(y.Out.Data(), want.Data()) {
					t.Errorf("%s: a fork has other bits", name)
				}
			})
		}
		all.Wait()
	}
}

// Blocks of columns of a state go to several threads, while several heads of queries read it: a step has the bits of one
// thread, and no thread reads what another changes.
func TestStepThreads(t *testing.T) {
	r := rand.New(rand.NewPCG(55, 56))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	x := newInputs(r, "gated_delta", 1, 3, 1, 1, 40, 12, 130)
	var want []float32
	for _, n := range []int{1, 5} {
		runtime.GOMAXPROCS(n)
		s, err := linear.NewState(linear.StateConfig{Batch: 1, Heads: 1, KeySize: 12, ValueSize: 130})
		if err != nil {
			t.Fatal(err)
		}
		var got []float32
		for at := 0; at < 40; at += 5 {
			part := func(x *tensor.Tensor) *tensor.Tensor { return tensor.Slice(nil, x, 2, at, at+5) }
			y := s.Attend(nil, part(x.q), part(x.k), part(x.v), linear.Options{Decay: part(x.decay), Beta: part(x.beta)})
			got = append(got, y.Out.Data()...)
		}
		if got = append(got, s.Tensor(nil).Data()...); want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d threads: other bits", n)
		}
	}
}
