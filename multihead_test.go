package attn_test

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// innerScores are scores that compare vectors of size 5, as the heads of the test layers do.
func innerScores() map[string]attn.Score {
	all := map[string]attn.Score{"default": nil, "own": score.Func(ownScore)}
	for _, kind := range score.Kinds() {
		all[kind.Name] = kind.New(score.Sizes{Query: 5, Key: 5, Hidden: 7}, newRand(2))
	}
	return all
}

// A decoder that runs step by step with cached keys and values computes the same bits as the
// whole sequence with a causal mask.
func TestCausalStepByStep(t *testing.T) {
	const b, l, d = 2, 19, 30
	for name, score := range innerScores() {
		t.Run(name, func(t *testing.T) {
			m := mustMultiHead(t, attn.MultiHeadConfig{Width: d, Heads: 6, KVHeads: 2, Bias: attn.AllProjections, Score: score})
			x := tensor.Randn(newRand(97), b, l, d)
			whole := m.Forward(nil, x, x, x, attn.Options{Mask: mask.Causal(), Weights: true})
			step := func(lo, hi int, cache *attn.Cache) {
				y := m.Extend(nil, pick(x, 1, lo, hi), cache, attn.Options{Mask: mask.Causal(), Weights: true})
				tensortest.Same(t, fmt.Sprint("out of step ", lo), y.Out.Data(), pick(whole.Out, 1, lo, hi).Data())
				rows := pick(pick(whole.Weights, 2, lo, hi), 3, 0, hi)
				tensortest.Same(t, fmt.Sprint("weights of step ", lo), y.Weights.Data(), rows.Data())
			}
			cache := mustCache(t, m, b, attn.CacheConfig{})
			for i := range l {
				step(i, i+1, cache)
			}
			cache = mustCache(t, m, b, attn.CacheConfig{}) // a whole prompt, then steps of two
			step(0, 11, cache)
			for i := 11; i < l; i += 2 {
				step(i, i+2, cache)
			}
		})
	}
}

// Select reduces a cache to some sequences of its batch, in another order.
func TestSelect(t *testing.T) {
	chosen := []int{2, 0, 2, 1}
	for _, layout := range []attn.Layout{attn.BatchFirst, attn.SequenceFirst} {
		swap := func(x *tensor.Tensor) *tensor.Tensor { // between BatchFirst and the layout
			if layout == attn.SequenceFirst {
				return tensor.Transpose(nil, x, 1, 0, 2)
			}
			return x
		}
		m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, Layout: layout})
		rng := newRand(101)
		q, k := tensor.Randn(rng, 3, 1, 12), swap(tensor.Randn(rng, 3, 7, 12))
		all := swap(m.Query(nil, swap(q), m.Project(nil, k, k), attn.Options{}).Out)
		some := m.Query(nil, swap(tensor.Gather(nil, q, chosen)), m.Project(nil, k, k).Select(nil, chosen), attn.Options{}).Out
		tensortest.Same(t, fmt.Sprintf("chosen, layout %d", layout), swap(some).Data(), tensor.Gather(nil, all, chosen).Data())
	}
	if kv := (attn.KV{}).Select(nil, chosen); kv.Len() != 0 {
		t.Error("an empty cache is not empty any more")
	}
}

// Selected sequences share memory with the originals. They give the same results and gradients as
// copies, on every path.
func TestSelectShares(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))   // 3 does not divide the number of heads
	lengths := [][2]int{{3, 11}, {3, 700}, {60, 300}} // heads one by one, blocks of keys, all threads on one head
	if testing.Short() {
		lengths = lengths[:1]
	}
	rng := newRand(359)
	r, u, v := tensor.Randn(rng, 5, 4), tensor.Randn(rng, 6, 4), tensor.Randn(rng, 6, 4)
	first, second := []int{2, 0, 2, 1, 1}, []int{4, 0, 1, 3, 2, 0, 0}
	for name, c := range map[string]struct {
		config attn.MultiHeadConfig
		o      attn.Options
	}{
		"default":              {},
		"mapped keys":          {config: attn.MultiHeadConfig{Score: score.NewAdditive(4, 4, 5, newRand(2))}},
		"own score":            {config: attn.MultiHeadConfig{Score: &score.Gaussian{}}},
		"sequence first":       {config: attn.MultiHeadConfig{Layout: attn.SequenceFirst}},
		"extra keys":           {config: attn.MultiHeadConfig{BiasKV: true, ZeroKV: true}},
		"bias by keys, masked": {o: attn.Options{Changes: position.TransformerXLBias(r, u, v), Mask: mask.Lengths(3, 7, 11, 0, 5, 2, 9)}},
		"lengths":              {o: attn.Options{KeyLens: []int{3, 7, 11, 0, 5, 2, 9}, Mask: mask.Causal()}},
	} {
		for _, l := range lengths {
			length := l[1]
			c.config.Width, c.config.Heads, c.config.KVHeads = 24, 6, 2
			m := mustMultiHead(t, c.config)
			q, k := tensor.Randn(rng, 7, l[0], 24), tensor.Randn(rng, 3, length, 24)
			copies := tensor.Gather(nil, tensor.Gather(nil, k, first), second)
			if c.config.Layout == attn.SequenceFirst {
				swap := func(x *tensor.Tensor) *tensor.Tensor { return tensor.Transpose(nil, x, 1, 0, 2) }
				q, k, copies = swap(q), swap(k), swap(copies)
			}
			c.o.Weights = true
			dout := tensor.Randn(rng, m.Query(nil, q, m.Project(nil, copies, copies), c.o).Out.Shape()...)
			run := func(k *tensor.Tensor, choose func(t *tensor.Tape, kv attn.KV) attn.KV, tape *tensor.Tape) trace {
				leaves := paramsOf(m)
				leaf := k.Clone().Param()
				y := m.Query(tape, q, choose(tape, m.Project(tape, leaf, leaf)), c.o)
				tape.Backward(y.Out, dout)
				return leave(y, leaves)
			}
			shared := func(t *tensor.Tape, kv attn.KV) attn.KV { return kv.Select(t, first).Select(t, second) }
			copied := func(_ *tensor.Tape, kv attn.KV) attn.KV { return kv }
			agree(t, run(k, shared, tensortest.Tape(tensor.Train)), run(copies, copied, tensortest.Tape(tensor.Train)))
			before := func(_ *tensor.Tape, kv attn.KV) attn.KV { return shared(nil, kv) } // selected without a tape
			agree(t, run(k, before, tensortest.Tape(tensor.Train)), run(copies, copied, tensortest.Tape(tensor.Train)))

			y := m.Query(nil, q, shared(nil, m.Project(nil, k, k)), c.o)
			want := m.Query(nil, q, m.Project(nil, copies, copies), c.o)
			tensortest.Same(t, name+": out", y.Out.Data(), want.Out.Data())
			tensortest.Same(t, name+": weights", y.Weights.Data(), want.Weights.Data())
		}
	}

	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 24, Heads: 6})
	x := tensor.Randn(rng, 2, 700, 24)
	kv := m.Project(nil, x, x)
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	for range 100 {
		kv = kv.Select(nil, []int{1, 0, 0, 1})
	}
	runtime.ReadMemStats(&end)
	if got, one := end.TotalAlloc-start.TotalAlloc, uint64(700*24*4); got > one {
		t.Errorf("choosing 400 sequences took %d bytes, want less than the %d of one", got, one)
	}
	wantError(t, tensor.Catch(func() { kv.Select(nil, []int{4}) }), `attn: Select: sequence is 4, want 0 to 3`)
}

func TestSequenceFirst(t *testing.T) {
	swap := func(x *tensor.Tensor) *tensor.Tensor { return tensor.Transpose(nil, x, 1, 0, 2) }
	config := attn.MultiHeadConfig{Width: 15, Heads: 3, KeyWidth: 7, ValueWidth: 11, Bias: attn.AllProjections}
	batch := mustMultiHead(t, config)
	config.Layout = attn.SequenceFirst
	sequence := mustMultiHead(t, config) // the same seed, so the same parameters
	rng := newRand(103)
	q, k, v := tensor.Randn(rng, 2, 5, 15), tensor.Randn(rng, 2, 13, 7), tensor.Randn(rng, 2, 13, 11)
	dout := tensor.Randn(rng, 2, 5, 15)
	o := attn.Options{Mask: mask.Lengths(13, 4), Bias: tensor.Randn(rng, 3, 5, 13), Weights: true}
	want := runLayer(batch, q, k, v, dout, o)
	got := runLayer(sequence, swap(q), swap(k), swap(v), swap(dout), o)
	// Gradients of parameters are sums over all vectors, in the order of memory.
	exactly := trace{"weights": got["weights"]}
	for _, name := range []string{"out", "dq", "dk", "dv"} {
		want[name] = swap(want[name])
		exactly[name] = got[name]
	}
	for name, x := range exactly {
		same(t, "sequence first", trace{name: x}, trace{name: want[name]})
	}
	near(t, "sequence first", got, want)
}

// One tensor for two or three inputs gives the same results as copies of it.
func TestSharedInputs(t *testing.T) {
	for _, layout := range []attn.Layout{attn.BatchFirst, attn.SequenceFirst} {
		m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, Layout: layout})
		rng := newRand(107)
		x, y := tensor.Randn(rng, 5, 5, 12), tensor.Randn(rng, 5, 5, 12)
		for name, in := range map[string][3]*tensor.Tensor{
			"self": {x, x, x}, "key and value": {x, y, y}, "query and key": {x, x, y}, "query and value": {x, y, x},
		} {
			got := m.Forward(nil, in[0], in[1], in[2], attn.Options{}).Out
			want := m.Forward(nil, in[0].Clone(), in[1].Clone(), in[2].Clone(), attn.Options{}).Out
			tensortest.Same(t, name, got.Data(), want.Data())
		}
	}
}

func TestInferredWidths(t *testing.T) {
	config := attn.MultiHeadConfig{Width: 15, Heads: 3, QueryWidth: attn.Infer, KeyWidth: 7, ValueWidth: attn.Infer}
	m := mustMultiHead(t, config)
	if n := nn.Count(m); n != 15*15 {
		t.Errorf("%d parameters before the first batch, want those of the output map only", n)
	}
	rng := newRand(109)
	q, k, v := tensor.Randn(rng, 2, 5, 13), tensor.Randn(rng, 2, 6, 7), tensor.Randn(rng, 2, 6, 11)
	wrong := tensor.Randn(rng, 2, 6, 8)
	if err := tensor.Catch(func() { m.Forward(nil, q, wrong, v, attn.Options{}) }); err == nil {
		t.Error("the first batch overrules a width that is given")
	}
	if m.Config().QueryWidth != attn.Infer {
		t.Error("a batch that does not fit has settled a width")
	}
	got := m.Forward(nil, q, k, v, attn.Options{}).Out
	if c := m.Config(); c.QueryWidth != 13 || c.KeyWidth != 7 || c.ValueWidth != 11 {
		t.Errorf("widths %d, %d and %d, want 13, 7 and 11", c.QueryWidth, c.KeyWidth, c.ValueWidth)
	}

	// Widths that are configured, passed to Build or inferred give the same layer.
	config.QueryWidth, config.ValueWidth = 13, 11
	given := mustMultiHead(t, config)
	tensortest.Same(t, "given widths", given.Forward(nil, q, k, v, attn.Options{}).Out.Data(), got.Data())
	config.QueryWidth, config.ValueWidth = attn.Infer, attn.Infer
	built := mustMultiHead(t, config)
	built.Build(13, 7, 11)
	if nn.Count(built) != nn.Count(given) {
		t.Errorf("%d parameters, want %d", nn.Count(built), nn.Count(given))
	}
	tensortest.Same(t, "built early", built.Forward(nil, q, k, v, attn.Options{}).Out.Data(), got.Data())
	other := mustMultiHead(t, config)
	other.Build(13, 8, 11)
	if n := other.K.Weight.Dim(1); n != 7 {
		t.Errorf("Build has changed a width that is given to %d", n)
	}
}

// An optimiser may be created before the first batch has set the widths.
func TestInferredWidthsAreTrained(t *testing.T) {
	for kind, create := range map[string]func(nn.Module) optim.Optimizer{
		"SGD":   func(m nn.Module) optim.Optimizer { return optim.NewSGD(m) },
		"AdamW": func(m nn.Module) optim.Optimizer { return optim.NewAdamW(m) },
	} {
		var losses [2]float32
		var params [2][]float32
		for i, early := range []bool{true, false} {
			m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, QueryWidth: attn.Infer, KeyWidth: attn.Infer, ValueWidth: attn.Infer})
			x := tensor.Randn(newRand(157), 2, 5, 12)
			if early {
				m.Build(12, 12, 12)
			}
			optimizer := create(m)
			tape := tensor.NewTape(tensor.Train)
			for range 5 {
				tape.Reset()
				optim.ZeroGrad(m)
				loss := nn.MSE(tape, m.Forward(tape, x, x, x, attn.Options{}).Out, tensor.Full(1, 2, 5, 12))
				tape.Backward(loss, nil)
				losses[i] = loss.Item()
				optimizer.Step(0.01)
			}
			for _, p := range m.Params() {
				params[i] = append(params[i], p.Data()...)
			}
		}
		if losses[0] != losses[1] {
			t.Errorf("%s: loss %v, and %v where the layer was built first", kind, losses[1], losses[0])
		}
		tensortest.Same(t, kind+": parameters", params[1], params[0])
	}
}

// twoLayers is a user-defined module.
type twoLayers struct{ first, second *attn.MultiHead }

func (m twoLayers) Params() nn.Params {
	return nn.Join(nn.Named{Name: "first", Module: m.first}, nn.Named{Name: "second", Module: m.second})
}

// A layer without widths is not saved, and loading a file sets the widths as a batch does.
func TestInferredWidthsOfFiles(t *testing.T) {
	config := attn.MultiHeadConfig{
		Width: 15, Heads: 3, QueryWidth: attn.Infer, KeyWidth: 7, ValueWidth: attn.Infer, Bias: attn.Query | attn.Value, Init: nn.NewLinear,
	}
	make := func() twoLayers {
		return twoLayers{mustMultiHead(t, config), mustMultiHead(t, attn.MultiHeadConfig{Width: 15, Heads: 3})}
	}
	saved, loaded := make(), make()
	path := filepath.Join(t.TempDir(), "model.safetensors")
	wantError(t, statedict.Save(path, saved, statedict.SaveOptions{}),
		`statedict: Save: parameter "first.k.weight" has no shape yet: call Build or Forward on its layer first`)
	saved.first.Build(13, 7, 11)
	if err := statedict.Save(path, saved, statedict.SaveOptions{}); err != nil {
		t.Fatal(err)
	}

	config.KeyWidth = 8
	other := make()
	wantError(t, statedict.Load(path, other, statedict.LoadOptions{}), `.*: tensor "first.k.weight" has shape \[15 7\], want \[15 8\]`)
	if c := other.first.Config(); c.QueryWidth != attn.Infer || other.first.Q != nil {
		t.Errorf("a file that does not fit has settled a width: %d", c.QueryWidth)
	}
	if err := statedict.Load(path, loaded, statedict.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if c := loaded.first.Config(); c.QueryWidth != 13 || c.KeyWidth != 7 || c.ValueWidth != 11 || loaded.first.Q == nil {
		t.Errorf("widths %d, %d and %d, want 13, 7 and 11", c.QueryWidth, c.KeyWidth, c.ValueWidth)
	}
	if n := nn.Count(loaded); n != nn.Count(saved) {
		t.Errorf("%d parameters, want %d", n, nn.Count(saved))
	}
	rng := newRand(113)
	q, k, v := tensor.Randn(rng, 2, 5, 13), tensor.Randn(rng, 2, 6, 7), tensor.Randn(rng, 2, 6, 11)
	out := func(m twoLayers) []float32 { return m.first.Forward(nil, q, k, v, attn.Options{}).Out.Data() }
	tensortest.Same(t, "after loading", out(loaded), out(saved))
	// It trains like any other layer.
	tape := tensor.NewTape(tensor.Train)
	tape.Backward(tensor.Sum(tape, loaded.first.Forward(tape, q, k, v, attn.Options{}).Out), nil)
	for name, p := range loaded.first.Params() {
		if p.Grad() == nil {
			t.Errorf("no gradient has come to %s", name)
		}
	}
	if err := statedict.Load(path, loaded, statedict.LoadOptions{}); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// Init also creates biases: nn.NewLinear draws them, as PyTorch's Linear does; by default they
// are 0, as in MultiheadAttention.
func TestInitOfBiases(t *testing.T) {
	config := attn.MultiHeadConfig{Width: 120, Heads: 3, Bias: attn.AllProjections}
	plain, err := attn.NewMultiHead(config, newRand(1))
	if err != nil {
		t.Fatal(err)
	}
	config.Init = nn.NewLinear
	drawn, err := attn.NewMultiHead(config, newRand(1))
	if err != nil {
		t.Fatal(err)
	}
	bound := 1 / math.Sqrt(120)
	for name, p := range drawn.Params() {
		var squares float64
		for _, x := range p.Data() {
			squares += float64(x) * float64(x)
			if math.Abs(float64(x)) > bound {
				t.Fatalf("%s has %v, want at most %v", name, x, bound)
			}
		}
		if std := math.Sqrt(squares / float64(p.Len())); math.Abs(std*math.Sqrt(3)/bound-1) > 0.2 {
			t.Errorf("%s has standard deviation %v, want %v", name, std, bound/math.Sqrt(3))
		}
	}
	for _, l := range []*nn.Linear{plain.Q, plain.K, plain.V, plain.Out} {
		tensortest.Same(t, "bias", l.Bias.Data(), make([]float32, 120))
	}
}

// Goroutines may share a layer from its first batch on.
func TestFirstBatchOfManyGoroutines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for range 10 {
		m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, QueryWidth: attn.Infer, KeyWidth: attn.Infer, ValueWidth: attn.Infer})
		x := tensor.Randn(newRand(163), 2, 5, 12)
		var outs [4]*tensor.Tensor
		var wait sync.WaitGroup
		start := make(chan struct{})
		run := func(f func()) {
			wait.Go(func() {
				<-start
				f()
			})
		}
		for i := range outs {
			run(func() { outs[i] = m.Forward(nil, x, x, x, attn.Options{}).Out })
		}
		run(func() { nn.Count(m) })
		run(func() { m.Config() })
		run(func() { // if it is built
			_ = tensor.Catch(func() { m.Query(nil, x, m.Project(nil, x, x), attn.Options{}) })
		})
		close(start)
		wait.Wait()
		want := m.Forward(nil, x, x, x, attn.Options{}).Out
		for _, out := range outs {
			tensortest.Same(t, "the first batch", out.Data(), want.Data())
		}
	}
}

func TestParams(t *testing.T) {
	names := func(c attn.MultiHeadConfig) (names []string) {
		c.Width, c.Heads = 10, 2
		for name := range mustMultiHead(t, c).Params() {
			names = append(names, name)
		}
		return names
	}
	check := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("parameters %v, want %v", got, want)
		}
	}
	check(names(attn.MultiHeadConfig{Score: score.NewAdditive(5, 5, 3, newRand(1))}),
		"q.weight", "k.weight", "v.weight", "out.weight", "score.wq", "score.wk", "score.wv")
	check(names(attn.MultiHeadConfig{Bias: attn.Query}), "q.weight", "q.bias", "k.weight", "v.weight", "out.weight")
	check(names(attn.MultiHeadConfig{Bias: attn.Key}), "q.weight", "k.weight", "k.bias", "v.weight", "out.weight")
	check(names(attn.MultiHeadConfig{Bias: attn.Value}), "q.weight", "k.weight", "v.weight", "v.bias", "out.weight")
	check(names(attn.MultiHeadConfig{Bias: attn.Out}), "q.weight", "k.weight", "v.weight", "out.weight", "out.bias")
}

func TestObserver(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Name: "encoder.0", Width: 12, Heads: 3, Dropout: 0.5})
	x := tensor.Randn(newRand(113), 2, 5, 12).Param()
	for _, tape := range []*tensor.Tape{nil, tensortest.Tape(tensor.Train)} {
		for layer, want := range map[string]string{"": "encoder.0", "other": "other"} {
			told := 0
			var seen *tensor.Tensor
			y := m.Forward(tape, x, x, x, attn.Options{Weights: true, Layer: layer, Observers: []attn.Observer{observe.Weights(func(layer string, weights *tensor.Tensor) {
				told++
				seen = weights
				if layer != want {
					t.Errorf("told of %q, want %q", layer, want)
				}
			})}})
			if told != 1 {
				t.Fatalf("told %d times, want once", told)
			}
			if seen.NeedsGrad() {
				t.Error("a gradient flows through what is observed")
			}
			if !slices.Equal(seen.Shape(), []int{2, 3, 5, 5}) {
				t.Errorf("observed shape %v", seen.Shape())
			}
			tensortest.Same(t, "observed", seen.Data(), y.Weights.Data())
		}
	}
	// Without a head axis, the observer receives one head.
	attn.Attend(nil, x, x, x, attn.Options{Observers: []attn.Observer{observe.Weights(func(_ string, weights *tensor.Tensor) {
		if !slices.Equal(weights.Shape(), []int{2, 1, 5, 5}) {
			t.Errorf("observed shape %v of one head", weights.Shape())
		}
	})}})
}

// Examples from courses.
func TestKnownShapes(t *testing.T) {
	rng := newRand(127)
	for _, c := range []struct {
		name                string
		config              attn.MultiHeadConfig
		b, lq, lk           int
		out, weights        []int
		mask                attn.Mask
		query, key, perHead int
	}{
		{"cross", attn.MultiHeadConfig{Width: 128, Heads: 8, Bias: attn.AllProjections}, 2, 5, 7, []int{2, 5, 128}, []int{2, 8, 5, 7}, attn.Mask{}, 128, 128, 16},
		{"mask and dropout", attn.MultiHeadConfig{Width: 300, Heads: 6, Bias: attn.AllProjections, Dropout: 0.1}, 64, 12, 10, []int{64, 12, 300}, []int{64, 6, 12, 10}, mask.Allow(make([]bool, 10), 10), 300, 300, 50},
		{"valid lengths", attn.MultiHeadConfig{Width: 100, Heads: 5, Dropout: 0.5}, 2, 4, 6, []int{2, 4, 100}, []int{2, 5, 4, 6}, mask.Lengths(3, 2), 100, 100, 20},
		{"two widths", attn.MultiHeadConfig{Width: 128, Heads: 8, QueryWidth: 64, KeyWidth: attn.Infer, ValueWidth: attn.Infer}, 2, 5, 7, []int{2, 5, 128}, []int{2, 8, 5, 7}, mask.Causal(), 64, 32, 16},
	} {
		m := mustMultiHead(t, c.config)
		q, k := tensor.Randn(rng, c.b, c.lq, c.query), tensor.Randn(rng, c.b, c.lk, c.key)
		y := m.Forward(tensortest.Tape(tensor.Train), q, k, k, attn.Options{Mask: c.mask, Weights: true})
		if !slices.Equal(y.Out.Shape(), c.out) || !slices.Equal(y.Weights.Shape(), c.weights) {
			t.Errorf("%s: out %v and weights %v, want %v and %v", c.name, y.Out.Shape(), y.Weights.Shape(), c.out, c.weights)
		}
		if e := m.Config().HeadSize; e != c.perHead {
			t.Errorf("%s: heads of size %d, want %d", c.name, e, c.perHead)
		}
	}
}

// In both layouts, Extend gives step by step the result of Forward for the whole sequence.
func TestExtend(t *testing.T) {
	for _, bias := range []attn.Projections{attn.NoProjection, attn.AllProjections, attn.Query} {
		for _, config := range []attn.MultiHeadConfig{
			{Width: 12, Heads: 3, Bias: bias}, {Width: 12, Heads: 4, KVHeads: 2, HeadSize: 5, ValueSize: 7, Bias: bias},
		} {
			for _, layout := range []attn.Layout{attn.BatchFirst, attn.SequenceFirst} {
				config.Layout = layout
				m := mustMultiHead(t, config)
				x, axis := tensor.Randn(newRand(137), 2, 9, 12), 1
				if layout == attn.SequenceFirst {
					x, axis = tensor.Transpose(nil, x, 1, 0, 2), 0
				}
				o := attn.Options{Mask: mask.Causal()}
				whole := m.Forward(nil, x, x, x, o).Out
				cache := mustCache(t, m, 2, attn.CacheConfig{})
				for _, step := range [][2]int{{0, 4}, {4, 5}, {5, 9}} {
					now := pick(x, axis, step[0], step[1])
					y := m.Extend(nil, now, cache, o)
					what := fmt.Sprintf("layout %d, step %v", layout, step)
					tensortest.Same(t, what, y.Out.Data(), pick(whole, axis, step[0], step[1]).Data())
					tensortest.Same(t, "query of the cache, "+what, m.Query(nil, now, cache.KV(), o).Out.Data(), y.Out.Data())
					some := []int{1, 1, 0}
					again := m.Query(nil, choose(now, 1-axis, some), cache.KV().Select(nil, some), o).Out
					tensortest.Same(t, "query of chosen sequences, "+what, again.Data(), choose(y.Out, 1-axis, some).Data())
					if lens := cache.Lens(); !slices.Equal(lens, []int{step[1], step[1]}) {
						t.Errorf("after step %v: %v keys", step, lens)
					}
				}
			}
		}
	}
}

// choose returns rows of an axis.
func choose(x *tensor.Tensor, axis int, rows []int) *tensor.Tensor {
	var all []*tensor.Tensor
	for _, i := range rows {
		all = append(all, tensor.Slice(nil, x, axis, i, i+1))
	}
	return tensor.Concat(nil, axis, all...)
}

// The projections of a layer may be replaced at any time.
func TestReplacedProjections(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3})
	other := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3})
	x := tensor.Randn(newRand(139), 2, 5, 12)
	before := m.Forward(nil, x, x, x, attn.Options{}).Out
	for i := range other.K.Weight.Data() {
		other.K.Weight.Data()[i] *= 2
	}
	want := other.Forward(nil, x, x, x, attn.Options{}).Out
	m.K = other.K
	got := m.Forward(nil, x, x, x, attn.Options{}).Out
	tensortest.Same(t, "with the other's key map", got.Data(), want.Data())
	same := true
	for i, v := range before.Data() {
		same = same && v == got.Data()[i]
	}
	if same {
		t.Error("another key map makes no difference")
	}
}

// Padding after the keys of a call changes no bit, because the extra keys come first.
func TestExtraKeysAndPadding(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 24, Heads: 6, KVHeads: 2, BiasKV: true, ZeroKV: true, Sinks: true})
	rng := newRand(367)
	q, k := tensor.Randn(rng, 2, 5, 24), tensor.Randn(rng, 2, 1100, 24)
	for _, n := range []int{0, 7, 509, 510, 511, 512, 600} {
		short := pick(k, 1, 0, n)
		want := m.Forward(nil, q, short, short, attn.Options{LogSumExp: true})
		got := m.Forward(nil, q, k, k, attn.Options{Mask: mask.Lengths(n, n), LogSumExp: true})
		tensortest.Same(t, fmt.Sprint("out of ", n), got.Out.Data(), want.Out.Data())
		tensortest.Same(t, fmt.Sprint("log-sum-exp of ", n), got.LogSumExp.Data(), want.LogSumExp.Data())
		got = m.Forward(nil, q, k, k, attn.Options{KeyLens: []int{n, n}})
		tensortest.Same(t, fmt.Sprint("out of lengths ", n), got.Out.Data(), want.Out.Data())
	}
}

// Requesting weights or using more threads changes no bit.
func TestExtraKeysAndWeights(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 24, Heads: 6, BiasKV: true})
	x := tensor.Randn(newRand(373), 3, 70, 24)
	o := attn.Options{Mask: mask.Window(5, 0)}
	want := m.Forward(nil, x, x, x, o).Out
	o.Weights = true
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	y := m.Forward(nil, x, x, x, o)
	tensortest.Same(t, "out", y.Out.Data(), want.Data())
	each(y.Weights, func(b, h, i, j int, w *float32) {
		if (*w > 0) != (j <= i && j >= i-5) {
			t.Fatalf("query %d attends to key %d with weight %v", i, j, *w)
		}
	})
}

// If all scores are below the range of float32, the query attends to the nearest key, which may
// be an extra key.
func TestExtraKeysFarAway(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 1, Heads: 1, BiasKV: true, Score: &score.Gaussian{}})
	for _, x := range []*tensor.Tensor{m.Q.Weight, m.K.Weight, m.V.Weight, m.Out.Weight} {
		x.Data()[0] = 1
	}
	m.BiasK.Data()[0], m.BiasV.Data()[0] = 3e25, 7
	q, k := tensor.New([]float32{9e25, 2.9e25, 1.1e25}, 1, 3, 1), tensor.New([]float32{1e25, 2e25, 8e25}, 1, 3, 1)
	v := tensor.New([]float32{1, 2, 3}, 1, 3, 1)
	out := m.Forward(nil, q, k, v, attn.Options{}).Out.Data()
	tensortest.Same(t, "out", out, []float32{3, 7, 1})
}

func TestExtraKeysRefused(t *testing.T) {
	plain := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3})
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, ZeroKV: true})
	_, err := m.NewCache(2, attn.CacheConfig{})
	wantError(t, err, `attn: NewCache: a layer with BiasKV or ZeroKV cannot use a cache, want a layer without them`)
	x := tensor.Zeros(2, 5, 12)
	wantError(t, tensor.Catch(func() { m.Extend(nil, x, mustCache(t, plain, 2, attn.CacheConfig{}), attn.Options{}) }),
		`attn: MultiHead: cache is for a layer with BiasKV or ZeroKV, want a layer without them`)
	wantError(t, tensor.Catch(func() { m.Query(nil, x, mustCache(t, plain, 2, attn.CacheConfig{}).KV(), attn.Options{}) }),
		`attn: MultiHead: cache is for a layer with BiasKV or ZeroKV, want a layer without them`)
	other := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 4})
	wantError(t, tensor.Catch(func() { other.Query(nil, x, mustCache(t, plain, 2, attn.CacheConfig{}).KV(), attn.Options{}) }),
		`attn: MultiHead: cache has heads and sizes \[3 4 4\], want \[G=4 E=3 V=3\]`)
	wantError(t, tensor.Catch(func() {
		plain.Query(tensor.NewTape(tensor.Train), x, mustCache(t, plain, 2, attn.CacheConfig{}).KV(), attn.Options{})
	}), `attn: MultiHead: tape is one that records, want nil or one of mode Infer: no gradient passes through a cache`)
	wantError(t, tensor.Catch(func() { m.Query(nil, x, plain.Project(nil, x, x), attn.Options{}) }),
		`attn: MultiHead: kv is from a layer with different BiasKV or ZeroKV, want one from Project of this layer`)
	wantError(t, tensor.Catch(func() { m.Forward(nil, x, x, x, attn.Options{Mask: mask.Lengths(6, 1)}) }),
		`attn: MultiHead: mask has valid length 6, want 0 to Lk=5`)
	if n := m.Project(nil, x, x).Len(); n != 5 {
		t.Errorf("%d keys, want 5", n)
	}
}
