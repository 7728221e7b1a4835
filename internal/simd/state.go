package simd

import (
	"fmt"
	"unsafe"
)

// The state of linear attention is a matrix [e v], a sum of key ⊗ value, which a query reads. The functions below are
// for a block of StateColumns columns of it, since columns do not depend on each other: a block stays in the first-level
// cache while all tokens pass.
//
// StateTokens tokens, a group, pass together. What they read from the state as it was before the group, sums, is known
// when the group begins. So one pass over the state adds the group and reads for the next one: each element is loaded
// and stored once in StateTokens tokens.
const (
	StateColumns = 32
	StateTokens  = 4
)

// StateTerms are the numbers by which the tokens of a group, t, reach each other, j < t or j <= t, and the state.
type StateTerms struct {
	Value, Read [StateTokens]float32 // u[t] = Value[t]·value[t] − Read[t]·x[t], where key t reads x[t]
	Key, Query  [StateTokens]float32 // of what keys and queries read from the state before the group
	Left        [StateTokens]float32 // of u[t] at the end of the group
	KeyKey      [StateTokens][StateTokens]float32
	QueryKey    [StateTokens][StateTokens]float32
}

// StateVectors are vectors of tokens: that of token t begins at Data[First + t·Row]. Row may be negative.
type StateVectors struct {
	Data       []float32
	First, Row int
}

// at returns the address of vector t.
func (x *StateVectors) at(t int) *float32 { return &x.Data[x.First+t*x.Row] }

// from returns the vectors from token t on.
func (x StateVectors) from(t int) StateVectors {
	x.First += t * x.Row
	return x
}

// of returns n elements of vector t.
func (x *StateVectors) of(t, n int) []float32 { return x.Data[x.First+t*x.Row:][:n] }

// has reports whether there are n vectors of the given size.
func (x *StateVectors) has(n, size int) bool {
	last := x.First + (n-1)*x.Row
	return n == 0 || min(x.First, last) >= 0 && max(x.First, last)+size <= len(x.Data)
}

// StateBlock is a block of columns of a state and the groups of tokens that pass through it.
type StateBlock struct {
	Rows   int // e, the size of a key
	Groups int
	// Erases is whether the tokens subtract what their keys read; otherwise only queries read.
	Erases bool
	// More is whether keys and queries have another group behind the last one.
	More bool

	State []float32 // [Rows StateColumns]
	// Sums [2·StateTokens StateColumns] is what the keys and then the queries of the first group read: see Read. A pass
	// replaces it by what the group after the last one reads, if there is More. Without Erases there are no sums of keys.
	Sums []float32
	// Keys and Queries read, and Adds are the keys that u is added by. All have the same Row.
	Keys, Queries, Adds StateVectors
	Decay               []float32 // [Groups], or [Groups Rows] if DecayEach: of each group
	DecayEach           bool
	// Factors, if it has Data, has StateColumns floats for each token: the decay of each column, in place of Decay. All
	// that the token reads or adds to has been multiplied by it.
	Factors StateVectors
	Terms   []StateTerms // of each group

	Values StateVectors // StateColumns floats for each token
	Out    StateVectors // likewise; is written
	Read   StateVectors // likewise, with Erases: what keys read

	// What PassTwice adds, too.
	Adds2, Values2 StateVectors
}

// Pass computes all groups. For token t of a group:
//
//	x[t]    = Key[t]·sums[t] + Σ_(j<t) KeyKey[t][j]·u[j]
//	read[t] = x[t]
//	u[t]    = Value[t]·value[t] − Read[t]·x[t]           u[t] = value[t] unless Erases
//	out[t]  = Query[t]·sums[StateTokens+t] + Σ_(j<=t) QueryKey[t][j]·u[j]
//
// and then, for each row i of the state,
//
//	State[i] = decay[i]·State[i] + Σ_t adds[t][i]·Left[t]·u[t]
//	sums[n]  = Σ_i vector[n][i]·State[i]    for the keys and queries of the next group
//
// The order of each sum is that of its index.
func (b *StateBlock) Pass() {
	b.check(b.Erases, false)
	if b.Groups > 0 && b.Rows > 0 {
		statePass(b)
	}
}

// PassTwice computes groups of tokens that add twice, and read in between:
//
//	u[t]   = Key[t]·value[t]
//	out[t] = Query[t]·sums[StateTokens+t] + Σ_(j<=t) QueryKey[t][j]·u[j] + Σ_(j<t) KeyKey[t][j]·w[j]
//	w[t]   = Value[t]·value2[t] − Read[t]·out[t]
//
//	State[i] = decay[i]·State[i] + Σ_t adds[t][i]·Left[t]·u[t] + Σ_t adds2[t][i]·Left[t]·w[t]
//
// and sums as in Pass. Only queries read.
func (b *StateBlock) PassTwice() {
	b.check(false, true)
	if b.Groups > 0 && b.Rows > 0 {
		statePassTwice(b)
	}
}

func (b *StateBlock) check(erases, twice bool) {
	n, reading := StateTokens*b.Groups, StateTokens*b.Groups
	if b.More {
		reading += StateTokens
	}
	decays := 1
	switch {
	case b.Factors.Data != nil:
		decays = 0
	case b.DecayEach:
		decays = b.Rows
	}
	ok := len(b.State) >= b.Rows*StateColumns && len(b.Sums) >= 2*StateTokens*StateColumns && len(b.Terms) >= b.Groups &&
		len(b.Decay) >= b.Groups*decays && b.Queries.has(reading, b.Rows) && b.Adds.has(n, b.Rows) &&
		(b.Factors.Data == nil || b.Factors.has(n, StateColumns)) && b.Values.has(n, StateColumns) && b.Out.has(n, StateColumns) && b.Adds.Row == b.Queries.Row
	if erases {
		ok = ok && b.Keys.has(reading, b.Rows) && b.Keys.Row == b.Queries.Row && b.Read.has(n, StateColumns)
	}
	if twice {
		ok = ok && b.Adds2.has(n, b.Rows) && b.Adds2.Row == b.Queries.Row && b.Values2.has(n, StateColumns)
	}
	if !ok {
		panic(fmt.Sprintf("simd: StateBlock: slices are too short for %d groups and %d rows, or rows differ", b.Groups, b.Rows))
	}
}

// ReadState sets sums[n] = Σ_i x[n][i]·state[i] for StateTokens vectors x: what Pass computes for a group. sums is
// [StateTokens StateColumns].
func ReadState(sums, state []float32, x StateVectors, rows int) {
	if len(sums) < StateTokens*StateColumns || len(state) < rows*StateColumns || !x.has(StateTokens, rows) {
		panic(fmt.Sprintf("simd: ReadState: slices are too short for %d rows", rows))
	}
	if clear(sums[:StateTokens*StateColumns]); rows > 0 {
		stateRead(sums, state, x, rows)
	}
}

// Step computes one token of the first group, with the bits of Pass, and leaves the state as it is. u [StateTokens
// StateColumns] has u of the tokens before it and zeros behind them; Step sets its own. The first vectors of Keys,
// Queries, Values, Out and Read are those of the token.
func (b *StateBlock) Step(u []float32, token int) {
	if len(b.State) < b.Rows*StateColumns || len(u) < StateTokens*StateColumns || len(b.Terms) == 0 || !b.Queries.has(1, b.Rows) ||
		b.Erases && !(b.Keys.has(1, b.Rows) && b.Read.has(1, StateColumns)) || !b.Values.has(1, StateColumns) || !b.Out.has(1, StateColumns) {
		panic(fmt.Sprintf("simd: StateBlock.Step: slices are too short for %d rows", b.Rows))
	}
	if b.Rows > 0 {
		stateStep(b, u, token)
	}
}

// Add adds the tokens of the first group, whose u Step has set, to the state: what Pass does with a group.
func (b *StateBlock) Add(u []float32) {
	if len(b.State) < b.Rows*StateColumns || len(u) < StateTokens*StateColumns || len(b.Terms) == 0 || !b.Adds.has(StateTokens, b.Rows) ||
		len(b.Decay) == 0 || b.DecayEach && len(b.Decay) < b.Rows {
		panic(fmt.Sprintf("simd: StateBlock.Add: slices are too short for %d rows", b.Rows))
	}
	if b.Rows > 0 {
		stateAdd(b, u)
	}
}

// StateProducts sets KeyKey, or QueryKey if queries, of each group to the products x[t]·y[j] of its vectors of n elements,
// for j <= t. Each product has bits that depend on its two vectors only.
func StateProducts(terms []StateTerms, queries bool, x, y StateVectors, n int) {
	if tokens := StateTokens * len(terms); !x.has(tokens, n) || !y.has(tokens, n) || x.Row != y.Row {
		panic(fmt.Sprintf("simd: StateProducts: slices are too short for %d groups of %d elements, or rows differ", len(terms), n))
	}
	if len(terms) > 0 && n > 0 {
		stateProducts(terms, queries, x, y, n)
	}
}

// StateDecays are vectors of groups whose elements have their own decays. All have the same Row.
type StateDecays struct {
	X, Y, Factors StateVectors
	Reads, Adds   StateVectors // written
	Decay         []float32    // [groups n], written: of each group
}

// Products is StateProducts with y decayed since its token: for j <= t, x[t]·(y[j] ⊙ factors[j+1] ⊙ … ⊙ factors[t]). It
// also sets, with four tokens in a group,
//
//	reads[t] = x[t] ⊙ factors[0] ⊙ … ⊙ factors[t]
//	adds[t]  = y[t] ⊙ factors[t+1] ⊙ … ⊙ factors[3]
//	decay    = factors[0] ⊙ … ⊙ factors[3]
func (d *StateDecays) Products(terms []StateTerms, queries bool, n int) {
	for _, x := range []*StateVectors{&d.X, &d.Y, &d.Factors, &d.Reads, &d.Adds} {
		if !x.has(StateTokens*len(terms), n) || x.Row != d.X.Row || len(d.Decay) < n*len(terms) {
			panic(fmt.Sprintf("simd: StateDecays: slices are too short for %d groups of %d elements, or rows differ", len(terms), n))
		}
	}
	if n > 0 {
		stateDecayedProducts(d, terms, queries, n)
	}
}

func (s *StateTerms) products(queries bool) *[StateTokens][StateTokens]float32 {
	if queries {
		return &s.QueryKey
	}
	return &s.KeyKey
}

var _ = [1]struct{}{}[unsafe.Sizeof(StateTerms{})-4*(5*StateTokens+2*StateTokens*StateTokens)]
