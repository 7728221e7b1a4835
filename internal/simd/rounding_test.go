package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Numbers are rounded for storage as the formulas say, including ties and numbers out of range, at
// every length around a vector.
func TestRounding(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(37, 38))
		special := []float32{0, float32(math.Copysign(0, -1)), 0.5, -0.5, 1.5, 2.5, 126.5, -126.5, 127.4, -300, 300, 1e-40, 3.4e38, float32(math.Inf(1)), float32(math.NaN()), 1.00390625, 1.01171875}
		for _, n := range lengths {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(60 * r.NormFloat64())
				if r.IntN(4) == 0 {
					x[i] = special[r.IntN(len(special))]
				}
			}
			halves, wantHalves := make([]uint16, n+1), make([]uint16, n+1)
			bytes, wantBytes := make([]int8, n+1), make([]int8, n+1)
			halves[n], bytes[n] = 7, 7
			ToBFloat16(halves[:n], x)
			toBFloat16Generic(wantHalves[:n], x)
			if wantHalves[n] = 7; !slices.Equal(halves, wantHalves) {
				t.Fatalf("%d numbers: bfloat16 %v, want %v", n, halves, wantHalves)
			}
			var most float64
			for i, v := range x {
				if v-v != 0 {
					x[i] = 1 // the integer of a NaN is undefined
				}
				most = max(most, math.Abs(float64(x[i])))
			}
			inverse := 1 + r.Float64()/2
			toInt8(bytes[:n], x, inverse)
			toInt8Generic(wantBytes[:n], x, inverse)
			if wantBytes[n] = 7; !slices.Equal(bytes, wantBytes) {
				t.Fatalf("%d numbers: int8 %v, want %v", n, bytes, wantBytes)
			}
			if got := Magnitude(x); float64(got) != most {
				t.Fatalf("%d numbers: the largest magnitude is %v, want %v", n, got, most)
			}
			if n > 0 {
				x[r.IntN(n)] = float32(math.NaN())
				if got := Magnitude(x); got == got {
					t.Fatalf("%d numbers with a NaN: the largest magnitude is %v", n, got)
				}
			}
		}
	})
}

// MultiplyRows computes the same bits as a product with panels, whichever way the panels were made,
// and touches nothing else.
func TestMultiplyRows(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(39, 40))
		for _, m := range []int{0, 1, 2, 3, 4, 5, 7, 13} {
			for _, depth := range []int{1, 2, 3, 7, 15, 16, 17, 32, 53, 128, 4099} {
				for _, n := range []int{0, 1, 3, 5, 7, 8, 15, 16, 17, 31, 33} {
					if depth > 1000 && n > 9 {
						continue
					}
					a, b := newGuarded(r, m*(depth+2)), newGuarded(r, n*(depth+3))
					c := newGuarded(r, m*(n+1))
					want := clone(c.x)
					am, bm := RowMajor(a.x, depth+2), RowMajor(b.x, depth+3)
					MultiplyRows(RowMajor(c.x, n+1), am, m, bm, n, depth)
					var p Panels
					p.Copy(bm.T(), depth, n)
					MultiplyPanels(RowMajor(want, n+1), am, m, &p, 0, depth, 0, n, false)
					if !same(c.x, want) || !c.intact() {
						t.Fatalf("%d rows by %d of %d: the product differs", m, n, depth)
					}
				}
			}
		}
	})
}

// SetColumns gives the same columns as a copy.
func TestSetColumns(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(41, 42))
		for _, size := range [][2]int{{1, 1}, {5, 3}, {7, 16}, {16, 32}, {11, 64}, {13, 83}} {
			k, n := size[0], size[1]
			x := newGuarded(r, k*n).x
			l := NewPanelLayout(k, n)
			data := newGuarded(r, l.Len())
			l.SetColumns(data.x, RowMajor(x, k), n)
			for i := range k {
				for j := range n {
					if got, want := data.x[l.At(i, j)], x[j*k+i]; got != want {
						t.Fatalf("%d×%d: (%d, %d) is %v, want %v", k, n, i, j, got, want)
					}
				}
			}
			if !data.intact() {
				t.Fatalf("%d×%d: written beyond the end", k, n)
			}
		}
	})
}
