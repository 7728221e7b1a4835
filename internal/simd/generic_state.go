package simd

// Linear attention in Go: what the kernels of the family state compute.

func statePassGeneric(b *StateBlock) {
	var u [StateTokens][StateColumns]float32
	first := StateTokens
	if b.Erases {
		first = 0
	}
	for g := range b.Groups {
		terms := b.Terms[g*StateTerms:][:StateTerms]
		for t := range StateTokens {
			token := g*StateTokens + t
			value, out := b.Values[token*b.ValueRow:][:StateColumns], b.Out[token*b.OutRow:][:StateColumns]
			copy(u[t][:], value)
			beta := terms[0]
			terms = terms[1:]
			if b.Erases {
				sum := b.Sums[t*StateColumns:][:StateColumns]
				for c := range u[t] {
					u[t][c] -= sum[c]
				}
				for j := range t {
					for c := range u[t] {
						u[t][c] -= float32(terms[j] * u[j][c])
					}
				}
				for c := range u[t] {
					u[t][c] *= beta
				}
			}
			terms = terms[t:]
			copy(out, b.Sums[(StateTokens+t)*StateColumns:])
			for j := range t + 1 {
				for c := range out {
					out[c] += float32(terms[j] * u[j][c])
				}
			}
			terms = terms[t+1:]
		}
		reads, adds := b.Reads[(g+1)*b.Rows*StateReads:], b.Adds[g*b.Rows*StateAdds:]
		clear(b.Sums)
		for i := range b.Rows {
			row := b.State[i*StateColumns:][:StateColumns]
			stateAddRow(row, adds[i*StateAdds:], &u)
			for n := first; n < StateReads; n++ {
				sum, x := b.Sums[n*StateColumns:][:StateColumns], reads[i*StateReads+n]
				for c := range sum {
					sum[c] += float32(x * row[c])
				}
			}
		}
	}
}

func stateAddRow(row, adds []float32, u *[StateTokens][StateColumns]float32) {
	decay := adds[StateTokens]
	for c := range row {
		row[c] = float32(decay * row[c])
	}
	for t := range u {
		for c := range row {
			row[c] += float32(adds[t] * u[t][c])
		}
	}
}

func stateReadGeneric(sums, state, x []float32, n, rows int) {
	for i := range rows {
		row := state[i*StateColumns:][:StateColumns]
		for j, v := range x[i*n:][:n] {
			sum := sums[j*StateColumns:][:StateColumns]
			for c := range sum {
				sum[c] += float32(v * row[c])
			}
		}
	}
}

func stateAddGeneric(state, adds, u []float32, rows int) {
	var all [StateTokens][StateColumns]float32
	for t := range all {
		copy(all[t][:], u[t*StateColumns:])
	}
	for i := range rows {
		stateAddRow(state[i*StateColumns:][:StateColumns], adds[i*StateAdds:], &all)
	}
}
