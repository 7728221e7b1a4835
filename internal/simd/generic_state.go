package simd

import "slices"

// Linear attention in Go: what the kernels of the family state compute.

// A stateRow is a row of a block, and stateGroup those of a group.
type (
	stateRow   = [StateColumns]float32
	stateGroup = [StateTokens]stateRow
)

func statePassGeneric(b *StateBlock) {
	var u stateGroup
	for g := range b.Groups {
		terms, kept := &b.Terms[g], stateOnes
		for t := range u {
			token := g*StateTokens + t
			b.decayColumns(token, &kept, u[:t])
			copy(u[t][:], b.Values.of(token, StateColumns))
			if b.Erases {
				stateErase(terms, t, &kept, u[:t], &u[t], b.Sums[t*StateColumns:], b.Read.of(token, StateColumns))
			}
			stateOut(b.Out.of(token, StateColumns), terms.Query[t], &kept, b.Sums[(StateTokens+t)*StateColumns:], &terms.QueryKey[t], u[:t+1])
		}
		b.finish(g, b.Erases, &kept, &u, nil)
	}
}

var stateOnes = stateRow(slices.Repeat([]float32{1}, StateColumns))

// decayColumns multiplies what tokens of a group before the given one have added by the decay of the columns.
func (b *StateBlock) decayColumns(token int, kept *stateRow, all ...[]stateRow) {
	if b.Factors.Data == nil {
		return
	}
	for c, f := range b.Factors.of(token, StateColumns) {
		kept[c] *= f
		for _, u := range all {
			for j := range u {
				u[j][c] *= f
			}
		}
	}
}

// stateErase makes u, the value of token t, what the token adds, and sets x to what its key reads.
func stateErase(terms *StateTerms, t int, kept *stateRow, before []stateRow, u *stateRow, sum, x []float32) {
	stateOut(x[:StateColumns], terms.Key[t], kept, sum, &terms.KeyKey[t], before)
	for c := range u {
		u[c] = float32(terms.Value[t]*u[c]) - float32(terms.Read[t]*x[c])
	}
}

// stateOut sets out = decay·sum·kept + Σ_j products[j]·u[j].
func stateOut(out []float32, decay float32, kept *stateRow, sum []float32, products *[StateTokens]float32, u []stateRow) {
	for c := range out {
		out[c] = float32(float32(decay*sum[c]) * kept[c])
	}
	for j := range u {
		for c := range out {
			out[c] += float32(products[j] * u[j][c])
		}
	}
}

func statePassTwiceGeneric(b *StateBlock) {
	var u, w stateGroup
	for g := range b.Groups {
		terms, kept := &b.Terms[g], stateOnes
		for t := range u {
			token := g*StateTokens + t
			b.decayColumns(token, &kept, u[:t], w[:t])
			value, value2, out := b.Values.of(token, StateColumns), b.Values2.of(token, StateColumns), b.Out.of(token, StateColumns)
			for c := range u[t] {
				u[t][c] = terms.Key[t] * value[c]
			}
			stateOut(out, terms.Query[t], &kept, b.Sums[(StateTokens+t)*StateColumns:], &terms.QueryKey[t], u[:t+1])
			for j := range t {
				for c := range out {
					out[c] += float32(terms.KeyKey[t][j] * w[j][c])
				}
			}
			for c := range w[t] {
				w[t][c] = float32(terms.Value[t]*value2[c]) - float32(terms.Read[t]*out[c])
			}
		}
		b.finish(g, false, &kept, &u, &w)
	}
}

// finish adds a group to the state and reads for the next one.
func (b *StateBlock) finish(g int, keys bool, kept *stateRow, u, w *stateGroup) {
	next := g + 1
	if next == b.Groups && !b.More {
		next = g
	}
	var reads [2 * StateTokens][]float32
	for t := range StateTokens {
		if keys {
			reads[t] = b.Keys.of(next*StateTokens+t, b.Rows)
		}
		reads[StateTokens+t] = b.Queries.of(next*StateTokens+t, b.Rows)
	}
	b.scaleLeft(g, u)
	if w != nil {
		b.scaleLeft(g, w)
	}
	clear(b.Sums)
	for i := range b.Rows {
		row := b.State[i*StateColumns:][:StateColumns]
		b.addRow(row, g, i, kept, u, w)
		for n, x := range reads {
			if x != nil {
				sum := b.Sums[n*StateColumns:][:StateColumns]
				for c := range sum {
					sum[c] += float32(x[i] * row[c])
				}
			}
		}
	}
}

func (b *StateBlock) scaleLeft(g int, u *stateGroup) {
	for t := range u {
		for c := range u[t] {
			u[t][c] *= b.Terms[g].Left[t]
		}
	}
}

// addRow adds group g to row i.
func (b *StateBlock) addRow(row []float32, g, i int, kept *stateRow, u, w *stateGroup) {
	decay := float32(1)
	switch {
	case b.Factors.Data != nil:
	case b.DecayEach:
		decay = b.Decay[g*b.Rows+i]
	default:
		decay = b.Decay[g]
	}
	for c := range row {
		row[c] = float32(float32(decay*kept[c]) * row[c])
	}
	for t := range u {
		x := b.Adds.of(g*StateTokens+t, b.Rows)[i]
		for c := range row {
			row[c] += float32(x * u[t][c])
		}
	}
	if w == nil {
		return
	}
	for t := range w {
		x := b.Adds2.of(g*StateTokens+t, b.Rows)[i]
		for c := range row {
			row[c] += float32(x * w[t][c])
		}
	}
}

func stateReadGeneric(sums, state []float32, x StateVectors, rows int) {
	for n := range StateTokens {
		stateReadVector(sums[n*StateColumns:][:StateColumns], state, x.of(n, rows))
	}
}

func stateReadVector(sum, state, x []float32) {
	for i, f := range x {
		row := state[i*StateColumns:][:StateColumns]
		for c := range sum {
			sum[c] += float32(f * row[c])
		}
	}
}

func stateStepGeneric(b *StateBlock, u []float32, token int) {
	var all stateGroup
	for t := range all {
		copy(all[t][:], u[t*StateColumns:])
	}
	terms, own := &b.Terms[0], &all[token]
	copy(own[:], b.Values.of(0, StateColumns))
	var sum stateRow
	if b.Erases {
		stateReadVector(sum[:], b.State, b.Keys.of(0, b.Rows))
		stateErase(terms, token, &stateOnes, all[:token], own, sum[:], b.Read.of(0, StateColumns))
	}
	copy(u[token*StateColumns:], own[:])
	clear(sum[:])
	stateReadVector(sum[:], b.State, b.Queries.of(0, b.Rows))
	stateOut(b.Out.of(0, StateColumns), terms.Query[token], &stateOnes, sum[:], &terms.QueryKey[token], all[:token+1])
}

func stateAddGeneric(b *StateBlock, u []float32) {
	var all stateGroup
	for t := range all {
		copy(all[t][:], u[t*StateColumns:])
	}
	b.scaleLeft(0, &all)
	for i := range b.Rows {
		b.addRow(b.State[i*StateColumns:][:StateColumns], 0, i, &stateOnes, &all, nil)
	}
}

func stateProductsGeneric(terms []StateTerms, queries bool, x, y StateVectors, n int) {
	for g := range terms {
		to := terms[g].products(queries)
		for t := range to {
			for j := range t + 1 {
				to[t][j] = dotGeneric(x.of(g*StateTokens+t, n), y.of(g*StateTokens+j, n))
			}
		}
	}
}

func stateDecayedProductsGeneric(d *StateDecays, terms []StateTerms, queries bool, n int) {
	for g := range terms {
		at, decay, to := g*StateTokens, d.Decay[g*n:][:n], terms[g].products(queries)
		for t := range StateTokens {
			x, factors := d.X.of(at+t, n), d.Factors.of(at+t, n)
			if copy(d.Adds.of(at+t, n), d.Y.of(at+t, n)); t == 0 {
				copy(decay, factors)
			} else {
				mulGeneric(decay, decay, factors)
			}
			mulGeneric(d.Reads.of(at+t, n), x, decay)
			for j := range t + 1 {
				y := d.Adds.of(at+j, n)
				if j < t {
					mulGeneric(y, y, factors)
				}
				to[t][j] = dotGeneric(x, y)
			}
		}
	}
}
