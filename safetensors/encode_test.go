package safetensors

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestAppendFloat32sExhaustive narrows every small float, and what lies a little
// beside and in the middle of two of them.
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
				if h+1 == infinite { // where the next would be
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
						continue // between two float32
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

func TestAsFloat32s(t *testing.T) {
	// 2²⁴+1 and 2²⁴+3 lie between two float32 and round to the even one, as
	// does the largest of 64 bits.
	of := func(d DType, list ...uint64) *Tensor {
		q := &Tensor{Name: "q", DType: d, Shape: []int{len(list)}}
		for _, v := range list {
			q.Data = append(q.Data, little.AppendUint64(nil, v)[:d.Bits()/8]...)
		}
		return q
	}
	minus := func(n int64) uint64 { return uint64(-n) }
	for _, c := range []struct {
		q    *Tensor
		want []float32
	}{
		{of(BOOL, 0, 1), []float32{0, 1}},
		{of(U8, 0, 255), []float32{0, 255}},
		{of(I8, 127, minus(128)), []float32{127, -128}},
		{of(U16, 65535), []float32{65535}},
		{of(I16, 32767, minus(32768)), []float32{32767, -32768}},
		{of(U32, 1<<24+1, 1<<24+3, math.MaxUint32), []float32{1 << 24, 1<<24 + 4, 1 << 32}},
		{of(I32, 1<<24, minus(1<<24+1), 1<<31), []float32{1 << 24, -1 << 24, -1 << 31}},
		{of(U64, 1<<24+1, math.MaxUint64), []float32{1 << 24, 1 << 64}},
		{of(I64, 1<<24+3, minus(1<<24+3), 1<<63), []float32{1<<24 + 4, -1<<24 - 4, -1 << 63}},
		{of(F16, 0x3c00), []float32{1}},
	} {
		got, err := c.q.AsFloat32s()
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.q.DType, got, err, c.want)
		}
	}
	for _, c := range []struct {
		q    *Tensor
		want string
	}{
		{of(BOOL, 2), `safetensors: tensor "q": element 0 is the byte 2, want 0 or 1`},
		{of(F8E4M3, 1), `safetensors: tensor "q": dtype is F8_E4M3, want F16, BF16, F32 or F64, an integer type or BOOL`},
		{&Tensor{Name: "q", DType: I16, Shape: []int{2}, Data: []byte{1}}, `safetensors: tensor "q": data have 1 bytes, want 4 for I16 [2]`},
	} {
		if _, err := c.q.AsFloat32s(); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
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
