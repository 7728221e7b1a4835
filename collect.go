package attn

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/attn-go/attn/tensor"
)

// RowObserver is told of the weights of each query while attention is computed, so
// that a statistic of the weights, or a part of them, can be had without memory for
// all: see Received, TopKeys, Entropy and ChosenWeights.
type RowObserver interface {
	// Begin is called once before the rows of a call of Attend.
	Begin(s Sizes)
	// Row is told of the weights [Lk] of the query at, before dropout. It is called
	// concurrently, once for each query, in any order, and must not keep weights.
	Row(at Row, weights []float32)
}

// Received adds up the weights that each key receives from all queries of a head, as
// a cache that evicts keys wants to know. Each weight is rounded to a multiple of
// 2^-40, so that the sums do not depend on the order of the queries.
type Received struct {
	sizes  Sizes
	mu     []sync.Mutex // of each head
	totals []int64      // [B H Lk], in units of 2^-40
	spoilt []bool       // where a weight was NaN
}

// Begin forgets what an earlier call has added up.
func (r *Received) Begin(s Sizes) {
	r.sizes = s
	r.mu = make([]sync.Mutex, s.B*s.H)
	r.totals = make([]int64, s.B*s.H*s.Lk)
	r.spoilt = make([]bool, len(r.totals))
}

// Row adds the weights of a query.
func (r *Received) Row(at Row, weights []float32) {
	head := at.Batch*r.sizes.H + at.Head
	totals := r.totals[head*r.sizes.Lk:][:len(weights)]
	r.mu[head].Lock()
	for j, w := range weights {
		if w != w {
			r.spoilt[head*r.sizes.Lk+j] = true
			continue
		}
		totals[j] += int64(float64(float64(w)*(1<<40)) + 0.5)
	}
	r.mu[head].Unlock()
}

// Totals returns the sums.
//
// Shape: [B H Lk].
func (r *Received) Totals() *tensor.Tensor {
	x := tensor.Zeros(r.sizes.B, r.sizes.H, r.sizes.Lk)
	for i, n := range r.totals {
		x.Data()[i] = float32(math.Ldexp(float64(n), -40))
		if r.spoilt[i] {
			x.Data()[i] = float32(math.NaN())
		}
	}
	return x
}

// TopKeys keeps the K keys with the largest weights of each query, the largest first
// and of equal ones the first.
type TopKeys struct {
	K     int
	sizes Sizes
	keys  []int     // [B H Lq K]
	data  []float32 // their weights
}

// Begin forgets what an earlier call has kept.
func (r *TopKeys) Begin(s Sizes) {
	r.sizes = s
	n := s.B * s.H * s.Lq * r.K
	r.keys, r.data = make([]int, n), make([]float32, n)
}

// Row keeps the largest weights of a query.
func (r *TopKeys) Row(at Row, weights []float32) {
	keys, top := r.row(at.Batch, at.Head, at.Query)
	n := 0
	for j, w := range weights {
		if n == len(top) && !(n > 0 && w > top[n-1]) || w == 0 {
			continue
		}
		if n < len(top) {
			n++
		}
		i := n - 1
		for ; i > 0 && w > top[i-1]; i-- {
			keys[i], top[i] = keys[i-1], top[i-1]
		}
		keys[i], top[i] = j, w
	}
	for i := n; i < len(top); i++ {
		keys[i] = -1
	}
}

func (r *TopKeys) row(b, h, i int) ([]int, []float32) {
	at := ((b*r.sizes.H+h)*r.sizes.Lq + i) * r.K
	return r.keys[at : at+r.K], r.data[at : at+r.K]
}

// Of returns the keys of query i of head h in sequence b and their weights. Where
// fewer than K keys have a weight, −1 and 0 fill the rest.
func (r *TopKeys) Of(b, h, i int) (keys []int, weights []float32) { return r.row(b, h, i) }

// Entropy computes the entropy of the weights of each query, −Σ_j w_j·ln w_j.
//
// Unit: nats. A query that attends to n keys alike has ln n.
type Entropy struct {
	sizes Sizes
	data  []float32
}

// Begin forgets what an earlier call has computed.
func (r *Entropy) Begin(s Sizes) {
	r.sizes = s
	r.data = make([]float32, s.B*s.H*s.Lq)
}

// Row computes the entropy of a query.
func (r *Entropy) Row(at Row, weights []float32) {
	var sum float64
	for _, w := range weights {
		if w != 0 {
			sum -= float64(float64(w) * math.Log(float64(w)))
		}
	}
	r.data[(at.Batch*r.sizes.H+at.Head)*r.sizes.Lq+at.Query] = float32(sum)
}

// Values returns the entropies.
//
// Shape: [B H Lq].
func (r *Entropy) Values() *tensor.Tensor {
	return tensor.New(slices.Clone(r.data), r.sizes.B, r.sizes.H, r.sizes.Lq)
}

// ChosenWeights keeps the weights of some heads and queries. A nil list means all.
type ChosenWeights struct {
	Heads, Queries []int

	sizes Sizes
	heads []int // those chosen, in order
	rows  []int
	data  []float32
}

// Begin forgets what an earlier call has kept.
func (r *ChosenWeights) Begin(s Sizes) {
	r.sizes = s
	r.heads, r.rows = chosen(r.Heads, s.H), chosen(r.Queries, s.Lq)
	r.data = make([]float32, s.B*len(r.heads)*len(r.rows)*s.Lk)
}

// chosen returns the numbers below n that are in a list, sorted; all for no list.
func chosen(list []int, n int) []int {
	if list == nil {
		list = make([]int, n)
		for i := range list {
			list[i] = i
		}
		return list
	}
	list = slices.Clone(list)
	slices.Sort(list)
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(i int) bool { return i < 0 || i >= n })
}

// Row keeps the weights of a query if it is one of those chosen.
func (r *ChosenWeights) Row(at Row, weights []float32) {
	h, ok := slices.BinarySearchFunc(r.heads, at.Head, cmp.Compare[int])
	if !ok {
		return
	}
	if i, ok := slices.BinarySearch(r.rows, at.Query); ok {
		copy(r.data[((at.Batch*len(r.heads)+h)*len(r.rows)+i)*r.sizes.Lk:], weights)
	}
}

// Weights returns what has been kept, heads and queries in the order of their numbers.
//
// Shape: [B heads queries Lk].
func (r *ChosenWeights) Weights() *tensor.Tensor {
	return tensor.New(slices.Clone(r.data), r.sizes.B, len(r.heads), len(r.rows), r.sizes.Lk)
}
