package recurrence

import (
	"slices"
	"sync"

	"github.com/attn-go/attn/internal/simd"
)

// tileGroups is the number of groups that pass through all blocks of columns before the next ones. Their keys and
// queries stay in the second-level cache meanwhile.
const tileGroups = 16

// worker is the memory of a task.
type worker struct {
	group
	factors []float32 // of the next tokens: numbers, not logarithms
	known   int       // the token whose group's sums are known, or -1
	sums    []float32 // [blocks 2·4 32]

	// As in simd.StateBlock, for a tile. Vectors are [tokens E].
	terms                [tileGroups]simd.StateTerms
	decays               []float32
	reads, queries, adds []float32 // if decays have E numbers
	values, out, read    []float32 // of a block that has fewer columns than 32
	unread               [columns]float32
	touched              float32 // see ahead
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
	groups := min(tileGroups, max(1, s.N/tokens))
	grow(&w.queries, tokens*s.E)
	grow(&w.decays, groups)
	if s.DecayEach {
		for _, x := range []*[]float32{&w.queries, &w.reads, &w.adds} {
			grow(x, groups*tokens*s.E)
		}
		grow(&w.decays, groups*s.E)
	}
	grow(&w.values, tileGroups*tokens*columns)
	grow(&w.out, tileGroups*tokens*columns)
	grow(&w.read, tileGroups*tokens*columns)
	grow(&w.sums, Blocks(s.V)*2*tokens*columns)
	grow(&w.keys, tokens*s.E)
	grow(&w.decay, max(s.E, tokens))
	w.n, w.each, w.known = st.n, s.DecayEach, -1
	copy(w.keys, st.keys[:st.n*s.E])
	copy(w.decay, st.decay)
	return w
}

// Run passes the tokens of s through the blocks of columns from lo to hi of a state. Tasks with other blocks may run at
// the same time. The group of the state stays as it is until Commit.
func Run(s *Sequence, st *State, lo, hi int) {
	w := borrow(s, st)
	defer workers.Put(w)
	for t := 0; t < s.N; {
		n := w.next(s, t)
		if w.clears(s, 0) {
			clear(st.blocks[lo*s.E*columns : hi*s.E*columns])
			w.n, w.known = 0, -1
		}
		if w.n > 0 || n < tokens {
			w.single(s, st, t, lo, hi)
			t++
			continue
		}
		s.check()
		w.tile(s, st, t, n/tokens, lo, hi)
		t += n / tokens * tokens
	}
	st.after.Store(int32(w.n))
}

// Commit ends the calls of Run for all blocks of a state.
func Commit(s *Sequence, st *State) {
	from := s.N - int(st.after.Load())
	if from >= 0 {
		st.n = 0
	}
	w := borrow(s, st)
	for t := max(from, 0); t < s.N; t++ {
		w.exp(s, t, 1)
		w.add(s, t)
	}
	st.n, st.each = w.n, s.DecayEach
	copy(st.keys, w.keys[:w.n*s.E])
	copy(st.decay, w.decay)
	workers.Put(w)
}

// next computes the factors of the tokens from t on, and returns the number of them that have to do with each other: at
// most a tile, or what the group lacks, and up to a token that clears the state.
func (w *worker) next(s *Sequence, t int) int {
	n := min(s.N-t, tileGroups*tokens)
	if w.n > 0 {
		n = min(n, tokens-w.n)
	}
	w.exp(s, t, n)
	for i := 1; i < n; i++ {
		if w.clears(s, i) {
			return i
		}
	}
	return n
}

// exp computes the factors of n tokens.
func (w *worker) exp(s *Sequence, t, n int) {
	d := s.decays()
	if grow(&w.factors, n*d); d > 0 && s.Decay.Step == d {
		simd.Exp(w.factors, s.Decay.Data[t*d:][:n*d])
		return
	}
	for i := 0; i < n && d > 0; i++ {
		simd.Exp(w.factor(s, i), s.Decay.at(t+i, d))
	}
}

// factor returns the factors of token i of those that exp has computed; none without a decay.
func (w *worker) factor(s *Sequence, i int) []float32 {
	d := s.decays()
	return w.factors[i*d:][:d]
}

// clears reports whether token i clears the state. A group then begins with it, so that nothing before it, NaN included,
// has any influence.
func (w *worker) clears(s *Sequence, i int) bool {
	f := w.factor(s, i)
	return len(f) > 0 && allZero(f)
}

func allZero(x []float32) bool {
	return !slices.ContainsFunc(x, func(x float32) bool { return x != 0 })
}

func (s *Sequence) check() {
	if s.Check != nil {
		s.Check()
	}
}

// add makes token t, whose factor exp has computed, the next one of the group.
func (w *worker) add(s *Sequence, t int) {
	e, r, factor := s.E, w.n, w.factor(s, 0)
	copy(w.keys[r*e:], s.Key.at(t, e))
	switch {
	case s.DecayEach && r == 0:
		copy(w.decay, factor)
	case s.DecayEach:
		simd.Mul(w.decay[:e], w.decay[:e], factor)
		for j := range r {
			simd.Mul(w.keys[j*e:][:e], w.keys[j*e:][:e], factor)
		}
	case len(factor) > 0:
		w.decay[r] = factor[0]
	default:
		w.decay[r] = 1
	}
	w.n++
}

// strength sets the numbers by which token t adds, and what its output is without a query.
func (s *Sequence) strength(t, r int, terms *simd.StateTerms) {
	if s.Query.Data == nil {
		terms.Query[r], terms.QueryKey[r] = 0, [tokens]float32{}
		terms.QueryKey[r][r] = 1
	}
	if s.erases() {
		beta := s.Beta.at(t, 1)[0]
		terms.Value[r], terms.Read[r] = beta, beta
	}
}

func (r Rows) vectors(t int) simd.StateVectors {
	return simd.StateVectors{Data: r.Data, First: t * r.Step, Row: r.Step}
}

// tile passes whole groups from token t on.
func (w *worker) tile(s *Sequence, st *State, t, groups, lo, hi int) {
	e, n := s.E, groups*tokens
	b := simd.StateBlock{Rows: e, Groups: groups, Erases: s.erases(), DecayEach: s.DecayEach, Decay: w.decays, Terms: w.terms[:groups]}
	factors := [tokens]float32{1, 1, 1, 1}
	if s.DecayEach {
		key, query := packed(s.Key.from(t), n, e), packed(s.queries().from(t), n, e)
		d := simd.StateDecays{
			X: query.vectors(0), Y: key.vectors(0), Factors: rowsOf(w.factors, e),
			Reads: rowsOf(w.queries, e), Adds: rowsOf(w.adds, e), Decay: w.decays,
		}
		d.Products(b.Terms, true, e)
		b.Queries, b.Adds = d.Reads, d.Adds
		if s.erases() {
			d.X, d.Reads = d.Y, rowsOf(w.reads, e)
			d.Products(b.Terms, false, e)
			b.Keys = d.Reads
		}
		for g := range b.Terms {
			setTerms(&b.Terms[g], &factors, s.Scale)
		}
	} else {
		b.Keys, b.Queries, b.More = s.Key.vectors(t), s.queries().vectors(t), t+n+tokens <= s.N
		b.Adds = b.Keys
		if s.erases() {
			simd.StateProducts(b.Terms, false, b.Keys, b.Keys, e)
		}
		simd.StateProducts(b.Terms, true, b.Queries, b.Keys, e)
		for g := range groups {
			copy(factors[:], w.factors[min(g*tokens, len(w.factors)):])
			w.decays[g] = setTerms(&w.terms[g], &factors, s.Scale)
		}
	}
	for i := range n {
		s.strength(t+i, i%tokens, &w.terms[i/tokens])
	}
	w.ahead(s, t+n, n)
	for c := lo; c < hi; c++ {
		b.State, b.Sums = st.blocks[c*e*columns:][:e*columns], w.sums[c*2*tokens*columns:][:2*tokens*columns]
		if w.known != t {
			if s.erases() {
				simd.ReadState(b.Sums, b.State, b.Keys, e)
			}
			simd.ReadState(b.Sums[tokens*columns:], b.State, b.Queries, e)
		}
		w.begin(&b, s, t, n, c)
		b.Pass()
		w.end(s, t, n, c)
	}
	if b.More {
		w.known = t + n
	}
}

// ahead reads a number of each cache line of n tokens from t on, so that they are in a cache when their tile begins: a pass
// would wait for one vector after another. 2,048 tokens take 0.81 of the time: bench/README.md, "Attention without a softmax".
func (w *worker) ahead(s *Sequence, t, n int) {
	const line = 16
	sum := float32(0)
	for _, r := range [...]Rows{s.Key, s.queries(), s.Value} {
		x := r.from(t).Data
		x = x[:min(n*r.Step, len(x))]
		for i := 0; i < len(x); i += line {
			sum += x[i]
		}
	}
	w.touched = sum // so that the loads stay
}

// begin makes columns c of n tokens from t on those of a block. Fewer than 32 are in the worker's memory until end.
func (w *worker) begin(b *simd.StateBlock, s *Sequence, t, n, c int) {
	b.Values, b.Out, b.Read = s.Value.vectors(t), s.Out.vectors(t), s.Read.vectors(t)
	for _, x := range []*simd.StateVectors{&b.Values, &b.Out, &b.Read} {
		x.First += c * columns
	}
	if s.V-c*columns < columns {
		from := b.Values
		clear(w.values[:n*columns])
		simd.CopyRows(w.values, columns, from.Data[from.First:], from.Row, n, s.V-c*columns)
		b.Values, b.Out, b.Read = rowsOf(w.values, columns), rowsOf(w.out, columns), rowsOf(w.read, columns)
	}
	if s.Read.Data == nil {
		b.Read = rowsOf(w.unread[:], 0)
	}
}

func (w *worker) end(s *Sequence, t, n, c int) {
	if width := s.V - c*columns; width < columns {
		simd.CopyRows(s.Out.Data[t*s.Out.Step+c*columns:], s.Out.Step, w.out, columns, n, width)
		if s.Read.Data != nil {
			simd.CopyRows(s.Read.Data[t*s.Read.Step+c*columns:], s.Read.Step, w.read, columns, n, width)
		}
	}
}

func rowsOf(x []float32, size int) simd.StateVectors { return simd.StateVectors{Data: x, Row: size} }

// single passes token t alone, which has the bits of tile.
func (w *worker) single(s *Sequence, st *State, t, lo, hi int) {
	e, r := s.E, w.n
	w.add(s, t)
	terms := w.terms[:1]
	b := simd.StateBlock{Rows: e, Erases: s.erases(), DecayEach: s.DecayEach, Terms: terms, Adds: rowsOf(w.keys, e)}
	// only products of this token are used, so that other queries may be anything
	key, query := s.Key.at(t, e), s.queries().at(t, e)
	copy(w.queries[r*e:], query)
	simd.StateProducts(terms, false, b.Adds, b.Adds, e)
	simd.StateProducts(terms, true, rowsOf(w.queries, e), b.Adds, e)
	if s.DecayEach {
		setTerms(&terms[0], &[tokens]float32{1, 1, 1, 1}, s.Scale)
		simd.Mul(w.reads[:e], w.decay[:e], key)
		simd.Mul(w.queries[:e], w.decay[:e], query)
		b.Keys, b.Queries, b.Decay = rowsOf(w.reads, e), rowsOf(w.queries, e), w.decay
	} else {
		w.decays[0] = setTerms(&terms[0], (*[tokens]float32)(w.decay), s.Scale)
		b.Keys, b.Queries, b.Decay = s.Key.vectors(t), s.queries().vectors(t), w.decays
	}
	s.strength(t, r, &terms[0])
	for c := lo; c < hi; c++ {
		b.State = st.blocks[c*e*columns:][:e*columns]
		u := st.u[c*tokens*columns:][:tokens*columns]
		if r == 0 {
			clear(u)
		}
		w.begin(&b, s, t, 1, c)
		b.Step(u, r)
		w.end(s, t, 1, c)
		if w.n == tokens {
			b.Add(u)
		}
	}
	w.n %= tokens
}
