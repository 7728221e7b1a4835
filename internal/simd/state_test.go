package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The decays of a block.
const (
	oneDecay = iota
	rowDecays
	columnDecays
)

// randomBlock returns a block of groups of tokens with arbitrary numbers. Vectors run backwards unless there is one decay.
func randomBlock(r *rand.Rand, rows, groups int, erases bool, decays int) *StateBlock {
	each := decays != oneDecay
	b := &StateBlock{Rows: rows, Groups: groups, Erases: erases, More: true, DecayEach: decays == rowDecays}
	b.State, b.Sums = gaussians(r, rows*StateColumns), gaussians(r, 2*StateTokens*StateColumns)
	vectors := func(groups, size, extra int, scale float64) StateVectors {
		row := size + extra
		x := gaussians(r, StateTokens*groups*row)
		for i := range x {
			x[i] *= float32(scale)
		}
		if each {
			return StateVectors{x, (StateTokens*groups - 1) * row, -row}
		}
		return StateVectors{x, 0, row}
	}
	b.Keys, b.Queries = vectors(groups+1, rows, 3, 1/math.Sqrt(float64(rows))), vectors(groups+1, rows, 3, 1/math.Sqrt(float64(rows)))
	b.Adds, b.Adds2 = vectors(groups, rows, 3, 0.25), vectors(groups, rows, 3, 0.25)
	b.Values, b.Values2 = vectors(groups, StateColumns, 1, 1), vectors(groups, StateColumns, 2, 1)
	b.Out, b.Read = vectors(groups, StateColumns, 5, 1), vectors(groups, StateColumns, 0, 1)
	b.Decay = gaussians(r, groups*max(1, rows))
	if decays == columnDecays {
		b.Decay, b.Factors = nil, vectors(groups, StateColumns, 4, 1)
	}
	for range groups {
		var s StateTerms
		for _, x := range [][]float32{s.Value[:], s.Read[:], s.Key[:], s.Query[:], s.Left[:]} {
			copy(x, gaussians(r, StateTokens))
		}
		for t := range s.KeyKey {
			copy(s.KeyKey[t][:t], gaussians(r, t))
			copy(s.QueryKey[t][:t+1], gaussians(r, t+1))
		}
		b.Terms = append(b.Terms, s)
	}
	return b
}

// results returns the slices that a pass writes.
func (b *StateBlock) results() []*[]float32 {
	return []*[]float32{&b.State, &b.Sums, &b.Out.Data, &b.Read.Data}
}

func (b *StateBlock) clone() *StateBlock {
	c := *b
	for _, s := range c.results() {
		*s = slices.Clone(*s)
	}
	return &c
}

func sameResults(a, b *StateBlock) bool {
	for i, s := range a.results() {
		if !slices.Equal(*s, *b.results()[i]) {
			return false
		}
	}
	return true
}

// Passes compute the formulas of their comments, here in float64.
func TestStatePass(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for kind := range 9 {
			erases, twice := kind%3 == 1, kind%3 == 2
			for _, rows := range []int{1, 2, 5, 64} {
				for _, groups := range []int{1, 2, 3} {
					b := randomBlock(r, rows, groups, erases, kind/3)
					want, got := b.clone(), b.clone()
					exactPass(want, twice)
					pass := got.Pass
					if twice {
						pass = got.PassTwice
					}
					pass()
					if !erases {
						copy(got.Sums, want.Sums[:StateTokens*StateColumns]) // which nobody reads
					}
					for i, s := range got.results() {
						closeTo(t, fmt.Sprint("result ", i), *s, *want.results()[i], 1e-4)
					}
					// without another group the rest is the same
					less := b.clone()
					less.More = false
					if pass = less.Pass; twice {
						pass = less.PassTwice
					}
					pass()
					if copy(less.Sums, got.Sums); !sameResults(less, got) {
						t.Fatal("other bits without a group after the last")
					}
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

// exactPass is StateBlock.Pass or PassTwice in float64.
func exactPass(b *StateBlock, twice bool) {
	state, sums := doubles(b.State), doubles(b.Sums)
	at := func(x StateVectors, t, i int) float64 { return float64(x.Data[x.First+t*x.Row+i]) }
	for g := range b.Groups {
		var u, w [StateTokens][StateColumns]float64
		s := &b.Terms[g]
		kept := slices.Repeat([]float64{1}, StateColumns)
		for t := range u {
			token := g*StateTokens + t
			for c := range StateColumns {
				if b.Factors.Data != nil {
					f := at(b.Factors, token, c)
					kept[c] *= f
					for j := range t {
						u[j][c] *= f
						w[j][c] *= f
					}
				}
				x, y := kept[c]*float64(s.Key[t])*sums[t*StateColumns+c], kept[c]*float64(s.Query[t])*sums[(StateTokens+t)*StateColumns+c]
				u[t][c] = at(b.Values, token, c)
				for j := range t {
					x += float64(s.KeyKey[t][j]) * u[j][c]
				}
				switch {
				case b.Erases:
					b.Read.of(token, StateColumns)[c] = float32(x)
					u[t][c] = float64(s.Value[t])*u[t][c] - float64(s.Read[t])*x
				case twice:
					u[t][c] *= float64(s.Key[t])
				}
				for j := range t + 1 {
					y += float64(s.QueryKey[t][j]) * u[j][c]
				}
				if twice {
					for j := range t {
						y += float64(s.KeyKey[t][j]) * w[j][c]
					}
					w[t][c] = float64(s.Value[t])*at(b.Values2, token, c) - float64(s.Read[t])*y
				}
				b.Out.of(token, StateColumns)[c] = float32(y)
			}
		}
		clear(sums)
		for i := range b.Rows {
			for c := range StateColumns {
				x := &state[i*StateColumns+c]
				switch *x *= kept[c]; {
				case b.DecayEach:
					*x *= float64(b.Decay[g*b.Rows+i])
				case b.Decay != nil:
					*x *= float64(b.Decay[g])
				}
				for t := range u {
					*x += at(b.Adds, g*StateTokens+t, i) * float64(s.Left[t]) * u[t][c]
					if twice {
						*x += at(b.Adds2, g*StateTokens+t, i) * float64(s.Left[t]) * w[t][c]
					}
				}
				for n := range StateTokens {
					next := (g+1)*StateTokens + n
					if b.Erases {
						sums[n*StateColumns+c] += at(b.Keys, next, i) * *x
					}
					sums[(StateTokens+n)*StateColumns+c] += at(b.Queries, next, i) * *x
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

// Step and Add, token by token, have the bits of a pass, and so have passes of fewer groups.
func TestStateInPieces(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for kind := range 4 {
			for _, rows := range []int{1, 3, 128, 700} {
				b := randomBlock(r, rows, 5, kind%2 == 1, kind/2)
				read := func(b *StateBlock) {
					if b.Erases {
						ReadState(b.Sums, b.State, b.Keys, rows)
					}
					ReadState(b.Sums[StateTokens*StateColumns:], b.State, b.Queries, rows)
				}
				read(b)
				want, got := b.clone(), b.clone()
				want.Pass()
				for g := range b.Groups {
					part := *got
					part.Groups, part.More, part.Terms = 1, g%2 == 1, b.Terms[g:]
					if part.Decay = b.Decay[g:]; b.DecayEach {
						part.Decay = b.Decay[g*rows:]
					}
					for _, x := range []*StateVectors{&part.Keys, &part.Queries, &part.Adds, &part.Values, &part.Out, &part.Read} {
						*x = x.from(g * StateTokens)
					}
					if g%2 == 1 {
						read(&part)
						part.Pass()
						continue
					}
					u := make([]float32, StateTokens*StateColumns)
					for t := range StateTokens {
						one := part
						for _, x := range []*StateVectors{&one.Keys, &one.Queries, &one.Values, &one.Out, &one.Read} {
							*x = x.from(t)
						}
						one.Step(u, t)
					}
					part.Add(u)
				}
				if !slices.Equal(got.Out.Data, want.Out.Data) || !slices.Equal(got.State, want.State) ||
					!slices.Equal(got.Read.Data, want.Read.Data) {
					t.Fatalf("%d rows: other bits in pieces", rows)
				}
			}
		}
	})
}

// Products have the same bits in any group and for any other vectors.
func TestStateProducts(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, n := range []int{1, 3, 16, 37, 128} {
			const groups = 3
			x := StateVectors{gaussians(r, 4*groups*(n+1)), 0, n + 1}
			y := StateVectors{gaussians(r, 4*groups*(n+1)), 0, n + 1}
			terms := make([]StateTerms, groups)
			StateProducts(terms, false, x, y, n)
			StateProducts(terms, true, y, x, n)
			for g := range terms {
				for t1 := range StateTokens {
					for j := range StateTokens {
						var want, other float64
						for i := 0; i < n && j <= t1; i++ {
							want += float64(x.of(4*g+t1, n)[i]) * float64(y.of(4*g+j, n)[i])
							other += float64(y.of(4*g+t1, n)[i]) * float64(x.of(4*g+j, n)[i])
						}
						got := []float32{terms[g].KeyKey[t1][j], terms[g].QueryKey[t1][j]}
						closeTo(t, fmt.Sprintf("n=%d, group %d, product %d, %d", n, g, t1, j), got, []float32{float32(want), float32(other)}, 1e-5)
					}
				}
			}
			alone := make([]StateTerms, 1)
			shared := StateVectors{slices.Clone(x.Data), 0, n + 1}
			for i := range shared.of(0, n) {
				shared.of(0, n)[i] = float32(math.NaN())
			}
			StateProducts(alone, false, shared, y, n)
			if alone[0].KeyKey[3] != terms[0].KeyKey[3] {
				t.Fatal("a product depends on other vectors")
			}
		}
	})
}

// With decays, products and vectors are those of their formulas, and the products have the bits of StateProducts.
func TestStateDecays(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		for _, n := range []int{1, 3, 16, 37, 128} {
			const groups = 3
			vectors := func() StateVectors { return StateVectors{gaussians(r, 4*groups*n), (4*groups - 1) * n, -n} }
			d := &StateDecays{X: vectors(), Y: vectors(), Factors: vectors(), Reads: vectors(), Adds: vectors(), Decay: make([]float32, groups*n)}
			terms := make([]StateTerms, groups)
			d.Products(terms, true, n)
			for g := range groups {
				want, y := slices.Repeat([]float32{1}, n), StateVectors{make([]float32, StateTokens*n), 0, n}
				for t1 := range StateTokens {
					x, factors := d.X.of(4*g+t1, n), d.Factors.of(4*g+t1, n)
					Mul(want, want, factors)
					for j := range t1 {
						Mul(y.of(j, n), y.of(j, n), factors)
					}
					copy(y.of(t1, n), d.Y.of(4*g+t1, n))
					reads := make([]float32, n)
					if Mul(reads, want, x); !slices.Equal(d.Reads.of(4*g+t1, n), reads) {
						t.Fatal("reads differ")
					}
					alone := make([]StateTerms, 1)
					StateProducts(alone, true, StateVectors{slices.Repeat(x, StateTokens), 0, n}, y, n)
					if !slices.Equal(alone[0].QueryKey[t1][:t1+1], terms[g].QueryKey[t1][:t1+1]) {
						t.Fatalf("products %v, want %v", terms[g].QueryKey[t1][:t1+1], alone[0].QueryKey[t1][:t1+1])
					}
				}
				for j := range StateTokens {
					if !slices.Equal(d.Adds.of(4*g+j, n), y.of(j, n)) {
						t.Fatal("adds differ")
					}
				}
				if !slices.Equal(d.Decay[g*n:][:n], want) {
					t.Fatal("decays differ")
				}
			}
		}
	})
}

func BenchmarkStatePass(b *testing.B) {
	benchEach(b, func(b *testing.B) {
		for _, rows := range []int{64, 128} {
			for _, twice := range []bool{false, true} {
				b.Run(fmt.Sprintf("rows=%d,twice=%v", rows, twice), func(b *testing.B) {
					s := randomBlock(rand.New(rand.NewPCG(1, 1)), rows, 16, !twice, oneDecay)
					for i := range s.Decay {
						s.Decay[i] *= 0.1
					}
					for _, x := range [][]float32{s.Adds.Data, s.Adds2.Data} {
						for i := range x {
							x[i] *= 0.01
						}
					}
					for b.Loop() {
						if twice {
							s.PassTwice()
						} else {
							s.Pass()
						}
					}
					b.ReportMetric(6*float64(rows*StateColumns*16*StateTokens*b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	})
}
