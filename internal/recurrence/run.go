package recurrence

import (
	"slices"
	"sync"

	"github.com/attn-go/attn/internal/simd"
)

// tileGroups is the number of groups whose keys and queries are prepared at a time. They stay in the second-level cache
// while the blocks of columns pass.
const tileGroups = 16

// worker is the memory of a task.
type worker struct {
	group
	query  []float32 // [E], scaled
	decays []float32 // of all tokens: numbers, not logarithms
	rows   []float32 // [8 E]: what the tokens of a group read, decayed since the begin of the group

	// As in simd.StateBlock, for a tile.
	reads, adds, terms []float32
	values, out, sums  []float32 // of a block that has fewer columns than 32

	x [2 * columns]float32 // what a token reads
}

var workers = sync.Pool{New: func() any { return new(worker) }}

func grow(x *[]float32, n int) {
	if cap(*x) < n {
		*x = make([]float32, n)
	}
	*x = (*x)[:n]
}

// borrow returns a worker that continues the group of a state.
func borrow(s *Sequence, st *State) *worker {
	w := workers.Get().(*worker)
	grow(&w.query, s.E)
	grow(&w.rows, simd.StateReads*s.E)
	grow(&w.reads, (tileGroups+1)*simd.StateReads*s.E)
	grow(&w.adds, tileGroups*simd.StateAdds*s.E)
	grow(&w.terms, tileGroups*simd.StateTerms)
	grow(&w.values, tileGroups*tokens*columns)
	grow(&w.out, tileGroups*tokens*columns)
	grow(&w.sums, simd.StateReads*columns)
	grow(&w.keys, tokens*s.E)
	grow(&w.decay, s.E)
	grow(&w.decays, s.N*s.decays())
	if d := s.decays(); s.Decay.Step == d {
		simd.Exp(w.decays, s.Decay.Data[:s.N*d])
	} else {
		for t := range s.N {
			simd.Exp(w.decays[t*d:][:d], s.Decay.at(t, d))
		}
	}
	w.n, w.each = st.n, s.DecayEach
	copy(w.keys, st.keys)
	copy(w.decay, st.decay)
	return w
}

// Run passes the tokens of s through the blocks of columns from lo to hi of a state. Tasks with other blocks may run at
// the same time. The group of the state stays as it is until Commit.
func Run(s *Sequence, st *State, lo, hi int) {
	w := borrow(s, st)
	defer workers.Put(w)
	for t, end := 0, 0; t < s.N; t = end {
		if w.clears(s, t) {
			clear(st.blocks[lo*s.E*columns : hi*s.E*columns])
			w.n = 0
		}
		for end = t + 1; end < s.N && !w.clears(s, end); end++ {
		}
		for ; t < end && w.n > 0; t++ {
			w.single(s, st, t, lo, hi)
		}
		for end-t >= tokens {
			s.check()
			groups := min((end-t)/tokens, tileGroups)
			w.tile(s, st, t, groups, lo, hi)
			t += groups * tokens
		}
		for ; t < end; t++ {
			w.single(s, st, t, lo, hi)
		}
	}
}

// clears reports whether token t clears the state. A group then begins with it, so that nothing before it, NaN
// included, has any influence.
func (w *worker) clears(s *Sequence, t int) bool {
	d := s.decays()
	return d > 0 && !slices.ContainsFunc(w.decays[t*d:][:d], func(x float32) bool { return x != 0 })
}

func (s *Sequence) check() {
	if s.Check != nil {
		s.Check()
	}
}

// Commit ends the calls of Run for all blocks of a state.
func Commit(s *Sequence, st *State) {
	w := borrow(s, st)
	from := -st.n // where the last group begins
	for t := range s.N {
		if w.clears(s, t) {
			from = t
		}
	}
	if from += (s.N - from) / tokens * tokens; from >= 0 {
		w.n = 0
	}
	for t := max(from, 0); t < s.N; t++ {
		w.add(s, t, w.terms)
	}
	st.n, st.each = w.n, s.DecayEach
	copy(st.keys, w.keys)
	copy(st.decay, w.decay)
	workers.Put(w)
}

// add adds token t of s to the group, and writes its terms: see simd.StateBlock. It returns the rest of terms.
func (w *worker) add(s *Sequence, t int, terms []float32) []float32 {
	e, r := s.E, w.n
	key, d := s.Key.at(t, e), s.decays()
	factor := w.decays[t*d:][:d]
	if r == 0 {
		if copy(w.decay, factor); d == 0 {
			w.decay[0] = 1
		}
	} else if d > 0 {
		simd.Mul(w.decay[:d], w.decay[:d], factor)
	}
	hasQuery := s.Query.Data != nil
	if hasQuery {
		simd.Scale(w.query, s.Scale, s.Query.at(t, e))
	}
	if terms[0] = 1; s.erases() {
		terms[0] = s.Beta.at(t, 1)[0]
	}
	keys, queries := terms[1:1+r], terms[1+r:2+2*r]
	clear(keys)
	clear(queries)
	for j := range r {
		before := w.keys[j*e:][:e]
		times(before, factor, before)
		if s.erases() {
			keys[j] = simd.Dot(key, before)
		}
		if hasQuery {
			queries[j] = simd.Dot(w.query, before)
		}
	}
	copy(w.keys[r*e:], key)
	if queries[r] = 1; hasQuery {
		queries[r] = simd.Dot(w.query, key)
	}
	decay := w.decay[:d]
	times(w.rows[r*e:][:e], decay, key)
	if query := w.rows[(tokens+r)*e:][:e]; hasQuery {
		times(query, decay, w.query)
	} else {
		clear(query)
	}
	w.n++
	return terms[2+2*r:]
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

// tile passes whole groups from token t on.
func (w *worker) tile(s *Sequence, st *State, t, groups, lo, hi int) {
	e := s.E
	b := simd.StateBlock{Rows: e, Groups: groups, Erases: s.erases(), Reads: w.reads, Adds: w.adds, Terms: w.terms, Sums: w.sums}
	terms := w.terms
	for g := range groups {
		w.n = 0
		for r := range tokens {
			terms = w.add(s, t+g*tokens+r, terms)
		}
		simd.CopyTransposed(w.reads[g*e*simd.StateReads:], simd.StateReads, w.rows, e, e, simd.StateReads)
		w.setAdds(w.adds[g*e*simd.StateAdds:], e)
	}
	n := groups * tokens
	for c := lo; c < hi; c++ {
		b.State = st.blocks[c*e*columns:][:e*columns]
		simd.ReadState(b.Sums, b.State, b.Reads, simd.StateReads, e)
		width := min(columns, s.V-c*columns)
		value, out := s.Value.from(t), s.Out.from(t)
		if width == columns {
			b.Values, b.ValueRow, b.Out, b.OutRow = value.Data[c*columns:], value.Step, out.Data[c*columns:], out.Step
			b.Pass()
			continue
		}
		clear(w.values)
		simd.CopyRows(w.values, columns, value.Data[c*columns:], value.Step, n, width)
		b.Values, b.ValueRow, b.Out, b.OutRow = w.values, columns, w.out, columns
		b.Pass()
		simd.CopyRows(out.Data[c*columns:], out.Step, w.out, columns, n, width)
	}
	w.n = 0
}

// single passes token t alone, which has the bits of tile.
func (w *worker) single(s *Sequence, st *State, t, lo, hi int) {
	e, r := s.E, w.n
	w.add(s, t, w.terms)
	beta, keys, queries := w.terms[0], w.terms[1:1+r], w.terms[1+r:2+2*r]
	x := w.reads[:2*e]
	for i := range e {
		x[2*i], x[2*i+1] = w.rows[r*e+i], w.rows[(tokens+r)*e+i]
	}
	if w.n == tokens {
		w.setAdds(w.adds, e)
	}
	for c := lo; c < hi; c++ {
		state, all := st.blocks[c*e*columns:][:e*columns], st.u[c*tokens*columns:][:tokens*columns]
		simd.ReadState(w.x[:], state, x, 2, e)
		width := min(columns, s.V-c*columns)
		u, out := all[r*columns:][:columns], w.x[columns:]
		clear(all[r*columns:]) // what AddState reads, too
		copy(u[:width], s.Value.at(t, s.V)[c*columns:])
		if s.erases() {
			simd.Axpy(-1, w.x[:columns], u)
			for j, f := range keys {
				simd.Axpy(-f, all[j*columns:][:columns], u)
			}
			simd.Scale(u, beta, u)
		}
		for j, f := range queries {
			simd.Axpy(f, all[j*columns:][:columns], out)
		}
		copy(s.Out.at(t, s.V)[c*columns:], out[:width])
		if w.n == tokens {
			simd.AddState(state, w.adds, all, e)
		}
	}
	w.n %= tokens
}
