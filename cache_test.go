package attn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// storages are the number formats of a cache, with their effect on a vector.
var storages = []struct {
	name    string
	storage tensor.Numbers
	exact   bool // whether results have the same bits as with the rounded vectors
	store   func(x []float32) []float32
}{
	{"float32", tensor.Float32, true, func(x []float32) []float32 { return x }},
	{"bfloat16", tensor.BFloat16, true, func(x []float32) []float32 {
		y := make([]float32, len(x))
		for i, v := range x {
			b := math.Float32bits(v)
			y[i] = math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
		}
		return y
	}},
	{"float16", tensor.Float16, true, func(x []float32) []float32 {
		y := make([]float32, len(x))
		for i, v := range x { // below 2⁻¹⁴ the format has fewer bits; error tests cover this
			_, e := math.Frexp(float64(v))
			unit := math.Ldexp(1, max(e-11, -24))
			y[i] = float32(math.RoundToEven(float64(v)/unit) * unit)
		}
		return y
	}},
	{"int8", tensor.Int8, false, func(x []float32) []float32 {
		var scale float32
		for _, v := range x {
			scale = max(scale, v/127, -v/127)
		}
		y := make([]float32, len(x))
		for i, v := range x {
			if scale > 0 {
				y[i] = scale * float32(math.RoundToEven(float64(v)/float64(scale)))
			}
		}
		return y
	}},
}

// plainCache is a straightforward cache: lists of vectors, which a fork copies.
type plainCache struct {
	keys, values [][][]float32 // by sequence and position, all heads consecutive
}

func (p *plainCache) fork(sequences []int) *plainCache {
	f := &plainCache{}
	for _, b := range sequences {
		f.keys, f.values = append(f.keys, slices.Clone(p.keys[b])), append(f.values, slices.Clone(p.values[b]))
	}
	return f
}

// heads returns vectors of a sequence as [1 G L size].
func (p *plainCache) heads(of [][]float32, g, size int) *tensor.Tensor {
	x := tensor.Zeros(1, g, len(of), size)
	for i, v := range of {
		for h := range g {
			copy(x.Data()[(h*len(of)+i)*size:], v[h*size:][:size])
		}
	}
	return x
}

// Forks are equal to copies. Random forks append, truncate and fork again, and are compared with
// copies after every step.
func TestCacheForks(t *testing.T) {
	const h, g, e, v = 6, 2, 5, 7
	for _, s := range storages {
		t.Run(s.name, func(t *testing.T) {
			rng := newRand(307)
			first, err := attn.NewCache(attn.CacheConfig{Batch: 3, Heads: g, KeySize: e, ValueSize: v, Storage: s.storage})
			if err != nil {
				t.Fatal(err)
			}
			caches := []*attn.Cache{first}
			plains := []*plainCache{{make([][][]float32, 3), make([][][]float32, 3)}}
			steps := 90
			if testing.Short() {
				steps = 40
			}
			for step := range steps {
				n := rng.IntN(len(caches))
				c, p := caches[n], plains[n]
				batch := len(p.keys)
				switch kind := rng.IntN(10); {
				case kind < 6:
					l := []int{1, 1, 2, 17, 90, 530}[rng.IntN(6)]
					lens := make([]int, batch)
					for b := range lens {
						lens[b] = rng.IntN(l + 1)
					}
					if kind < 3 {
						lens = nil
					}
					k, val := tensor.Randn(rng, batch, g, l, e), tensor.Randn(rng, batch, g, l, v)
					c.Append(k, val, lens)
					for b := range batch {
						for i := range l {
							if lens != nil && i >= lens[b] {
								break
							}
							var key, value []float32
							for head := range g {
								at := (b*g+head)*l + i
								key = append(key, s.store(k.Data()[at*e:][:e])...)
								value = append(value, s.store(val.Data()[at*v:][:v])...)
							}
							p.keys[b], p.values[b] = append(p.keys[b], key), append(p.values[b], value)
						}
					}
				case kind < 8:
					sequences := make([]int, 1+rng.IntN(3))
					for i := range sequences {
						sequences[i] = rng.IntN(batch)
					}
					caches, plains = append(caches, c.Select(sequences)), append(plains, p.fork(sequences))
				case kind == 8:
					all := []int{0, 1, 2}[:batch]
					caches, plains = append(caches, c.Fork()), append(plains, p.fork(all))
				default:
					lens := c.Lens()
					for b := range lens {
						lens[b] -= rng.IntN(min(lens[b], 20) + 1)
						p.keys[b], p.values[b] = p.keys[b][:lens[b]], p.values[b][:lens[b]]
					}
					c.Truncate(lens...)
				}
				for len(caches) > 7 {
					i := rng.IntN(len(caches))
					caches, plains = slices.Delete(caches, i, i+1), slices.Delete(plains, i, i+1)
				}
				n = rng.IntN(len(caches))
				c, p = caches[n], plains[n]
				batch = len(p.keys)
				o := attn.Options{Mask: mask.Causal(), Weights: true, LogSumExp: true, Changes: []attn.ScoreChange{position.ALiBi()}}
				switch step % 5 {
				case 1:
					o.Score = &score.Cosine{}
				case 2:
					o.Score = score.NewAdditive(e, e, 3, newRand(1))
				case 3:
					o.Score = identityAdditive{w: tensor.Randn(newRand(2), e)}
				case 4:
					o.Score = &score.Gaussian{W: tensor.Randn(newRand(2), e)}
				}
				q := tensor.Randn(rng, batch, h, 3, e)
				got := c.Attend(nil, q, o)
				for b := range batch {
					want := attn.Attend(nil, pick(q, 0, b, b+1), p.heads(p.keys[b], g, e), p.heads(p.values[b], g, v), o)
					what := fmt.Sprintf("step %d, sequence %d of %d keys: ", step, b, len(p.keys[b]))
					rows := pick(pick(got.Weights, 0, b, b+1), 3, 0, len(p.keys[b])).Data()
					for _, x := range []struct {
						what      string
						got, want []float32
					}{
						{"out", pick(got.Out, 0, b, b+1).Data(), want.Out.Data()}, {"weights", rows, want.Weights.Data()},
						{"log-sum-exp", pick(got.LogSumExp, 0, b, b+1).Data(), want.LogSumExp.Data()},
					} {
						if s.exact {
							tensortest.Same(t, what+x.what, x.got, x.want)
							continue
						}
						for i, w := range x.want {
							if d := math.Abs(float64(x.got[i]) - float64(w)); d > 1e-5 {
								t.Fatalf("%s%s: element %d is %v, want %v", what, x.what, i, x.got[i], w)
							}
						}
					}
				}
			}
		})
	}
}

// identityAdditive is an additive score that does not map queries and keys.
type identityAdditive struct{ w *tensor.Tensor }

func (s identityAdditive) Form() attn.Form { return attn.Form{Additive: s.w} }

// relativeLayer is a layer with key positions, and options that depend on positions.
func relativeLayer(t *testing.T) (*attn.MultiHead, attn.Options) {
	rope, err := position.NewRoPE(position.RoPEConfig{})
	if err != nil {
		t.Fatal(err)
	}
	m := mustMultiHead(t, attn.MultiHeadConfig{
		Width: 24, Heads: 6, KVHeads: 2, Bias: attn.AllProjections, Position: rope, KeyNorm: nn.NewLayerNorm(4),
	})
	return m, attn.Options{Mask: mask.Causal(), Changes: []attn.ScoreChange{position.ALiBi()}, LogSumExp: true}
}

// chunks appends x, of which sequence b has lengths[b] positions, to a cache in chunks of random
// lengths. It returns the outputs of each sequence.
func chunks(rng *rand.Rand, m *attn.MultiHead, cache *attn.Cache, x *tensor.Tensor, lengths []int, o attn.Options) [][]float32 {
	l, d := x.Dim(1), x.Dim(2)
	out := make([][]float32, len(lengths))
	for !slices.Equal(cache.Lens(), lengths) {
		width := []int{1, 3, 200, 90}[rng.IntN(4)]
		now := tensor.Randn(rng, len(lengths), width, d) // padding may contain anything
		o.QueryLens = make([]int, len(lengths))
		for b, n := range lengths {
			at := cache.Len(b)
			o.QueryLens[b] = min(n-at, width, rng.IntN(width+2))
			copy(now.Data()[b*width*d:], x.Data()[(b*l+at)*d:][:o.QueryLens[b]*d])
		}
		y := m.Extend(nil, now, cache, o).Out
		for b, n := range o.QueryLens {
			out[b] = append(out[b], y.Data()[b*width*d:][:n*d]...)
		}
	}
	return out
}

// alone returns the outputs of the first n positions of sequence b, computed alone.
func alone(m *attn.MultiHead, x *tensor.Tensor, b, n int, o attn.Options) []float32 {
	one := pick(pick(x, 0, b, b+1), 1, 0, n)
	return m.Forward(nil, one, one, one, o).Out.Data()
}

// Sequences of different lengths in one cache give the same results as each sequence alone, for
// chunks of any lengths.
func TestRaggedSteps(t *testing.T) {
	m, o := relativeLayer(t)
	lengths := []int{611, 29, 530, 1}
	rng := newRand(313)
	x := tensor.Randn(rng, len(lengths), 611, 24)
	for name, mask := range map[string]attn.Mask{
		"causal": mask.Causal(), "window": mask.Window(37, 0), "sinks": mask.WindowWithSinks(41, 0, 3), "strided": attn.And(mask.Causal(), mask.Strided(5)),
	} {
		o.Mask = mask
		out := chunks(rng, m, mustCache(t, m, len(lengths), attn.CacheConfig{}), x, lengths, o)
		for b, n := range lengths {
			tensortest.Same(t, fmt.Sprintf("%s, sequence %d", name, b), out[b], alone(m, x, b, n, o))
		}
	}
}

// Lengths of queries and keys in Attend have the same meaning as in a cache.
func TestLengths(t *testing.T) {
	rng := newRand(331)
	q, k, v := tensor.Randn(rng, 3, 6, 7, 5), tensor.Randn(rng, 3, 2, 11, 5), tensor.Randn(rng, 3, 2, 11, 13)
	queries, keys := []int{7, 2, 0}, []int{4, 11, 9}
	for _, score := range []attn.Score{nil, &score.Gaussian{}, score.Func(ownScore)} {
		o := attn.Options{Score: score, Mask: mask.Causal(), Changes: []attn.ScoreChange{position.ALiBi()}, Weights: true, QueryLens: queries, KeyLens: keys}
		got := attn.Attend(nil, q, k, v, o)
		o.QueryLens, o.KeyLens = nil, nil
		for b := range 3 {
			cut := func(x *tensor.Tensor, n int) *tensor.Tensor { return pick(pick(x, 0, b, b+1), 2, 0, n) }
			want := attn.Attend(nil, cut(q, queries[b]), cut(k, keys[b]), cut(v, keys[b]), o)
			tensortest.Same(t, fmt.Sprint("out of sequence ", b), cut(got.Out, queries[b]).Data(), want.Out.Data())
			tensortest.Same(t, fmt.Sprint("weights of sequence ", b), pick(cut(got.Weights, queries[b]), 3, 0, keys[b]).Data(), want.Weights.Data())
			for _, x := range pick(pick(got.Out, 0, b, b+1), 2, queries[b], 7).Data() {
				if x != 0 {
					t.Fatalf("sequence %d: padding gets %v", b, x)
				}
			}
		}
	}
	for _, lens := range [][]int{{1, 2}, {1, 2, 12}, {-1, 2, 3}} {
		wantError(t, tensor.Catch(func() { attn.Attend(nil, q, k, v, attn.Options{KeyLens: lens}) }), `attn: Attend: lengths has (2 values|12 keys|-1 keys), want .*`)
	}
}

// Hidden keys have no influence, whatever they contain and in any storage format. A value that is
// not finite affects only queries that attend to it.
func TestHiddenInCache(t *testing.T) {
	nan := float32(math.NaN())
	for _, s := range storages {
		for _, keys := range []int{83, 700} {
			rng := newRand(337)
			k, v := tensor.Randn(rng, 1, 1, keys, 8), tensor.Randn(rng, 1, 1, keys, 5)
			q := tensor.Randn(rng, 1, 2, 3, 8)
			hidden := func(j int) bool { return j%11 == 3 }
			mask := mask.AllowFunc(func(_, _, _, j int) bool { return !hidden(j) })
			attend := func(mask attn.Mask) []float32 {
				c, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: 8, ValueSize: 5, Storage: s.storage})
				if err != nil {
					t.Fatal(err)
				}
				c.Append(k, v, nil)
				return c.Attend(nil, q, attn.Options{Mask: mask}).Out.Data()
			}
			want := attend(mask)
			for j := range keys {
				if hidden(j) {
					k.Data()[j*8], v.Data()[j*5+1] = nan, nan
				}
			}
			tensortest.Same(t, fmt.Sprintf("%s, %d keys", s.name, keys), attend(mask), want)
			for _, x := range attend(attn.Mask{}) {
				if x == x {
					t.Errorf("%s, %d keys: attending to NaN gives %v", s.name, keys, x)
				}
			}
		}
	}
}

// Observers receive zeros for keys that a rolling cache has discarded, not leftovers of an
// earlier call.
func TestRowsOfForgottenKeys(t *testing.T) {
	const keys, window = 1400, 16
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	rng := newRand(349)
	attend := func(c attn.CacheConfig, q *tensor.Tensor) []float32 {
		c.Batch, c.Heads, c.KeySize = 1, 1, 8
		cache, err := attn.NewCache(c)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			cache.Append(tensor.Randn(rng, 1, 1, keys/2, 8), tensor.Randn(rng, 1, 1, keys/2, 8), nil)
		}
		cache.Append(tensor.Randn(rng, 1, 1, 3, 8), tensor.Randn(rng, 1, 1, 3, 8), nil)
		rows := new(observe.ChosenWeights)
		cache.Attend(nil, q, attn.Options{Mask: mask.Causal(), Observers: []attn.Observer{rows}})
		return rows.Weights().Data()
	}
	for range 3 {
		attend(attn.CacheConfig{}, tensor.Full(float32(math.NaN()), 1, 2, 3, 8))
	}
	got := attend(attn.CacheConfig{Window: window}, tensor.Randn(rng, 1, 2, 3, 8))
	for i, w := range got {
		j, query := i%(keys+3), i/(keys+3)%3
		if want := j >= keys+query-window && j <= keys+query; (w != 0) != want { // NaN is not 0
			t.Fatalf("query %d attends to key %d with weight %v", query, j, w)
		}
	}
}

// countedCosine is a score that counts the keys that it maps.
type countedCosine struct {
	score.Cosine
	keys *int
}

func (s countedCosine) Form() attn.Form {
	f := s.Cosine.Form()
	of := f.Keys
	f.Keys = func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		*s.keys += x.Len() / x.Dim(-1)
		return of(t, x)
	}
	return f
}

// A layer's cache maps each key once, with the layer's score, instead of mapping all keys at each
// step.
func TestCacheMapsKeysOnce(t *testing.T) {
	mapped := 0
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, Score: countedCosine{keys: &mapped}})
	x := tensor.Randn(newRand(353), 2, 17, 12)
	want := m.Forward(nil, x, x, x, attn.Options{Mask: mask.Causal()}).Out
	cache := mustCache(t, m, 2, attn.CacheConfig{})
	mapped = 0
	for i := range 17 {
		y := m.Extend(nil, pick(x, 1, i, i+1), cache, attn.Options{})
		tensortest.Same(t, fmt.Sprint("step ", i), y.Out.Data(), pick(want, 1, i, i+1).Data())
	}
	if mapped != 2*3*17 {
		t.Errorf("%d keys were mapped, want %d", mapped, 2*3*17)
	}
}

// Forks share full pages, also after both have grown: only the last page is copied, by the second that appends to it.
func TestForksShareFullPages(t *testing.T) {
	for _, n := range []int{1536, 1556} {
		c, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 4, KeySize: 64})
		if err != nil {
			t.Fatal(err)
		}
		x, one := tensor.Randn(newRand(1), 1, 4, n, 64), tensor.Randn(newRand(2), 1, 4, 1, 64)
		c.Append(x, x, nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f := c.Fork()
		f.Append(one, one, nil)
		c.Append(one, one, nil)
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > uint64(c.Bytes())/8 {
			t.Errorf("after %d keys, a fork and its next keys take %d bytes of the cache's %d", n, bytes, c.Bytes())
		}
	}
}

// Forks work concurrently, each in a separate goroutine.
func TestForksConcurrently(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	m, o := relativeLayer(t)
	rng := newRand(347)
	x := tensor.Randn(rng, 1, 40, 24)
	cache := mustCache(t, m, 1, attn.CacheConfig{})
	m.Extend(nil, pick(x, 1, 0, 19), cache, o)
	want := alone(m, x, 0, 40, o)[19*24:]
	got := make([][]float32, 5)
	var all sync.WaitGroup
	for i := range got {
		fork := cache.Fork()
		all.Go(func() {
			for at := 19; at < 40; at++ {
				got[i] = append(got[i], m.Extend(nil, pick(x, 1, at, at+1), fork, o).Out.Data()...)
				fork = fork.Fork()
			}
		})
	}
	all.Wait()
	for i := range got {
		tensortest.Same(t, fmt.Sprint("fork ", i), got[i], want)
	}
}
