package attn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// However a cache was filled, truncated and forked, and for every storage format, a query gets
// the result of the formula on lists of the same keys and values.
func TestCacheCombinations(t *testing.T) {
	for seed := range seeds(4) {
		if c := drawCacheCombination(uint64(seed)); !c.try(t) {
			t.Fatalf("combination %d: %s", seed, c.name)
		}
	}
}

func FuzzCacheCombinations(f *testing.F) {
	f.Add(uint64(1) << 40)
	f.Fuzz(func(t *testing.T, seed uint64) {
		if c := drawCacheCombination(seed); !c.try(t) {
			t.Errorf("combination %d: %s", seed, c.name)
		}
	})
}

// cacheCombination is a random cache and random operations on it.
type cacheCombination struct {
	name   string
	rng    *rand.Rand // of the operations
	config attn.CacheConfig
	h, eq  int
	kind   score.Kind
	score  attn.Score
	store  func([]float32) []float32
	backend
}

func drawCacheCombination(seed uint64) *cacheCombination {
	rng := rand.New(rand.NewPCG(seed, 79))
	c := &cacheCombination{rng: rng, kind: drawKind(rng), backend: drawBackend(rng)}
	storage := storages[rng.IntN(len(storages))]
	c.store = storage.store
	c.config = attn.CacheConfig{
		Batch: 1 + rng.IntN(3), Heads: 1 + rng.IntN(3), KeySize: 1 + rng.IntN(19), ValueSize: 1 + rng.IntN(9),
		Format: storage.storage,
	}
	c.h = c.config.Heads * (1 + rng.IntN(3))
	c.eq = c.config.KeySize
	if sizes := sizesOf(c.kind); sizes.Query != sizes.Key {
		c.eq = 1 + rng.IntN(19)
	}
	c.score = c.kind.New(score.Sizes{Query: c.eq, Key: c.config.KeySize, Hidden: 1 + c.eq}, newRand(seed))
	if rng.IntN(2) == 0 {
		c.config.Score = c.score
	}
	switch rng.IntN(4) {
	case 0:
		c.config.Window = rng.IntN(40) + 1
	case 1:
		c.config.Window, c.config.Sinks = rng.IntN(200)+1, rng.IntN(5)
	case 2:
		c.config.Capacity = 2000
	}
	c.name = fmt.Sprintf("%+v, H=%d, Eq=%d, %s, %v", c.config, c.h, c.eq, c.kind.Name, c.backend)
	return c
}

// mapped returns keys as the cache stores them before rounding, and a score that compares queries
// with mapped keys.
func (c *cacheCombination) mapped(k *tensor.Tensor) (*tensor.Tensor, attn.Score) {
	f := c.score.Form()
	if c.config.Score == nil || f.Keys == nil {
		return k, c.score
	}
	k = f.Keys(nil, k)
	f.Keys = nil
	return k, formed(f)
}

// formed is a score of the given form.
type formed attn.Form

func (f formed) Form() attn.Form { return attn.Form(f) }

// cacheState is a cache and the lists that it should be equal to.
type cacheState struct {
	*attn.Cache
	*plainCache
	from []int // the first query whose keys a rolling cache still has
}

// try reports whether the cache is correct after every operation. It uses one instruction set,
// because the layout of pages depends on it.
func (c *cacheCombination) try(t *testing.T) bool {
	c.backend.run(func() { c.happen(t) })
	return !t.Failed()
}

func (c *cacheCombination) happen(t *testing.T) {
	cache, err := attn.NewCache(c.config)
	if err != nil {
		t.Fatal(err)
	}
	n := c.config.Batch
	states := []cacheState{{cache, &plainCache{make([][][]float32, n), make([][][]float32, n)}, make([]int, n)}}
	for step := 3 + c.rng.IntN(5); step > 0; step-- {
		s := &states[c.rng.IntN(len(states))]
		switch c.rng.IntN(6) {
		case 0:
			states = append(states, s.fork(c.rng))
		case 1:
			s.truncate(c.rng)
		default:
			c.append(s)
		}
		if step > 1 && c.rng.IntN(2) == 0 {
			continue
		}
		if c.attend(t, &states[c.rng.IntN(len(states))]); t.Failed() {
			return
		}
	}
}

// append adds a piece, in which some sequences have padding that is not finite.
func (c *cacheCombination) append(s *cacheState) {
	batch, g, v := len(s.from), c.config.Heads, c.config.ValueSize
	l := []int{1, 1, 1 + c.rng.IntN(9), 1 + c.rng.IntN(9), 1 + c.rng.IntN(90), 1 + c.rng.IntN(90), 1 + c.rng.IntN(600)}[c.rng.IntN(7)]
	if c.config.Window > 0 && c.rng.IntN(3) == 0 { // pages of the window are discarded
		l = 300 + c.rng.IntN(400)
	}
	if c.config.Capacity > 0 {
		l = min(l, c.config.Capacity-slices.Max(s.Lens()))
	}
	k, values := tensor.Randn(c.rng, batch, g, l, c.config.KeySize), tensor.Randn(c.rng, batch, g, l, v)
	var lens []int
	if c.rng.IntN(2) == 0 {
		lens = drawLengths(c.rng, batch, l)
	}
	mapped, _ := c.mapped(k)
	for b := range batch {
		if s.from[b] = len(s.keys[b]); c.config.Window == 0 {
			s.from[b] = 0
		}
		for i := range l {
			if lens != nil && i >= lens[b] {
				for head := range g {
					fill(k, b, head, i, float32(math.NaN()))
					fill(values, b, head, i, float32(math.NaN()))
				}
				continue
			}
			var key, value []float32
			for head := range g {
				at := (b*g+head)*l + i
				key = append(key, c.store(mapped.Data()[at*mapped.Dim(3):][:mapped.Dim(3)])...)
				value = append(value, c.store(values.Data()[at*v:][:v])...)
			}
			s.keys[b], s.values[b] = append(s.keys[b], key), append(s.values[b], value)
		}
	}
	s.Append(k, values, lens)
}

func (s *cacheState) truncate(rng *rand.Rand) {
	lens := s.Lens()
	for b, n := range lens {
		if lens[b] = n - rng.IntN(min(n-s.from[b], 40)+1); rng.IntN(6) == 0 {
			lens[b] = s.from[b]
		}
		s.keys[b], s.values[b] = s.keys[b][:lens[b]], s.values[b][:lens[b]]
	}
	s.Truncate(lens...)
}

func (s *cacheState) fork(rng *rand.Rand) cacheState {
	sequences := make([]int, 1+rng.IntN(3))
	from := make([]int, len(sequences))
	for i := range sequences {
		sequences[i] = rng.IntN(len(s.from))
		from[i] = s.from[sequences[i]]
	}
	return cacheState{s.Select(sequences), s.plainCache.fork(sequences), from}
}

// attend compares the cache with the lists for random options.
func (c *cacheCombination) attend(t *testing.T, s *cacheState) {
	batch, rng := len(s.from), c.rng
	lens := s.Lens()
	all := sizes{b: batch, h: c.h, g: c.config.Heads, lq: 1 + rng.IntN(13), lk: slices.Max(lens), v: c.config.ValueSize}
	queries := make([]int, batch) // of each sequence
	for b := range queries {
		queries[b] = all.lq
		if c.config.Window > 0 {
			queries[b] = min(all.lq, lens[b]-s.from[b])
		}
		if rng.IntN(3) == 0 {
			queries[b] = rng.IntN(queries[b] + 1)
		}
	}
	q := tensor.Randn(rng, batch, c.h, all.lq, c.eq)
	each(q, func(b, _, i, _ int, x *float32) {
		if i >= queries[b] {
			*x = float32(math.NaN())
		}
	})
	ek := c.config.KeySize
	if c.config.Score != nil {
		ek = -1 // biases that depend on keys are rejected
	}
	drawn := drawOptions(rng, all, c.eq, ek)
	options := func() (attn.Options, *rowTotals) {
		o := drawn.options(func(_ string, x *tensor.Tensor) *tensor.Tensor { return x })
		rows := new(rowTotals)
		o.Observers, o.QueryLens = []attn.Observer{rows}, queries
		return o, rows
	}
	traceOf := func(y attn.Output, rows *rowTotals) trace {
		tr := leave(y, nil)
		tr["rows"], tr["entropy"] = rows.Weights(), rows.Values()
		if y.LogSumExp != nil {
			tr["log-sum-exp"] = y.LogSumExp
		}
		return tr
	}

	o, rows := options()
	if c.config.Score == nil {
		o.Score = c.score
	}
	got := traceOf(s.Attend(nil, q, o), rows)

	size, score := c.config.KeySize, c.score
	if x, f := c.mapped(tensor.Zeros(1, 1, 1, size)); true {
		size, score = x.Dim(3), f
	}
	k, v := padded(s.keys, all.g, all.lk, size), padded(s.values, all.g, all.lk, all.v)
	o, rows = options()
	o.Score, o.KeyLens = score, lens
	if c.config.Window > 0 {
		o.Mask = attn.And(o.Mask, mask.WindowWithSinks(c.config.Window, -1, c.config.Sinks))
	}
	agree(t, got, traceOf(formula(nil, q, k, v, o), rows))
	if t.Failed() {
		t.Log(drawn.words, "keys:", lens, "queries:", queries)
	}
}

// padded returns lists of vectors as [B G L size], padded with zeros.
func padded(of [][][]float32, g, l, size int) *tensor.Tensor {
	x := tensor.Zeros(len(of), g, l, size)
	for b, list := range of {
		for i, v := range list {
			for h := range g {
				copy(x.Data()[((b*g+h)*l+i)*size:], v[h*size:][:size])
			}
		}
	}
	return x
}
