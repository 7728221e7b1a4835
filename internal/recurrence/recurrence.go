// Package recurrence computes the states of linear attention: a matrix S [e v] for each head, the sum of key ⊗ value over
// the tokens so far, which each token changes and its query reads. With the decay exp(g) and the strength beta of a token,
//
//	S ← exp(g)·S
//	u = beta·(value − Sᵀ·key)    or value, for tokens that do not erase
//	S ← S + key ⊗ u
//	out = Sᵀ·query
//
// Sources: Katharopoulos et al., 2020, https://arxiv.org/abs/2006.16236; Yang et al., "Gated Delta Networks", 2024,
// https://arxiv.org/abs/2412.06464; Kimi Team, 2025, https://arxiv.org/abs/2510.26692, for a decay per element of a key.
//
// Four tokens pass through a state at a time, counted from the begin of its sequence; see simd.StateBlock. The state
// in between is lazy: S as it was before the group, and the tokens of the group so far. So a sequence has the same bits
// token by token, in pieces and all at once.
package recurrence

import (
	"sync"
	"sync/atomic"

	"github.com/attn-go/attn/internal/simd"
)

const (
	columns = simd.StateColumns
	tokens  = simd.StateTokens
)

// Rows are vectors of the tokens of a sequence, Step floats apart. Without Data there are none.
type Rows struct {
	Data []float32
	Step int
}

func (r Rows) at(t, size int) []float32 { return r.Data[t*r.Step:][:size] }

// from returns the rows from t on.
func (r Rows) from(t int) Rows {
	if r.Data != nil {
		r.Data = r.Data[min(t*r.Step, len(r.Data)):]
	}
	return r
}

// Sequence is what tokens of a head do to a state. Its vectors have E or V elements.
type Sequence struct {
	N, E, V int

	Key, Query, Value Rows    // Key and Query have the same Step; without queries, Out is what the tokens add, u
	Scale             float32 // of queries
	Out               Rows    // written
	// Decay has the logarithms of the decay: one number for each token, or E if DecayEach. Without, nothing decays.
	Decay     Rows
	DecayEach bool
	// Check is called now and then, and may panic to end the call. It may be nil.
	Check func()
	// Beta has a number for each token, which then erases. Without, tokens only add.
	Beta Rows
	// Read is set to what the keys of tokens that erase read, Sᵀ·key, if it has Data.
	Read Rows
}

// queries returns what reads: without queries any numbers, which terms multiply by 0.
func (s *Sequence) queries() Rows {
	if s.Query.Data == nil {
		return s.Key
	}
	return s.Query
}

// erases reports whether tokens subtract what their keys read.
func (s *Sequence) erases() bool { return s.Beta.Data != nil }

// decays returns the size of a decay: 0 without.
func (s *Sequence) decays() int {
	switch {
	case s.Decay.Data == nil:
		return 0
	case s.DecayEach:
		return s.E
	}
	return 1
}

// State is the state of a head between tokens.
type State struct {
	// blocks [Blocks(V) E 32] is the state before the group. Columns behind V are 0.
	blocks []float32
	u      []float32 // [Blocks(V) 4 32]: what the tokens of the group add, and zeros behind them
	group
	after atomic.Int32 // tokens of the group after the calls of Run, which all store the same
}

// group is the tokens of a group so far, as all columns see them.
type group struct {
	n    int       // tokens, fewer than 4 between calls
	each bool      // whether decays have E numbers
	keys []float32 // [4 E]: keys; if each, decayed since their token
	// decay is the decay of each token [4], or if each that of all tokens so far [E].
	decay []float32
}

// Blocks returns the number of blocks of columns of a state with v columns, which do not depend on each other.
func Blocks(v int) int { return (v + columns - 1) / columns }

// NewState returns a state of zeros.
func NewState(e, v int) *State {
	s := new(State)
	s.resize(e, v)
	return s
}

func (s *State) resize(e, v int) {
	n := Blocks(v)
	grow(&s.blocks, n*e*columns)
	grow(&s.u, n*tokens*columns)
	grow(&s.keys, tokens*e)
	grow(&s.decay, max(e, tokens))
}

var states = sync.Pool{New: func() any { return new(State) }}

// Borrow returns a state with arbitrary contents, for Set or Follow, and then Release.
func Borrow(e, v int) *State {
	s := states.Get().(*State)
	s.resize(e, v)
	return s
}

// Release takes a state back.
func (s *State) Release() { states.Put(s) }

// Copy returns a copy of the state.
func (s *State) Copy() *State {
	c := new(State)
	c.Follow(s, 0, len(s.u)/(tokens*columns))
	return c
}

// Follow makes s a copy of the blocks of columns from lo to hi of another state; its other blocks are arbitrary. Other
// tasks may change those of the other state meanwhile.
func (s *State) Follow(from *State, lo, hi int) {
	copyTo := func(to *[]float32, x []float32, lo, hi int) {
		grow(to, len(x))
		copy((*to)[lo:], x[lo:hi])
	}
	size := len(from.blocks) * tokens * columns / max(len(from.u), 1) // of a block
	copyTo(&s.blocks, from.blocks, lo*size, hi*size)
	copyTo(&s.u, from.u, lo*tokens*columns, hi*tokens*columns)
	copyTo(&s.keys, from.keys, 0, len(from.keys))
	copyTo(&s.decay, from.decay, 0, len(from.decay))
	s.n, s.each = from.n, from.each
}

// Pending returns the number of tokens since the last border of a group.
func (s *State) Pending() int { return s.n }

// Bytes returns the memory of the state.
func (s *State) Bytes() int { return 4 * (len(s.blocks) + len(s.u) + len(s.keys) + len(s.decay)) }

// Drop takes back the tokens since the last border.
func (s *State) Drop() { s.n = 0 }

// Clear makes the state that before the first token.
func (s *State) Clear() {
	s.n = 0
	clear(s.blocks)
}

// Set makes x [e v], nil for zeros, the state, before the first token of a group.
func (s *State) Set(x []float32, e, v int) {
	s.n = 0
	clear(s.blocks)
	for c := 0; c < v && x != nil; c += columns {
		simd.CopyRows(s.blocks[c*e:], columns, x[c:], v, e, min(columns, v-c))
	}
}

// Get sets x [e v] to the state after all tokens.
func (s *State) Get(x []float32, e, v int) { s.GetBlocks(x, e, v, 0, Blocks(v)) }

// GetBlocks is Get for the blocks of columns from lo to hi.
func (s *State) GetBlocks(x []float32, e, v, lo, hi int) {
	var b *simd.StateBlock
	var block []float32
	if s.n > 0 {
		b, block = s.pending(e), make([]float32, e*columns)
	}
	for c := lo * columns; c < min(v, hi*columns); c += columns {
		from := s.blocks[c*e:][:e*columns]
		if b != nil {
			copy(block, from)
			b.State, from = block, block
			b.Add(s.u[c*tokens:])
		}
		simd.CopyRows(x[c:], v, from, columns, e, min(columns, v-c))
	}
}

// Begin prepares the state for tokens with decays of the given kind. If those of its group are of the other kind, the
// group ends early.
func (s *State) Begin(each bool, e int) {
	if s.n > 0 && s.each != each {
		b := s.pending(e)
		for c := 0; c*e < len(s.blocks); c += columns {
			b.State = s.blocks[c*e:]
			b.Add(s.u[c*tokens:])
		}
		s.n = 0
	}
}

// pending returns what adds the tokens of the group to a block of the state.
func (s *State) pending(e int) *simd.StateBlock {
	b := &simd.StateBlock{Rows: e, DecayEach: s.each, Decay: s.decay, Terms: make([]simd.StateTerms, 1)}
	b.Adds = rowsOf(make([]float32, tokens*e), e)
	copy(b.Adds.Data, s.keys[:s.n*e])
	factors := [tokens]float32{1, 1, 1, 1}
	if !s.each {
		copy(factors[:s.n], s.decay)
	}
	if decay := setTerms(&b.Terms[0], &factors, 1); !s.each {
		b.Decay = []float32{decay}
	}
	return b
}

// Parts are the numbers of a State, for a file: the state [E V] before the group, and the tokens of the group.
type Parts struct {
	State  []float32
	Keys   []float32 // [4 E]; with Each, decayed since their token
	Values []float32 // [4 V], what they add
	Decay  []float32 // [max(E, 4)]: of each token, or with Each of all so far
	Tokens int       // of the group, 0 to 3
	Each   bool      // whether Decay has a number for each element of a key
}

// Parts returns copies of the numbers of the state. Those of tokens that the group does not have yet are 0.
func (s *State) Parts(e, v int) Parts {
	p := Parts{
		State: make([]float32, e*v), Keys: make([]float32, tokens*e), Values: make([]float32, tokens*v), Decay: make([]float32, max(e, tokens)),
		Tokens: s.n, Each: s.each,
	}
	copy(p.Keys, s.keys[:s.n*e])
	if n := s.n; n > 0 && s.each {
		copy(p.Decay, s.decay[:e])
	} else {
		copy(p.Decay, s.decay[:n])
	}
	for c := 0; c < v; c += columns {
		n := min(columns, v-c)
		simd.CopyRows(p.State[c:], v, s.blocks[c*e:], columns, e, n)
		simd.CopyRows(p.Values[c:], v, s.u[c*tokens:], columns, s.n, n)
	}
	return p
}

// SetParts makes the state one whose Parts are p.
func (s *State) SetParts(p Parts, e, v int) {
	s.Set(p.State, e, v)
	s.n, s.each = p.Tokens, p.Each
	copy(s.keys, p.Keys)
	copy(s.decay, p.Decay)
	clear(s.u)
	for c := 0; c < v; c += columns {
		simd.CopyRows(s.u[c*tokens:], columns, p.Values[c:], v, tokens, min(columns, v-c))
	}
}

// setTerms sets what the decays of a group mean for its terms, whose products are given, and returns the decay of the
// whole group. Queries are multiplied by scale.
func setTerms(s *simd.StateTerms, factors *[tokens]float32, scale float32) float32 {
	decay := float32(1)
	for t, f := range factors {
		decay *= f
		s.Key[t], s.Query[t] = decay, scale*decay
		ratio := float32(1)
		for j := t; j >= 0; j-- {
			if s.QueryKey[t][j] *= scale * ratio; j < t {
				s.KeyKey[t][j] *= ratio
			}
			if t == tokens-1 {
				s.Left[j] = ratio
			}
			ratio *= factors[j]
		}
		s.KeyKey[t][t] = 0
	}
	return decay
}
