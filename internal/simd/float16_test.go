package simd

import (
	"math"
	"testing"
)

// All half-precision numbers, against their definition.
func TestFloat16Value(t *testing.T) {
	for h := range 1 << 16 {
		exponent, mantissa := h>>10&0x1f, float64(h&0x3ff)
		var want float64
		switch exponent {
		case 0:
			want = math.Ldexp(mantissa, -24)
		case 31:
			want = math.Inf(1)
			if mantissa != 0 {
				want = math.NaN()
			}
		default:
			want = math.Ldexp(1024+mantissa, exponent-25)
		}
		if h>>15 == 1 {
			want = math.Copysign(want, -1)
		}
		got := float64(Float16Value(uint16(h)))
		if got != want && !(got != got && want != want) || math.Signbit(got) != math.Signbit(want) && want == want {
			t.Errorf("%#04x is %v, want %v", h, got, want)
		}
	}
}

// Every half-precision number converts to itself. A number between two is rounded to the nearer,
// and ties to even.
func TestNearestFloat16(t *testing.T) {
	for h := range uint16(0x7c00) { // up to infinity
		a, b := float64(Float16Value(h)), math.Ldexp(1, 16)
		if h+1 < 0x7c00 {
			b = float64(Float16Value(h + 1))
		}
		middle := (a + b) / 2
		even := h + h&1
		for _, c := range []struct {
			x    float64
			want uint16
		}{{a, h}, {math.Nextafter(a, b), h}, {middle, even}, {middle + (b-a)/64, h + 1}, {middle - (b-a)/64, h}} {
			x := float32(c.x)
			if got := NearestFloat16(x); got != c.want {
				t.Fatalf("%v is %#04x, want %#04x", x, got, c.want)
			}
			if got := NearestFloat16(-x); got != c.want|0x8000 {
				t.Fatalf("%v is %#04x, want %#04x", -x, got, c.want|0x8000)
			}
		}
	}
	for _, c := range []struct {
		x    float64
		want uint16
	}{{math.Inf(1), 0x7c00}, {math.Inf(-1), 0xfc00}, {1e38, 0x7c00}, {-7e4, 0xfc00}, {1e-40, 0}} {
		if got := NearestFloat16(float32(c.x)); got != c.want {
			t.Errorf("%v is %#04x, want %#04x", c.x, got, c.want)
		}
	}
	for _, bits := range []uint32{0x7fc00000, 0x7f800001, 0xff800001, 0xffffffff} {
		if got := Float16Value(NearestFloat16(math.Float32frombits(bits))); got == got {
			t.Errorf("NaN %#08x is %v", bits, got)
		}
	}
}
