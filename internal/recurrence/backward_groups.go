package recurrence

import (
	"sync"

	"github.com/attn-go/attn/internal/simd"
)

// grouping is Backward for decays of a number for each token, or none. It is three passes of groups of tokens through a
// state, as is Run:
//
//	D   [E V], from the last token: adds query ⊗ dout, reads key, which is du, and adds −key ⊗ dvalue
//	Sᵀ  [V E], from the first:      reads dvalue, adds u ⊗ key, and reads dout, which is dquery
//	Dᵀ  [V E], from the last:       adds dout ⊗ query, reads u, and adds −dvalue ⊗ key
type grouping struct {
	s                *Sequence
	g                *Grads
	factors          []float32 // [N]
	e, u, dvalue     []float32 // [N V]; without Beta u is the values
	along            []float32 // [N]: by how much the gradient of g differs from that of the next token
	last             float64   // the product of the last state and its gradient
	state, sums      []float32
	out, read        []float32 // [tileTokens columns]
	narrow, narrow2  []float32 // values of a block that has fewer columns than 32
	padded           [6][]float32
	terms            [tileGroups]simd.StateTerms
	decays           [tileGroups]float32
	turned           []float32
	key, query, dout Rows
}

var groupings = sync.Pool{New: func() any { return new(grouping) }}

func (b *grouping) run(s *Sequence, first []float32, g *Grads) {
	b.s, b.g = s, g
	defer func() { b.s, b.g = nil, nil }()
	n, e, v := s.N, s.E, s.V
	grow(&b.factors, n)
	for t := range b.factors {
		b.factors[t] = 1
	}
	if s.decays() > 0 {
		for t := range n {
			b.factors[t] = s.Decay.at(t, 1)[0]
		}
		simd.Exp(b.factors, b.factors)
	}
	for _, x := range []*[]float32{&b.u, &b.dvalue} {
		grow(x, n*v)
	}
	grow(&b.along, n)
	b.setResiduals()
	b.key, b.query, b.dout = packed(s.Key, n, e), packed(s.Query, n, e), packed(g.Out, n, v)
	var ends []int // of parts, each of which begins with a token that clears the state
	for t := 1; t < n; t++ {
		if b.factors[t] == 0 {
			ends = append(ends, t)
		}
	}
	ends = append(ends, n)
	b.passD(ends)
	b.passS(ends, first)
	b.passTurnedD(ends)
	b.decayGrads()
}

// packed returns n vectors without gaps.
func packed(r Rows, n, size int) Rows {
	if r.Step == size {
		return r
	}
	x := Rows{make([]float32, n*size), size}
	for t := range n {
		copy(x.at(t, size), r.at(t, size))
	}
	return x
}

// setResiduals sets e, the value without what the key reads, and u.
func (b *grouping) setResiduals() {
	s := b.s
	if !s.erases() {
		for t := range s.N {
			copy(b.u[t*s.V:][:s.V], s.Value.at(t, s.V))
		}
		return
	}
	grow(&b.e, s.N*s.V)
	for t := range s.N {
		e := b.e[t*s.V:][:s.V]
		simd.Scale(e, -1, s.Read.at(t, s.V))
		simd.Add(e, e, s.Value.at(t, s.V))
		simd.Scale(b.u[t*s.V:][:s.V], s.Beta.at(t, 1)[0], e)
	}
}

// stream is a pass of tokens through a state [rows columns].
type stream struct {
	rows, columns              int
	reversed                   bool
	erases, twice              bool
	scale                      float32 // of what queries read, or of what is added if reversed
	keys, queries, adds, adds2 Rows    // rows
	values, values2            Rows    // columns
	value                      float32 // StateTerms.Value
	strengths                  Rows    // StateTerms.Read, 0 without
	done                       func(t int, out, read []float32)
}

// token returns the i-th token of a pass of those from lo to hi.
func (p *stream) token(lo, hi, i int) int {
	if p.reversed {
		return hi - 1 - i
	}
	return lo + i
}

// vectors returns those of r from the i-th token on.
func (p *stream) vectors(r Rows, lo, hi, i int) simd.StateVectors {
	x := simd.StateVectors{Data: r.Data, First: p.token(lo, hi, i) * r.Step, Row: r.Step}
	if p.reversed {
		x.Row = -x.Row
	}
	return x
}

// pass passes the tokens from lo to hi.
func (b *grouping) pass(p *stream, lo, hi int) {
	n, known := hi-lo, -1
	whole := n / tokens * tokens
	for i := 0; i < n; {
		b.s.check()
		m := min(tileTokens, whole-i)
		blk := simd.StateBlock{Rows: p.rows, Erases: p.erases, Decay: b.decays[:]}
		blk.Keys, blk.Queries = p.vectors(p.keys, lo, hi, i), p.vectors(p.queries, lo, hi, i)
		blk.Adds, blk.Adds2 = p.vectors(p.adds, lo, hi, i), p.vectors(p.adds2, lo, hi, i)
		blk.Values, blk.Values2 = p.vectors(p.values, lo, hi, i), p.vectors(p.values2, lo, hi, i)
		if m == 0 { // the rest, with zeros behind it
			m = n - i
			for j, x := range []*simd.StateVectors{&blk.Keys, &blk.Queries, &blk.Adds, &blk.Adds2, &blk.Values, &blk.Values2} {
				size := p.rows
				if j >= 4 {
					size = p.columns
				}
				b.pad(&b.padded[j], x, m, size)
			}
		}
		blk.Groups = (m + tokens - 1) / tokens
		blk.More = i+m+tokens <= whole
		b.setTerms(p, &blk, lo, hi, i, m)
		b.columns(p, &blk, m, known != i)
		if known = -1; blk.More {
			known = i + m
		}
		size := Blocks(p.columns) * columns
		for j := range m {
			p.done(p.token(lo, hi, i+j), b.out[j*size:][:p.columns], b.read[j*size:][:p.columns])
		}
		i += m
	}
}

// pad makes x its first n vectors, and zeros behind them.
func (b *grouping) pad(memory *[]float32, x *simd.StateVectors, n, size int) {
	grow(memory, tokens*size)
	clear(*memory)
	for i := 0; i < n && x.Data != nil; i++ {
		copy((*memory)[i*size:][:size], x.Data[x.First+i*x.Row:])
	}
	*x = rowsOf(*memory, size)
}

// setTerms sets the terms of m tokens from the i-th on.
func (b *grouping) setTerms(p *stream, blk *simd.StateBlock, lo, hi, i, m int) {
	blk.Terms = b.terms[:blk.Groups]
	simd.StateProducts(blk.Terms, true, blk.Queries, blk.Adds, p.rows)
	switch {
	case p.erases:
		simd.StateProducts(blk.Terms, false, blk.Keys, blk.Adds, p.rows)
	case p.twice:
		simd.StateProducts(blk.Terms, false, blk.Queries, blk.Adds2, p.rows)
	}
	read := p.scale
	if p.reversed {
		read = 1
	}
	for g := range blk.Terms {
		terms, factors := &blk.Terms[g], [tokens]float32{1, 1, 1, 1}
		for r := range min(tokens, m-g*tokens) {
			t := p.token(lo, hi, i+g*tokens+r)
			switch {
			case !p.reversed:
				factors[r] = b.factors[t]
			case t+1 < hi:
				factors[r] = b.factors[t+1]
			}
			if terms.Value[r], terms.Read[r] = p.value, 0; p.strengths.Data != nil {
				terms.Read[r] = p.strengths.at(t, 1)[0]
			}
		}
		b.decays[g] = setTerms(terms, &factors, read)
		for r := range factors {
			switch {
			case p.twice:
				terms.Key[r] = p.scale
			case p.reversed:
				terms.Left[r] *= p.scale
				for j := range terms.QueryKey[r] {
					terms.QueryKey[r][j] *= p.scale
				}
			}
		}
	}
}

// columns passes the groups of a tile through all blocks of columns.
func (b *grouping) columns(p *stream, blk *simd.StateBlock, m int, unknown bool) {
	size, n := Blocks(p.columns)*columns, blk.Groups*tokens
	values, values2 := blk.Values, blk.Values2
	for c := 0; c < p.columns; c += columns {
		blk.State, blk.Sums = b.state[c*p.rows:][:p.rows*columns], b.sums[c*2*tokens:][:2*tokens*columns]
		if unknown {
			if p.erases {
				simd.ReadState(blk.Sums, blk.State, blk.Keys, p.rows)
			}
			simd.ReadState(blk.Sums[tokens*columns:], blk.State, blk.Queries, p.rows)
		}
		blk.Values, blk.Values2 = values, values2
		if width := p.columns - c; width >= columns {
			blk.Values.First += c
			blk.Values2.First += c
		} else {
			blk.Values = narrow(&b.narrow, values, n, c, width)
			if p.twice {
				blk.Values2 = narrow(&b.narrow2, values2, n, c, width)
			}
		}
		blk.Out, blk.Read = rowsOf(b.out, size), rowsOf(b.read, size)
		blk.Out.First, blk.Read.First = c, c
		if p.twice {
			blk.PassTwice()
		} else {
			blk.Pass()
		}
	}
}

// narrow copies the columns of n vectors from c on.
func narrow(memory *[]float32, x simd.StateVectors, n, c, width int) simd.StateVectors {
	grow(memory, n*columns)
	clear(*memory)
	for i := range n {
		copy((*memory)[i*columns:][:width], x.Data[x.First+i*x.Row+c:])
	}
	return rowsOf(*memory, columns)
}

// begin sets the state to x [rows columns], nil for zeros.
func (b *grouping) begin(p *stream, x []float32) {
	size := Blocks(p.columns) * columns
	grow(&b.state, p.rows*size)
	grow(&b.sums, 2*tokens*size)
	grow(&b.out, tileTokens*size)
	grow(&b.read, tileTokens*size)
	clear(b.state)
	for c := 0; c < p.columns && x != nil; c += columns {
		simd.CopyRows(b.state[c*p.rows:], columns, x[c:], p.columns, p.rows, min(columns, p.columns-c))
	}
}

// turnedOf returns x [E V], which may be nil, as [V E].
func (b *grouping) turnedOf(x []float32) []float32 {
	if x == nil {
		return nil
	}
	grow(&b.turned, len(x))
	simd.CopyTransposed(b.turned, b.s.E, x, b.s.V, b.s.V, b.s.E)
	return b.turned
}

// backwards passes all parts, the last first. Its gradient of the state behind them is last.
func (b *grouping) backwards(p *stream, ends []int, last []float32) {
	for i := len(ends) - 1; i >= 0; i-- {
		b.begin(p, last)
		lo := 0
		if i > 0 {
			lo = ends[i-1]
		}
		b.pass(p, lo, ends[i])
		last = nil
	}
}

// passD computes the gradients of values, beta and the first state.
func (b *grouping) passD(ends []int) {
	s, g := b.s, b.g
	p := &stream{
		rows: s.E, columns: s.V, reversed: true, twice: s.erases(), scale: s.Scale,
		queries: b.key, adds: b.query, values: b.dout, adds2: b.key, values2: b.dout, strengths: s.Beta,
	}
	p.done = func(t int, du, _ []float32) {
		dvalue := b.dvalue[t*s.V:][:s.V]
		if copy(dvalue, du); s.erases() {
			simd.Scale(dvalue, s.Beta.at(t, 1)[0], du)
			if g.Beta.Data != nil {
				g.Beta.at(t, 1)[0] += simd.Dot(du, b.e[t*s.V:][:s.V])
			}
		}
		if g.Value.Data != nil {
			simd.Add(g.Value.at(t, s.V), g.Value.at(t, s.V), dvalue)
		}
		b.along[t] = -simd.Dot(dvalue, s.Value.at(t, s.V))
	}
	b.backwards(p, ends, g.Last)
	if g.First != nil && b.factors[0] != 0 {
		for c := 0; c < s.V; c += columns {
			for i := range s.E {
				row := g.First[i*s.V+c:][:min(columns, s.V-c)]
				simd.Axpy(b.factors[0], b.state[(c*s.E + i*columns):][:len(row)], row)
			}
		}
	}
}

// passS computes the gradients of queries, and of keys as they read.
func (b *grouping) passS(ends []int, first []float32) {
	s, g := b.s, b.g
	u, dvalue := Rows{b.u, s.V}, Rows{b.dvalue, s.V}
	p := &stream{
		rows: s.V, columns: s.E, erases: s.erases(), scale: s.Scale, value: 1,
		keys: dvalue, queries: b.dout, adds: u, values: b.key,
	}
	p.done = func(t int, dquery, erased []float32) {
		if s.erases() && g.Key.Data != nil {
			simd.Axpy(-1, erased, g.Key.at(t, s.E))
		}
		if g.Query.Data != nil {
			simd.Add(g.Query.at(t, s.E), g.Query.at(t, s.E), dquery)
		}
		b.along[t] += simd.Dot(dquery, b.query.at(t, s.E))
	}
	lo, x := 0, b.turnedOf(first)
	if b.factors[0] == 0 {
		x = nil
	}
	for _, hi := range ends {
		b.begin(p, x)
		b.pass(p, lo, hi)
		lo, x = hi, nil
	}
	b.last = 0
	if last := b.turnedOf(g.Last); last != nil {
		for c := 0; c < s.E; c += columns {
			for i := range s.V {
				width := min(columns, s.E-c)
				b.last += float64(simd.Dot(b.state[c*s.V+i*columns:][:width], last[i*s.E+c:][:width]))
			}
		}
	}
}

// passTurnedD computes the gradients of keys as they are added.
func (b *grouping) passTurnedD(ends []int) {
	s, g := b.s, b.g
	if g.Key.Data == nil {
		return
	}
	dvalue := Rows{b.dvalue, s.V}
	p := &stream{
		rows: s.V, columns: s.E, reversed: true, twice: s.erases(), scale: s.Scale, value: -1,
		queries: Rows{b.u, s.V}, adds: b.dout, values: b.query, adds2: dvalue, values2: b.key,
	}
	p.done = func(t int, dkey, _ []float32) { simd.Add(g.Key.at(t, s.E), g.Key.at(t, s.E), dkey) }
	b.backwards(p, ends, b.turnedOf(g.Last))
}

// decayGrads computes the gradients of decays.
func (b *grouping) decayGrads() {
	if b.s.decays() == 0 || b.g.Decay.Data == nil {
		return
	}
	sum := b.last
	for t := b.s.N - 1; t >= 0; t-- {
		if sum += float64(b.along[t]); b.factors[t] == 0 { // nothing before this token reaches it
			sum = 0
		}
		b.g.Decay.at(t, 1)[0] += float32(sum)
	}
}
