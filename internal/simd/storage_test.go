package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A stored number is converted to its value, at every length around a vector.
func TestStoredNumbers(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(31, 32))
		for _, n := range lengths {
			dst, halves, bytes := newGuarded(r, n), make([]uint16, n), make([]int8, n)
			for i := range n {
				halves[i], bytes[i] = uint16(r.Uint32()), int8(r.Uint32())
			}
			FromBFloat16(dst.x, halves)
			for i, v := range dst.x {
				if want := math.Float32frombits(uint32(halves[i]) << 16); v != want && (v == v || want == want) {
					t.Fatalf("bfloat16 %04x, %d of %d: %v, want %v", halves[i], i, n, v, want)
				}
			}
			fromInt8(dst.x, bytes)
			for i, v := range dst.x {
				if v != float32(bytes[i]) {
					t.Fatalf("int8 %d, %d of %d: %v", bytes[i], i, n, v)
				}
			}
			if !dst.intact() {
				t.Fatalf("%d numbers: written beyond the end", n)
			}
		}
	})
}

// The nearest bfloat16 is the nearer of the two neighbours, and the even one if both are equally
// near.
func TestBFloat16(t *testing.T) {
	value := func(b uint16) float64 { return float64(math.Float32frombits(uint32(b) << 16)) }
	for _, x := range []float32{0, 1, -1, 1.00390625, 1.01171875, 3.3e38, 1e-39, -2.7182817, 0x1p-133} {
		got := NearestBFloat16(x)
		for _, other := range []uint16{got - 1, got + 1} {
			d, e := math.Abs(value(got)-float64(x)), math.Abs(value(other)-float64(x))
			if d > e || d == e && got%2 != 0 {
				t.Errorf("%v becomes %v instead of %v", x, value(got), value(other))
			}
		}
	}
	if x := value(NearestBFloat16(math.Float32frombits(0x7f800001))); x == x {
		t.Errorf("NaN becomes %v", x)
	}
	if x := value(NearestBFloat16(math.MaxFloat32)); !math.IsInf(x, 1) {
		t.Errorf("the largest number becomes %v", x)
	}
}

// All implementations round floats alike, whatever their bits, and round to 8-bit integers with
// ties to even.
func TestToStored(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(37, 38))
		for _, n := range lengths {
			x, small := make([]float32, n), make([]float32, n)
			for i := range x {
				x[i], small[i] = math.Float32frombits(r.Uint32()), float32(r.IntN(509)-254)/2
				if i%7 == 3 {
					x[i] = math.Float32frombits(0x7f800001 | r.Uint32()<<31) // NaN
				}
			}
			halves, bytes := make([]uint16, n), make([]int8, n)
			toBFloat16(halves, x)
			toInt8(bytes, small, 1)
			for i, v := range x {
				if halves[i] != NearestBFloat16(v) {
					t.Fatalf("%x, %d of %d: bfloat16 %04x, want %04x", math.Float32bits(v), i, n, halves[i], NearestBFloat16(v))
				}
				if want := int8(math.RoundToEven(float64(small[i]))); bytes[i] != want {
					t.Fatalf("%v, %d of %d: int8 %d, want %d", small[i], i, n, bytes[i], want)
				}
			}
		}
	})
}

// A matrix written in the layout of panels multiplies like a copy.
func TestPanelLayout(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(33, 34))
		for _, size := range [][2]int{{1, 1}, {5, 3}, {7, 16}, {16, 32}, {11, 64}, {13, 83}, {64, 200}} {
			k, n := size[0], size[1]
			b, a := newGuarded(r, k*n).x, newGuarded(r, 3*k).x
			l := NewPanelLayout(k, n)
			data := make([]float32, l.Len())
			for i := range data {
				data[i] = float32(math.NaN())
			}
			for i := range k {
				for j := range n {
					data[l.At(i, j)] = b[i*n+j]
				}
			}
			var laid, copied Panels
			laid.View(l, data)
			copied.Copy(RowMajor(b, n), k, n)
			got, want := make([]float32, 3*n), make([]float32, 3*n)
			MultiplyPanels(RowMajor(got, n), RowMajor(a, k), 3, &laid, 0, k, 0, n, false)
			MultiplyPanels(RowMajor(want, n), RowMajor(a, k), 3, &copied, 0, k, 0, n, false)
			if !same(got, want) {
				t.Errorf("%d×%d: the product differs", k, n)
			}
		}
	})
}

// A product with stored numbers equals the product with their values as floats, and touches nothing
// else.
func TestStoredPanels(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(35, 36))
		for _, m := range []int{1, 2, 3, 4, 5, 6, 7, 11, 13} {
			for _, size := range [][2]int{{1, 1}, {5, 16}, {7, 32}, {11, 64}, {512, 64}, {13, 83}, {64, 200}, {128, 512}} {
				k, n := size[0], size[1]
				l := NewPanelLayout(k, n)
				for f := Float32; f <= Int8; f++ {
					b, floats := storedPanels(r, l, f)
					var p, q Panels
					p.View(l, floats)
					q.ViewStored(l, b)
					k0, j0 := r.IntN(k), r.IntN(n)/panelWidth()*panelWidth()
					k1, j1 := k0+r.IntN(k-k0)+1, j0+r.IntN(n-j0)+1
					if r.IntN(2) == 0 {
						k0, k1, j0, j1 = 0, k, 0, n
					}
					a, c := newGuarded(r, m*(k1-k0)), newGuarded(r, m*(j1-j0))
					want := clone(c.x)
					for _, accumulate := range []bool{true, false} {
						MultiplyPanels(RowMajor(c.x, j1-j0), RowMajor(a.x, k1-k0), m, &q, k0, k1, j0, j1, accumulate)
						MultiplyPanels(RowMajor(want, j1-j0), RowMajor(a.x, k1-k0), m, &p, k0, k1, j0, j1, accumulate)
						if !same(c.x, want) || !c.intact() {
							t.Fatalf("format %d, %d rows, [%d %d) of %d by [%d %d) of %d, accumulate %v: the product differs", f, m, k0, k1, k, j0, j1, n, accumulate)
						}
					}
				}
			}
		}
	})
}

// storedPanels returns random numbers in a format, and their values as floats.
func storedPanels(r *rand.Rand, l PanelLayout, f Format) (Stored, []float32) {
	b := Stored{f, make([]byte, l.Len()*f.Size())}
	floats := make([]float32, l.Len())
	for i := range floats {
		floats[i] = float32(r.NormFloat64())
	}
	b.Round(0, 1, floats, 50)
	return b, slices.Clone(b.Floats(0, len(floats), floats))
}

// Numbers written at a distance equal numbers written contiguously and are read back unchanged.
// Nothing between them changes.
func TestStored(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(43, 44))
		for f := Float32; f <= Int8; f++ {
			for _, n := range []int{1, 3, 16, 127, 128, 129, 300} {
				x, around := make([]float32, n), float32(3)
				for i := range x {
					x[i] = float32(r.NormFloat64())
				}
				const step, at = 5, 2
				whole := Stored{f, make([]byte, n*f.Size())}
				apart := Stored{f, make([]byte, (n*step+at)*f.Size())}
				for i := range n*step + at {
					apart.Round(i, 1, []float32{around}, 1)
				}
				whole.Round(0, 1, x, 40)
				apart.Round(at, step, x, 40)
				got := make([]float32, n)
				want := whole.Floats(0, n, make([]float32, n))
				if apart.Read(got, at, step); !same(got, want) {
					t.Fatalf("format %d, %d numbers: %v, want %v", f, n, got, want)
				}
				if whole.Read(got, 0, 1); !same(got, want) {
					t.Fatalf("format %d, %d numbers: %v, want %v", f, n, got, want)
				}
				for i, v := range apart.Floats(0, n*step+at, make([]float32, n*step+at)) {
					if i%step != at && v != around {
						t.Fatalf("format %d, %d numbers: number %d became %v", f, n, i, v)
					}
				}
			}
		}
	})
}
