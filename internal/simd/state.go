package simd

import "fmt"

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

// Sizes of what a StateBlock has for each group.
const (
	StateReads = 2 * StateTokens                       // reading keys and queries, in this order
	StateAdds  = StateTokens + 1                       // writing keys, then the decay of the whole group
	StateTerms = StateTokens + StateTokens*StateTokens // see StateBlock.Terms
)

// StateBlock is a block of columns of a state and the groups of tokens that pass through it.
type StateBlock struct {
	Rows   int // e, the size of a key
	Groups int
	// Erases is whether the tokens subtract what their keys read; otherwise only queries read.
	Erases bool

	State []float32 // [Rows StateColumns]
	// Sums [StateReads StateColumns] is what the first group reads, Σ_i Reads[0][i][n]·State[i]. Groups replaces it by
	// what the group after the last one would read.
	Sums []float32
	// Reads [Groups+1 Rows StateReads] has the keys and queries of each group, multiplied by the decay since the begin
	// of the group. Those after the last group may be any finite numbers.
	Reads []float32
	// Adds [Groups Rows StateAdds] has the keys of each group, multiplied by the decay up to the end of the group.
	Adds []float32
	// Terms [Groups StateTerms] has numbers by which values in a group reach later tokens of it. For each token t: beta;
	// for each j < t the product of key t and key j; for each j <= t the product of query t and key j.
	Terms []float32

	Values   []float32 // StateColumns floats for each token, a row every ValueRow floats
	ValueRow int
	Out      []float32 // likewise
	OutRow   int
}

// Pass computes all groups. For token t of a group:
//
//	u[t]   = beta·(value[t] − sums[t] − Σ_(j<t) keyKey[t][j]·u[j])    u[t] = value[t] unless Erases
//	out[t] = sums[StateTokens+t] + Σ_(j<=t) queryKey[t][j]·u[j]
//
// and then, for each row i of the state,
//
//	State[i] = decay[i]·State[i] + Σ_t Adds[i][t]·u[t]
//	sums[n]  = Σ_i Reads[next group][i][n]·State[i]
//
// The order of each sum is that of its index.
func (b *StateBlock) Pass() {
	b.check()
	if b.Groups > 0 {
		statePass(b)
	}
}

func (b *StateBlock) check() {
	last := max(StateTokens*b.Groups-1, 0)
	for _, s := range []struct {
		name       string
		have, want int
	}{
		{"State", len(b.State), b.Rows * StateColumns}, {"Sums", len(b.Sums), StateReads * StateColumns},
		{"Reads", len(b.Reads), (b.Groups + 1) * b.Rows * StateReads}, {"Adds", len(b.Adds), b.Groups * b.Rows * StateAdds},
		{"Terms", len(b.Terms), b.Groups * StateTerms},
		{"Values", len(b.Values), last*b.ValueRow + StateColumns}, {"Out", len(b.Out), last*b.OutRow + StateColumns},
	} {
		if s.have < s.want && b.Groups > 0 {
			panic(fmt.Sprintf("simd: StateBlock: %s has %d floats, want at least %d", s.name, s.have, s.want))
		}
	}
}

// ReadState sets sums[n] = Σ_i x[i][n]·state[i] for 2 or StateReads vectors x[i][n]: what Pass computes for a group. x is
// [rows n], sums [n StateColumns].
func ReadState(sums, state, x []float32, n, rows int) {
	if n != 2 && n != StateReads || len(sums) < n*StateColumns || len(state) < rows*StateColumns || len(x) < rows*n {
		panic(fmt.Sprintf("simd: ReadState: %d vectors of %d rows, %d, %d and %d floats", n, rows, len(sums), len(state), len(x)))
	}
	if clear(sums[:n*StateColumns]); rows > 0 {
		stateRead(sums, state, x, n, rows)
	}
}

// AddState sets state[i] = decay[i]·state[i] + Σ_t adds[i][t]·u[t], which is what Pass does with a group. adds is [rows
// StateAdds], u [StateTokens StateColumns].
func AddState(state, adds, u []float32, rows int) {
	if len(state) < rows*StateColumns || len(adds) < rows*StateAdds || len(u) < StateTokens*StateColumns {
		panic("simd: AddState: not enough floats")
	}
	if rows > 0 {
		stateAdd(state, adds, u, rows)
	}
}
