package safetensors

import (
	"errors"
	"os"
	"testing"
)

// FuzzParse takes any bytes for a file.
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

// FuzzHeader takes any text for a header. Its length and that of the data are
// right more often than a fuzzer that has to guess them would get them.
func FuzzHeader(f *testing.F) {
	f.Add(`{}`, 0)
	f.Add(`{"__metadata__":{"a":"\ud83d\ude00"},`+f32("q", 0, 8)+`,`+f32("k", 8, 20)+`}   `, 20)
	f.Add(`{`+f32("b", 8, 20)+`,`+f32("a", 0, 8)+`,`+f32("c", 8, 8)+`}`, 20)
	for _, d := range dtypes {
		f.Add(one(`"`+string(d)+`"`, `[2, 4]`, `[0, 8]`), 8)
	}
	f.Fuzz(func(t *testing.T, header string, size int) {
		if size < 0 || size > 1<<12 {
			return
		}
		survives(t, frame(header, size))
	})
}

// survives fails if Parse does more than to return a *FormatError or a file that
// can be used and written.
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
		// Whether they work depends on the type; they must not panic.
		q.Float32s()
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
