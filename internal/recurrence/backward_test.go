package recurrence

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Gradients are the slopes of the formula in float64.
func TestBackward(t *testing.T) {
	const e, v, n = 5, 3, 9
	eachRule(t, e, func(t *testing.T, decays int, erases bool) {
		r := rand.New(rand.NewPCG(11, 12))
		s := random(r, n, e, v, decays, erases)
		first, dout, dlast := make([]float32, e*v), make([]float32, n*v), make([]float32, e*v)
		for _, x := range [][]float32{first, dout, dlast} {
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
		}
		loss := func() (sum float64) {
			state := make([]float64, e*v)
			for i := range state {
				state[i] = float64(first[i])
			}
			for i, y := range formula(s, state) {
				sum += y * float64(dout[i])
			}
			for i, y := range state {
				sum += y * float64(dlast[i])
			}
			return sum
		}
		like := func(x Rows) Rows { return Rows{make([]float32, len(x.Data)), x.Step} }
		g := &Grads{
			Out: Rows{dout, v}, Last: dlast, First: make([]float32, e*v),
			Key: like(s.Key), Query: like(s.Query), Value: like(s.Value), Decay: like(s.Decay), Beta: like(s.Beta),
		}
		if erases {
			s.Read = Rows{make([]float32, n*v), v}
			st := NewState(e, v)
			st.Set(first, e, v)
			Run(s, st, 0, Blocks(v))
		}
		Backward(s, first, g)
		for _, of := range []struct {
			name       string
			x, dx      Rows
			size, rows int
		}{
			{"key", s.Key, g.Key, e, n}, {"query", s.Query, g.Query, e, n}, {"value", s.Value, g.Value, v, n},
			{"decay", s.Decay, g.Decay, decays, n}, {"beta", s.Beta, g.Beta, 1, n}, {"first", Rows{first, e * v}, Rows{g.First, e * v}, e * v, 1},
		} {
			if of.x.Data == nil {
				continue
			}
			for row := range of.rows {
				for i := range of.size {
					const h = 1.0 / 256
					at := &of.x.at(row, of.size)[i]
					x := *at
					*at = x + h
					up, high := loss(), float64(*at)
					*at = x - h
					down, low := loss(), float64(*at)
					*at = x
					want, got := (up-down)/(high-low), float64(of.dx.at(row, of.size)[i])
					if !(math.Abs(got-want) < 2e-4*(1+math.Abs(want))) {
						t.Errorf("d%s[%d][%d] is %v, want %v", of.name, row, i, got, want)
					}
				}
			}
		}
	})
}

// Passes of groups have the gradients of sweeps, for any length, width and tokens that clear the state.
func TestBackwardInGroups(t *testing.T) {
	for _, size := range [][2]int{{5, 3}, {40, 70}, {64, 32}} {
		e, v := size[0], size[1]
		eachRule(t, e, func(t *testing.T, decays int, erases bool) {
			r := rand.New(rand.NewPCG(13, 14))
			for _, n := range []int{1, 4, 7, 64, 71, 203} {
				s := random(r, n, e, v, decays, erases)
				floats := func(n int) []float32 {
					x := make([]float32, n)
					for i := range x {
						x[i] = float32(r.NormFloat64())
					}
					return x
				}
				if decays > 0 && n > 7 {
					for _, t := range []int{n / 3, n/3 + 1, n - 2} {
						for i := range decays {
							s.Decay.at(t, decays)[i] = float32(math.Inf(-1))
						}
					}
					s.Decay.at(n/2, decays)[decays-1] = float32(math.Inf(-1)) // of several elements, one
				}
				first := floats(e * v)
				if erases {
					s.Read = Rows{make([]float32, n*v), v}
					st := NewState(e, v)
					st.Set(first, e, v)
					Run(s, st, 0, Blocks(v))
				}
				dout, dlast := floats(n*v), floats(e*v)
				grads := func() *Grads {
					like := func(x Rows) Rows { return Rows{make([]float32, len(x.Data)), x.Step} }
					g := &Grads{Out: Rows{dout, v}, Last: dlast, First: make([]float32, e*v), Key: like(s.Key), Query: like(s.Query), Value: like(s.Value)}
					if decays > 0 {
						g.Decay = like(s.Decay)
					}
					if erases {
						g.Beta = like(s.Beta)
					}
					return g
				}
				want, got := grads(), grads()
				sweep(s, first, want)
				Backward(s, first, got)
				for name, x := range map[string][2][]float32{
					"key": {got.Key.Data, want.Key.Data}, "query": {got.Query.Data, want.Query.Data}, "value": {got.Value.Data, want.Value.Data},
					"decay": {got.Decay.Data, want.Decay.Data}, "beta": {got.Beta.Data, want.Beta.Data}, "first": {got.First, want.First},
				} {
					for i, y := range x[1] {
						if d := math.Abs(float64(x[0][i] - y)); !(d <= 2e-4*(1+math.Abs(float64(y)))) {
							t.Fatalf("%d tokens: d%s[%d] is %v, want %v", n, name, i, x[0][i], y)
						}
					}
				}
			}
		})
	}
}

// A decay of −Inf separates gradients: NaN on one side of it reaches none of the other side.
func TestClearedGradients(t *testing.T) {
	const e, v, n, at = 6, 5, 75, 37
	eachRule(t, e, func(t *testing.T, decays int, erases bool) {
		if decays == 0 {
			return
		}
		for _, before := range []bool{true, false} {
			s := random(rand.New(rand.NewPCG(17, 18)), n, e, v, decays, erases)
			for i := range decays {
				s.Decay.at(at, decays)[i] = float32(math.Inf(-1))
			}
			g := &Grads{Out: s.Value, Last: make([]float32, e*v)}
			lo, hi := at, n
			if s.Value.at(at-3, v)[1] = float32(math.NaN()); !before {
				s.Value.at(at-3, v)[1], g.Last[3], lo, hi = 0, float32(math.NaN()), 0, at
			}
			if erases {
				s.Read = Rows{make([]float32, n*v), v}
			}
			Run(s, NewState(e, v), 0, Blocks(v))
			like := func(x Rows) Rows { return Rows{make([]float32, len(x.Data)), x.Step} }
			g.Key, g.Query, g.Value, g.Decay, g.Beta = like(s.Key), like(s.Query), like(s.Value), like(s.Decay), like(s.Beta)
			Backward(s, nil, g)
			for i, x := range []Rows{g.Key, g.Query, g.Value, g.Decay, g.Beta} {
				for _, y := range x.Data[lo*x.Step : hi*x.Step] {
					if y != y {
						t.Fatalf("before=%v: NaN in gradient %d", before, i)
					}
				}
			}
		}
	})
}
