package main

import "slices"

// Sizes that package simd also defines: see state.go there.
const (
	stateColumns = 32
	stateTokens  = 4
)

// Floats of simd.StateTerms before each of its fields.
const (
	termValue = iota * stateTokens
	termRead
	termKey
	termQuery
	termLeft
	termKeyKey
	termQueryKey = termKeyKey + stateTokens*stateTokens
	stateTerms   = termQueryKey + stateTokens*stateTokens
)

// stateProgram writes the kernels of a state for some vectors of columns. With AVX-512, two vectors of the sums, the
// additions and the state take 27 of 32 registers, so that nothing is loaded twice; AVX2 has registers for one.
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

// readRow reads the vectors of row i.
func (p stateProgram) readRow(x ptr, i int) []vec {
	var all []vec
	for v := range p.vectors {
		all = append(all, p.read(x, p.row(i, v), nil))
	}
	return all
}

func (p stateProgram) writeRow(all []vec, x ptr, i int) {
	for v := range all {
		p.write(all[v], x, p.row(i, v), nil)
	}
}

// scale multiplies vectors by a float.
func (p stateProgram) scale(all []vec, x ptr, i int) {
	p.scope(func() {
		f := p.load(x, i)
		for _, v := range all {
			p.mul(v, v, f)
		}
	})
}

// multiply multiplies vectors by those of x, if there are any.
func (p stateProgram) multiply(all, x []vec) {
	for v := range x {
		p.mul(all[v], all[v], x[v])
	}
}

// combine adds to y, or subtracts from it, the products of vectors u with floats of x from number at on.
func (p stateProgram) combine(op func(d, a, b vec), y []vec, x ptr, at int, u ...[]vec) {
	for j := range u {
		p.scope(func() {
			f := p.load(x, at+j)
			for v := range y {
				op(y[v], f, u[j][v])
			}
		})
	}
}

// added is the tokens of a group that a pass adds: vectors at rows, times u.
type added struct {
	rows []ptr
	u    [][]vec
}

// addTokens writes what is kept of s plus Σ rows·u for a row s of the state, and stores it.
func (p stateProgram) addTokens(state ptr, kept func(s []vec), all ...added) []vec {
	s := p.readRow(state, 0)
	kept(s)
	for _, a := range all {
		for t := range a.u {
			p.combine(p.addProduct, s, a.rows[t], 0, a.u[t])
		}
	}
	p.writeRow(s, state, 0)
	return s
}

// gather adds the products of a row of the state with floats at rows.
func (p stateProgram) gather(sums [][]vec, s []vec, rows []ptr) {
	for n := range sums {
		p.combine(p.addProduct, sums[n], rows[n], 0, s)
	}
}

func (p stateProgram) store(sums [][]vec, to ptr, first int) {
	for n := range sums {
		p.writeRow(sums[n], to, first+n)
	}
}

// A stateKind says what the tokens of a pass do: see the methods of simd.StateBlock.
type stateKind int

const (
	statePlain stateKind = iota
	stateErase
	stateTwice
)

// statePass returns the kernel that passes groups of tokens through some columns, each of which has its own decay if
// columns.
func statePass(k stateKind, columns bool) func(p program) {
	return func(p program) { newStateProgram(p).pass(k, columns) }
}

func (p stateProgram) pass(k stateKind, columns bool) {
	a := p.args
	reading, firstSum := []ptr{a.field("queries")}, stateTokens
	adding := []ptr{a.field("adds")}
	switch k {
	case stateErase:
		reading, firstSum = []ptr{a.field("keys"), reading[0]}, 0
	case stateTwice:
		adding = append(adding, a.field("adds2"))
	}
	decay, t := a.field("decay"), p.newTokens(k)
	if columns {
		t.decay = decay
	}
	p.repeat(a.field("groups"), func() {
		p.scope(func() {
			us := t.write()
			sums := zeros(p, stateTokens*len(reading), p.vectors)
			state, kept, next := a.field("state"), func(s []vec) { p.multiply(s, t.kept) }, func() {}
			if !columns {
				decayRow := a.field("decayRow")
				kept, next = func(s []vec) { p.scale(s, decay, 0) }, func() { p.advance(decay, decayRow) }
			}
			sets := p.rowSets(a.field("row"), stateTokens, append(reading, adding...)...)
			p.repeat(a.field("rows"), func() {
				p.scope(func() {
					var all []added
					for i, u := range us {
						all = append(all, added{sets[len(reading)+i], u})
					}
					s := p.addTokens(state, kept, all...)
					for i := range reading {
						p.gather(sums[i*stateTokens:][:stateTokens], s, sets[i])
					}
				})
				p.move(4*stateColumns, state)
				next()
				for _, rows := range sets {
					p.moveRows(4, rows)
				}
			})
			p.store(sums, a.field("sums"), firstSum)
		})
		p.scope(func() {
			next := a.field("next")
			for _, x := range append(reading, adding...) {
				p.advance(x, next)
			}
			if !columns {
				p.advance(decay, a.field("decayNext"))
			}
		})
		p.move(4*stateTerms, t.terms)
	})
	p.end()
}

// stateTokensOf writes what the tokens of a group read, and returns what they add.
type stateTokensOf struct {
	stateProgram
	kind                              stateKind
	terms, values, values2, read, out ptr
	decay                             ptr   // of the columns, for the next token; or nil
	kept                              []vec // the decay of the columns since the begin of the group
}

// decayColumns multiplies what the tokens so far have added by the decay of the columns for the next token.
func (p *stateTokensOf) decayColumns(all ...[]vec) {
	if p.kept == nil {
		p.kept = p.readRow(p.decay, 0)
	} else {
		p.scope(func() {
			f := p.readRow(p.decay, 0)
			for _, x := range append(all, p.kept) {
				p.multiply(x, f)
			}
		})
	}
	p.scope(func() { p.advance(p.decay, p.args.field("decayRow")) })
}

func (p stateProgram) newTokens(k stateKind) *stateTokensOf {
	t := &stateTokensOf{stateProgram: p, kind: k, terms: p.args.field("terms"), values: p.args.field("values"), out: p.args.field("out")}
	switch k {
	case stateErase:
		t.read = p.args.field("read")
	case stateTwice:
		t.values2 = p.args.field("values2")
	}
	return t
}

// write returns the additions of all tokens, of which stateTwice has two.
func (p *stateTokensOf) write() [][][]vec {
	sums := p.args.field("sums")
	var u, more [][]vec
	p.kept = nil
	for t := range stateTokens {
		if p.decay != nil {
			p.decayColumns(slices.Concat(u, more)...)
		}
		own := p.readRow(p.values, 0)
		u = append(u, own)
		keyKey, queryKey := termKeyKey+t*stateTokens, termQueryKey+t*stateTokens
		// what vector n of the sums reads, without the tokens of the group
		before := func(n, decay int) []vec {
			x := p.readRow(sums, n)
			p.scale(x, p.terms, decay+t)
			p.multiply(x, p.kept)
			return x
		}
		// a value, less what the token has read
		erased := func(v, x []vec) {
			p.scale(v, p.terms, termValue+t)
			p.combine(p.subProduct, v, p.terms, termRead+t, x)
		}
		if p.kind == stateErase {
			p.scope(func() {
				x := before(t, termKey)
				p.combine(p.addProduct, x, p.terms, keyKey, u[:t]...)
				p.writeRow(x, p.read, 0)
				erased(own, x)
			})
		}
		if p.kind == stateTwice {
			p.scale(own, p.terms, termKey+t)
			more = append(more, p.readRow(p.values2, 0))
		}
		p.scope(func() {
			y := before(stateTokens+t, termQuery)
			p.combine(p.addProduct, y, p.terms, queryKey, u...)
			if p.kind == stateTwice {
				p.combine(p.addProduct, y, p.terms, keyKey, more[:t]...)
				erased(more[t], y)
			}
			p.writeRow(y, p.out, 0)
		})
		p.next()
	}
	all := [][][]vec{u}
	if more != nil {
		all = append(all, more)
	}
	for _, u := range all {
		for t := range u {
			p.scale(u[t], p.terms, termLeft+t)
		}
	}
	return all
}

// next moves to the next token.
func (p *stateTokensOf) next() {
	for _, x := range []struct {
		at  ptr
		row string
	}{{p.values, "valueRow"}, {p.values2, "value2Row"}, {p.read, "readRow"}, {p.out, "outRow"}} {
		if x.at != nil {
			p.scope(func() { p.advance(x.at, p.args.field(x.row)) })
		}
	}
}

// stateRead is the kernel for what four vectors read.
func stateRead(program program) {
	p := newStateProgram(program)
	state, sums := p.args.field("state"), zeros(p, stateTokens, p.vectors)
	rows := p.rowSets(p.args.field("row"), stateTokens, p.args.field("queries"))[0]
	p.repeat(p.args.field("rows"), func() {
		p.scope(func() { p.gather(sums, p.readRow(state, 0), rows) })
		p.move(4*stateColumns, state)
		p.moveRows(4, rows)
	})
	p.store(sums, p.args.field("sums"), 0)
	p.end()
}

// stateStep returns the kernel that passes one token.
func stateStep(erases bool) func(p program) {
	return func(program program) {
		p := newStateProgram(program)
		state, terms, products, u := p.args.field("state"), p.args.field("terms"), p.args.field("products"), p.args.field("u")
		reading := []ptr{p.args.field("queries")}
		if erases {
			reading = append(reading, p.args.field("keys"))
		}
		sums := zeros(p, len(reading), p.vectors)
		p.repeat(p.args.field("rows"), func() {
			p.scope(func() {
				s := p.readRow(state, 0)
				for i := range reading {
					p.combine(p.addProduct, sums[i], reading[i], 0, s)
				}
			})
			p.move(4*stateColumns, state)
			p.move(4, reading...)
		})
		own := p.readRow(p.args.field("values"), 0)
		if erases {
			p.scale(sums[1], terms, termKey)
			for j := range stateTokens - 1 {
				p.scope(func() { p.combine(p.addProduct, sums[1], products, j, p.readRow(u, j)) })
			}
			p.writeRow(sums[1], p.args.field("read"), 0)
			p.scale(own, terms, termValue)
			p.combine(p.subProduct, own, terms, termRead, sums[1])
		}
		p.writeRow(own, p.args.field("own"), 0)
		p.scale(sums[0], terms, termQuery)
		for j := range stateTokens {
			p.scope(func() { p.combine(p.addProduct, sums[0], products, stateTokens*stateTokens+j, p.readRow(u, j)) })
		}
		p.writeRow(sums[0], p.args.field("out"), 0)
		p.end()
	}
}

func stateAdd(program program) {
	p := newStateProgram(program)
	terms, from := p.args.field("terms"), p.args.field("u")
	var u [][]vec
	for t := range stateTokens {
		u = append(u, p.readRow(from, t))
		p.scale(u[t], terms, termLeft+t)
	}
	state, decay, decayRow := p.args.field("state"), p.args.field("decay"), p.args.field("decayRow")
	rows := p.rowSets(p.args.field("row"), stateTokens, p.args.field("adds"))[0]
	p.repeat(p.args.field("rows"), func() {
		p.scope(func() { p.addTokens(state, func(s []vec) { p.scale(s, decay, 0) }, added{rows, u}) })
		p.move(4*stateColumns, state)
		p.advance(decay, decayRow)
		p.moveRows(4, rows)
	})
	p.end()
}

// stateProducts is the kernel for the products of the vectors of each group.
func stateProducts(p program) {
	a := newArguments(p, stateArg)
	queries, adds, to, group := a.field("queries"), a.field("adds"), a.field("terms"), a.field("next")
	p.repeat(a.field("groups"), func() {
		p.scope(func() {
			sums, n := productSums(p), a.field("rows")
			sets := p.rowSets(a.field("row"), stateTokens, p.place(queries), p.place(adds))
			step := func(e extent) {
				p.scope(func() {
					var keys []vec
					for t := range stateTokens {
						keys = append(keys, p.read(sets[1][t], 0, e))
						p.scope(func() {
							x := p.read(sets[0][t], 0, e)
							for j, key := range keys {
								p.addProduct(sums[t][j], x, key)
							}
						})
					}
				})
			}
			alongSets(p, n, sets, step)
			storeProducts(p, sums, p.place(to))
		})
		p.advance(queries, group)
		p.advance(adds, group)
		p.move(4*stateTerms, to)
	})
	p.end()
}

// productSums returns zeros for the products of vector t of a group with vectors j <= t.
func productSums(p program) (sums [stateTokens][]vec) {
	for t := range sums {
		sums[t] = zeros(p, 1, t+1)[0]
	}
	return sums
}

// alongSets writes step for each vector of rows of n elements.
func alongSets(p program, n ptr, sets [][]ptr, step func(e extent)) {
	lanes := p.impl().lanes
	p.whole(n, lanes, func() {
		step(nil)
		for _, rows := range sets {
			p.moveRows(4*lanes, rows)
		}
	})
	p.ifElse(notZero(n), func() { step(p.few(n)) }, nil)
}

// storeProducts stores the products at a field of StateTerms.
func storeProducts(p program, sums [stateTokens][]vec, at ptr) {
	for t := range sums {
		for j := range sums[t] {
			p.scope(func() { p.storeSum(sums[t][j:j+1], at) })
			p.move(4, at)
		}
		p.move(4*(stateTokens-1-t), at)
	}
}

// stateDecayedProducts is the kernel for the products of vectors whose elements decay. Each is loaded when it is needed,
// since AVX2 has few registers.
func stateDecayedProducts(p program) {
	a := newArguments(p, stateArg)
	n, whole, sums := a.field("rows"), a.field("sums"), productSums(p)
	sets := p.rowSets(a.field("row"), stateTokens, a.field("queries"), a.field("adds"), a.field("decay"), a.field("out"), a.field("read"))
	x, y, factors, reads, adds := sets[0], sets[1], sets[2], sets[3], sets[4]
	decayed := func(d vec, t int, e extent) {
		p.scope(func() { p.mul(d, d, p.read(factors[t], 0, e)) })
	}
	step := func(e extent) {
		for j := range stateTokens {
			p.scope(func() {
				v := p.read(y[j], 0, e)
				for t := j; t < stateTokens; t++ {
					if t > j {
						decayed(v, t, e)
					}
					p.scope(func() { p.addProduct(sums[t][j], v, p.read(x[t], 0, e)) })
				}
				p.write(v, adds[j], 0, e)
			})
		}
		p.scope(func() {
			d := p.read(factors[0], 0, e)
			for t := range stateTokens {
				if t > 0 {
					decayed(d, t, e)
				}
				p.scope(func() {
					v := p.read(x[t], 0, e)
					p.mul(v, v, d)
					p.write(v, reads[t], 0, e)
				})
			}
			p.write(d, whole, 0, e)
		})
	}
	alongSets(p, n, append(sets, []ptr{whole}), step)
	storeProducts(p, sums, a.field("terms"))
	p.end()
}
