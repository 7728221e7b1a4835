package recurrence

import "github.com/attn-go/attn/internal/simd"

// WeightRows is the number of queries whose weights are computed together.
const WeightRows = 8 * columns

// Weights sets row i of rows to the weights of query from+i, for the first n rows. An output is the sum of the values so
// far times these, plus what is left of the first state. from is a multiple of WeightRows, and n at most WeightRows.
// Elements behind a query's own token stay as they are, and so do those whose tokens the decay has made smaller than
// 1e-30 of their keys, which the caller has set to 0.
//
// With a vector y that begins as the scaled query i, and for l from i down to 0,
//
//	weight[l] = beta[l]·(y·key[l])               y·key[l] for tokens that do not erase
//	y         = exp(g[l])·(y − weight[l]·key[l])   exp(g[l])·y
//
// So the negated y of all queries are the columns of a state through which the tokens pass in reverse, with the values 0:
// what a token adds is its weights.
func Weights(s *Sequence, from, n int, rows Rows) {
	w := &weighing{
		s: s, from: from, n: n, rows: rows, state: NewState(s.E, n),
		keys: make([]float32, tileTokens*s.E), decays: make([]float32, tileTokens*s.decays()), beta: make([]float32, tileTokens),
		values: make([]float32, n), out: make([]float32, tileTokens*n), turned: make([]float32, tileTokens*n),
	}
	w.ownBlocks()
	for lo := (n - 1) / columns * columns; lo > 0; lo -= columns {
		w.pass(from+lo-columns, from+lo, lo/columns)
	}
	for to := from; to > 0 && !w.faded(); to -= tileTokens {
		w.pass(max(0, to-tileTokens), to, 0)
	}
}

const tileTokens = tileGroups * tokens

type weighing struct {
	s       *Sequence
	from, n int
	rows    Rows
	state   *State // [E n]: the negated y of each query

	// Of the tokens that pass, in reverse.
	keys, decays, beta []float32
	values             []float32 // [n]: 0
	out, turned        []float32 // [tokens n]
}

// ownBlocks computes the weights of queries for the tokens of the block of columns that they are in, and the state before
// these tokens.
func (w *weighing) ownBlocks() {
	s, e, d := w.s, w.s.E, w.s.decays()
	factors := make([]float32, w.n*d)
	for t := range w.n * min(d, 1) {
		simd.Exp(factors[t*d:][:d], s.Decay.at(w.from+t, d))
	}
	all := make([]float32, w.n*e)
	for i := range w.n {
		y, row := all[i*e:][:e], w.rows.at(i, w.from+i+1)
		simd.Scale(y, -s.Scale, s.Query.at(w.from+i, e))
		for l := i; l >= i/columns*columns; l-- {
			if l < i {
				times(y, factors[(l+1)*d:][:d], y)
			}
			key := s.Key.at(w.from+l, e)
			a := -simd.Dot(y, key)
			if s.erases() {
				a *= s.Beta.at(w.from+l, 1)[0]
				simd.Axpy(a, key, y)
			}
			row[w.from+l] = a
		}
	}
	x := make([]float32, len(all))
	simd.CopyTransposed(x, w.n, all, e, e, w.n)
	w.state.Set(x, e, w.n)
}

// pass passes the tokens from lo to hi, a number of whole groups, in reverse, through the blocks of columns from block on.
func (w *weighing) pass(lo, hi, block int) {
	s, e, d, n := w.s, w.s.E, w.s.decays(), w.n
	s.check()
	q := Sequence{
		N: hi - lo, E: e, V: n, Scale: -1, Key: Rows{w.keys, e}, Value: Rows{w.values, 0}, Out: Rows{w.out, n}, DecayEach: s.DecayEach,
	}
	for t := range q.N {
		l := hi - 1 - t
		copy(q.Key.at(t, e), s.Key.at(l, e))
		if d > 0 {
			copy(w.decays[t*d:], s.Decay.at(l+1, d))
		}
		if s.erases() {
			w.beta[t] = s.Beta.at(l, 1)[0]
		}
	}
	if d > 0 {
		q.Decay = Rows{w.decays, d}
	}
	if q.Query = q.Key; s.erases() {
		q.Query, q.Beta = Rows{}, Rows{w.beta, 1}
	}
	Run(&q, w.state, block, Blocks(n))
	first := block * columns
	for t := range q.N {
		copy(w.turned[(q.N-1-t)*n:][:n-first], w.out[t*n+first:])
	}
	simd.CopyTransposed(w.rows.Data[first*w.rows.Step+lo:], w.rows.Step, w.turned, n, n-first, q.N)
}

// faded reports whether the decay has made the state too small to matter. Smaller numbers are slow on many processors.
func (w *weighing) faded() bool {
	const least = 1e-30
	if w.s.decays() == 0 {
		return false
	}
	for _, x := range w.state.blocks {
		if !(-least < x && x < least) {
			return false
		}
	}
	return true
}

// times sets y to x times factor, which has a number for each element, or one for all, or none.
func times(y, factor, x []float32) {
	switch len(factor) {
	case 0:
		copy(y, x)
	case 1:
		simd.Scale(y, factor[0], x)
	default:
		simd.Mul(y, x, factor)
	}
}
