package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// onEach runs f as a subtest for each implementation that this machine supports.
func onEach(t *testing.T, f func(t *testing.T)) {
	best := active
	defer func() { active = best }()
	for _, active = range impls {
		t.Run(active.String(), f)
	}
}

// benchEach is onEach for benchmarks.
func benchEach(b *testing.B, f func(b *testing.B)) {
	best := active
	defer func() { active = best }()
	for _, active = range impls {
		b.Run(active.String(), f)
	}
}

// ATTN_SIMD chooses only implementations that the machine supports.
func TestChoose(t *testing.T) {
	has := []implementation{avx2, generic}
	for name, want := range map[string]implementation{"": avx2, "avx2": avx2, "generic": generic} {
		if got, err := choose(name, has); got != want || err != nil {
			t.Errorf("ATTN_SIMD=%s chooses %v, %v, want %v", name, got, err, want)
		}
	}
	for _, name := range []string{"avx512", "AVX2", "sse", " "} {
		want := fmt.Sprintf("attn: ATTN_SIMD is %q, want one that this program has on this machine: avx2, generic", name)
		if _, err := choose(name, has); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// lengths contains lengths around the ends of vectors, of unrolled loops and of pieces.
var lengths = func() []int {
	var l []int
	for n := range 200 {
		l = append(l, n)
	}
	return append(l, 255, 256, 257, 1<<14-1, 1<<14, 1<<14+1, 3<<14+37)
}()

// guard is a number that no test computes.
const guard = -7.25e-19

// guarded is a slice with guards on both sides.
type guarded struct{ all, x []float32 }

// newGuarded returns n random numbers between guards, not aligned.
func newGuarded(r *rand.Rand, n int) guarded {
	pad := 17 + r.IntN(16)
	g := guarded{all: make([]float32, pad+n+40)}
	for i := range g.all {
		g.all[i] = guard
	}
	g.x = g.all[pad : pad+n : pad+n]
	for i := range g.x {
		g.x[i] = float32(r.NormFloat64()) * 3
	}
	return g
}

// intact reports whether the guards are unchanged.
func (g guarded) intact() bool {
	inside := 0
	for _, v := range g.all {
		if v != guard {
			inside++
		}
	}
	return inside == len(g.x)
}

func clone(x []float32) []float32 { return append([]float32(nil), x...) }

// same reports whether x and y have the same bits. All NaNs are equal.
func same(x, y []float32) bool {
	for i, v := range x {
		if math.Float32bits(v) != math.Float32bits(y[i]) && (v == v || y[i] == y[i]) {
			return false
		}
	}
	return len(x) == len(y)
}

// ulps returns the error of got in units in the last place of want. Below the smallest normal
// number it uses the unit of that number.
func ulps(got float32, want float64) float64 {
	if math.IsNaN(want) || math.IsInf(want, 0) || math.Abs(want) > math.MaxFloat32 {
		if float64(got) == want || got != got && want != want || math.IsInf(float64(got), int(math.Copysign(1, want))) {
			return 0
		}
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

// fuses reports whether the implementation rounds a product and its sum once.
func fuses() bool { return active != generic && active != wasm }

// fma32 returns x·y + z, rounded once if the implementation fuses.
func fma32(x, y, z float32) float32 {
	if !fuses() {
		return z + float32(x*y)
	}
	// The product is exact in float64. If the sum is not exact, make it odd: rounding it again then
	// gives the same result as rounding once.
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	if s-s != 0 {
		return float32(s)
	}
	v := s - p
	lost := (p - (s - v)) + (c - v)
	if b := math.Float64bits(s); lost != 0 && b&1 == 0 {
		if (lost > 0) == (s > 0) {
			b++
		} else {
			b--
		}
		s = math.Float64frombits(b)
	}
	return float32(s)
}
