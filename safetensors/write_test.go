package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// sample has a tensor of every type and a few odd shapes and names.
func sample() *File {
	f := &File{Metadata: map[string]string{"format": "attn", "": "empty key", "b\"\\\n\x00\x7f": "\b\f\r\t\u2028<&>😀"}}
	for i, known := range dtypes {
		d := known.name
		data := make([]byte, 3*5*8*d.Bits()/8)
		for j := range data {
			data[j] = byte(j*7 + i)
		}
		f.Tensors = append(f.Tensors, Tensor{"of " + string(d), d, []int{3, 5, 8}, data})
	}
	return &File{f.Metadata, append(f.Tensors,
		FromFloat32s("scalar", nil, []float32{math.Pi}),
		FromFloat64s("empty", []int{7, 0, 11}, nil),
		FromFloat64s("f64", []int{2}, []float64{math.Inf(-1), math.SmallestNonzeroFloat64}),
		FromInts("ints", []int{3, 1}, []int{math.MinInt, -1, math.MaxInt}),
		FromBools("bools", []int{1, 3}, []bool{true, false, true}),
		FromInts("encoder.0/größe\"\\\u0001😀", []int{1}, []int{13}),
	)}
}

func encode(t testing.TB, f *File) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	want := sample()
	b := encode(t, want)
	got, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, want)
	if !bytes.Equal(encode(t, got), b) {
		t.Error("written again it is another file")
	}
	if !bytes.Equal(encode(t, sample()), b) {
		t.Error("equal files give different bytes")
	}
	if q := got.Lookup("scalar"); q != &got.Tensors[len(dtypes)] {
		t.Errorf("Lookup found %v", q)
	}
	if q := got.Lookup("absent"); q != nil {
		t.Errorf("Lookup found %v", q)
	}
}

func equal(t testing.TB, got, want *File) {
	t.Helper()
	if !reflect.DeepEqual(got.Metadata, want.Metadata) {
		t.Errorf("metadata %q, want %q", got.Metadata, want.Metadata)
	}
	if len(got.Tensors) != len(want.Tensors) {
		t.Fatalf("%d tensors, want %d", len(got.Tensors), len(want.Tensors))
	}
	for i := range got.Tensors {
		if !reflect.DeepEqual(got.Tensors[i], want.Tensors[i]) {
			t.Errorf("tensor %+v, want %+v", got.Tensors[i], want.Tensors[i])
		}
	}
}

func TestValuesRoundTrip(t *testing.T) {
	f, err := Parse(encode(t, sample()))
	if err != nil {
		t.Fatal(err)
	}
	ints, err1 := f.Lookup("ints").Ints()
	bools, err2 := f.Lookup("bools").Bools()
	f64s, err3 := f.Lookup("f64").Float64s()
	f32s, err4 := f.Lookup("scalar").Float32s()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(ints, bools, f64s, f32s)
	want := fmt.Sprint([]int{math.MinInt, -1, math.MaxInt}, []bool{true, false, true}, []float64{math.Inf(-1), math.SmallestNonzeroFloat64}, []float32{math.Pi})
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestHeaderText(t *testing.T) {
	cases := []struct {
		f    File
		want string
	}{
		{File{}, `{}`},
		{File{Metadata: map[string]string{}}, `{}`},
		{File{Metadata: map[string]string{"b": "2", "c": "3", "a": "1"}}, `{"__metadata__":{"a":"1","b":"2","c":"3"}}`},
		{File{Tensors: []Tensor{FromBools("k", []int{3}, make([]bool, 3)), FromFloat32s("q", nil, make([]float32, 1))}},
			`{"k":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},"q":{"dtype":"F32","shape":[],"data_offsets":[3,7]}}`},
	}
	for _, c := range cases {
		b := encode(t, &c.f)
		length := int(b[0]) + int(b[1])<<8
		header := string(b[8 : 8+length])
		if strings.TrimRight(header, " ") != c.want || length%8 != 0 || len(header)-len(c.want) > 7 {
			t.Errorf("header %q, want %q padded to a multiple of 8", header, c.want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	q := FromFloat32s("q", []int{2, 5}, make([]float32, 10))
	with := func(change func(*Tensor)) []Tensor {
		k := q
		k.Name = "k"
		change(&k)
		return []Tensor{q, k}
	}
	cases := []struct {
		f    File
		want string
	}{
		{File{Tensors: []Tensor{q, q}}, `tensor "q": duplicate name`},
		{File{Tensors: with(func(k *Tensor) { k.Name = "__metadata__" })}, `tensor "__metadata__": name is reserved`},
		{File{Tensors: with(func(k *Tensor) { k.Name = "k\xff" })}, `tensor "k\xff": name is not UTF-8`},
		{File{Tensors: with(func(k *Tensor) { k.Name = strings.Repeat("n", 4097) })}, `tensor "` + strings.Repeat("n", 100) + `"…: name has 4097 bytes, want at most 4096`},
		{File{Tensors: with(func(k *Tensor) { k.DType = "F128" })}, `tensor "k": unknown dtype "F128", want one of ` + oneOf},
		{File{Tensors: with(func(k *Tensor) { k.DType = "" })}, `tensor "k": unknown dtype "", want one of ` + oneOf},
		{File{Tensors: with(func(k *Tensor) { k.Data = k.Data[1:] })}, `tensor "k": data have 39 bytes, want 40 for F32 [2 5]`},
		{File{Tensors: with(func(k *Tensor) { k.Shape = []int{5, -2} })}, `tensor "k": shape [5 -2] has a negative dimension`},
		{File{Tensors: with(func(k *Tensor) { k.Shape = []int{math.MaxInt, 5} })}, fmt.Sprintf(`tensor "k": shape [%d 5] of F32 overflows`, math.MaxInt)},
		{File{Tensors: with(func(k *Tensor) { k.Shape = make([]int, 65) })}, `tensor "k": shape has 65 dimensions, want at most 64`},
		{File{Metadata: map[string]string{"a": "\xff"}}, `metadata "a" is not UTF-8`},
		{File{Metadata: map[string]string{"\xff": ""}}, `metadata "\xff" is not UTF-8`},
		{File{Metadata: map[string]string{"": strings.Repeat("m", 100_000_000)}}, `header has 100000024 bytes, want at most 100000000`},
		{File{Tensors: make([]Tensor, maxTensors+1)}, `file has 250001 tensors, want at most 250000`},
	}
	for _, c := range cases {
		if testing.Short() && len(c.f.Metadata[""]) > 0 {
			continue // 100 MB
		}
		var b bytes.Buffer
		err := c.f.Write(&b)
		if err == nil || err.Error() != "safetensors: "+c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
		// An invalid File built by the caller is not a FormatError.
		var bad *FormatError
		if errors.As(err, &bad) || b.Len() > 0 {
			t.Errorf("%s: %d bytes written, error of type %T", c.want, b.Len(), err)
		}
	}
}

// stopping accepts a limited number of bytes.
type stopping struct{ room int }

var errFull = errors.New("full")

func (s *stopping) Write(b []byte) (int, error) {
	if len(b) > s.room {
		return 0, errFull
	}
	s.room -= len(b)
	return len(b), nil
}

func TestWriteError(t *testing.T) {
	f := sample()
	for room := range encode(t, f) {
		if err := f.Write(&stopping{room}); !errors.Is(err, errFull) {
			t.Fatalf("room for %d bytes: error %v, want %v", room, err, errFull)
		}
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	want := sample()
	if err := want.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, want)

	broken := &File{Tensors: []Tensor{{Name: "q", DType: F32, Shape: []int{2}}}}
	err = broken.WriteFile(path)
	if want := "write " + path + `: safetensors: tensor "q": data have 0 bytes, want 8 for F32 [2]`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	left, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(left, encode(t, want)) {
		t.Errorf("the old file is gone: %v", err)
	}
}
