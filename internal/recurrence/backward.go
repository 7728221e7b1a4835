package recurrence

import (
	"sync"

	"github.com/attn-go/attn/internal/simd"
)

// Grads are the gradients of a sequence. All but Out and Last are added to; those without Data are not computed.
type Grads struct {
	Out                            Rows      // of Sequence.Out
	Last                           []float32 // [E V] of the state after all tokens; nil for 0
	Key, Query, Value, Decay, Beta Rows
	First                          []float32 // [E V] of the state before all tokens
}

// Backward computes the gradients of a sequence, whose state was first [E V] before the first token, nil for 0. Tokens
// that erase need what a Run has set Read to.
//
// With S' the state of a token after its decay, e = value − S'ᵀ·key and D the gradient of its state after it, which
// its output and all later tokens have added to,
//
//	D       += query ⊗ dout
//	du       = Dᵀ·key
//	dbeta    = du·e            dvalue = beta·du
//	dkey     = D·u − S'·dvalue
//	dquery   = S·dout
//	D        = exp(g)·(D − key ⊗ dvalue)    for the token before
//
// and the gradient of g is row by row the product of S' and its own gradient, which follows from those of later tokens:
// for row i, it is that of the next token plus query[i]·dquery[i] − key[i]·((D·u)[i] + (S'·dvalue)[i]).
func Backward(s *Sequence, first []float32, g *Grads) {
	if s.N == 0 {
		if g.First != nil && g.Last != nil {
			simd.Add(g.First, g.First, g.Last)
		}
		return
	}
	b := groupings.Get().(*grouping)
	defer groupings.Put(b)
	b.run(s, first, g)
}

// grouping is three passes of groups of tokens through a state, as is Run:
//
//	D   [E V], from the last token: adds query ⊗ dout, reads key, which is du, and adds −key ⊗ dvalue
//	Sᵀ  [V E], from the first:      reads dvalue, adds u ⊗ key, and reads dout, which is dquery
//	Dᵀ  [V E], from the last:       adds dout ⊗ query, reads u, and adds −dvalue ⊗ key
type grouping struct {
	s                *Sequence
	g                *Grads
	d                int       // numbers of a decay: 1, or E
	factors          []float32 // [N+1 d]: the decays, and 1 behind them
	e, u, dvalue     []float32 // [N V]; without Beta u is the values
	along            []float32 // [N d]: by how much the gradient of g differs from that of the next token
	last             []float64 // [d]: the products of the last state and its gradient
	state, sums      []float32
	out, read        []float32    // [tileTokens columns]
	narrow           [3][]float32 // vectors of a block that has fewer columns than 32
	padded           [7][]float32
	terms            [tileGroups]simd.StateTerms
	decays           []float32    // [tileGroups d]
	decayed          [3][]float32 // [tileTokens E]: vectors with the decays of their groups
	turned           []float32
	key, query, dout Rows
}

var groupings = sync.Pool{New: func() any { return new(grouping) }}

func (b *grouping) run(s *Sequence, first []float32, g *Grads) {
	b.s, b.g = s, g
	defer func() { b.s, b.g = nil, nil }()
	n, e, v := s.N, s.E, s.V
	b.d = max(s.decays(), 1)
	grow(&b.factors, (n+1)*b.d)
	clear(b.factors)
	for t := range n * min(s.decays(), 1) {
		copy(b.factor(t), s.Decay.at(t, b.d))
	}
	simd.Exp(b.factors, b.factors)
	for _, x := range []*[]float32{&b.u, &b.dvalue} {
		grow(x, n*v)
	}
	grow(&b.along, n*b.d)
	grow(&b.decays, tileGroups*b.d)
	b.setResiduals()
	b.key, b.query, b.dout = packed(s.Key, n, e), packed(s.Query, n, e), packed(g.Out, n, v)
	var ends []int // of parts, each of which begins with a token that clears the state
	for t := 1; t < n; t++ {
		if allZero(b.factor(t)) {
			ends = append(ends, t)
		}
	}
	ends = append(ends, n)
	b.passD(ends)
	b.passS(ends, first)
	b.passTurnedD(ends)
	b.decayGrads()
}

// factor returns the decay of token t.
func (b *grouping) factor(t int) []float32 { return b.factors[t*b.d:][:b.d] }

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
	reversed, turned           bool // turned: the columns are the elements of keys
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
		blk := simd.StateBlock{Rows: p.rows, Erases: p.erases, Decay: b.decays, DecayEach: b.d > 1 && !p.turned}
		factors := p.vectors(b.decaysOf(p), lo, hi, i)
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
				*x = part(&b.padded[j], *x, m, size, tokens, size)
			}
			factors = part(&b.padded[6], factors, m, b.d, tokens, b.d)
			for j := m * b.d; j < len(factors.Data); j++ {
				factors.Data[j] = 1
			}
		}
		blk.Groups = (m + tokens - 1) / tokens
		blk.More = i+m+tokens <= whole && !blk.DecayEach
		if b.d > 1 && p.turned {
			blk.Factors = factors
		}
		b.setTerms(p, &blk, factors, lo, hi, i, m)
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

// setTerms sets the terms of m tokens from the i-th on.
func (b *grouping) setTerms(p *stream, blk *simd.StateBlock, factors simd.StateVectors, lo, hi, i, m int) {
	blk.Terms = b.terms[:blk.Groups]
	if blk.DecayEach {
		b.eachTerms(p, blk, factors)
	} else {
		simd.StateProducts(blk.Terms, true, blk.Queries, blk.Adds, p.rows)
	}
	switch {
	case blk.DecayEach:
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
		terms, ratios := &blk.Terms[g], [tokens]float32{1, 1, 1, 1}
		for r := range min(tokens, m-g*tokens) {
			t := p.token(lo, hi, i+g*tokens+r)
			if b.d == 1 {
				ratios[r] = b.decaysOf(p).at(t, 1)[0]
			}
			if terms.Value[r], terms.Read[r] = p.value, 0; p.strengths.Data != nil {
				terms.Read[r] = p.strengths.at(t, 1)[0]
			}
		}
		if decay := setTerms(terms, &ratios, read); !blk.DecayEach {
			b.decays[g] = decay
		}
		for r := range ratios {
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

// decaysOf returns the decays by which the tokens of a pass multiply the state first.
func (b *grouping) decaysOf(p *stream) Rows {
	r := Rows{b.factors, b.d}
	if p.reversed {
		r = r.from(1)
	}
	return r
}

// eachTerms sets the products, the vectors and the decays of a block whose rows decay by the factors of each token.
func (b *grouping) eachTerms(p *stream, blk *simd.StateBlock, factors simd.StateVectors) {
	vectors := func(k int) simd.StateVectors {
		n := blk.Groups * tokens
		grow(&b.decayed[k], n*p.rows)
		x := simd.StateVectors{Data: b.decayed[k], Row: factors.Row}
		x.First = max(0, -(n-1)*x.Row)
		return x
	}
	d := simd.StateDecays{X: blk.Queries, Y: blk.Adds, Factors: factors, Reads: vectors(0), Adds: vectors(1), Decay: b.decays}
	d.Products(blk.Terms, true, p.rows)
	blk.Queries, blk.Adds = d.Reads, d.Adds
	if p.twice {
		d.Y, d.Adds = blk.Adds2, vectors(2)
		d.Products(blk.Terms, false, p.rows)
		blk.Adds2 = d.Adds
	}
}

// columns passes the groups of a tile through all blocks of columns.
func (b *grouping) columns(p *stream, blk *simd.StateBlock, m int, unknown bool) {
	size, n := Blocks(p.columns)*columns, blk.Groups*tokens
	values, values2, factors := blk.Values, blk.Values2, blk.Factors
	for c := 0; c < p.columns; c += columns {
		blk.State, blk.Sums = b.state[c*p.rows:][:p.rows*columns], b.sums[c*2*tokens:][:2*tokens*columns]
		if unknown {
			if p.erases {
				simd.ReadState(blk.Sums, blk.State, blk.Keys, p.rows)
			}
			simd.ReadState(blk.Sums[tokens*columns:], blk.State, blk.Queries, p.rows)
		}
		blk.Values, blk.Values2, blk.Factors = values, values2, factors
		for k, x := range []*simd.StateVectors{&blk.Values, &blk.Values2, &blk.Factors} {
			x.First += c
			if width := p.columns - c; width < columns && x.Data != nil {
				*x = part(&b.narrow[k], *x, n, width, n, columns)
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

// part copies width floats of n vectors into vectors of size floats, and zeros behind them, also for missing vectors.
func part(memory *[]float32, x simd.StateVectors, n, width, all, size int) simd.StateVectors {
	grow(memory, all*size)
	clear(*memory)
	for i := 0; i < n && x.Data != nil; i++ {
		copy((*memory)[i*size:][:width], x.Data[x.First+i*x.Row:])
	}
	return rowsOf(*memory, size)
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
		if b.d == 1 { // the sum of all elements
			b.along[t] = -simd.Dot(dvalue, s.Value.at(t, s.V))
		}
	}
	b.backwards(p, ends, g.Last)
	for c := 0; c < s.V && g.First != nil; c += columns {
		for i := range s.E {
			row := g.First[i*s.V+c:][:min(columns, s.V-c)]
			if f := b.factors[min(i, b.d-1)]; f != 0 {
				simd.Axpy(f, b.state[(c*s.E + i*columns):][:len(row)], row)
			}
		}
	}
}

// passS computes the gradients of queries, and of keys as they read.
func (b *grouping) passS(ends []int, first []float32) {
	s, g := b.s, b.g
	u, dvalue := Rows{b.u, s.V}, Rows{b.dvalue, s.V}
	p := &stream{
		rows: s.V, columns: s.E, turned: true, erases: s.erases(), scale: s.Scale, value: 1,
		keys: dvalue, queries: b.dout, adds: u, values: b.key,
	}
	p.done = func(t int, dquery, erased []float32) {
		if s.erases() && g.Key.Data != nil {
			simd.Axpy(-1, erased, g.Key.at(t, s.E))
		}
		if g.Query.Data != nil {
			simd.Add(g.Query.at(t, s.E), g.Query.at(t, s.E), dquery)
		}
		if b.d == 1 {
			b.along[t] += simd.Dot(dquery, b.query.at(t, s.E))
			return
		}
		simd.Mul(b.along[t*s.E:][:s.E], dquery, b.query.at(t, s.E))
		if s.erases() {
			b.subtractAlong(t, erased)
		}
	}
	lo, x := 0, b.turnedOf(first)
	if allZero(b.factor(0)) {
		x = nil
	}
	for _, hi := range ends {
		b.begin(p, x)
		b.pass(p, lo, hi)
		lo, x = hi, nil
	}
	b.last = make([]float64, b.d)
	if last := b.turnedOf(g.Last); last != nil {
		for c := 0; c < s.E; c += columns {
			for i := range s.V {
				for j, x := range last[i*s.E+c:][:min(columns, s.E-c)] {
					b.last[min(c+j, b.d-1)] += float64(float64(b.state[c*s.V+i*columns+j]) * float64(x))
				}
			}
		}
	}
}

// subtractAlong subtracts key ⊙ x from the differences of token t, and overwrites x.
func (b *grouping) subtractAlong(t int, x []float32) {
	simd.Mul(x, x, b.key.at(t, b.d))
	simd.Axpy(-1, x, b.along[t*b.d:][:b.d])
}

// passTurnedD computes the gradients of keys as they are added.
func (b *grouping) passTurnedD(ends []int) {
	s, g := b.s, b.g
	if g.Key.Data == nil && (b.d == 1 || g.Decay.Data == nil) {
		return
	}
	dvalue := Rows{b.dvalue, s.V}
	p := &stream{
		rows: s.V, columns: s.E, turned: true, reversed: true, twice: s.erases(), scale: s.Scale, value: -1,
		queries: Rows{b.u, s.V}, adds: b.dout, values: b.query, adds2: dvalue, values2: b.key,
	}
	p.done = func(t int, dkey, _ []float32) {
		if g.Key.Data != nil {
			simd.Add(g.Key.at(t, s.E), g.Key.at(t, s.E), dkey)
		}
		if b.d > 1 {
			b.subtractAlong(t, dkey)
		}
	}
	b.backwards(p, ends, b.turnedOf(g.Last))
}

// decayGrads computes the gradients of decays.
func (b *grouping) decayGrads() {
	if b.s.decays() == 0 || b.g.Decay.Data == nil {
		return
	}
	for t := b.s.N - 1; t >= 0; t-- {
		to, along := b.g.Decay.at(t, b.d), b.along[t*b.d:]
		for i, f := range b.factor(t) {
			if b.last[i] += float64(along[i]); f == 0 { // nothing before this token reaches it
				b.last[i] = 0
			}
			to[i] += float32(b.last[i])
		}
	}
}
