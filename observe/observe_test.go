package observe_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

func TestMain(m *testing.M) {
	partest.OneThread()
	m.Run()
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// topOf returns the k keys with the largest positive weights, by sorting.
func topOf(weights []float32, k int) (keys []int, top []float32) {
	for j, w := range weights {
		if w > 0 {
			keys = append(keys, j)
		}
	}
	slices.SortStableFunc(keys, func(i, j int) int {
		switch {
		case weights[i] > weights[j]:
			return -1
		case weights[i] < weights[j]:
			return 1
		}
		return 0
	})
	keys = keys[:min(k, len(keys))]
	for _, j := range keys {
		top = append(top, weights[j])
	}
	for len(keys) < min(k, len(weights)) {
		keys, top = append(keys, -1), append(top, 0)
	}
	return keys, top
}

// The largest weights are found in rows of every length, with ties and zeros, for all k.
func TestTopKeysOfRows(t *testing.T) {
	rng := newRand(211)
	lengths := []int{0, 1, 2, 3, 5, 15, 16, 17, 31, 33, 47, 64, 100, 255, 257, 1023, 1024, 1025, 1040, 2100}
	for _, n := range lengths {
		for _, k := range []int{1, 2, 3, 8, 17, 64, 65, n, n + 3, math.MaxInt} {
			if k < 1 || k > 1000 && k < math.MaxInt {
				continue
			}
			top := &observe.TopKeys{K: k}
			const rows = 4
			top.Begin(attn.Sizes{B: 1, H: 1, G: 1, Lq: rows, Lk: n})
			for i := range rows {
				w := make([]float32, n)
				for j := range w {
					switch i {
					case 0: // ties
						w[j] = float32(rng.IntN(4)) / 4
					case 1: // few positive weights
						w[j] = max(0, rng.Float32()-0.9)
					case 2: // the smallest possible weights
						w[j] = math.Float32frombits(uint32(rng.IntN(3)))
					default:
						w[j] = rng.Float32()
					}
				}
				top.Row(attn.Row{Query: i}, w)
				keys, weights := top.Of(0, 0, i)
				wantKeys, want := topOf(w, k)
				if !slices.Equal(keys, wantKeys) || !slices.Equal(weights, want) {
					t.Fatalf("row %d of %d keys, top %d: keys %v %v, want %v %v", i, n, k, keys, weights, wantKeys, want)
				}
			}
		}
	}
}

// told collects everything that an observer receives, and checks that it receives each query
// once.
type told struct {
	t  *testing.T
	mu sync.Mutex
	s  attn.Sizes
	w  map[[3]int][]float32
}

func (o *told) Begin(s attn.Sizes) { o.s, o.w = s, map[[3]int][]float32{} }

func (o *told) Row(at attn.Row, w []float32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	row := [3]int{at.Batch, at.Head, at.Query}
	if o.w[row] != nil || len(w) != o.s.Lk || at.Key != 0 || at.Position != at.Query+o.s.Lk-o.s.Lq {
		o.t.Errorf("told of %d weights at %+v, the second time: %v; want %d, once", len(w), at, o.w[row] != nil, o.s.Lk)
	}
	o.w[row] = append([]float32{}, w...)
}

// watched are sizes for every path that calls observers.
var watched = map[string]attn.Sizes{
	"usual":                {B: 2, H: 6, G: 3, Lq: 5, Lk: 7},
	"a decoder's step":     {B: 2, H: 6, G: 2, Lq: 1, Lk: 1100},
	"few heads":            {B: 1, H: 3, G: 3, Lq: 203, Lk: 611},
	"many heads, one step": {B: 3, H: 16, G: 16, Lq: 1, Lk: 19},
	"no keys":              {B: 2, H: 2, G: 1, Lq: 3, Lk: 0},
}

// ownScore is a user-defined score, for which Attend needs an array of all scores.
func ownScore(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
	return tensor.MatMulT(t, tensor.ReLU(t, q), k)
}

// Observers compute statistics of the weights, for every form, in Attend and in a layer.
func TestObservers(t *testing.T) {
	for name, s := range watched {
		for what, score := range map[string]attn.Score{"fast": score.ScaledDot(), "given": score.Func(ownScore)} {
			t.Run(name+", "+what, func(t *testing.T) {
				rng := newRand(17)
				q, k, v := tensor.Randn(rng, s.B, s.H, s.Lq, 5), tensor.Randn(rng, s.B, s.G, s.Lk, 5), tensor.Randn(rng, s.B, s.G, s.Lk, 3)
				lens := make([]int, s.B)
				for b := range lens {
					lens[b] = s.Lq - b*s.Lq/(2*s.B)
				}
				checkObservers(t, s.B, s.H, s.Lq, s.Lk, func(o attn.Options) *tensor.Tensor {
					o.Score, o.Mask = score, attn.And(mask.Causal(), mask.QueryLengths(lens...))
					return attn.Attend(nil, q, k, v, o).Weights
				})
			})
		}
	}
	for _, layout := range []attn.Layout{attn.BatchFirst, attn.SequenceFirst} {
		m := newLayer(t, attn.MultiHeadConfig{Width: 12, Heads: 6, KVHeads: 2, Layout: layout, Sinks: true})
		x := tensor.Randn(newRand(223), 5, 5, 12)
		checkObservers(t, 5, 6, 5, 5, func(o attn.Options) *tensor.Tensor {
			o.Mask = mask.Causal()
			return m.Forward(nil, x, x, x, o).Weights
		})
	}
}

func newLayer(t *testing.T, c attn.MultiHeadConfig) *attn.MultiHead {
	t.Helper()
	m, err := attn.NewMultiHead(c, newRand(23))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func checkObservers(t *testing.T, b, h, lq, lk int, call func(attn.Options) *tensor.Tensor) {
	t.Helper()
	all, chosen := &told{t: t}, &observe.ChosenWeights{Heads: []int{h - 1, 0}, Queries: []int{lq - 1}}
	top, received, entropy := &observe.TopKeys{K: 3}, new(observe.Received), new(observe.Entropy)
	rows := []attn.Observer{all, chosen, top, received, entropy}
	if h == 1 {
		chosen.Heads = []int{0}
	}
	weights := call(attn.Options{Weights: true, Observers: rows})
	if n := len(all.w); n != b*h*lq {
		t.Fatalf("told of %d rows, want %d", n, b*h*lq)
	}
	total := tensor.Zeros(b, h, lk)
	for row, w := range all.w {
		i := (row[0]*h+row[1])*lq + row[2]
		tensortest.Same(t, fmt.Sprint("row ", row), w, weights.Data()[i*lk:][:lk])
		keys, best := top.Of(row[0], row[1], row[2])
		if wantKeys, want := topOf(w, 3); !slices.Equal(keys, wantKeys) || !slices.Equal(best, want) {
			t.Errorf("row %v: top keys %v %v, want %v %v", row, keys, best, wantKeys, want)
		}
		sum := 0.0
		for j, x := range w {
			total.Data()[(row[0]*h+row[1])*lk+j] += x
			if x > 0 {
				sum -= float64(x) * math.Log(float64(x))
			}
		}
		if got := entropy.Values().At(row[0], row[1], row[2]); math.Abs(float64(got)-sum) > 1e-5 {
			t.Errorf("row %v: entropy %v, want %v", row, got, sum)
		}
	}
	tensortest.Near(t, "received", received.Totals(), total)
	want := tensor.Concat(nil, 1, tensor.Slice(nil, weights, 1, h-1, h), tensor.Slice(nil, weights, 1, 0, 1))
	tensortest.Same(t, "chosen weights", chosen.Weights().Data(), tensor.Slice(nil, want, 2, lq-1, lq).Data())

	// If the weights are not requested, the statistics have the same bits.
	totals, values := received.Totals(), entropy.Values()
	call(attn.Options{Observers: rows})
	tensortest.Same(t, "received without weights", received.Totals().Data(), totals.Data())
	tensortest.Same(t, "entropy without weights", entropy.Values().Data(), values.Data())
	tensortest.Same(t, "chosen without weights", chosen.Weights().Data(), tensor.Slice(nil, want, 2, lq-1, lq).Data())
}

// The bits of a total do not depend on the order of the rows or on threads.
func TestReceivedInAnyOrder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	rng := newRand(227)
	for _, lq := range []int{1, 2, 3, 5, 8, 13, 31, 64, 77} {
		const lk = 19
		rows := make([][]float32, lq)
		exact := make([]float64, lk)
		for i := range rows {
			rows[i] = tensor.Uniform(rng, 0, 1, lk).Data()
			for j, w := range rows[i] {
				exact[j] += float64(w)
			}
		}
		var want []float32
		for try := range 7 {
			var r observe.Received
			r.Begin(attn.Sizes{B: 2, H: 3, G: 3, Lq: lq, Lk: lk})
			order := rng.Perm(lq)
			if try == 0 {
				slices.Sort(order)
			}
			var wait sync.WaitGroup
			for part := range 3 {
				wait.Go(func() {
					for n, i := range order {
						if n%3 == part {
							r.Row(attn.Row{Batch: 1, Head: 2, Query: i}, rows[i])
						}
					}
				})
			}
			wait.Wait()
			got := r.Totals()
			head := tensor.Index(nil, got, 1, 2).Data()
			if want == nil {
				want = slices.Clone(head)
				tensortest.Close(t, "totals", head, exact, 0)
			}
			tensortest.Same(t, fmt.Sprintf("%d rows in another order", lq), head, want)
			tensortest.Same(t, "totals of heads that received nothing", tensor.Index(nil, got, 0).Data(), make([]float32, 3*lk))
		}
	}
}

// Observers report NaN weights as such.
func TestObserversOfNaN(t *testing.T) {
	q, k := tensor.Randn(newRand(229), 1, 1, 3, 5), tensor.Randn(newRand(230), 1, 1, 7, 5)
	q.Data()[5] = float32(math.NaN()) // the second query
	top, received, entropy, chosen := &observe.TopKeys{K: 2}, new(observe.Received), new(observe.Entropy), new(observe.ChosenWeights)
	attn.Attend(nil, q, k, k, attn.Options{Mask: mask.Lengths(4), Observers: []attn.Observer{top, received, entropy, chosen}})
	keys, weights := top.Of(0, 0, 1)
	if !slices.Equal(keys, []int{-1, -1}) || weights[0] == weights[0] {
		t.Errorf("top keys of NaN: %v %v, want -1 and NaN", keys, weights)
	}
	if keys, weights := top.Of(0, 0, 0); keys[0] < 0 || weights[0] != weights[0] {
		t.Errorf("top keys beside NaN: %v %v", keys, weights)
	}
	for j, x := range received.Totals().Data() {
		if (x != x) != (j < 4) {
			t.Errorf("key %d received %v", j, x)
		}
	}
	for i, x := range entropy.Values().Data() {
		if (x != x) != (i == 1) {
			t.Errorf("the entropy of query %d is %v", i, x)
		}
	}
	for n, w := range chosen.Weights().Data() {
		if i, j := n/7, n%7; (w != w) != (i == 1 && j < 4) {
			t.Errorf("the weight of query %d for key %d is %v", i, j, w)
		}
	}
}

// Invalid settings of observers are rejected before anything is computed.
func TestObserversRefuse(t *testing.T) {
	x := tensor.Randn(newRand(233), 2, 3, 5, 7)
	attend := func(r attn.Observer) func() {
		return func() { attn.Attend(nil, x, x, x, attn.Options{Observers: []attn.Observer{r}}) }
	}
	top := &observe.TopKeys{K: 2}
	attend(top)()
	for _, c := range []struct {
		want  string
		shape bool
		f     func()
	}{
		{"observe: TopKeys: K is 0, want a positive number of keys", false, attend(new(observe.TopKeys))},
		{"observe: TopKeys: K is -3, want a positive number of keys", false, attend(&observe.TopKeys{K: -3})},
		{"observe: TopKeys: query has sequence, head and number [0 3 0], want less than [B=2 H=3 Lq=5]", true, func() { top.Of(0, 3, 0) }},
		{"observe: TopKeys: query has sequence, head and number [0 0 -1], want less than [B=2 H=3 Lq=5]", true, func() { top.Of(0, 0, -1) }},
		{"observe: ChosenWeights: heads has index 3, want 0 to below H=3", true, attend(&observe.ChosenWeights{Heads: []int{0, 3}})},
		{"observe: ChosenWeights: queries has index -1, want 0 to below Lq=5", true, attend(&observe.ChosenWeights{Queries: []int{-1}})},
		{"observe: ChosenWeights: heads is [2 0 2], want each number once", false, attend(&observe.ChosenWeights{Heads: []int{2, 0, 2}})},
		{"attn: Attend: observer is nil, want an Observer", false, attend(nil)},
	} {
		err := tensor.Catch(c.f)
		var shape *tensor.ShapeError
		if fmt.Sprint(err) != c.want || errors.As(err, &shape) != c.shape {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	none := &observe.ChosenWeights{Heads: []int{}}
	attend(none)()
	if got := none.Weights().Shape(); !slices.Equal(got, []int{2, 0, 5, 5}) {
		t.Errorf("no heads chosen: shape %v", got)
	}
}

// A layer without heads calls its observers with sizes of no heads, and they discard earlier
// results.
func TestObserversOfNoHeads(t *testing.T) {
	x := tensor.Randn(newRand(239), 2, 5, 12)
	received := new(observe.Received)
	for _, heads := range []int{3, attn.NoHeads} {
		m := newLayer(t, attn.MultiHeadConfig{Width: 12, Heads: heads})
		y := m.Forward(nil, x, x, x, attn.Options{Observers: []attn.Observer{received}, LogSumExp: true, Weights: true})
		h := m.Config().Heads
		for what, c := range map[string][2][]int{
			"received": {received.Totals().Shape(), {2, h, 5}}, "log-sum-exp": {y.LogSumExp.Shape(), {2, h, 5}}, "weights": {y.Weights.Shape(), {2, h, 5, 5}},
		} {
			if !slices.Equal(c[0], c[1]) {
				t.Errorf("%d heads: %s has shape %v, want %v", h, what, c[0], c[1])
			}
		}
	}
}
