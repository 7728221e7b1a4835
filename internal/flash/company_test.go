package flash

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// mixed is a problem in which every query of every head attends to a different set of keys: an
// interval, scattered keys, all keys, a single key, or none. Padding queries and keys come after
// the others: padding queries have no upstream gradient, and only they attend to padding keys.
type mixed struct {
	problem
	lq, lk int // without padding
}

// newMixed returns a problem whose elements do not depend on the padding.
func newMixed(seed uint64, b, h, g, lq, lk, e, ev, padQ, padK int) *mixed {
	allQ, allK := lq+padQ, lk+padK
	m := &mixed{lq: lq, lk: lk}
	m.Attention = Attention{Sizes: Sizes{B: b, H: h, G: g, Lq: allQ, Lk: allK}, E: e, EV: ev, Scale: float32(1 / math.Sqrt(float64(e)))}
	// Numbers depend on head and position, not on preceding elements.
	vectors := func(kind uint64, heads, length, size int) []float32 {
		x := make([]float32, 0, b*heads*length*size)
		for n := range b * heads {
			for i := range length {
				r := rand.New(rand.NewPCG(seed<<8|kind, uint64(n)<<32|uint64(i)))
				x = append(x, normal(r, size, 1)...)
			}
		}
		return x
	}
	m.Q = headFirst(vectors(1, h, allQ, e), h, allQ, e)
	m.K = headFirst(vectors(2, g, allK, e), g, allK, e)
	m.V = headFirst(vectors(3, g, allK, ev), g, allK, ev)
	m.dout = vectors(4, h, allQ, ev)
	for n := range b * h {
		clear(m.dout[(n*allQ+lq)*ev : (n+1)*allQ*ev])
	}
	attended := make([]bool, 0, b*h*allQ*allK)
	for row := range b * h * allQ {
		b, h, i := m.split(row)
		r := rand.New(rand.NewPCG(seed, uint64(b)<<40|uint64(h)<<20|uint64(i)))
		kind, lo, hi := r.IntN(7), r.IntN(lk), r.IntN(lk+1)
		for j := range allK {
			var yes bool
			switch {
			case i >= lq:
				yes = kind > 1 && j >= lo
			case j >= lk:
			case kind == 1:
				yes = true
			case kind == 2:
				yes = j == lo
			case kind == 3 || kind == 4:
				yes = j >= min(lo, hi) && j < max(lo, hi)
			case kind > 4:
				yes = j >= lo/2 && (i*31+j*17+h*5)%7 < 3 && j/64%3 != lo%3
			}
			attended = append(attended, yes)
		}
	}
	m.seen = func(b, h, i, j int) bool { return attended[((b*m.H+h)*m.Lq+i)*m.Lk+j] }
	m.Mask = []MaskRule{funcMask{&m.problem, false}}
	return m
}

// alone is the problem of one query. If short, it has no keys after the last key that the query
// attends to.
func (m *mixed) alone(b, h, i int, short bool) *problem {
	g := h / (m.H / m.G)
	p := &problem{Attention: m.Attention, SoftCap: m.SoftCap}
	p.B, p.H, p.G, p.Lq = 1, 1, 1, 1
	if short {
		for p.Lk = m.Lk; p.Lk > 1 && !m.seen(b, h, i, p.Lk-1); {
			p.Lk--
		}
	}
	p.Q = headFirst(m.Q.at(b, h, i)[:m.E], 1, 1, m.E)
	p.K = headFirst(m.K.at(b, g, 0)[:p.Lk*m.E], 1, p.Lk, m.E)
	p.V = headFirst(m.V.at(b, g, 0)[:p.Lk*m.EV], 1, p.Lk, m.EV)
	row := (b*m.H+h)*m.Lq + i
	p.dout = m.dout[row*m.EV:][:m.EV]
	if m.Bias != nil {
		p.Bias = &bias{Data: m.Bias.Data[row*m.Lk:][:p.Lk], Col: 1}
	}
	p.seen = func(_, _, _, j int) bool { return m.seen(b, h, i, j) }
	p.Mask = []MaskRule{funcMask{p, false}}
	return p
}

// mixtures are sizes on both sides of the limits between code paths: strips of 12 queries, bands
// of 96, chunks of 60; blocks of 512 keys and chunks of 256; keys split between the processors
// for up to 48 queries of a group.
var mixtures = []struct{ b, h, g, lq, lk, e, ev int }{
	{1, 1, 1, 13, 70, 7, 5}, {1, 2, 1, 24, 600, 8, 8}, {2, 2, 2, 48, 513, 5, 7}, {1, 1, 1, 49, 1100, 16, 8},
	{2, 4, 2, 5, 530, 8, 3}, {1, 3, 1, 17, 1030, 4, 4}, {1, 1, 1, 61, 300, 8, 8}, {3, 1, 1, 97, 90, 3, 11},
}

// mixtureOptions are the features that a mixed problem can have.
var mixtureOptions = append(append([]kind{{"plain", func(p *problem) {}}}, forms...), []kind{
	{"large scores", func(p *problem) { p.Scale = 30 }},
	{"soft-cap, negative scale", func(p *problem) { p.SoftCap, p.Scale = 1.5, -0.5 }},
	{"rounded", func(p *problem) { p.Rounded = true }},
	{"gaussian, rounded", func(p *problem) { forms[1].set(p); p.Rounded = true }},
}...)

// The result of a query depends only on the query, its keys and its mask: not on the other
// queries of its strip, head or group, or on keys that only other queries attend to.
func TestQueriesAreIndependent(t *testing.T) {
	for n, s := range mixtures {
		for _, k := range mixtureOptions {
			m := newMixed(uint64(n), s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev, 0, 0)
			k.set(&m.problem)
			all := run(&m.problem)
			r := rand.New(rand.NewPCG(uint64(n), 1))
			for range 8 {
				b, h, i := r.IntN(s.b), r.IntN(s.h), r.IntN(s.lq)
				p := m.alone(b, h, i, r.IntN(2) == 0)
				got := run(p)
				row := (b*s.h+h)*s.lq + i
				name := fmt.Sprintf("%s, %v, query %d of head %d of sequence %d", k.name, s, i, h, b)
				sameBits(t, name+": out", got.out, all.out[row*s.ev:][:s.ev])
				sameBits(t, name+": weights", got.weights, all.weights[row*s.lk:][:p.Lk])
				sameBits(t, name+": dq", got.dq, all.dq[row*s.e:][:s.e])
			}
		}
	}
}

// Padding changes nothing: neither queries without an upstream gradient, nor keys that only
// padding queries attend to.
func TestPaddingChangesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: TestMaskedInputsHaveNoEffect is similar")
	}
	for n, s := range mixtures {
		for _, k := range mixtureOptions[:1+len(forms)] {
			want := newMixed(uint64(n), s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev, 0, 0)
			k.set(&want.problem)
			plain := run(&want.problem)
			for _, pad := range []struct{ q, k int }{{1, 0}, {0, 1}, {44, 0}, {0, 520}, {3, 70}} {
				m := newMixed(uint64(n), s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev, pad.q, pad.k)
				k.set(&m.problem)
				got := run(&m.problem)
				name := fmt.Sprintf("%s, %v, padded by %v", k.name, s, pad)
				heads := func(what string, got, want []float32, heads, padded, length, size int) {
					for h := range s.b * heads {
						sameBits(t, fmt.Sprintf("%s: %s of head %d", name, what, h),
							got[h*padded*size:][:length*size], want[h*length*size:][:length*size])
					}
				}
				heads("out", got.out, plain.out, s.h, m.Lq, s.lq, s.ev)
				heads("dq", got.dq, plain.dq, s.h, m.Lq, s.lq, s.e)
				heads("dk", got.dk, plain.dk, s.g, m.Lk, s.lk, s.e)
				heads("dv", got.dv, plain.dv, s.g, m.Lk, s.lk, s.ev)
			}
		}
	}
}

// A query is not affected if another query of its strip attends to a value that is not finite.
func TestOtherValuesHaveNoEffect(t *testing.T) {
	for n, s := range mixtures {
		m := newMixed(uint64(n), s.b, s.h, s.g, s.lq, s.lk, s.e, s.ev, 0, 0)
		want := run(&m.problem)
		met := func(b, h, i int) bool { return m.seen(b, h, i, 3) }
		for b := range s.b {
			for g := range s.g {
				m.V.at(b, g, 3)[0] = float32(math.NaN())
			}
		}
		got := run(&m.problem)
		others := 0
		for row := range s.b * s.h * s.lq {
			b, h, i := m.split(row)
			if met(b, h, i) {
				continue
			}
			others++
			name := fmt.Sprintf("%v, query %d of head %d of sequence %d", s, i, h, b)
			sameBits(t, name+": out", got.out[row*s.ev:][:s.ev], want.out[row*s.ev:][:s.ev])
			sameBits(t, name+": weights", got.weights[row*s.lk:][:s.lk], want.weights[row*s.lk:][:s.lk])
			sameBits(t, name+": dq", got.dq[row*s.e:][:s.e], want.dq[row*s.e:][:s.e])
		}
		if others == 0 || others == s.b*s.h*s.lq {
			t.Errorf("%v: %d queries do not attend to the key", s, others)
		}
	}
}
