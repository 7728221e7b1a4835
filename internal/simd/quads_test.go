package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// All kernels for integers have the bits of the formula, so those of different processors have the same bits.
func TestQuadsHaveTheSameBits(t *testing.T) {
	kernels := 0
	for _, size := range sizesOfRounded {
		k, n := size[0], size[1]
		r := rand.New(rand.NewPCG(13, uint64(k)))
		const rows = 49 // more than a kernel computes at a time
		a, bias := gaussians(r, rows*k), gaussians(r, n)
		_, columns := newRounded(Int8, k, n, r)
		Each(func(name string) {
			eachQuads(func(kernel string) {
				w, want := NewPanels(k, n, Int8, true, newBytes), quadsFormula(a, bias, columns)
				kernels++
				w.Set(0, n, RowMajor(slices.Concat(columns...), k).T())
				check := func(from, m int, multiply func(c Mat)) {
					got := newGuarded(r, (m-1)*(n+3)+n)
					before := slices.Clone(got.x)
					multiply(RowMajor(got.x, n+3))
					for i := range m {
						at := i * (n + 3)
						copy(before[at:], want[(from+i)*n:][:n])
					}
					if !got.intact() || !slices.Equal(got.x, before) {
						t.Errorf("%d×%d, %d rows from %d: %s, %s: other bits, or wrote elsewhere", k, n, m, from, name, kernel)
					}
				}
				for _, m := range []int{7, 8, 16, 17, 33, rows} {
					check(0, m, func(c Mat) { w.Multiply(c, RowMajor(a, k), m, 0, n, bias, 0) })
				}
				var in Inputs
				in.Reset(w, RowMajor(a, k), rows)
				for i, m := range []int{6, 18, 25} {
					from := []int{0, 6, 24}[i]
					check(from, m, func(c Mat) { w.MultiplyInputs(c, &in, from, m, 0, n, bias, 0) })
				}
			})
		})
	}
	t.Logf("%d ways", kernels/len(sizesOfRounded))
}

// quadsFormula is the formula in quads.go. Kernels round its last two sums once each, Go twice.
func quadsFormula(a, bias []float32, columns [][]float32) (c []float32) {
	add := fma32
	if !usesQuads() {
		add = func(x, y, z float32) float32 { return z + float32(x*y) }
	}
	k := len(columns[0])
	x, y := make([]float32, groupedWords(k)), make([]float32, groupedWords(k))
	c = make([]float32, len(a)/k*len(columns))
	for j, column := range columns {
		weightQuads(y, column)
		for i := range len(a) / k {
			inputQuads(x, a[i*k:][:k])
			at := &c[i*len(columns)+j]
			*at = bias[j]
			for g := 0; g < k; g += groupSteps {
				p, q, sum := groupAt(x, g), groupAt(y, g), 0
				for s := g; s < min(g+groupSteps, k); s++ {
					sum += int(byteOf(p, s)) * int(int8(byteOf(q, s)))
				}
				*at = add(p[0], float32(sum)*q[0], *at)
				*at = add(p[1], q[1], *at)
			}
		}
	}
	return c
}

// The kernels round groups to the bits of generic Go. Of a group that is not finite, only the scale counts.
func TestToQuads(t *testing.T) {
	const groups = 54
	r := rand.New(rand.NewPCG(11, 12))
	x := gaussians(r, groups*groupSteps)
	for i := range x {
		x[i] *= float32(math.Ldexp(1, min(5*(i/groupSteps), 245)-140))
	}
	for g, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat32} {
		x[(50+g)*groupSteps+77] = float32(v)
	}
	x[53*groupSteps+1] = -math.MaxFloat32
	want := make([]float32, groups*(2+groupWords))
	toQuadsGeneric(want, x, groups)
	Each(func(name string) {
		got := make([]float32, len(want))
		toQuads(got, x, groups)
		for g := range groups {
			a, b := groupAt(got, g*groupSteps), groupAt(want, g*groupSteps)
			if !same(a[:2], b[:2]) {
				t.Fatalf("%s: scale and offset of group %d are %v, want %v", name, g, a[:2], b[:2])
			}
			for i := 2; i < len(a) && b[0] == b[0]; i++ {
				if v, w := math.Float32bits(a[i]), math.Float32bits(b[i]); v != w {
					t.Fatalf("%s: word %d of group %d is %08x, want %08x", name, i, g, v, w)
				}
			}
		}
	})
}

// What rounding does at its limits, on every implementation: the integer of the largest input of a symmetric row, which
// rounds up to 256, is 255; groups of tiny numbers are 0 and those above them are not; and huge weights become NaN
// rather than a sum that overflows.
func TestQuadsAtTheirLimits(t *testing.T) {
	Each(func(name string) {
		x, words := make([]float32, groupSteps), make([]float32, 2+groupWords)
		x[0], x[5] = -1, 1
		if toQuads(words, x, 1); byteOf(words, 5) != 255 || byteOf(words, 0) != 0 {
			t.Errorf("%s: -1 and 1 are %d and %d, want 0 and 255", name, byteOf(words, 0), byteOf(words, 5))
		}
		for _, c := range []struct {
			width float32
			zero  bool
		}{{0x1p-118, false}, {0x1.fffffep-119, true}, {0x1p-149, true}} {
			clear(x)
			x[7] = c.width
			if toQuads(words, x, 1); (words[0] == 0) != c.zero || !c.zero && byteOf(words, 7) != 255 {
				t.Errorf("%s: an input of %g has the scale %g", name, c.width, words[0])
			}
		}
		for _, c := range []struct {
			most      float32
			zero, nan bool
		}{{0x1p-119, false, false}, {0x1.fffffep-120, true, false}, {0x1.fffffep112, false, false}, {0x1p113, false, true}} {
			clear(x)
			x[7] = -c.most
			weightQuads(words, x)
			if scale := words[0]; (scale == 0) != c.zero || (scale != scale) != c.nan || !c.zero && !c.nan && int8(byteOf(words, 7)) != -127 {
				t.Errorf("%s: a weight of %g has the scale %g", name, c.most, scale)
			}
		}
		// The largest sum is finite, with every kernel.
		const k, n = groupSteps, 3
		w, columns := newRounded(Int8, k, n, rand.New(rand.NewPCG(1, 2)))
		a, got := make([]float32, k), make([]float32, n)
		fill(a, 1)
		for _, column := range columns {
			fill(column, 0x1.fffffep112)
		}
		w.Set(0, n, RowMajor(slices.Concat(columns...), k).T())
		w.Multiply(RowMajor(got, n), RowMajor(a, k), 1, 0, n, nil, 0)
		for _, v := range got {
			if math.Abs(float64(v)/0x1p120-1) > 1e-5 {
				t.Errorf("%s: the sum of 128 weights of 2^113 is %g", name, v)
			}
		}
	})
}

// byteOf returns the integer of step k in its group.
func byteOf(group []float32, k int) byte {
	return byte(math.Float32bits(group[2+k%groupSteps/4]) >> (k % 4 * 8))
}
