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
	"slices"

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

	Key, Query, Value Rows    // without queries, Out is what the tokens add, u
	Scale             float32 // of queries
	Out               Rows    // written
	// Decay has the logarithms of the decay: one number for each token, or E if DecayEach. Without, nothing decays.
	Decay     Rows
	DecayEach bool
	// Check is called now and then, and may panic to end the call. It may be nil.
	Check func()
	// Beta has a number for each token, which then erases. Without, tokens only add.
	Beta Rows
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
	u      []float32 // [Blocks(V) 4 32]: what the tokens of the group add
	group
}

// group is the tokens of a group so far, as all columns see them.
type group struct {
	n     int       // tokens, fewer than 4 between calls
	each  bool      // whether decay has E numbers, otherwise 1
	keys  []float32 // [4 E]: keys, decayed since their token
	decay []float32 // [E]: of the tokens so far
}

// Blocks returns the number of blocks of columns of a state with v columns, which do not depend on each other.
func Blocks(v int) int { return (v + columns - 1) / columns }

// NewState returns a state of zeros.
func NewState(e, v int) *State {
	n := Blocks(v)
	return &State{
		blocks: make([]float32, n*e*columns), u: make([]float32, n*tokens*columns),
		group: group{keys: make([]float32, tokens*e), decay: make([]float32, e)},
	}
}

// Copy returns a copy of the state.
func (s *State) Copy() *State {
	c := &State{slices.Clone(s.blocks), slices.Clone(s.u), s.group}
	c.keys, c.decay = slices.Clone(s.keys), slices.Clone(s.decay)
	return c
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

// Set makes x [e v] the state, before the first token of a group.
func (s *State) Set(x []float32, e, v int) {
	s.n = 0
	clear(s.blocks)
	for c := 0; c < v; c += columns {
		simd.CopyRows(s.blocks[c*e:], columns, x[c:], v, e, min(columns, v-c))
	}
}

// Get sets x [e v] to the state after all tokens.
func (s *State) Get(x []float32, e, v int) {
	adds, block := make([]float32, e*simd.StateAdds), make([]float32, e*columns)
	s.setAdds(adds, e)
	for c := 0; c < v; c += columns {
		copy(block, s.blocks[c*e:][:e*columns])
		if s.n > 0 {
			simd.AddState(block, adds, s.u[c*tokens:], e)
		}
		simd.CopyRows(x[c:], v, block, columns, e, min(columns, v-c))
	}
}

// Parts are the numbers of a State, for a file: the state [E V] before the group, and the tokens of the group.
type Parts struct {
	State  []float32
	Keys   []float32 // [4 E], decayed since their token
	Values []float32 // [4 V], what they add
	Decay  []float32 // [E], of the tokens so far
	Tokens int       // of the group, 0 to 3
	Each   bool      // whether Decay has a number for each element, otherwise its first is for all
}

// Parts returns copies of the numbers of the state. Those of tokens that the group does not have yet are 0.
func (s *State) Parts(e, v int) Parts {
	p := Parts{
		State: make([]float32, e*v), Keys: make([]float32, tokens*e), Values: make([]float32, tokens*v), Decay: make([]float32, e),
		Tokens: s.n, Each: s.each,
	}
	copy(p.Keys, s.keys[:s.n*e])
	if s.n > 0 {
		copy(p.Decay, s.decay)
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

// setAdds sets x [e 5] to the keys and decays of the group, as simd.AddState takes them.
func (g *group) setAdds(x []float32, e int) {
	if g.n == tokens { // nearly always
		k0, k1, k2, k3 := g.keys[:e], g.keys[e:][:e], g.keys[2*e:][:e], g.keys[3*e:][:e]
		for i := range e {
			y := x[i*simd.StateAdds:][:simd.StateAdds]
			y[0], y[1], y[2], y[3], y[tokens] = k0[i], k1[i], k2[i], k3[i], g.decay[g.index(i)]
		}
		return
	}
	for i := range e {
		y := x[i*simd.StateAdds:][:simd.StateAdds]
		clear(y)
		for t := range g.n {
			y[t] = g.keys[t*e+i]
		}
		y[tokens] = g.decay[g.index(i)]
	}
}

func (g *group) index(i int) int {
	if g.each {
		return i
	}
	return 0
}
