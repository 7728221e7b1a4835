package safetensors

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"testing"
)

// golden was written by the reference implementation: see testdata/make.py.
const golden = "testdata/interop.safetensors"

const oddName = "größe/<\"\\&>\n\u2028😀"

func TestReadsReference(t *testing.T) {
	f, err := Read(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(f.Metadata), `map[made by:the reference, für <attn> & "friends"]`; got != want {
		t.Errorf("metadata %s, want %s", got, want)
	}
	inf, nan := math.Inf(1), math.NaN()
	var thirds []float64
	for i := range 7 {
		thirds = append(thirds, float64(i)/3-1)
	}
	var sevenths []float32
	for i := range 30 {
		sevenths = append(sevenths, float32(i)/7)
	}
	cases := []struct {
		name  string
		dtype DType
		shape []int
		want  any // its type selects the conversion
	}{
		{"bool", BOOL, []int{3}, []bool{true, false, true}},
		{"u8", U8, []int{5}, []int{0, 1, 127, 128, 255}},
		{"i8", I8, []int{5}, []int{-128, -1, 0, 1, 127}},
		{"u16", U16, []int{3}, []int{0, 256, 65535}},
		{"i16", I16, []int{3}, []int{-32768, -2, 32767}},
		{"i32", I32, []int{3}, []int{-1 << 31, -3, 1<<31 - 1}},
		{"u32", U32, []int{3}, []uint64{0, 1 << 16, 1<<32 - 1}},
		{"u64", U64, []int{3}, []uint64{0, 1 << 32, 1<<63 - 1}},
		{"u64.big", U64, []int{1}, []uint64{1<<64 - 1}},
		{"i64", I64, []int{3}, []int64{-1 << 63, -5, 1<<63 - 1}},
		{"f16", F16, []int{11}, []float64{0, math.Copysign(0, -1), 1, -2.5, 65504, 0x1p-14, 0x1p-24, 1023 * 0x1p-24, inf, -inf, nan}},
		{"bf16", BF16, []int{2, 3}, []float64{1, -2.5, 0x1p-133, (2 - 0x1p-7) * 0x1p127, inf, -inf}},
		{"f32", F32, []int{2, 3, 5}, sevenths},
		{"f64", F64, []int{7}, thirds},
		{"f8", F8E4M3, []int{2, 3}, []byte{0, 1, 2, 0x7f, 0x80, 0xff}},
		{"c64", C64, []int{2}, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0, 0x80, 0, 0, 0x60, 0xc0}},
		{"scalar", F32, []int{}, []float32{0.1}},
		{"empty", F32, []int{3, 0, 2}, []float32{}},
		{oddName, U8, []int{1}, []int{42}},
	}
	for _, c := range cases {
		tensor := f.Lookup(c.name)
		if tensor == nil {
			t.Errorf("%q is not there", c.name)
			continue
		}
		if tensor.DType != c.dtype || fmt.Sprint(tensor.Shape) != fmt.Sprint(c.shape) {
			t.Errorf("%q is %s %v, want %s %v", c.name, tensor.DType, tensor.Shape, c.dtype, c.shape)
		}
		var got any
		var err error
		switch c.want.(type) {
		case []bool:
			got, err = tensor.Bools()
		case []int:
			got, err = tensor.Ints()
		case []float32:
			got, err = tensor.Float32s()
		case []float64:
			got, err = tensor.Float64s()
		case []uint64, []int64, []byte:
			got = raw(tensor)
		}
		// Compared as text with full precision, so that NaN equals NaN and -0 differs from 0.
		if err != nil || fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", c.want, c.want) {
			t.Errorf("%q holds %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

// TestWritesLikeReference checks that Write writes the same bytes as the reference implementation, so that other
// programs can read them.
func TestWritesLikeReference(t *testing.T) {
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(want)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := f.Write(&got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("wrote\n%q\nwant\n%q", got.Bytes(), want)
	}
}

// raw returns the elements without conversion to int, which may be too small on some machines.
func raw(t *Tensor) any {
	switch t.DType {
	case U32:
		x, _ := decodeAll(t, func(b []byte) uint64 { return uint64(little.Uint32(b)) })
		return x
	case U64:
		x, _ := decodeAll(t, little.Uint64)
		return x
	case I64:
		x, _ := decodeAll(t, func(b []byte) int64 { return int64(little.Uint64(b)) })
		return x
	}
	return t.Data
}
