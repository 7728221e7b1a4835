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
