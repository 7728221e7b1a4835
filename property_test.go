package attn_test

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Requesting weights, observing them and using their gradient change no other result.
func TestWeightsChangeNothing(t *testing.T) {
	eachScore(t, func(t *testing.T, c scoreCase) {
		with := newCall(c, usual).bias(usual.h, usual.lq, usual.lk).mask(mask.Causal())
		with.dweights = nil
		without := with
		without.o.Weights = false
		with.o.Observers = []attn.Observer{observe.Weights(func(string, *tensor.Tensor) {})}
		same(t, "with weights", with.run(), without.run())
		if without.run()["weights"] != nil {
			t.Error("weights that nobody asked for")
		}
	})
}

// onThreads runs f with 1, 2 and 3 threads.
func onThreads(t *testing.T, f func(threads int)) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for n := 1; n <= 3; n++ {
		runtime.GOMAXPROCS(n)
		f(n)
	}
}

func TestThreadsChangeNothing(t *testing.T) {
	// Long enough for several chunks of every kernel.
	s := sizes{b: 2, h: 4, g: 2, lq: 67, lk: 131, v: 17}
	eachScore(t, func(t *testing.T, c scoreCase) {
		if c.name == "own" {
			c.eq, c.ek = 37, 37 // large products
		}
		x := newCall(c, s).bias(s.h, s.lq, s.lk).mask(attn.And(mask.Causal(), mask.Lengths(131, 97)))
		x.o.SoftCap, x.o.Dropout = 5, 0.2
		var want trace
		onThreads(t, func(n int) {
			got := x.run()
			if want == nil {
				want = got
			}
			same(t, fmt.Sprint(n, " threads"), got, want)
		})
	})
}

func TestMultiHeadThreadsChangeNothing(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 96, Heads: 6, KVHeads: 2, Bias: attn.AllProjections, Dropout: 0.1})
	rng := newRand(31)
	x, y := tensor.Randn(rng, 3, 71, 96), tensor.Randn(rng, 3, 83, 96)
	dout := tensor.Randn(rng, 3, 71, 96)
	var want trace
	onThreads(t, func(n int) {
		got := runLayer(m, x, y, y, dout, attn.Options{Weights: true})
		if want == nil {
			want = got
		}
		same(t, fmt.Sprint(n, " threads"), got, want)
	})
}

// A sequence has the same result and gradients alone and in a batch.
func TestBatchChangesNothing(t *testing.T) {
	s := usual
	s.b = 3
	lens := []int{7, 0, 4}
	eachScore(t, func(t *testing.T, c scoreCase) {
		all := newCall(c, s).bias(s.b, 1, s.lq, s.lk).mask(mask.Lengths(lens...))
		batch := all.run()
		for b := range s.b {
			one := all.mask(mask.Lengths(lens[b]))
			one.o.Bias = pick(all.o.Bias, 0, b, b+1)
			one.q, one.k, one.v = pick(all.q, 0, b, b+1), pick(all.k, 0, b, b+1), pick(all.v, 0, b, b+1)
			one.dout, one.dweights = pick(all.dout, 0, b, b+1), pick(all.dweights, 0, b, b+1)
			alone := one.run()
			for _, name := range []string{"out", "weights", "dq", "dk", "dv", "dbias"} {
				tensortest.Same(t, fmt.Sprint("sequence ", b, " alone: ", name), alone[name].Data(), pick(batch[name], 0, b, b+1).Data())
			}
		}
	})
}

// Padding has no influence and no gradient, whatever it contains. Queries are padded as well;
// their upstream gradient is zero, as from a loss that ignores them.
func TestPaddingChangesNothing(t *testing.T) {
	s := usual
	s.b = 1 // so that gradients of parameters sum the same terms
	const moreQ, moreK = 2, 18
	eachScore(t, func(t *testing.T, c scoreCase) {
		tight := newCall(c, s).bias(s.h, s.lq, s.lk)
		want := tight.run()

		rng := newRand(37)
		pad := func(x *tensor.Tensor, axis, n int, value float32) *tensor.Tensor {
			shape := append([]int(nil), x.Shape()...)
			shape[axis] = n
			more := tensor.Randn(rng, shape...)
			if value == 0 {
				more = tensor.Zeros(shape...)
			}
			return tensor.Concat(nil, axis, x, more)
		}
		padded := tight.mask(mask.Lengths(s.lk))
		padded.q = pad(tight.q, 2, moreQ, 1)
		padded.k, padded.v = pad(tight.k, 2, moreK, 1), pad(tight.v, 2, moreK, 1)
		padded.dout = pad(tight.dout, 2, moreQ, 0)
		padded.dweights = pad(pad(tight.dweights, 2, moreQ, 0), 3, moreK, 1)
		padded.o.Bias = pad(pad(tight.o.Bias, 1, moreQ, 1), 2, moreK, 1)
		got := padded.run()
		for _, name := range []string{"dk", "dv"} {
			if m := magnitude(pick(got[name], 2, s.lk, s.lk+moreK)); m != 0 {
				t.Errorf("%s of padding reaches %v, want 0", name, m)
			}
			got[name] = pick(got[name], 2, 0, s.lk)
		}
		got["out"], got["dq"] = pick(got["out"], 2, 0, s.lq), pick(got["dq"], 2, 0, s.lq)
		got["weights"] = pick(pick(got["weights"], 2, 0, s.lq), 3, 0, s.lk)
		got["dbias"] = pick(pick(got["dbias"], 1, 0, s.lq), 2, 0, s.lk)
		same(t, "padded", got, want)
	})
}

// The same for a layer, including the gradients of its maps.
func TestMultiHeadPaddingChangesNothing(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 24, Heads: 6, KVHeads: 2, KeyWidth: 7, Bias: attn.AllProjections})
	rng := newRand(137)
	q, k, v := tensor.Randn(rng, 1, 5, 24), tensor.Randn(rng, 1, 7, 7), tensor.Randn(rng, 1, 7, 24)
	dout := tensor.Randn(rng, 1, 5, 24)
	want := runLayer(m, q, k, v, dout, attn.Options{})
	padded := func(x *tensor.Tensor) *tensor.Tensor {
		return tensor.Concat(nil, 1, x, tensor.Randn(rng, 1, 11, x.Dim(2)))
	}
	got := runLayer(m, q, padded(k), padded(v), dout, attn.Options{Mask: mask.Lengths(7)})
	got["dk"], got["dv"] = pick(got["dk"], 1, 0, 7), pick(got["dv"], 1, 0, 7)
	same(t, "padded", got, want)
}

// Each head gives the same result as if it were the only one.
func TestHeadsAreIndependent(t *testing.T) {
	eachScore(t, func(t *testing.T, c scoreCase) {
		all := newCall(c, usual).bias(usual.h, usual.lq, usual.lk).mask(mask.Causal())
		want := all.run()
		for h := range usual.h {
			g := h / (usual.h / usual.g) // the key head of the query head
			one := all
			one.q, one.k, one.v = pick(all.q, 1, h, h+1), pick(all.k, 1, g, g+1), pick(all.v, 1, g, g+1)
			one.dout, one.dweights = pick(all.dout, 1, h, h+1), pick(all.dweights, 1, h, h+1)
			one.o.Bias = pick(all.o.Bias, 0, h, h+1)
			got := one.run()
			for _, name := range []string{"out", "weights", "dq"} {
				tensortest.Same(t, fmt.Sprint("head ", h, " alone: ", name), got[name].Data(), pick(want[name], 1, h, h+1).Data())
			}
			tensortest.Same(t, fmt.Sprint("head ", h, " alone: dbias"), got["dbias"].Data(), pick(want["dbias"], 0, h, h+1).Data())
		}
	})
}

// The order of the keys and values does not matter.
func TestOrderOfKeysChangesNothing(t *testing.T) {
	order := []int{3, 0, 6, 5, 1, 2, 4}
	shuffle := func(x *tensor.Tensor, axis int) *tensor.Tensor {
		parts := make([]*tensor.Tensor, len(order))
		for j, from := range order {
			parts[j] = pick(x, axis, from, from+1)
		}
		return tensor.Concat(nil, axis, parts...)
	}
	seen := []bool{true, true, false, true, false, true, true}
	shuffled := make([]bool, len(seen))
	for j, from := range order {
		shuffled[j] = seen[from]
	}
	eachScore(t, func(t *testing.T, c scoreCase) {
		x := newCall(c, usual).bias(usual.h, usual.lq, usual.lk).mask(mask.Allow(seen, len(seen)))
		want := x.run()
		for name, axis := range map[string]int{"weights": 3, "dk": 2, "dv": 2, "dbias": 2} {
			want[name] = shuffle(want[name], axis)
		}
		x.k, x.v = shuffle(x.k, 2), shuffle(x.v, 2)
		x.o.Bias, x.dweights = shuffle(x.o.Bias, 2), shuffle(x.dweights, 3)
		near(t, "shuffled", x.mask(mask.Allow(shuffled, len(seen))).run(), want)
	})
}

// Heads that share keys and values compute the same as heads with copies of them.
func TestGroupsEqualRepeatedHeads(t *testing.T) {
	group := usual.h / usual.g
	repeat := func(x *tensor.Tensor) *tensor.Tensor {
		var parts []*tensor.Tensor
		for h := range usual.h {
			parts = append(parts, pick(x, 1, h/group, h/group+1))
		}
		return tensor.Concat(nil, 1, parts...)
	}
	seen := make([]bool, usual.h*usual.lk) // each head has separate keys
	for i := range seen {
		seen[i] = i%3 != 0
	}
	eachScore(t, func(t *testing.T, c scoreCase) {
		x := newCall(c, usual).bias(usual.h, usual.lq, usual.lk).
			mask(attn.And(mask.Allow(seen, usual.h, 1, usual.lk), mask.Window(4, 1)))
		x.o.SoftCap = 4
		grouped := x.run()
		x.k, x.v = repeat(x.k), repeat(x.v)
		repeated := x.run()
		for _, name := range []string{"dk", "dv"} { // the gradient of a shared head is the sum
			d := repeated[name]
			repeated[name] = tensor.SumAxis(nil, tensor.Reshape(nil, d, d.Dim(0), usual.g, group, d.Dim(2), d.Dim(3)), 2)
		}
		near(t, "grouped", grouped, repeated)
		for _, name := range []string{"out", "weights"} {
			tensortest.Same(t, name, grouped[name].Data(), repeated[name].Data())
		}
	})
}

// Three axes are equivalent to four axes with one head.
func TestThreeAxes(t *testing.T) {
	s := sizes{b: 2, h: 1, g: 1, lq: 5, lk: 7, v: 3}
	seen := make([]bool, s.b*s.lq*s.lk)
	for i := range seen {
		seen[i] = i%4 != 0
	}
	flat := func(x *tensor.Tensor) *tensor.Tensor { return tensor.Reshape(nil, x, x.Dim(0), x.Dim(2), x.Dim(3)) }
	eachScore(t, func(t *testing.T, c scoreCase) {
		four := newCall(c, s).bias(s.b, 1, s.lq, s.lk).mask(mask.Allow(seen, s.b, 1, s.lq, s.lk))
		three := four.mask(mask.Allow(seen, s.b, s.lq, s.lk))
		three.q, three.k, three.v = flat(four.q), flat(four.k), flat(four.v)
		three.dout, three.dweights = flat(four.dout), flat(four.dweights)
		three.o.Bias = flat(four.o.Bias)
		want := four.run()
		for _, name := range []string{"out", "weights", "dq", "dk", "dv", "dbias"} {
			want[name] = flat(want[name])
		}
		same(t, "three axes", three.run(), want)
	})
}

// OnKeys changes no result.
func TestOnKeys(t *testing.T) {
	eachScore(t, func(t *testing.T, c scoreCase) {
		x := newCall(c, usual).mask(mask.Causal())
		want := x.run()
		inner := x.o.Score
		// The keys must be the keys of the call, on the tape of the call.
		x.o.Score = nil
		tape := tensortest.Tape(tensor.Train)
		q, k, v := x.q.Clone().Param(), x.k.Clone().Param(), x.v.Clone().Param()
		leaves := paramsOf(inner)
		leaves["dq"], leaves["dk"], leaves["dv"] = q, k, v
		x.o.Score = score.OnKeys(tape, inner, k)
		y := attn.Attend(tape, q, k, v, x.o)
		tape.BackwardAll([]*tensor.Tensor{y.Out, y.Weights}, []*tensor.Tensor{x.dout, x.dweights})
		same(t, "on keys", leave(y, leaves), want)
	})
}

// layers are configurations whose queries are computed in different ways.
func layers(t *testing.T) map[string]*attn.MultiHead {
	return map[string]*attn.MultiHead{
		"scaled dot": mustMultiHead(t, attn.MultiHeadConfig{Width: 24, Heads: 3, Bias: attn.AllProjections}),
		"grouped":    mustMultiHead(t, attn.MultiHeadConfig{Width: 24, Heads: 6, KVHeads: 2}),
		"additive": mustMultiHead(t, attn.MultiHeadConfig{
			Width: 24, Heads: 3, Score: score.NewAdditive(8, 8, 5, newRand(3)),
		}),
		"gaussian": mustMultiHead(t, attn.MultiHeadConfig{Width: 24, Heads: 3, Score: &score.Gaussian{W: tensor.Full(0.7, 1)}}),
	}
}

// A sequence has the same result alone and in a batch with a longer one of any length, although
// few queries with many keys are computed in a different way than many queries.
func TestLongerSequencesChangeNothing(t *testing.T) {
	rng := newRand(211)
	const keys = 600
	for name, m := range layers(t) {
		for _, n := range []struct{ alone, beside int }{{40, 60}, {8, 17}, {1, 49}} {
			q, kv := tensor.Randn(rng, 1, n.alone, 24), tensor.Randn(rng, 1, keys, 24)
			alone := m.Forward(nil, q, kv, kv, attn.Options{Weights: true})

			longer := tensor.Randn(rng, 1, n.beside, 24)
			padded := tensor.Concat(nil, 1, q, tensor.Randn(rng, 1, n.beside-n.alone, 24))
			more := tensor.Concat(nil, 1, kv, tensor.Randn(rng, 1, 13, 24))
			both := m.Forward(nil, tensor.Concat(nil, 0, padded, longer),
				tensor.Concat(nil, 0, more, tensor.Randn(rng, 1, keys+13, 24)),
				tensor.Concat(nil, 0, more, tensor.Randn(rng, 1, keys+13, 24)),
				attn.Options{Weights: true, Mask: mask.Lengths(keys, keys+13)})
			// In the second sequence, values differ from keys; in the first, they are equal.
			what := fmt.Sprintf("%s, %d queries beside %d", name, n.alone, n.beside)
			first := pick(pick(both.Out, 0, 0, 1), 1, 0, n.alone)
			tensortest.Same(t, what+": out", first.Data(), alone.Out.Data())
			weights := pick(pick(pick(both.Weights, 0, 0, 1), 2, 0, n.alone), 3, 0, keys)
			tensortest.Same(t, what+": weights", weights.Data(), alone.Weights.Data())
		}
	}
}

// A decoder with cached keys and values computes, step by step, the result for all positions at
// once, also with more keys than a block has.
func TestLongDecoding(t *testing.T) {
	const length, steps = 1031, 5
	rng := newRand(223)
	for name, m := range layers(t) {
		x := tensor.Randn(rng, 2, length, 24)
		want := m.Forward(nil, x, x, x, attn.Options{Mask: mask.Causal()}).Out
		cache := mustCache(t, m, 2, attn.CacheConfig{})
		m.Extend(nil, pick(x, 1, 0, length-steps), cache, attn.Options{Mask: mask.Causal()})
		for i := length - steps; i < length; i++ {
			y := m.Extend(nil, pick(x, 1, i, i+1), cache, attn.Options{Mask: mask.Causal()})
			tensortest.Same(t, fmt.Sprint(name, ", position ", i), y.Out.Data(), pick(want, 1, i, i+1).Data())
		}
	}
}

var bits = flag.String("bits", "", "file for the bits of the combinations, on every set of instructions")

// TestBits checks that a combination gives the same bits twice. With -bits, it also writes them,
// to compare two commits: run it before and after a change that must not change any bit, and diff
// the files.
//
//	go test -run TestBits -bits before.txt -combinations 2000 .
func TestBits(t *testing.T) {
	out := bufio.NewWriter(os.Stderr)
	share := 20
	if *bits != "" {
		f, err := os.Create(*bits)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out, share = bufio.NewWriter(f), 1
		defer out.Flush()
	}
	for seed := range seeds(share) {
		simd.Each(func(set string) {
			calls := []func() trace{
				func() trace {
					c := drawCombination(uint64(seed))
					c.procs, c.simd = 2, set
					score := c.score()
					var y trace
					c.backend.run(func() { y = c.run(attn.Attend, score, paramsOf(score)) })
					return y
				},
				func() trace {
					c := drawLayerCombination(t, uint64(seed))
					c.procs, c.simd = 2, set
					var y trace
					c.backend.run(func() { y = c.run(c.layer) })
					return y
				},
			}
			for i, call := range calls {
				first := call()
				if *bits == "" {
					same(t, fmt.Sprintf("%d on %s", seed, set), call(), first)
					continue
				}
				fmt.Fprint(out, []string{"attend", "layer"}[i], " ", seed, " ", set)
				for _, name := range slices.Sorted(maps.Keys(first)) {
					h := fnv.New64a()
					for _, x := range first[name].Data() {
						h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
					}
					fmt.Fprintf(out, " %s:%x", name, h.Sum64())
				}
				fmt.Fprintln(out)
			}
		})
	}
}

// The format of a call, of a layer and of a tape mean the same. Attention in bfloat16 is near that in float32, has
// gradients near its gradients, and the same bits step by step from a cache, which stores bfloat16 by default.
func TestFormats(t *testing.T) {
	rng := newRand(12)
	const b, l, width = 2, 90, 48
	config := attn.MultiHeadConfig{Width: width, Heads: 4, KVHeads: 2}
	layer := func(p tensor.Format) *attn.MultiHead {
		c := config
		c.Format = p
		m, err := attn.NewMultiHead(c, newRand(13))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	x, dout := tensor.Randn(rng, b, l, width), tensor.Randn(rng, b, l, width)
	run := func(m *attn.MultiHead, on, o tensor.Format) (out, dx []float32) {
		tape := tensor.NewTape(tensor.Eval)
		tape.SetFormat(on)
		x := x.Clone().Param()
		y := m.Forward(tape, x, x, x, attn.Options{Mask: mask.Causal(), Format: o})
		tape.Backward(y.Out, dout)
		return y.Out.Clone().Data(), x.Grad().Clone().Data()
	}
	whole, dwhole := run(layer(0), tensor.Float32, 0)
	out, dx := run(layer(0), tensor.Float32, tensor.BFloat16)
	for _, d := range []float64{difference(out, whole), difference(dx, dwhole)} {
		if !(d > 1e-4 && d < 0.01) {
			t.Errorf("relative difference between bfloat16 and float32 %v, want 0.0001 to 0.01", d)
		}
	}
	other, dother := run(layer(tensor.BFloat16), tensor.Float32, 0)
	if !slices.Equal(other, out) || !slices.Equal(dother, dx) {
		t.Error("the format of a layer differs from that of a call")
	}
	if back, _ := run(layer(tensor.BFloat16), tensor.Float32, tensor.Float32); !slices.Equal(back, whole) {
		t.Error("a call in float32 of a layer in bfloat16 is not in float32")
	}
	q, k := tensor.Randn(rng, 1, 2, 33, 24), tensor.Randn(rng, 1, 2, 70, 24)
	tape := tensor.NewTape(tensor.Infer)
	tape.SetFormat(tensor.BFloat16)
	inCall := attn.Attend(nil, q, k, k, attn.Options{Format: tensor.BFloat16}).Out.Data()
	if onTape := attn.Attend(tape, q, k, k, attn.Options{}).Out.Data(); !slices.Equal(onTape, inCall) {
		t.Error("the format of a tape differs from that of a call")
	}
	scores := attn.Scores(tape, q, k, attn.Options{}).Data()
	if exact := attn.Scores(nil, q, k, attn.Options{}).Data(); slices.Equal(exact, scores) || difference(scores, exact) > 0.01 {
		t.Errorf("relative difference of scores in bfloat16 %v, want more than 0 and at most 0.01", difference(scores, exact))
	}

	m := layer(tensor.BFloat16)
	for _, storage := range []tensor.Format{0, tensor.Float32} {
		cache, err := m.NewCache(b, attn.CacheConfig{Format: storage})
		if err != nil {
			t.Fatal(err)
		}
		if want := cmp.Or(storage, tensor.BFloat16); cache.Config().Format != want {
			t.Errorf("the cache stores %v, want %v", cache.Config().Format, want)
		}
		for n := 0; n < l; {
			step := min(1+n%40, l-n)
			y := m.Extend(nil, tensor.Slice(nil, x, 1, n, n+step), cache, attn.Options{Mask: mask.Causal()})
			for i := range b {
				if got := y.Out.Data()[i*step*width:][:step*width]; !slices.Equal(got, out[(i*l+n)*width:][:step*width]) {
					t.Fatalf("positions %d to %d of sequence %d with a cache in %v have other bits", n, n+step, i, storage)
				}
			}
			n += step
		}
	}
	for what, f := range map[string]func(){
		`attn: Attend: format is int8, want float32 or bfloat16`: func() {
			attn.Attend(nil, q, k, k, attn.Options{Format: tensor.Int8})
		},
		`attn: NewMultiHead: format int8, want float32 or bfloat16`: func() {
			c := config
			c.Format = tensor.Int8
			if _, err := attn.NewMultiHead(c, nil); err != nil {
				panic(&tensor.ValueError{Op: err.Error()})
			}
		},
	} {
		if err := tensor.Catch(f); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %q", err, what)
		}
	}
}

// difference returns the relative difference of x from want, a root of mean squares.
func difference(x, want []float32) float64 {
	var d, size float64
	for i, v := range want {
		d += math.Pow(float64(x[i]-v), 2)
		size += math.Pow(float64(v), 2)
	}
	return math.Sqrt(d / size)
}

// The results of a query, subnormal ones included, do not depend on whether another query or its result is infinite.
// Where the processor multiplies pairs of bfloat16, it flushes subnormal numbers, and products that need care do not.
func TestInfiniteNeighbours(t *testing.T) {
	rng := newRand(21)
	for _, format := range []tensor.Format{tensor.Float32, tensor.BFloat16} {
		q, k, v := tensor.Randn(rng, 1, 1, 9, 32), tensor.Randn(rng, 1, 1, 40, 32), tensor.Randn(rng, 1, 1, 40, 32)
		for i := range v.Data() {
			v.Data()[i] *= 1e-38
		}
		run := func(q *tensor.Tensor) []float32 {
			return attn.Attend(nil, q, k, v, attn.Options{Format: format}).Out.Data()
		}
		want := run(q)
		for _, bad := range []float32{float32(math.Inf(1)), float32(math.NaN())} {
			other := q.Clone()
			other.Data()[5*32+3] = bad
			got := run(other)
			for i := range want {
				if i/32 != 5 && math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("%v: element %d of query %d is %g beside a query with %v, want %g", format, i%32, i/32, got[i], bad, want[i])
				}
			}
		}
	}
}
