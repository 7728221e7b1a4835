package half

import (
	"math"
	"testing"
)

// Every half, against its definition.
func TestFloat32(t *testing.T) {
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
		got := float64(Float32(uint16(h)))
		if got != want && !(got != got && want != want) || math.Signbit(got) != math.Signbit(want) && want == want {
			t.Errorf("%#04x is %v, want %v", h, got, want)
		}
	}
}
