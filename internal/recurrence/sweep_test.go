package recurrence

import "github.com/attn-go/attn/internal/simd"

// sweep is Backward token by token and row by row, for comparison.
func sweep(s *Sequence, first []float32, g *Grads) {
	b := &backward{s: s, g: g, state: make([]float32, s.E*s.V), factor: make([]float32, s.decays())}
	b.u = s.Value
	if s.erases() {
		b.setResiduals()
	}
	b.dvalue = Rows{make([]float32, s.N*s.V), s.V}
	b.du, b.dkey = make([]float32, s.V), make([]float32, s.N*s.E)
	b.fromLast()
	b.fromFirst(first)
}

type backward struct {
	s         *Sequence
	g         *Grads
	state     []float32 // [E V]: S, or D
	factor    []float32
	residual  Rows      // e of each token
	u, dvalue Rows      // of each token
	du        []float32 // [V]
	dkey      []float32 // [N E]: D·u
}

func (b *backward) row(i int) []float32 { return b.state[i*b.s.V:][:b.s.V] }

// begin sets the state to x, nil for 0.
func (b *backward) begin(x []float32) {
	clear(b.state)
	copy(b.state, x)
}

// decayed multiplies the state by the decay of token t.
func (b *backward) decayed(t int) {
	if len(b.factor) == 0 {
		return
	}
	simd.Exp(b.factor, b.s.Decay.at(t, len(b.factor)))
	for i := range b.s.E {
		if f := b.factor[i%len(b.factor)]; f == 0 {
			clear(b.row(i))
		} else {
			simd.Scale(b.row(i), f, b.row(i))
		}
	}
}

// add adds x ⊗ y to the state.
func (b *backward) add(scale float32, x, y []float32) {
	for i, f := range x {
		simd.Axpy(scale*f, y, b.row(i))
	}
}

// read sets y to the product of the transposed state and x.
func (b *backward) read(y, x []float32) {
	clear(y)
	for i, f := range x {
		simd.Axpy(f, b.row(i), y)
	}
}

// setResiduals sets e, the value without what the key reads, and u of each token.
func (b *backward) setResiduals() {
	s := b.s
	b.residual, b.u = Rows{make([]float32, s.N*s.V), s.V}, Rows{make([]float32, s.N*s.V), s.V}
	for t := range s.N {
		e, u := b.residual.at(t, s.V), b.u.at(t, s.V)
		simd.Scale(e, -1, s.Read.at(t, s.V))
		simd.Add(e, e, s.Value.at(t, s.V))
		simd.Scale(u, s.Beta.at(t, 1)[0], e)
	}
}

// fromLast computes the gradients of values, beta and the first state, and D·u.
func (b *backward) fromLast() {
	s, g := b.s, b.g
	b.begin(g.Last)
	for t := s.N - 1; t >= 0; t-- {
		key, dvalue := s.Key.at(t, s.E), b.dvalue.at(t, s.V)
		b.add(s.Scale, s.Query.at(t, s.E), g.Out.at(t, s.V))
		b.read(b.du, key)
		for i := range s.E {
			b.dkey[t*s.E+i] = simd.Dot(b.row(i), b.u.at(t, s.V))
		}
		copy(dvalue, b.du)
		if s.erases() {
			simd.Scale(dvalue, s.Beta.at(t, 1)[0], b.du)
			if g.Beta.Data != nil {
				g.Beta.at(t, 1)[0] += simd.Dot(b.du, b.residual.at(t, s.V))
			}
			b.add(-1, key, dvalue)
		}
		if g.Value.Data != nil {
			simd.Add(g.Value.at(t, s.V), g.Value.at(t, s.V), dvalue)
		}
		b.decayed(t)
	}
	if g.First != nil {
		simd.Add(g.First, g.First, b.state)
	}
}

// fromFirst computes the gradients of keys, queries and decays.
func (b *backward) fromFirst(first []float32) {
	s, g := b.s, b.g
	b.begin(first)
	along := make([]float32, s.N*s.E) // by how much the gradient of g[i] differs from that of the next token
	for t := range s.N {
		key, query, dout := s.Key.at(t, s.E), s.Query.at(t, s.E), g.Out.at(t, s.V)
		b.decayed(t)
		for i := range s.E {
			row, at := b.row(i), t*s.E+i
			erased := float32(0)
			if s.erases() {
				erased = simd.Dot(row, b.dvalue.at(t, s.V))
			}
			simd.Axpy(key[i], b.u.at(t, s.V), row)
			dquery := float32(s.Scale * simd.Dot(row, dout))
			along[at] = float32(query[i]*dquery) - float32(key[i]*(b.dkey[at]+erased))
			if g.Key.Data != nil {
				g.Key.at(t, s.E)[i] += b.dkey[at] - erased
			}
			if g.Query.Data != nil {
				g.Query.at(t, s.E)[i] += dquery
			}
		}
	}
	if len(b.factor) > 0 && g.Decay.Data != nil {
		b.decayGrads(along)
	}
}

// decayGrads computes the gradients of decays. The state is the last one.
func (b *backward) decayGrads(along []float32) {
	s, g, n := b.s, b.g, len(b.factor)
	sums := make([]float64, n)
	if g.Last != nil {
		for i := range s.E {
			sums[i%n] += float64(simd.Dot(b.row(i), g.Last[i*s.V:][:s.V]))
		}
	}
	for t := s.N - 1; t >= 0; t-- {
		for i := range s.E {
			sums[i%n] += float64(along[t*s.E+i])
		}
		simd.Exp(b.factor, s.Decay.at(t, n))
		for i, f := range b.factor {
			if f == 0 { // nothing before this token reaches it
				sums[i] = 0
			}
			g.Decay.at(t, n)[i] += float32(sums[i])
		}
	}
}
