package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

// value computes the number that the bits of a small float represent, by the textbook definition.
func value(bits uint16, exponentBits, mantissaBits int) float64 {
	sign := 1 - 2*float64(bits>>15)
	e := int(bits>>mantissaBits) & (1<<exponentBits - 1)
	m := float64(int(bits)&(1<<mantissaBits-1)) / float64(int(1)<<mantissaBits)
	bias := 1<<(exponentBits-1) - 1
	switch {
	case e == 1<<exponentBits-1 && m != 0:
		return math.NaN()
	case e == 1<<exponentBits-1:
		return sign * math.Inf(1)
	case e == 0:
		return sign * math.Ldexp(m, 1-bias)
	}
	return sign * math.Ldexp(1+m, e-bias)
}

func TestSmallFloatsExhaustive(t *testing.T) {
	data := make([]byte, 2<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(data[2*i:], uint16(i))
	}
	for _, c := range []struct {
		dtype              DType
		exponent, mantissa int
	}{{F16, 5, 10}, {BF16, 8, 7}} {
		tensor := Tensor{Name: "all", DType: c.dtype, Shape: []int{1 << 16}, Data: data}
		single, err := tensor.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		double, err := tensor.Float64s()
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1 << 16 {
			want := value(uint16(i), c.exponent, c.mantissa)
			if !same(double[i], want) || !same(float64(single[i]), want) {
				t.Fatalf("%s %04x is %v as float32 and %v as float64, want %v", c.dtype, i, single[i], double[i], want)
			}
		}
	}
}

// same is equality that distinguishes -0 from 0 and treats all NaNs as equal.
func same(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Float64bits(a) == math.Float64bits(b)
}

func TestFloat32sRounds(t *testing.T) {
	for x, want := range map[float64]float32{
		1 + 0x1p-24:              1, // halfway: rounds to even
		1 + 0x3p-24:              1 + 0x1p-22,
		1 + 0x1p-24 + 0x1p-52:    1 + 0x1p-23,
		0x1p-150:                 0,
		0x1p-149:                 0x1p-149,
		math.MaxFloat64:          float32(math.Inf(1)),
		math.Copysign(1e-99, -1): float32(math.Copysign(0, -1)),
	} {
		tensor := FromFloat64s("x", nil, []float64{x})
		got, err := tensor.Float32s()
		if err != nil || math.Float32bits(got[0]) != math.Float32bits(want) {
			t.Errorf("%v became %v, %v, want %v", x, got, err, want)
		}
	}
}

func TestKeepsEveryBit(t *testing.T) {
	// Weights must be read back unchanged, including the payload of a NaN.
	bits := []uint32{0, 1 << 31, 1, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff, 0x3f800000}
	x := make([]float32, len(bits))
	for i, b := range bits {
		x[i] = math.Float32frombits(b)
	}
	tensor := FromFloat32s("x", []int{len(x)}, x)
	got, err := tensor.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range bits {
		if math.Float32bits(got[i]) != b {
			t.Errorf("%08x became %08x", b, math.Float32bits(got[i]))
		}
	}
}

func TestIntsOverflow(t *testing.T) {
	make64 := func(d DType, bits uint64) Tensor {
		data := binary.LittleEndian.AppendUint64(make([]byte, 8), bits)
		return Tensor{Name: "n", DType: d, Shape: []int{2}, Data: data}
	}
	// The range depends on the machine: an int has 32 or 64 bits.
	fits := func(v int64) bool { return v >= math.MinInt && v <= math.MaxInt }
	for _, bits := range []uint64{0, 1, math.MaxInt32, 1 << 31, math.MaxUint32, 1 << 32, math.MaxInt64, 1 << 63, 1<<63 + 1, 1<<64 - 1<<31, math.MaxUint64} {
		for _, d := range []DType{I64, U64} {
			tensor := make64(d, bits)
			got, err := tensor.Ints()
			text := fmt.Sprint(bits)
			ok := bits <= math.MaxInt
			if d == I64 {
				text = fmt.Sprint(int64(bits))
				ok = fits(int64(bits))
			}
			if ok && (err != nil || fmt.Sprint(got) != "[0 "+text+"]") {
				t.Errorf("%s %s became %v, %v", d, text, got, err)
			}
			if want := `safetensors: tensor "n": element 1 is ` + text + `, which overflows an int`; !ok && (err == nil || err.Error() != want) {
				t.Errorf("%s: error %v, want %s", d, err, want)
			}
		}
	}
}

func TestBools(t *testing.T) {
	for _, d := range []DType{BOOL, U8} {
		tensor := Tensor{Name: "b", DType: d, Shape: []int{3}, Data: []byte{1, 0, 1}}
		got, err := tensor.Bools()
		if err != nil || !reflect.DeepEqual(got, []bool{true, false, true}) {
			t.Errorf("%s: got %v, %v", d, got, err)
		}
		tensor.Data[2] = 2
		if _, err := tensor.Bools(); err == nil || err.Error() != `safetensors: tensor "b": element 2 is the byte 2, want 0 or 1` {
			t.Errorf("%s: error %v", d, err)
		}
	}
}

// TestConversionsOfEveryType checks every combination of element type and conversion.
func TestConversionsOfEveryType(t *testing.T) {
	can := map[string]string{
		"Float32s": "F16 BF16 F32 F64",
		"Float64s": "F16 BF16 F32 F64",
		"Ints":     "U8 I8 I16 U16 I32 U32 I64 U64",
		"Bools":    "BOOL U8",
	}
	for _, known := range dtypes {
		d := known.name
		tensor := Tensor{Name: "q", DType: d, Shape: []int{3, 8}, Data: make([]byte, 3*d.Bits())}
		short := tensor
		short.Data = short.Data[1:]
		for method, list := range can {
			call := func(q *Tensor) (int, error) {
				r := reflect.ValueOf(q).MethodByName(method).Call(nil)
				err, _ := r[1].Interface().(error)
				return r[0].Len(), err
			}
			n, err := call(&tensor)
			if strings.Contains(" "+list+" ", " "+string(d)+" ") {
				if err != nil || n != 24 {
					t.Errorf("%s of %s: %d elements, %v, want 24", method, d, n, err)
				}
				// A Tensor value built by the caller can be invalid too.
				_, err = call(&short)
				if want := fmt.Sprintf(`safetensors: tensor "q": data have %d bytes, want %d for %s [3 8]`, 3*d.Bits()-1, 3*d.Bits(), d); err == nil || err.Error() != want {
					t.Errorf("%s of %s: error %v, want %s", method, d, err, want)
				}
				continue
			}
			var bad *FormatError
			if want := `safetensors: tensor "q": dtype is ` + string(d) + `, want `; !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s of %s: error %v, want %s…", method, d, err, want)
			}
		}
	}
}

func TestConstructorsPanic(t *testing.T) {
	cases := []struct {
		call func()
		want string
	}{
		{func() { FromFloat32s("q", []int{2, 5}, make([]float32, 7)) }, `safetensors: FromFloat32s: tensor "q": got 7 values, want 10 for shape [2 5]`},
		{func() { FromFloat64s("q", []int{}, nil) }, `safetensors: FromFloat64s: tensor "q": got 0 values, want 1 for shape []`},
		{func() { FromInts("q", []int{3, 0}, []int{1}) }, `safetensors: FromInts: tensor "q": got 1 values, want 0 for shape [3 0]`},
		{func() { FromBools("q", []int{-2, -1}, make([]bool, 2)) }, `safetensors: FromBools: tensor "q": shape [-2 -1] has a negative dimension`},
	}
	for _, c := range cases {
		func() {
			defer func() {
				if got := recover(); got != c.want {
					t.Errorf("panic %v, want %s", got, c.want)
				}
			}()
			c.call()
		}()
	}
}

func TestConstructorsCopy(t *testing.T) {
	shape, x := []int{2}, []float32{3, 5}
	tensor := FromFloat32s("q", shape, x)
	shape[0], x[0] = 7, 11
	got, err := tensor.Float32s()
	if err != nil || got[0] != 3 || tensor.Shape[0] != 2 {
		t.Errorf("got %v of shape %v, %v", got, tensor.Shape, err)
	}
}
