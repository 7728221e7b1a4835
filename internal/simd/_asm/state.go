package main

// Sizes that package simd also defines: see state.go there.
const (
	stateColumns = 32
	stateTokens  = 4
	stateReads   = 2 * stateTokens
	stateAdds    = stateTokens + 1
	stateTerms   = stateTokens + stateTokens*stateTokens
)

// stateProgram writes the kernels of a state for some vectors of columns. With AVX-512, two vectors of the sums, the
// additions and the state take 26 of 32 registers, so that nothing is loaded twice; AVX2 has registers for one.
type stateProgram struct {
	program
	args    arguments
	vectors int
}

func newStateProgram(p program) stateProgram {
	return stateProgram{p, newArguments(p, stateArg), p.impl().state / p.impl().lanes}
}

// row returns the address of vector v of row i.
func (p stateProgram) row(i, v int) int { return i*stateColumns/p.impl().lanes + v }

// readRows reads n rows.
func (p stateProgram) readRows(x ptr, n int) [][]vec {
	all := make([][]vec, n)
	for i := range all {
		for v := range p.vectors {
			all[i] = append(all[i], p.read(x, p.row(i, v), nil))
		}
	}
	return all
}

// addTokens writes decay·s + Σ adds·u for a row of the state, and stores it.
func (p stateProgram) addTokens(state, adds ptr, u [][]vec) []vec {
	decay := p.load(adds, stateTokens)
	var s []vec
	for v := range p.vectors {
		x := p.read(state, v, nil)
		p.mul(x, x, decay)
		s = append(s, x)
	}
	for t := range u {
		p.scope(func() {
			w := p.load(adds, t)
			for v := range s {
				p.addProduct(s[v], w, u[t][v])
			}
		})
	}
	for v := range s {
		p.write(s[v], state, v, nil)
	}
	return s
}

// gather adds the products of a row of the state with numbers of x, from the first one on.
func (p stateProgram) gather(sums [][]vec, s []vec, x ptr, first int) {
	for n := range sums {
		p.scope(func() {
			r := p.load(x, first+n)
			for v := range s {
				p.addProduct(sums[n][v], r, s[v])
			}
		})
	}
}

func (p stateProgram) store(sums [][]vec, to ptr, first int) {
	for n := range sums {
		for v := range sums[n] {
			p.write(sums[n][v], to, p.row(first+n, v), nil)
		}
	}
}

// statePass returns the kernel that passes groups of tokens through some columns.
func statePass(erases bool) func(p program) {
	return func(p program) { newStateProgram(p).pass(erases) }
}

func (p stateProgram) pass(erases bool) {
	a, first := p.args, stateTokens
	if erases {
		first = 0
	}
	reads, adds, terms := a.field("reads"), a.field("adds"), a.field("terms")
	values, out := a.field("values"), a.field("out")
	p.repeat(a.field("groups"), func() {
		p.scope(func() {
			u := p.tokens(erases, terms, values, out)
			sums := zeros(p, stateReads-first, p.vectors)
			state := a.field("state")
			p.repeat(a.field("rows"), func() {
				p.scope(func() {
					p.gather(sums, p.addTokens(state, adds, u), reads, first)
				})
				p.move(4*stateColumns, state)
				p.move(4*stateReads, reads)
				p.move(4*stateAdds, adds)
			})
			p.store(sums, a.field("sums"), first)
		})
		p.move(4*stateTerms, terms)
	})
	p.end()
}

// tokens writes the outputs of a group, and returns what it adds to the state.
func (p stateProgram) tokens(erases bool, terms, values, out ptr) [][]vec {
	sums, valueRow, outRow := p.args.field("sums"), p.args.field("valueRow"), p.args.field("outRow")
	u := make([][]vec, stateTokens)
	at := 0
	for t := range u {
		for v := range p.vectors {
			u[t] = append(u[t], p.read(values, v, nil))
		}
		beta := at
		if at++; erases {
			for v, x := range u[t] {
				p.scope(func() { p.sub(x, x, p.operand(sums, p.row(t, v))) })
			}
			p.combine(p.subProduct, u[t], terms, at, u[:t])
			p.scope(func() {
				f := p.load(terms, beta)
				for _, x := range u[t] {
					p.mul(x, x, f)
				}
			})
		}
		at += t
		p.scope(func() {
			var y []vec
			for v := range p.vectors {
				y = append(y, p.read(sums, p.row(stateTokens+t, v), nil))
			}
			p.combine(p.addProduct, y, terms, at, u[:t+1])
			for v := range y {
				p.write(y[v], out, v, nil)
			}
		})
		at += t + 1
		p.advance(values, valueRow)
		p.advance(out, outRow)
	}
	return u
}

// combine adds to y, or subtracts from it, the products of terms with the values of tokens.
func (p stateProgram) combine(op func(d, a, b vec), y []vec, terms ptr, at int, u [][]vec) {
	for j := range u {
		p.scope(func() {
			f := p.load(terms, at+j)
			for v := range y {
				op(y[v], f, u[j][v])
			}
		})
	}
}

// stateRead returns the kernel for what n vectors read.
func stateRead(n int) func(p program) {
	return func(program program) {
		p := newStateProgram(program)
		x, state, sums := p.args.field("reads"), p.args.field("state"), zeros(p, n, p.vectors)
		p.repeat(p.args.field("rows"), func() {
			p.scope(func() { p.gather(sums, p.readRows(state, 1)[0], x, 0) })
			p.move(4*stateColumns, state)
			p.move(4*n, x)
		})
		p.store(sums, p.args.field("sums"), 0)
		p.end()
	}
}

func stateAdd(program program) {
	p := newStateProgram(program)
	state, adds, u := p.args.field("state"), p.args.field("adds"), p.readRows(p.args.field("u"), stateTokens)
	p.repeat(p.args.field("rows"), func() {
		p.scope(func() { p.addTokens(state, adds, u) })
		p.move(4*stateColumns, state)
		p.move(4*stateAdds, adds)
	})
	p.end()
}
