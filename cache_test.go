package attn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
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
	storage tensor.Format
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
			first, err := attn.NewCache(attn.CacheConfig{Batch: 3, Heads: g, KeySize: e, ValueSize: v, Format: s.storage})
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

// A joined cache has the sequences of all caches, and later steps of one do not change the others.
func TestCacheJoin(t *testing.T) {
	const h, g, e = 4, 2, 5
	rng := newRand(9)
	for _, window := range []int{0, 7} {
		var caches []*attn.Cache
		for _, n := range []int{3, 17, 600} {
			c, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: g, KeySize: e, Format: tensor.BFloat16, Window: window})
			if err != nil {
				t.Fatal(err)
			}
			c.Append(tensor.Randn(rng, 1, g, n, e), tensor.Randn(rng, 1, g, n, e), nil)
			caches = append(caches, c)
		}
		joined := caches[0].Join(caches[1:]...)
		k, v, q := tensor.Randn(rng, 3, g, 1, e), tensor.Randn(rng, 3, g, 1, e), tensor.Randn(rng, 3, h, 1, e)
		joined.Append(k, v, nil)
		if joined.Config().Batch != 3 || caches[0].Len(0) != 3 {
			t.Errorf("%d sequences, %d keys in the first cache, want 3 and 3", joined.Config().Batch, caches[0].Len(0))
		}
		got := joined.Attend(nil, q, attn.Options{}).Out
		for b, c := range caches {
			c.Append(pick(k, 0, b, b+1), pick(v, 0, b, b+1), nil)
			want := c.Attend(nil, pick(q, 0, b, b+1), attn.Options{}).Out
			tensortest.Same(t, fmt.Sprintf("sequence %d", b), pick(got, 0, b, b+1).Data(), want.Data())
			other := joined.Select([]int{b})
			tensortest.Same(t, "selected", other.Attend(nil, pick(q, 0, b, b+1), attn.Options{}).Out.Data(), want.Data())
		}
		other, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: g, KeySize: e, Window: window})
		if err != nil {
			t.Fatal(err)
		}
		if err := tensor.Catch(func() { caches[0].Join(other) }); err == nil || !strings.Contains(err.Error(), "attn: Join: cache 1 is one of {Batch:1 Heads:2 KeySize:5 ValueSize:5 Format:float32") {
			t.Errorf("error %v for a cache of another format", err)
		}
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
			onlySecond := mask.AllowFunc(func(_, _, i, j int) bool { return i == 1 || !hidden(j) })
			mask := mask.AllowFunc(func(_, _, _, j int) bool { return !hidden(j) })
			attend := func(mask attn.Mask) []float32 {
				c, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: 8, ValueSize: 5, Format: s.storage})
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
			for i, x := range attend(onlySecond) { // [1 2 3 5]
				if second := i/5%3 == 1; second != (x != x) || !second && x != want[i] {
					t.Errorf("%s, %d keys: if the second query attends to NaN, output %d is %v", s.name, keys, i, x)
				}
			}
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

// A rolling cache equals the mask WindowWithSinks on the whole sequence, in bounded memory.
func TestRollingCache(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: long sequences; TestCacheCombinations rolls, too")
	}
	m, o := relativeLayer(t)
	lengths := []int{2711, 1900}
	rng := newRand(317)
	x := tensor.Randn(rng, len(lengths), 2711, 24)
	for _, sinks := range []int{0, 5, 700} {
		cache := mustCache(t, m, len(lengths), attn.CacheConfig{Window: 301, Sinks: sinks})
		out := chunks(rng, m, cache, x, lengths, o)
		own := o
		own.Mask = mask.WindowWithSinks(301, 0, sinks)
		for b, n := range lengths {
			tensortest.Same(t, fmt.Sprintf("%d sinks, sequence %d", sinks, b), out[b], alone(m, x, b, n, own))
		}
		// Two pages for the window, one page that the last chunk has begun, and the pages of the
		// sinks.
		page := mustCache(t, m, 1, attn.CacheConfig{Capacity: 512}).Bytes()
		if most := len(lengths) * page * (3 + (sinks+511)/512); cache.Bytes() > most {
			t.Errorf("%d sinks: %d bytes, want at most %d", sinks, cache.Bytes(), most)
		}
		wantError(t, tensor.Catch(func() { cache.Truncate(1000) }), `attn: Truncate: sequence 0 has length 1000, want 0, or 2\d+ to 2711`)
		wantError(t, tensor.Catch(func() { cache.Attend(nil, tensor.Zeros(2, 6, 1800, 4), o) }),
			`attn: Attend: sequence 0 has first query at position 911, want at least 2\d+: the rolling cache has discarded keys of earlier windows`)
		cache.Truncate(0)
		lengths := []int{17, 5}
		for b, y := range chunks(rng, m, cache, x, lengths, o) {
			tensortest.Same(t, "after a new start", y, alone(m, x, b, lengths[b], own))
		}
	}
}

// A rolling cache discards a page as soon as the next query does not attend to its last key, and
// not earlier.
func TestRollingCacheAtTheEndOfAPage(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: long sequences; TestCacheCombinations rolls, too")
	}
	const page, window = 512, 37
	m, o := relativeLayer(t)
	x := tensor.Randn(newRand(359), 1, 2*page+window+8, 24)
	for _, sinks := range []int{0, 1, page + 1} {
		own := o
		own.Mask = mask.WindowWithSinks(window, 0, sinks)
		for _, pages := range []int{1, 2} {
			for after := -2; after <= 2; after++ { // keys of the next page that the window has passed
				n := pages*page + window + after
				cache := mustCache(t, m, 1, attn.CacheConfig{Window: window, Sinks: sinks})
				m.Extend(nil, tensor.Slice(nil, x, 1, 0, n), cache, o)
				before := cache.Bytes()
				got := m.Extend(nil, tensor.Slice(nil, x, 1, n, n+3), cache, o).Out
				what := fmt.Sprintf("%d sinks, %d pages and %d keys", sinks, pages, after)
				want := alone(m, x, 0, n+3, own)
				tensortest.Same(t, what, got.Data(), want[n*24:])
				passed := (n-window)/page - (sinks+page-1)/page // pages without attended keys
				if gone := cache.Bytes() < before; gone != (passed > 0) {
					t.Errorf("%s: %d bytes, and %d before", what, cache.Bytes(), before)
				}

				// Use the most queries whose keys the cache still has, and one more.
				heads := func(lq int) func() {
					return func() { cache.Attend(nil, tensor.Zeros(1, 6, lq, 4), o) }
				}
				if err := tensor.Catch(heads(3)); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				wantError(t, tensor.Catch(heads(4)), fmt.Sprintf(`attn: Attend: sequence 0 has first query at position %d, want at least %d: the rolling cache has discarded keys of earlier windows`, n-1, n))
			}
		}
	}
}

// After truncation, queries may begin where the keys end; after truncation to nothing, anywhere.
func TestTruncatedRollingCache(t *testing.T) {
	const window = 37
	rng := newRand(367)
	k, v, q := tensor.Randn(rng, 1, 1, 700, 8), tensor.Randn(rng, 1, 1, 700, 8), tensor.Randn(rng, 1, 2, 3, 8)
	cache, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: 8, Window: window})
	if err != nil {
		t.Fatal(err)
	}
	part := func(x *tensor.Tensor, from, to int) *tensor.Tensor { return tensor.Slice(nil, x, 2, from, to) }
	cache.Append(part(k, 0, 690), part(v, 0, 690), nil)
	cache.Append(part(k, 690, 700), part(v, 690, 700), nil)
	cache.Truncate(693)
	got := cache.Attend(nil, q, attn.Options{Mask: mask.Causal()}).Out
	mask := attn.And(mask.Causal(), mask.Window(window, 0))
	want := attn.Attend(nil, q, part(k, 0, 693), part(v, 0, 693), attn.Options{Mask: mask}).Out
	tensortest.Same(t, "after a truncation", got.Data(), want.Data())
	wantError(t, tensor.Catch(func() { cache.Truncate(689) }), `attn: Truncate: sequence 0 has length 689, want 0, or 690 to 693`)

	cache.Truncate(0)
	tensortest.Same(t, "to nothing", cache.Attend(nil, q, attn.Options{}).Out.Data(), make([]float32, q.Len()))
	cache.Truncate(0)
}

// Storage errors are within the documented bounds.
func TestStorageErrors(t *testing.T) {
	rng := newRand(311)
	const n, size = 97, 64
	for _, s := range storages {
		for _, scale := range []float32{1, 1e-20, 1e20} {
			c, err := attn.NewCache(attn.CacheConfig{Batch: n, Heads: 1, KeySize: 2, ValueSize: size, Format: s.storage})
			if err != nil {
				t.Fatal(err)
			}
			v := tensor.Scale(nil, tensor.Randn(rng, n, 1, 1, size), scale)
			c.Append(tensor.Zeros(n, 1, 1, 2), v, nil)
			got := c.Attend(nil, tensor.Zeros(n, 1, 1, 2), attn.Options{}).Out.Data() // of the only key
			for b := range n {
				most, worst, relative := 0.0, 0.0, 0.0
				for i, x := range v.Data()[b*size:][:size] {
					d := math.Abs(float64(got[b*size+i]) - float64(x))
					most, worst = max(most, math.Abs(float64(x))), max(worst, d)
					relative = max(relative, d/math.Abs(float64(x)))
				}
				switch s.storage {
				case tensor.Float32:
					if worst > 0 {
						t.Errorf("float32: an error of %v", worst)
					}
				case tensor.BFloat16:
					if relative > 0x1p-8 {
						t.Errorf("bfloat16: an error of %v of the element", relative)
					}
				case tensor.Int8:
					if worst > most/254*(1+1e-5) {
						t.Errorf("int8: an error of %v of the largest element", worst/most)
					}
				}
			}
		}
	}
}

func TestCacheErrors(t *testing.T) {
	good := attn.CacheConfig{Batch: 2, Heads: 3, KeySize: 5, ValueSize: 7, Capacity: 11}
	for _, c := range []struct {
		want  string
		spoil func(*attn.CacheConfig)
	}{
		{`attn: NewCache: batch -1, want at least 0`, func(c *attn.CacheConfig) { c.Batch = -1 }},
		{`attn: NewCache: heads 0, want at least 1`, func(c *attn.CacheConfig) { c.Heads = 0 }},
		{`attn: NewCache: key size 0, want at least 1`, func(c *attn.CacheConfig) { c.KeySize = 0 }},
		{`attn: NewCache: format is Format\(9\), want float32, bfloat16, int8`, func(c *attn.CacheConfig) { c.Format = 9 }},
		{`attn: NewCache: capacity -3, want at least 0`, func(c *attn.CacheConfig) { c.Capacity = -3 }},
		{`attn: NewCache: capacity 1048577 takes 4\.4e\+12 bytes, want at most .*`, func(c *attn.CacheConfig) {
			c.Batch, c.Heads, c.KeySize, c.ValueSize, c.Capacity = 1, 1<<10, 512, 512, 1<<20+1 // 4 TiB and 4 MiB
		}},
		{`attn: NewCache: values of 7 elements are shared with keys of 5 and a score of type <nil>, want at most as many, and no score`,
			func(c *attn.CacheConfig) { c.Shared = true }},
		{`attn: NewCache: values of 2 elements are shared with keys of 5 and a score of type \*score.Cosine, want at most as many, and no score`,
			func(c *attn.CacheConfig) { c.Shared, c.ValueSize, c.Score = true, 2, &score.Cosine{} }},
		{`attn: NewCache: 4 sinks without a window, want 0: a cache without a window keeps all keys`, func(c *attn.CacheConfig) { c.Sinks = 4 }},
	} {
		config := good
		c.spoil(&config)
		_, err := attn.NewCache(config)
		wantError(t, err, c.want)
	}
	_, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1 << 10, KeySize: 512, Capacity: 1 << 30, Window: 5})
	if err != nil { // its memory depends on the window
		t.Error(err)
	}
	_, err = mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3}).NewCache(2, attn.CacheConfig{KeySize: 5})
	wantError(t, err, `attn: NewCache: key size 5, want 0 or 4`)
	layer := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, Score: &score.Cosine{}})
	_, err = layer.NewCache(2, attn.CacheConfig{Score: score.NewAdditive(4, 4, 3, newRand(1))})
	wantError(t, err, `attn: NewCache: score has type \*score.Additive, want nil or the layer's score`)
	_, err = attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: 5, Score: score.NewAdditive(4, 4, 3, newRand(1))})
	wantError(t, err, `attn: .*key.*`)
	_, err = attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: 5, Score: score.OnKeys(nil, &score.Cosine{}, shaped(1, 1, 3, 5))})
	wantError(t, err, `attn: NewCache: score is bound to the keys of one call by OnKeys, want one that also applies to keys appended later`)
	mapped, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: 5, Score: &score.Cosine{}})
	if err != nil {
		t.Fatal(err)
	}

	narrow := mustMultiHead(t, attn.MultiHeadConfig{Width: 4, Heads: 1})
	_, err = narrow.NewCache(1, attn.CacheConfig{Shared: true})
	wantError(t, err, `attn: NewCache: the cache has Shared, want a cache without it: the layer has values`)
	shared, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: 4, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	plain := mustCache(t, mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3}), 2, attn.CacheConfig{})
	c, err := attn.NewCache(good)
	if err != nil {
		t.Fatal(err)
	}
	k, v, q := shaped(2, 3, 8, 5), shaped(2, 3, 8, 7), shaped(2, 6, 1, 5)
	c.Append(k, v, nil)
	for _, f := range []struct {
		want string
		f    func()
	}{
		{`attn: Append: key has shape \[2 3 8 7\], want \[B=2 G=3 L E=5\]`, func() { c.Append(v, v, nil) }},
		{`attn: Append: value has shape \[2 3 8 5\], want \[B=2 G=3 L=8 V=7\]`, func() { c.Append(k, k, nil) }},
		{`attn: Append: value is nil, want a tensor`, func() { c.Append(k, nil, nil) }},
		{`attn: Append: value is given, want nil: the values are elements of the keys`, func() { shared.Append(shaped(1, 1, 2, 4), shaped(1, 1, 2, 4), nil) }},
		{`attn: MultiHead: cache is one with Shared, want one from this layer's NewCache`, func() { narrow.Extend(nil, shaped(1, 1, 4), shared, attn.Options{}) }},
		{`attn: Append: cache has 16 keys, want at most its capacity of 11`, func() { c.Append(k, v, nil) }},
		{`attn: Append: lengths has 1 values, want one for each of B=2 sequences`, func() { c.Append(k, v, []int{1}) }},
		{`attn: Append: lengths has 9 positions, want 0 to L=8`, func() { c.Append(k, v, []int{1, 9}) }},
		{`attn: Select: sequence is 2, want 0 to 1`, func() { c.Select([]int{0, 2}) }},
		{`attn: Truncate: lengths has 3 values, want one, or one for each of B=2 sequences`, func() { c.Truncate(1, 2, 3) }},
		{`attn: Truncate: sequence 1 has length 9, want 0, or 0 to 8`, func() { c.Truncate(8, 9) }},
		{`attn: Attend: query has shape \[2 4 1 5\], want \[B=2 H Lq E\] with H a multiple of G=3`, func() { c.Attend(nil, shaped(2, 4, 1, 5), attn.Options{}) }},
		{`attn: Attend: query has head size 7, want E=5`, func() { c.Attend(nil, shaped(2, 6, 1, 7), attn.Options{}) }},
		{`attn: Attend: tape is one that records, .*`, func() { c.Attend(tensortest.Tape(tensor.Train), q, attn.Options{}) }},
		{`attn: Attend: key lengths is given, .*`, func() { c.Attend(nil, q, attn.Options{KeyLens: []int{1, 1}}) }},
		{`attn: Attend: score is a \*score.Cosine, want nil: the cache uses the score of its CacheConfig`, func() {
			mapped.Attend(nil, shaped(1, 1, 1, 5), attn.Options{Score: &score.Cosine{}})
		}},
		{`attn: Attend: bias is one that depends on the keys, want none: the cache stores keys that its score has mapped`, func() {
			mapped.Attend(nil, shaped(1, 1, 1, 5), attn.Options{Changes: position.TransformerXLBias(shaped(3, 5), shaped(1, 5), shaped(1, 5))})
		}},
		{`attn: MultiHead: cache is one that stores keys for a score of type <nil>, want one from this layer's NewCache`, func() {
			layer.Extend(nil, shaped(2, 1, 12), plain, attn.Options{})
		}},
		{`attn: Attend: mask has valid length 9, want 0 to Lk=8`, func() { c.Attend(nil, q, attn.Options{Mask: mask.Lengths(9, 9)}) }},
	} {
		wantError(t, tensor.Catch(f.f), f.want)
		if !slices.Equal(c.Lens(), []int{8, 8}) {
			t.Fatalf("after %q the lengths are %v", f.want, c.Lens())
		}
	}
	c.Append(tensor.Slice(nil, k, 2, 0, 3), tensor.Slice(nil, v, 2, 0, 3), nil)
	if !slices.Equal(c.Lens(), []int{11, 11}) {
		t.Errorf("a cache filled to its capacity of 11 has lengths %v", c.Lens())
	}
}

// A cache takes the documented memory, and a fork takes no additional memory until it grows.
func TestCacheBytes(t *testing.T) {
	for _, s := range storages {
		c, err := attn.NewCache(attn.CacheConfig{Batch: 2, Heads: 3, KeySize: 64, ValueSize: 128, Format: s.storage, Capacity: 1024})
		if err != nil {
			t.Fatal(err)
		}
		each := 3 * (s.storage.Bytes(64) + s.storage.Bytes(128))
		if got, want := c.Bytes(), 2*1024*each; got != want {
			t.Errorf("%s: %d bytes, want %d", s.name, got, want)
		}
		c.Append(tensor.Zeros(2, 3, 520, 64), tensor.Zeros(2, 3, 520, 128), nil)
		if got := c.Select([]int{1, 1, 1}).Bytes(); got != 1024*each {
			t.Errorf("%s: three forks of a sequence take %d bytes, want %d", s.name, got, 1024*each)
		}
	}
}

// A cache whose values are elements of its keys gives the bits of one that stores both, and takes the memory of the keys.
func TestCacheShared(t *testing.T) {
	rng := newRand(5)
	const b, h, g, e, v = 2, 6, 2, 11, 7
	for _, f := range []tensor.Format{tensor.Float32, tensor.BFloat16, tensor.Int8} {
		config := attn.CacheConfig{Batch: b, Heads: g, KeySize: e, ValueSize: v, Format: f}
		both, err := attn.NewCache(config)
		if err != nil {
			t.Fatal(err)
		}
		config.Shared = true
		shared, err := attn.NewCache(config)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range []int{1, 15, 1, 531, 2, 3} {
			k := tensor.Randn(rng, b, g, n, e)
			both.Append(k, tensor.Slice(nil, k, 3, 0, v), nil)
			shared.Append(k, nil, nil)
			if i == 4 {
				both, shared = both.Select([]int{1, 0}), shared.Select([]int{1, 0})
				both.Truncate(540)
				shared.Truncate(540)
			}
			q := tensor.Randn(rng, b, h, n, e)
			o := attn.Options{Mask: mask.Causal(), Weights: true}
			want, got := both.Attend(nil, q, o), shared.Attend(nil, q, o)
			if !slices.Equal(got.Weights.Data(), want.Weights.Data()) {
				t.Errorf("%v: other weights after part %d", f, i)
			}
			if f != tensor.Int8 && !slices.Equal(got.Out.Data(), want.Out.Data()) { // each vector has its own scale
				t.Errorf("%v: other results after part %d", f, i)
			}
			for j, x := range got.Out.Data() {
				if d := x - want.Out.Data()[j]; !(d < 0.05 && d > -0.05) {
					t.Fatalf("%v: element %d after part %d is %v, want %v", f, j, i, x, want.Out.Data()[j])
				}
			}
		}
		if full, less := both.Bytes(), shared.Bytes(); less >= full*3/4 {
			t.Errorf("%v: %d bytes, with values %d", f, less, full)
		}
	}
}
