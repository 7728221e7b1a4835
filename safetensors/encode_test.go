package safetensors

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestAppendFloat32sExhaustive narrows every small float, its float32 neighbours, and the midpoints between small
// floats.
func TestAppendFloat32sExhaustive(t *testing.T) {
	for _, c := range []struct {
		dtype              DType
		exponent, mantissa int
	}{{F16, 5, 10}, {BF16, 8, 7}} {
		infinite := uint16(1<<c.exponent-1) << c.mantissa
		narrow := func(x float64) (uint16, bool) {
			b, err := AppendFloat32s(nil, c.dtype, []float32{float32(x)})
			if err != nil {
				want := fmt.Sprintf("safetensors: element 0 is %v, which overflows %s", float32(x), c.dtype)
				if err.Error() != want {
					t.Fatalf("error %v, want %s", err, want)
				}
				return 0, false
			}
			return little.Uint16(b), true
		}
		for _, sign := range []uint16{0, 1 << 15} {
			for h := range infinite {
				x, y := value(h|sign, c.exponent, c.mantissa), value(h+1|sign, c.exponent, c.mantissa)
				if h+1 == infinite { // the next number is infinite
					y = x * (1 + 1/float64(int(2)<<c.mantissa-1))
				}
				up, ok := h+1|sign, h+1 < infinite
				middle := (x + y) / 2
				below := float64(math.Nextafter32(float32(middle), float32(x)))
				above := float64(math.Nextafter32(float32(middle), float32(y)))
				want, wantOK := h|sign, true
				if h&1 == 1 {
					want, wantOK = up, ok
				}
				for _, v := range []struct {
					x    float64
					want uint16
					ok   bool
				}{{x, h | sign, true}, {below, h | sign, true}, {middle, want, wantOK}, {above, up, ok}} {
					if float64(float32(v.x)) != v.x {
						continue // midpoint of two float32 numbers
					}
					if got, ok := narrow(v.x); ok != v.ok || ok && got != v.want {
						t.Fatalf("%s: %v became %04x, %v, want %04x, %v", c.dtype, v.x, got, ok, v.want, v.ok)
					}
				}
			}
		}
		if got, ok := narrow(math.Inf(-1)); !ok || got != infinite|1<<15 {
			t.Errorf("%s: -Inf became %04x, %v", c.dtype, got, ok)
		}
		for _, bits := range []uint32{0x7fc00000, 0x7f800001, 0xffffffff, 0xff800001, 0x7fbfffff} {
			got, ok := narrow(float64(math.Float32frombits(bits)))
			if !ok || !math.IsNaN(value(got, c.exponent, c.mantissa)) {
				t.Errorf("%s: NaN %08x became %04x, %v", c.dtype, bits, got, ok)
			}
		}
	}
}

func TestAppendFloat32sExact(t *testing.T) {
	x := []float32{0, float32(math.Copysign(0, -1)), 0.1, -math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1))}
	for _, d := range []DType{F32, F64} {
		data, err := AppendFloat32s([]byte{1, 2}, d, x)
		if err != nil {
			t.Fatal(err)
		}
		tensor := Tensor{"x", d, []int{len(x)}, data[2:]}
		got, err := tensor.Float32s()
		if err != nil || !slices.EqualFunc(got, x, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
			t.Errorf("%s: %v became %v, %v", d, x, got, err)
		}
	}
	_, err := AppendFloat32s(nil, I32, x)
	if want := "safetensors: dtype is I32, want F16, BF16, F32 or F64"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func BenchmarkReadFloat32s(b *testing.B) {
	for _, d := range []DType{F32, BF16, F16} {
		b.Run(string(d), func(b *testing.B) {
			x := make([]float32, 1<<20)
			data, err := AppendFloat32s(nil, d, x)
			if err != nil {
				b.Fatal(err)
			}
			q := Tensor{"q", d, []int{len(x)}, data}
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				decodeFloat32s(x, q.DType, q.Data)
			}
		})
	}
}
