package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomBlock returns a block of groups of tokens with arbitrary numbers.
func randomBlock(r *rand.Rand, rows, groups int, erases bool) *StateBlock {
	b := &StateBlock{Rows: rows, Groups: groups, Erases: erases, ValueRow: StateColumns + 3, OutRow: StateColumns + 5}
	last := StateTokens*groups - 1
	for _, f := range []struct {
		to *[]float32
		n  int
	}{
		{&b.State, rows * StateColumns}, {&b.Sums, StateReads * StateColumns}, {&b.Reads, (groups + 1) * rows * StateReads},
		{&b.Adds, groups * rows * StateAdds}, {&b.Terms, groups * StateTerms},
		{&b.Values, last*b.ValueRow + StateColumns}, {&b.Out, last*b.OutRow + StateColumns},
	} {
		*f.to = gaussians(r, f.n)
	}
	for i := range b.Reads {
		b.Reads[i] /= float32(math.Sqrt(float64(rows)))
	}
	for i := range b.Adds {
		b.Adds[i] /= 4
	}
	return b
}

func (b *StateBlock) clone() *StateBlock {
	c := *b
	for _, s := range []*[]float32{&c.State, &c.Sums, &c.Out} {
		*s = slices.Clone(*s)
	}
	return &c
}

// A pass computes the formula of its comment, here in float64.
func TestStatePass(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, erases := range []bool{false, true} {
			for _, rows := range []int{1, 2, 5, 64} {
				for _, groups := range []int{1, 2, 3} {
					b := randomBlock(r, rows, groups, erases)
					want, got := b.clone(), b.clone()
					exactPass(want)
					got.Pass()
					if !erases {
						copy(got.Sums, want.Sums[:StateTokens*StateColumns]) // which nobody reads
					}
					closeTo(t, "out", got.Out, want.Out, 2e-5)
					closeTo(t, "state", got.State, want.State, 2e-5)
					closeTo(t, "sums", got.Sums, want.Sums, 2e-5)
				}
			}
		}
	})
}

func closeTo(t *testing.T, name string, got, want []float32, tolerance float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tolerance*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("%s[%d] = %v, want %v", name, i, got[i], want[i])
		}
	}
}

// exactPass is StateBlock.Pass in float64.
func exactPass(b *StateBlock) {
	state, sums := doubles(b.State), doubles(b.Sums)
	for g := range b.Groups {
		var u [StateTokens][StateColumns]float64
		terms := doubles(b.Terms[g*StateTerms:][:StateTerms])
		for t := range u {
			beta, keys, queries := terms[0], terms[1:1+t], terms[1+t:2+2*t]
			terms = terms[2+2*t:]
			token := g*StateTokens + t
			for c := range StateColumns {
				x := float64(b.Values[token*b.ValueRow+c])
				if b.Erases {
					x -= sums[t*StateColumns+c]
					for j := range keys {
						x -= keys[j] * u[j][c]
					}
					x *= beta
				}
				u[t][c] = x
				y := sums[(StateTokens+t)*StateColumns+c]
				for j := range queries {
					y += queries[j] * u[j][c]
				}
				b.Out[token*b.OutRow+c] = float32(y)
			}
		}
		clear(sums)
		for i := range b.Rows {
			adds, reads := b.Adds[(g*b.Rows+i)*StateAdds:], b.Reads[((g+1)*b.Rows+i)*StateReads:]
			for c := range StateColumns {
				s := &state[i*StateColumns+c]
				*s *= float64(adds[StateTokens])
				for t := range u {
					*s += float64(adds[t]) * u[t][c]
				}
				for n := range StateReads {
					sums[n*StateColumns+c] += float64(reads[n]) * *s
				}
			}
		}
	}
	for i := range state {
		b.State[i] = float32(state[i])
	}
	for i := range sums {
		b.Sums[i] = float32(sums[i])
	}
}

func doubles(x []float32) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = float64(x[i])
	}
	return y
}

// What tokens one by one compute with ReadState and AddState has the bits of a pass, and so have passes of fewer
// groups.
func TestStateInPieces(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, rows := range []int{1, 3, 128, 700} {
			b := randomBlock(r, rows, 5, true)
			ReadState(b.Sums, b.State, b.Reads, StateReads, rows)
			want, got := b.clone(), b.clone()
			want.Pass()
			for g := range b.Groups {
				part := *got
				part.Groups, part.Reads, part.Adds = 1, b.Reads[g*rows*StateReads:], b.Adds[g*rows*StateAdds:]
				part.Terms = b.Terms[g*StateTerms:]
				part.Values, part.Out = b.Values[g*StateTokens*b.ValueRow:], got.Out[g*StateTokens*b.OutRow:]
				if g%2 == 0 { // what two vectors read
					x, sums := make([]float32, 2*rows), make([]float32, 2*StateColumns)
					for i := range rows {
						x[2*i], x[2*i+1] = part.Reads[i*StateReads+1], part.Reads[i*StateReads+6]
					}
					ReadState(sums, part.State, x, 2, rows)
					if !slices.Equal(sums[:StateColumns], part.Sums[StateColumns:2*StateColumns]) ||
						!slices.Equal(sums[StateColumns:], part.Sums[6*StateColumns:7*StateColumns]) {
						t.Fatal("two vectors read other bits than eight")
					}
				}
				part.Pass()
			}
			if !slices.Equal(got.Out, want.Out) || !slices.Equal(got.State, want.State) || !slices.Equal(got.Sums, want.Sums) {
				t.Fatalf("%d rows: other bits in pieces", rows)
			}
			// the rule of addition alone
			u, state := gaussians(r, StateTokens*StateColumns), slices.Clone(b.State)
			AddState(state, b.Adds, u, rows)
			one := randomBlock(r, rows, 1, false)
			one.State, one.Adds, one.Values, one.ValueRow = slices.Clone(b.State), b.Adds, u, StateColumns
			one.Pass()
			if !slices.Equal(state, one.State) {
				t.Fatalf("%d rows: AddState has other bits than Pass", rows)
			}
		}
	})
}

func BenchmarkStatePass(b *testing.B) {
	benchEach(b, func(b *testing.B) {
		for _, rows := range []int{64, 128} {
			b.Run(fmt.Sprint(rows), func(b *testing.B) {
				s := randomBlock(rand.New(rand.NewPCG(1, 1)), rows, 16, true)
				for i := range s.Adds {
					s.Adds[i] *= 0.01
				}
				for b.Loop() {
					s.Pass()
				}
				b.ReportMetric(6*float64(rows*StateColumns*16*StateTokens*b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	})
}
