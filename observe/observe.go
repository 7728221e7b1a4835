// Package observe computes statistics of attention weights while attention runs, in memory that
// does not grow with Lq·Lk: the total weight of each key, the keys with the largest weights, the
// entropy of each query, and the weights of selected queries and keys. Weights gathers all of them.
//
//	top := &observe.TopKeys{K: 8}
//	attn.Attend(tape, q, k, v, attn.Options{Observers: []attn.Observer{top}})
//	keys, weights := top.Of(0, 0, 3)
//
// Each type is an attn.Observer. You can write your own observers in the same way.
package observe

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// Received sums the weights that each key receives from all queries of a head: the keys with the
// largest sums are the heavy hitters that H2O keeps when it evicts others from a KV cache. The
// zero value is ready to use.
//
// Source: Zhang et al., "H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large
// Language Models", 2023, https://arxiv.org/abs/2306.14048, section 4.
//
// Rows are summed pairwise: two rows, then two pairs, and so on. The bits of a total therefore do
// not depend on the order of the calls, and the rounding error grows with the logarithm of the
// number of queries.
type Received struct {
	sizes attn.Sizes
	// pairs [B H Lq] are partial sums that wait for their neighbour: first single rows, then sums
	// of two rows, and so on.
	pairs  []atomic.Pointer[[]float32]
	totals []*[]float32 // [B H]
	free   sync.Pool
}

// Begin resets the sums.
func (r *Received) Begin(s attn.Sizes) {
	r.sizes = s
	r.pairs = make([]atomic.Pointer[[]float32], s.B*s.H*s.Lq)
	r.totals = make([]*[]float32, s.B*s.H)
	r.free = sync.Pool{New: func() any { x := make([]float32, s.Lk); return &x }}
}

// Row adds the weights of a query.
func (r *Received) Row(at attn.Row, weights []float32) {
	head := at.Batch*r.sizes.H + at.Head
	pairs := r.pairs[head*r.sizes.Lq:][:r.sizes.Lq]
	var sum *[]float32 // this row plus the partial sums merged so far; nil for the row alone
	i := at.Query
	for n := r.sizes.Lq; n > 1; n, i, pairs = (n+1)/2, i/2, pairs[n/2:] {
		if i/2 == n/2 {
			continue // the last partial sum of an odd number has no neighbour
		}
		pair := &pairs[i/2]
		if sum == nil {
			if sum = pair.Load(); sum != nil {
				simd.Add(*sum, *sum, weights)
				continue
			}
			sum = r.copyOf(weights)
		}
		if pair.CompareAndSwap(nil, sum) {
			return // the neighbour continues the sum
		}
		other := pair.Load()
		simd.Add(*sum, *sum, *other)
		r.free.Put(other)
	}
	if sum == nil {
		sum = r.copyOf(weights)
	}
	r.totals[head] = sum
}

func (r *Received) copyOf(weights []float32) *[]float32 {
	x := r.free.Get().(*[]float32)
	copy(*x, weights)
	return x
}

// Totals returns the sums.
//
// Shape: [B H Lk].
func (r *Received) Totals() *tensor.Tensor {
	x := tensor.Zeros(r.sizes.B, r.sizes.H, r.sizes.Lk)
	for head, sum := range r.totals {
		if sum != nil {
			copy(x.Data()[head*r.sizes.Lk:], *sum)
		}
	}
	return x
}

// TopKeys keeps the K keys with the largest weights of each query, in descending order of weight.
// For equal weights, the first key comes first. A call panics with a *tensor.ValueError if K is
// not positive.
type TopKeys struct {
	// K is the number of keys per query.
	K int

	sizes    attn.Sizes
	keys     []int     // [B H Lq K]
	data     []float32 // weights of the keys
	searches sync.Pool
}

// Begin discards the results of the previous call.
func (r *TopKeys) Begin(s attn.Sizes) {
	if r.K < 1 {
		panic(&tensor.ValueError{Op: "observe: TopKeys", Arg: "K", Got: fmt.Sprint(r.K), Want: "a positive number of keys"})
	}
	r.sizes = s
	k := min(r.K, s.Lk)
	n := s.B * s.H * s.Lq * k
	r.keys, r.data = make([]int, n), make([]float32, n)
	r.searches = sync.Pool{New: func() any {
		return &search{k: k, best: make(ranking, k), groups: make(ranking, k), places: make([]int32, s.Lk+simd.AbovePadding)}
	}}
}

// Row keeps the largest weights of a query.
func (r *TopKeys) Row(at attn.Row, weights []float32) {
	keys, top := r.kept(at.Batch, at.Head, at.Query)
	search := r.searches.Get().(*search)
	found := search.find(weights)
	for i, j := range found {
		keys[i], top[i] = int(j), weights[j]
	}
	r.searches.Put(search)
	if len(found) == len(keys) {
		return
	}
	missing := float32(0)
	if len(found) == 0 && slices.ContainsFunc(weights, func(w float32) bool { return w != w }) {
		missing = float32(math.NaN())
	}
	for i := len(found); i < len(keys); i++ {
		keys[i], top[i] = -1, missing
	}
}

// kept returns the keys and weights of a query.
func (r *TopKeys) kept(b, h, i int) ([]int, []float32) {
	k := min(r.K, r.sizes.Lk)
	at := ((b*r.sizes.H+h)*r.sizes.Lq + i) * k
	return r.keys[at : at+k : at+k], r.data[at : at+k : at+k]
}

// Of returns the keys of query i of head h in sequence b and their weights. The length is K, or
// the number of keys if that is smaller. If fewer keys have a positive weight, −1 and 0 fill the
// rest; if the weights are NaN, −1 and NaN do. Of panics with a *tensor.ShapeError if there is no
// such query.
func (r *TopKeys) Of(b, h, i int) (keys []int, weights []float32) {
	if s := r.sizes; min(b, h, i) < 0 || b >= s.B || h >= s.H || i >= s.Lq {
		panic(&tensor.ShapeError{Op: "observe: TopKeys", Arg: "query", What: "sequence, head and number", Got: []int{b, h, i}, Want: fmt.Sprintf("less than [B=%d H=%d Lq=%d]", s.B, s.H, s.Lq)})
	}
	return r.kept(b, h, i)
}

// ranked encodes a positive weight and its index as one number. A larger weight gives a larger
// number; for equal weights, the first index gives the larger one. 0 means none.
type ranked uint64

func rank(w float32, index int) ranked {
	return ranked(math.Float32bits(w))<<32 | ranked(^uint32(index))
}

func (x ranked) index() int      { return int(^uint32(x)) }
func (x ranked) weight() float32 { return math.Float32frombits(uint32(x >> 32)) }

// ranking is the largest numbers inserted so far, in descending order.
type ranking []ranked

// put inserts x. It has no branch that depends on x, because mispredicted branches are costly.
func (r ranking) put(x ranked) {
	for i, y := range r {
		r[i], x = max(x, y), min(x, y)
	}
}

// search finds the largest positive weights of a row.
type search struct {
	k       int
	keys    []int32 // found in the last row, in descending order of their weights
	least   float32 // the smallest of the k weights found; 0 if fewer were found
	places  []int32 // candidate keys
	weights [simd.MostRanks]float32
	ranks   [simd.MostRanks]int32
	order   [simd.MostRanks]int32
	best    ranking   // for many candidates
	groups  ranking   // largest weights of groups of keys
	maxima  []float32 // of the groups
}

// find returns the keys with the k largest positive weights. Its candidates are the weights about
// as large as the smallest result of the row before. If there are too few or too many candidates,
// it uses a bound that at least k weights exceed.
func (s *search) find(weights []float32) []int32 {
	least := s.least
	s.keys, s.least = s.keys[:0], 0
	if s.k == 0 {
		return s.keys
	}
	n := 0
	for _, part := range []float32{0.75, 0.5} {
		if guess := part * least; guess > 0 && n < s.k {
			n = simd.Above(s.places, weights, guess)
		}
	}
	if n < s.k || n > simd.MostRanks {
		n = simd.Above(s.places, weights, s.bound(weights))
	}
	if n > simd.MostRanks {
		s.choose(s.places[:n], weights)
	} else {
		s.sort(s.places[:n], weights)
	}
	if len(s.keys) == s.k {
		s.least = weights[s.keys[s.k-1]]
	}
	return s.keys
}

// bound returns a number that the k largest weights exceed.
func (s *search) bound(weights []float32) float32 {
	const group = 16
	n := len(weights) / group
	s.maxima = slices.Grow(s.maxima[:0], n)[:n]
	simd.RowMax(s.maxima, weights, group, group)
	clear(s.groups)
	for _, m := range s.maxima {
		if m > 0 {
			s.groups.put(rank(m, 0))
		}
	}
	// At least k groups contain a weight this large.
	if least := s.groups[s.k-1].weight(); least > 0 {
		return math.Float32frombits(math.Float32bits(least) - 1)
	}
	return 0
}

// sort sets s.keys to the indices of the largest weights, for few candidates.
func (s *search) sort(places []int32, weights []float32) {
	candidates, ranks := s.weights[:len(places)], s.ranks[:len(places)]
	for i, j := range places {
		candidates[i] = weights[j]
	}
	simd.Ranks(ranks, candidates)
	for i, rank := range ranks {
		s.order[rank] = places[i]
	}
	s.keys = append(s.keys, s.order[:min(s.k, len(places))]...)
}

// choose is sort for many candidates.
func (s *search) choose(places []int32, weights []float32) {
	clear(s.best)
	last, least := &s.best[s.k-1], float32(0)
	for _, j := range places {
		if w := weights[j]; w > least {
			s.best.put(rank(w, int(j)))
			least = last.weight()
		}
	}
	for _, x := range s.best {
		if x != 0 {
			s.keys = append(s.keys, int32(x.index()))
		}
	}
}

// Entropy computes the entropy of the weights of each query, −Σ_j w_j·ln w_j. The zero value is
// ready to use.
//
// Unit: nats. A query with uniform weights over n keys has entropy ln n.
type Entropy struct {
	sizes attn.Sizes
	data  []float32
}

// Begin discards the results of the previous call.
func (r *Entropy) Begin(s attn.Sizes) {
	r.sizes = s
	r.data = make([]float32, s.B*s.H*s.Lq)
}

// Row computes the entropy of a query.
func (r *Entropy) Row(at attn.Row, weights []float32) {
	r.data[(at.Batch*r.sizes.H+at.Head)*r.sizes.Lq+at.Query] = simd.Entropy(weights)
}

// Values returns the entropies.
//
// Shape: [B H Lq].
func (r *Entropy) Values() *tensor.Tensor {
	return tensor.New(slices.Clone(r.data), r.sizes.B, r.sizes.H, r.sizes.Lq)
}

// ChosenWeights keeps the weights of selected heads and queries, in the order of the lists. A nil
// list selects all. A call panics with a *tensor.ShapeError if a list contains an index that is
// out of range, and with a *tensor.ValueError if it contains one twice.
type ChosenWeights struct {
	// Heads and Queries are the indices of the selected heads and queries.
	Heads, Queries []int

	sizes          attn.Sizes
	heads, queries []int // index in the result, −1 if not selected
	shape          [4]int
	data           []float32
}

// Begin discards the results of the previous call.
func (r *ChosenWeights) Begin(s attn.Sizes) {
	r.sizes = s
	r.shape = [4]int{s.B, s.H, s.Lq, s.Lk}
	r.heads, r.shape[1] = chosen("heads", r.Heads, "H", s.H)
	r.queries, r.shape[2] = chosen("queries", r.Queries, "Lq", s.Lq)
	r.data = tensor.Zeros(r.shape[:]...).Data()
}

// chosen returns for each number below n its index in the list, or −1, and the number of selected
// numbers. A nil list selects all.
func chosen(what string, list []int, letter string, n int) (places []int, count int) {
	places = make([]int, n)
	if list == nil {
		for i := range places {
			places[i] = i
		}
		return places, n
	}
	for i := range places {
		places[i] = -1
	}
	for place, i := range list {
		if i < 0 || i >= n {
			panic(&tensor.ShapeError{Op: "observe: ChosenWeights", Arg: what, What: "index", Got: []int{i}, Want: fmt.Sprintf("0 to below %s=%d", letter, n)})
		}
		if places[i] >= 0 {
			panic(&tensor.ValueError{Op: "observe: ChosenWeights", Arg: what, Got: fmt.Sprint(list), Want: "each number once"})
		}
		places[i] = place
	}
	return places, len(list)
}

// Row keeps the weights of the query if it is selected.
func (r *ChosenWeights) Row(at attn.Row, weights []float32) {
	if h, i := r.heads[at.Head], r.queries[at.Query]; h >= 0 && i >= 0 {
		copy(r.data[((at.Batch*r.shape[1]+h)*r.shape[2]+i)*r.sizes.Lk:], weights)
	}
}

// Weights returns the weights kept.
//
// Shape: [B heads queries Lk].
func (r *ChosenWeights) Weights() *tensor.Tensor {
	return tensor.New(slices.Clone(r.data), r.shape[:]...)
}

// Weights returns an observer that calls tell with all weights [B H Lq Lk] of a call, before dropout,
// and with the name of the layer: each time that a layer attends. tell may keep them.
func Weights(tell func(layer string, weights *tensor.Tensor)) attn.Observer {
	return &gathered{tell: tell}
}

type gathered struct {
	ChosenWeights // of all heads and queries
	tell          func(layer string, weights *tensor.Tensor)
}

// End hands the weights over.
func (g *gathered) End() {
	w := tensor.New(g.data, g.shape[:]...)
	g.data = nil
	g.tell(g.sizes.Layer, w)
}
