package recurrence

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// formula is the recurrence of the package comment in float64, with the state [e v] as it is before and after.
func formula(s *Sequence, state []float64) (out []float64) {
	e, v := s.E, s.V
	for t := range s.N {
		key, value := s.Key.at(t, e), s.Value.at(t, v)
		for i := range e {
			g := 0.0
			switch s.decays() {
			case 1:
				g = float64(s.Decay.at(t, 1)[0])
			case e:
				g = float64(s.Decay.at(t, e)[i])
			}
			for c := range v {
				state[i*v+c] *= math.Exp(g)
			}
		}
		for c := range v {
			u := float64(value[c])
			if s.erases() {
				for i := range e {
					u -= state[i*v+c] * float64(key[i])
				}
				u *= float64(s.Beta.at(t, 1)[0])
			}
			for i := range e {
				state[i*v+c] += float64(key[i]) * u
			}
			y := 0.0
			for i := range e {
				y += state[i*v+c] * float64(s.Query.at(t, e)[i])
			}
			out = append(out, y*float64(s.Scale))
		}
	}
	return out
}

// A decay of −Inf clears the state, also of NaN; a group begins with it, in any pieces.
func TestClearedStates(t *testing.T) {
	const e, v, n, at = 6, 5, 30, 13
	r := rand.New(rand.NewPCG(9, 9))
	for _, decays := range []int{1, e} {
		s := random(r, n, e, v, decays, true)
		for i := range decays {
			s.Decay.Data[at*decays+i] = float32(math.Inf(-1))
		}
		for _, x := range [][]float32{s.Value.at(at-1, v), s.Key.at(at-5, e)} {
			x[1] = float32(math.NaN())
		}
		want := *s
		want.N -= at
		for _, rows := range []*Rows{&want.Key, &want.Query, &want.Value, &want.Out, &want.Decay, &want.Beta} {
			*rows = rows.from(at)
		}
		want.Out.Data = slices.Clone(want.Out.Data)
		st := NewState(e, v)
		Run(&want, st, 0, 1)
		Commit(&want, st)
		last := make([]float32, e*v)
		st.Get(last, e, v)
		for piece := 1; piece <= n; piece++ {
			st := NewState(e, v)
			for from := 0; from < n; from += piece {
				part := *s
				part.N = min(piece, n-from)
				for _, rows := range []*Rows{&part.Key, &part.Query, &part.Value, &part.Out, &part.Decay, &part.Beta} {
					*rows = rows.from(from)
				}
				Run(&part, st, 0, 1)
				Commit(&part, st)
			}
			got := make([]float32, e*v)
			if st.Get(got, e, v); !slices.Equal(got, last) || !slices.Equal(s.Out.from(at).Data, want.Out.Data) {
				t.Fatalf("%d decays, pieces of %d: the state remembers", decays, piece)
			}
		}
	}
}

// random returns a sequence with the given rule; keys have length 1.
func random(r *rand.Rand, n, e, v int, decays int, erases bool) *Sequence {
	floats := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	s := &Sequence{N: n, E: e, V: v, Scale: float32(1 / math.Sqrt(float64(e)))}
	s.Key, s.Query, s.Value = Rows{floats(n * (e + 1)), e + 1}, Rows{floats(n * (e + 1)), e + 1}, Rows{floats(n * (v + 2)), v + 2}
	s.Out = Rows{make([]float32, n*(v+1)), v + 1}
	for t := range n {
		key, sum := s.Key.at(t, e), 0.0
		for _, x := range key {
			sum += float64(x * x)
		}
		for i := range key {
			key[i] /= float32(math.Sqrt(sum))
		}
	}
	if decays > 0 {
		s.Decay, s.DecayEach = Rows{floats(n * decays), decays}, decays > 1
		for i, x := range s.Decay.Data {
			s.Decay.Data[i] = -0.2 * x * x
		}
	}
	if erases {
		s.Beta = Rows{floats(n), 1}
		for i, x := range s.Beta.Data {
			s.Beta.Data[i] = 1 / (1 + x*x)
		}
	}
	return s
}

func eachRule(t *testing.T, e int, do func(t *testing.T, decays int, erases bool)) {
	for _, decays := range []int{0, 1, e} {
		for _, erases := range []bool{false, true} {
			t.Run(fmt.Sprintf("decays=%d,erases=%v", decays, erases), func(t *testing.T) { do(t, decays, erases) })
		}
	}
}

func TestFormula(t *testing.T) {
	for _, size := range [][2]int{{3, 2}, {16, 40}, {32, 64}} {
		e, v := size[0], size[1]
		eachRule(t, e, func(t *testing.T, decays int, erases bool) {
			r := rand.New(rand.NewPCG(1, 2))
			for _, n := range []int{0, 1, 3, 4, 5, 63, 64, 65, 200} {
				s, st := random(r, n, e, v, decays, erases), NewState(e, v)
				first, exact := make([]float32, e*v), make([]float64, e*v)
				for i := range first {
					first[i] = float32(r.NormFloat64())
					exact[i] = float64(first[i])
				}
				st.Set(first, e, v)
				Run(s, st, 0, Blocks(v))
				Commit(s, st)
				want, last := formula(s, exact), make([]float32, e*v)
				st.Get(last, e, v)
				for i, y := range want {
					if d := math.Abs(float64(s.Out.at(i/v, v)[i%v]) - y); !(d < 1e-5*(1+math.Abs(y))) {
						t.Fatalf("%d tokens: token %d is %v, want %v", n, i/v, s.Out.at(i/v, v)[i%v], y)
					}
				}
				for i, y := range exact {
					if d := math.Abs(float64(last[i]) - y); !(d < 1e-5*(1+math.Abs(y))) {
						t.Fatalf("%d tokens: state[%d] is %v, want %v", n, i, last[i], y)
					}
				}
			}
		})
	}
}

// Any pieces of a sequence, and blocks of columns one by one, have the bits of the whole.
func TestPieces(t *testing.T) {
	const e, v, n = 24, 70, 150
	eachRule(t, e, func(t *testing.T, decays int, erases bool) {
		r := rand.New(rand.NewPCG(7, 8))
		s := random(r, n, e, v, decays, erases)
		st := NewState(e, v)
		Run(s, st, 0, Blocks(v))
		Commit(s, st)
		want, last := slices.Clone(s.Out.Data), make([]float32, e*v)
		st.Get(last, e, v)
		for range 20 {
			clear(s.Out.Data)
			st := NewState(e, v)
			for at := 0; at < n; {
				part, size := *s, min(1+r.IntN(12)*r.IntN(12), n-at)
				part.N = size
				for _, rows := range []*Rows{&part.Key, &part.Query, &part.Value, &part.Out, &part.Decay, &part.Beta} {
					*rows = rows.from(at)
				}
				for b := range Blocks(v) {
					Run(&part, st, b, b+1)
				}
				Commit(&part, st)
				if at += size; r.IntN(2) == 0 {
					st = st.Copy()
				}
			}
			got := make([]float32, e*v)
			if st.Get(got, e, v); !slices.Equal(s.Out.Data, want) || !slices.Equal(got, last) {
				t.Fatal("pieces have other bits")
			}
		}
	})
}

// Tokens may follow others whose decays are of another kind: the group then ends early.
func TestBegin(t *testing.T) {
	const e, v, n = 6, 40, 7
	for _, each := range []bool{false, true} {
		r := rand.New(rand.NewPCG(15, 16))
		st, exact := NewState(e, v), make([]float64, e*v)
		for i := range 3 {
			decays := 1
			if each != (i%2 == 1) {
				decays = e
			}
			s := random(r, n, e, v, decays, true)
			st.Begin(s.DecayEach, e)
			Run(s, st, 0, Blocks(v))
			Commit(s, st)
			for j, y := range formula(s, exact) {
				if d := math.Abs(float64(s.Out.at(j/v, v)[j%v]) - y); !(d < 1e-5*(1+math.Abs(y))) {
					t.Fatalf("part %d: token %d is %v, want %v", i, j/v, s.Out.at(j/v, v)[j%v], y)
				}
			}
		}
	}
}
