package safetensors

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"
)

// FuzzParse parses arbitrary bytes as a file.
func FuzzParse(f *testing.F) {
	reference, err := os.ReadFile(golden)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(reference)
	f.Add(encode(f, sample()))
	for _, c := range hostile {
		if len(c.file) < 1000 {
			f.Add(c.file)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { survives(t, data) })
}

// FuzzHeader parses arbitrary text as a header. The test sets the length of the header and of the data correctly,
// which a fuzzer would rarely guess.
func FuzzHeader(f *testing.F) {
	f.Add(`{}`, 0)
	f.Add(`{"__metadata__":{"a":"\ud83d\ude00"},`+f32("q", 0, 8)+`,`+f32("k", 8, 20)+`}   `, 20)
	f.Add(`{`+f32("b", 8, 20)+`,`+f32("a", 0, 8)+`,`+f32("c", 8, 8)+`}`, 20)
	for _, known := range dtypes {
		f.Add(one(`"`+string(known.name)+`"`, `[2, 4]`, `[0, 8]`), 8)
	}
	f.Fuzz(func(t *testing.T, header string, size int) {
		if size < 0 || size > 1<<12 {
			return
		}
		survives(t, frame(header, size))
	})
}

// survives fails the test unless Parse returns a *FormatError, or a file that can be used and written.
func survives(t *testing.T, data []byte) {
	file, err := Parse(data)
	if err != nil {
		var bad *FormatError
		if file != nil || !errors.As(err, &bad) {
			t.Fatalf("got %v and an error of type %T: %v", file, err, err)
		}
		if len(err.Error()) > 4000 {
			t.Fatalf("a message of %d bytes", len(err.Error()))
		}
		return
	}
	total := 0
	for i := range file.Tensors {
		q := &file.Tensors[i]
		total += len(q.Data)
		if file.Lookup(q.Name) != q {
			t.Fatalf("%q is there twice", q.Name)
		}
		// Success depends on the type; the conversions must not panic.
		single, err := q.Float32s()
		alone, errAlone := readFloat32s(t, data, q)
		if (err == nil) != (errAlone == nil) || !slices.EqualFunc(single, alone, func(a, b float32) bool { return same(float64(a), float64(b)) }) {
			t.Fatalf("%q is %v, %v, and read alone %v, %v", q.Name, single, err, alone, errAlone)
		}
		q.Float64s()
		q.Ints()
		q.Bools()
	}
	if total > len(data) {
		t.Fatalf("%d bytes of data out of %d", total, len(data))
	}
	again, err := Parse(encode(t, file))
	if err != nil {
		t.Fatalf("what Write wrote is refused: %v", err)
	}
	equal(t, again, file)
}

// readFloat32s reads one tensor of a file that Parse has accepted.
func readFloat32s(t *testing.T, data []byte, q *Tensor) ([]float32, error) {
	r, err := NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatalf("NewReader refuses what Parse takes: %v", err)
	}
	got, err := r.Tensor(q.Name)
	if err != nil || got.DType != q.DType || !bytes.Equal(got.Data, q.Data) {
		t.Fatalf("%q read alone is %v, %v", q.Name, got, err)
	}
	x := make([]float32, len(q.Data)*8/q.DType.Bits())
	if err := r.ReadFloat32s(q.Name, x, 0); err != nil {
		return nil, err
	}
	return x, nil
}
