package simd

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestAbove(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(41, 42))
		for _, n := range lengths {
			x := newGuarded(r, n)
			if n > 5 {
				x.x[1], x.x[2], x.x[n-1] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))
			}
			for _, least := range []float32{-8, -1, 0, 5, float32(math.Inf(-1)), float32(math.Inf(1)), float32(math.NaN())} {
				var want []int32
				for i, v := range x.x {
					if v > least {
						want = append(want, int32(i))
					}
				}
				const untouched = -5
				dst := make([]int32, n+AbovePadding+3)
				for i := range dst {
					dst[i] = untouched
				}
				got := dst[:Above(dst[:n+AbovePadding], x.x, least)]
				if !slices.Equal(got, want) {
					t.Fatalf("%d numbers above %v: places %v, want %v", n, least, got, want)
				}
				for _, v := range dst[len(want)+min(n+AbovePadding-len(want), AbovePadding):] {
					if v != untouched {
						t.Fatalf("%d numbers above %v: written beyond the padding", n, least)
					}
				}
			}
		}
	})
}

func TestRanks(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(45, 46))
		for n := range MostRanks + 1 {
			x := newGuarded(r, n).x
			for i := range x {
				if r.IntN(3) == 0 {
					x[i] = float32(r.IntN(3)) // ties
				}
			}
			order := make([]int, n)
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(x[j], x[i]) })
			dst := make([]int32, n+20)
			Ranks(dst[:n], x)
			for rank, i := range order {
				if int(dst[i]) != rank {
					t.Fatalf("%v: number %d has rank %d, want %d", x, i, dst[i], rank)
				}
			}
			for _, v := range dst[n:] {
				if v != 0 {
					t.Fatalf("%d numbers: written beyond the end", n)
				}
			}
		}
	})
}

func TestEntropy(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(43, 44))
		for _, n := range lengths {
			x := newGuarded(r, n).x
			var want, magnitude float64
			for i := range x {
				switch i % 5 {
				case 0:
					x[i] = float32(math.Exp(-100 * r.Float64())) // down to denormal numbers
				case 1:
					x[i] = 1 - 1e-4*r.Float32()
				case 2:
					x[i] = 0
				default:
					x[i] = r.Float32()
				}
				if v := float64(x[i]); v > 0 {
					want -= v * math.Log(v)
					magnitude += math.Abs(v * math.Log(v))
				}
			}
			// Each logarithm, and a sum in 32 lanes.
			bound := magnitude*(2e-7+float64(min(n, 1<<14)/32+10)/(1<<24)) + float64(n)*1e-36
			if got := float64(Entropy(x)); !(math.Abs(got-want) <= bound) {
				t.Fatalf("%d numbers: %v, want %v within %v", n, got, want, bound)
			}
		}
		for i, c := range []struct{ x, want float32 }{{1, 0}, {0, 0}, {0.5, 0.34657359}, {math.SmallestNonzeroFloat32, 0}} {
			if got := Entropy([]float32{c.x}); math.Abs(float64(got-c.want)) > 1e-7 {
				t.Errorf("%d: the entropy of %v is %v, want %v", i, c.x, got, c.want)
			}
		}
		x := make([]float32, 37)
		x[23] = float32(math.NaN())
		if got := Entropy(x); got == got {
			t.Errorf("with NaN: %v", got)
		}
	})
}
