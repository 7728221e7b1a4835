package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/simd"
)

// watched records which bytes are read.
type watched struct {
	r    io.ReaderAt
	read map[int64]bool
}

func (w *watched) ReadAt(b []byte, offset int64) (int, error) {
	for i := range b {
		w.read[offset+int64(i)] = true
	}
	return w.r.ReadAt(b, offset)
}

// TestReaderReadsOneTensor checks that only the header and the requested tensor are read.
func TestReaderReadsOneTensor(t *testing.T) {
	numbers := func(n int, from float32) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = from + float32(i)
		}
		return x
	}
	f := &File{Metadata: map[string]string{"a": "b"}, Tensors: []Tensor{
		FromFloat32s("x", []int{7}, numbers(7, 0)),
		FromFloat32s("y", []int{11, 1009}, numbers(11*1009, 100)), // longer than one read
		FromFloat64s("z", []int{5}, []float64{1, 2, 3, 4, 0.1}),
	}}
	data := encode(t, f)
	header := len(data) - 4*7 - 4*11*1009 - 8*5
	w := &watched{bytes.NewReader(data), map[int64]bool{}}
	r, err := NewReader(w, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if len(w.read) != header {
		t.Errorf("%d bytes read to open, want the %d of the header", len(w.read), header)
	}
	if want := []Info{{"x", F32, []int{7}}, {"y", F32, []int{11, 1009}}, {"z", F64, []int{5}}}; !reflect.DeepEqual(r.Tensors(), want) {
		t.Errorf("tensors %v, want %v", r.Tensors(), want)
	}
	if info, ok := r.Lookup("z"); !ok || info.DType != F64 {
		t.Errorf("z is %v, %v", info, ok)
	}
	if _, ok := r.Lookup("absent"); ok {
		t.Error("absent is there")
	}
	if !reflect.DeepEqual(r.Metadata(), f.Metadata) || r.Path() != "" {
		t.Errorf("metadata %v and path %q", r.Metadata(), r.Path())
	}

	clear(w.read)
	got, err := r.Tensor("y")
	if err != nil || !reflect.DeepEqual(*got, f.Tensors[1]) {
		t.Errorf("y has %d bytes, %v", len(got.Data), err)
	}
	if len(w.read) != 4*11*1009 || !w.read[int64(header+4*7)] {
		t.Errorf("%d bytes read for y", len(w.read))
	}
	clear(w.read)
	row := make([]float32, 1009)
	if err := r.ReadFloat32s("y", row, 3*1009); err != nil || !reflect.DeepEqual(row, numbers(1009, 100+3*1009)) {
		t.Errorf("row 3 of y begins with %v, %v", row[:3], err)
	}
	if len(w.read) != 4*1009 {
		t.Errorf("%d bytes read for a row of y", len(w.read))
	}
	all := make([]float32, 11*1009)
	if err := r.ReadFloat32s("y", all, 0); err != nil || !reflect.DeepEqual(all, numbers(11*1009, 100)) {
		t.Errorf("y: %v", err)
	}
	last := make([]float32, 2)
	if err := r.ReadFloat32s("z", last, 3); err != nil || !reflect.DeepEqual(last, []float32{4, 0.1}) {
		t.Errorf("z ends with %v, %v", last, err)
	}
	if err := r.ReadFloat32s("z", nil, 5); err != nil {
		t.Errorf("nothing behind the end: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// All bit patterns of halves convert to the right floats, from any first element and over several blocks, and all
// types convert to the nearest bfloat16.
func TestReadConverted(t *testing.T) {
	const n = 2*blockLength + 131
	for _, d := range []DType{F16, BF16, F32, F64} {
		data := make([]byte, n*d.Bits()/8)
		for i := range n {
			v := float64(i-n/2) * 0.37
			switch d {
			case F32:
				little.PutUint32(data[4*i:], math.Float32bits(float32(v)))
			case F64:
				little.PutUint64(data[8*i:], math.Float64bits(v))
			default:
				little.PutUint16(data[2*i:], uint16(i))
			}
		}
		want := make([]float32, n)
		decodeFloat32s(want, d, data)
		var file bytes.Buffer
		if err := (&File{Tensors: []Tensor{{"q", d, []int{n}, data}}}).Write(&file); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range [][2]int{{0, n}, {0, 1}, {1, n}, {7, blockLength + 7}, {blockLength - 3, n - 1}, {n, n}} {
			got, short := make([]float32, part[1]-part[0]), make([]uint16, part[1]-part[0])
			if err := errors.Join(r.ReadFloat32s("q", got, part[0]), r.ReadBFloat16s("q", short, part[0])); err != nil {
				t.Fatal(err)
			}
			for i, v := range want[part[0]:part[1]] {
				bits := math.Float32bits(v)
				if math.Float32bits(got[i]) != bits {
					t.Fatalf("%s: element %d from %d on is %v, want %v", d, i, part[0], got[i], v)
				}
				want := simd.NearestBFloat16(v)
				if d == BF16 {
					want = uint16(bits >> 16) // also for a NaN
				}
				if short[i] != want {
					t.Fatalf("%s: element %d from %d on is bfloat16 %04x, want %04x", d, i, part[0], short[i], want)
				}
			}
		}
		var bad *FormatError
		if err := r.ReadBFloat16s("q", make([]uint16, 2), n-1); !errors.As(err, &bad) {
			t.Errorf("%s: beyond the end: error %v, want a *FormatError", d, err)
		}
		cut, err := NewReader(bytes.NewReader(file.Bytes()[:file.Len()-1]), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if err := cut.ReadBFloat16s("q", make([]uint16, n), 0); err == nil || !strings.Contains(err.Error(), "became shorter while it was read") {
			t.Errorf("%s: error %v from a file that ends early", d, err)
		}
	}
}

func TestReaderErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	f := &File{Tensors: []Tensor{FromFloat32s("q", []int{3}, make([]float32, 3)), FromInts("i", []int{1}, []int{1})}}
	if err := f.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	one := func(name string, n, at int) error { return r.ReadFloat32s(name, make([]float32, n), at) }
	for _, c := range []struct {
		err  error
		want string
	}{
		{one("absent", 1, 0), `tensor "absent" is missing`},
		{one("i", 1, 0), `tensor "i": dtype is I64, want F16, BF16, F32 or F64`},
		{one("q", 4, 0), `tensor "q": has 3 elements, want 4 from element 0 on`},
		{one("q", 1, 3), `tensor "q": has 3 elements, want 1 from element 3 on`},
		{one("q", 0, 4), `tensor "q": has 3 elements, want 0 from element 4 on`},
		{one("q", 1, -1), `tensor "q": has 3 elements, want 1 from element -1 on`},
	} {
		var bad *FormatError
		if !errors.As(c.err, &bad) || bad.Path != path || bad.Err.Error() != c.want {
			t.Errorf("error %v, want a *FormatError %s", c.err, c.want)
		}
	}
	if _, err := r.Tensor("absent"); err == nil || err.Error() != "safetensors: "+path+`: tensor "absent" is missing` {
		t.Errorf("error %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Tensor("q"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: error %v", err)
	}
}

// TestNewReaderLeavesFileOpen checks that Close leaves a file open that the caller opened.
func TestNewReaderLeavesFileOpen(t *testing.T) {
	file, err := os.Open(golden)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(file, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Tensor("scalar"); err != nil {
		t.Error(err)
	}
}

// model writes shards, and an index if one is given, to a new folder.
func model(t *testing.T, index string, shards map[string][]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for file, names := range shards {
		f := &File{Metadata: map[string]string{"format": "pt", "file": file}}
		for i, name := range names {
			f.Tensors = append(f.Tensors, FromFloat32s(name, []int{1}, []float32{float32(i)}))
		}
		if err := f.WriteFile(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	if index != "" {
		if err := os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(index), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOpenFolder(t *testing.T) {
	index := `{"metadata": {"total_size": 12, "other": [{}]}, "weight_map": {"x": "1", "z": "2", "y": "1"}, "more": null}` + "\n"
	shards := map[string][]string{"1": {"y", "x"}, "2": {"z"}, "unrelated.safetensors": {"x"}}
	dir := model(t, index, shards)
	for _, path := range []string{dir, filepath.Join(dir, "model.safetensors.index.json")} {
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, info := range r.Tensors() {
			x := make([]float32, 1)
			if err := r.ReadFloat32s(info.Name, x, 0); err != nil {
				t.Error(err)
			}
			got = append(got, fmt.Sprint(info.Name, x))
		}
		if want := "y[0] x[1] z[0]"; strings.Join(got, " ") != want {
			t.Errorf("%s has %s, want %s", path, got, want)
		}
		if want := map[string]string{"format": "pt"}; !reflect.DeepEqual(r.Metadata(), want) {
			t.Errorf("metadata %v, want %v", r.Metadata(), want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}

	dir = model(t, "", map[string][]string{"model.safetensors": {"x"}})
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.Path() != filepath.Join(dir, "model.safetensors") || len(r.Tensors()) != 1 {
		t.Errorf("opened %s with %v", r.Path(), r.Tensors())
	}
	r.Close()

	for _, c := range []struct{ dir, want string }{
		{t.TempDir(), "contains no model.safetensors, model.safetensors.index.json or pytorch_model.bin"},
		{model(t, index, map[string][]string{"model.safetensors": nil}), "contains both model.safetensors and model.safetensors.index.json, want one of them by name"},
	} {
		_, err := Open(c.dir)
		if want := "safetensors: " + c.dir + ": " + c.want; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := Open(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// hostileIndices are invalid indices of two files: a with x and y, and b with z.
var hostileIndices = []struct{ name, index, want string }{
	{"empty", ``, `index is empty, want JSON`},
	{"not UTF-8", "\xff", `index is not UTF-8`},
	{"not an object", `[]`, `index is an array, want an object`},
	{"unclosed", `{"weight_map": {"x": "a"}`, `index ends in the middle of its JSON`},
	{"unclosed value", `{"metadata": {`, `index ends in the middle of its JSON`},
	{"no map", `{"metadata": {"total_size": 12}}`, `index has no weight_map, or one without tensors`},
	{"empty map", `{"weight_map": {}}`, `index has no weight_map, or one without tensors`},
	{"map is null", `{"weight_map": null}`, `weight_map is null, want an object`},
	{"map twice", `{"weight_map": {"x": "a"}, "weight_map": {}}`, `index has the key "weight_map" twice`},
	{"tensor twice", `{"weight_map": {"x": "a", "y": "a", "z": "b", "x": "a"}}`, `weight_map has the key "x" twice`},
	{"file is a number", `{"weight_map": {"x": 1}}`, `tensor "x": its file is the number 1, want a string`},
	{"reserved name", `{"weight_map": {"__metadata__": "a"}}`, `tensor "__metadata__": name is reserved`},
	{"two objects", `{"weight_map": {"x": "a"}}{}`, `index continues with "{" after the end of its JSON`},
	{"folder above", `{"weight_map": {"x": "../a"}}`, `tensor "x": file "../a", want the name of a file in the folder of the index`},
	{"folder below", `{"weight_map": {"x": "f/a"}}`, `tensor "x": file "f/a", want the name of a file in the folder of the index`},
	{"backslash", `{"weight_map": {"x": "..\\a"}}`, `tensor "x": file "..\\a", want the name of a file in the folder of the index`},
	{"absolute", `{"weight_map": {"x": "/etc/passwd"}}`, `tensor "x": file "/etc/passwd", want the name of a file in the folder of the index`},
	{"drive", `{"weight_map": {"x": "C:a"}}`, `tensor "x": file "C:a", want the name of a file in the folder of the index`},
	{"folder above itself", `{"weight_map": {"x": ".."}}`, `tensor "x": file "..", want the name of a file in the folder of the index`},
	{"the folder", `{"weight_map": {"x": "."}}`, `tensor "x": file ".", want the name of a file in the folder of the index`},
	{"no file", `{"weight_map": {"x": ""}}`, `tensor "x": file "", want the name of a file in the folder of the index`},
	{"missing", `{"weight_map": {"x": "a", "y": "a", "z": "b", "u": "b", "v": "b"}}`, `file "b" lacks tensors "u", "v", which the index lists in it`},
	{"many missing", `{"weight_map": {"x": "a", "y": "a", "4": "a", "3": "a", "2": "a", "1": "a"}}`, `file "a" lacks tensors "1", "2", "3" and 1 more, which the index lists in it`},
	{"elsewhere", `{"weight_map": {"x": "a", "y": "b", "z": "b"}}`, `file "a" has tensor "y", which the index lists in another file`},
	{"doubled", `{"weight_map": {"x": "a", "y": "a", "z": "b", "w": "c"}}`, `file "c" has tensor "x", which the index lists in another file`},
	{"not in the index", `{"weight_map": {"x": "a", "z": "b"}}`, `file "a" has tensor "y", which the index does not list`},
}

var indexed = map[string][]string{"a": {"x", "y"}, "b": {"z"}, "c": {"w", "x"}}

func TestHostileIndex(t *testing.T) {
	for _, c := range hostileIndices {
		t.Run(c.name, func(t *testing.T) {
			dir := model(t, c.index+" ", indexed)
			if c.index == "" {
				dir = model(t, " ", indexed)
			}
			_, err := Open(dir)
			var bad *FormatError
			if !errors.As(err, &bad) || bad.Path != filepath.Join(dir, "model.safetensors.index.json") || bad.Err.Error() != c.want {
				t.Errorf("error %v, want a *FormatError %s", err, c.want)
			}
		})
	}
	t.Run("a file is not there", func(t *testing.T) {
		dir := model(t, `{"weight_map": {"x": "absent"}}`, nil)
		_, err := Open(dir)
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join(dir, "absent")) {
			t.Errorf("error %v, want fs.ErrNotExist with the file", err)
		}
	})
	t.Run("a file is bad", func(t *testing.T) {
		dir := model(t, `{"weight_map": {"x": "bad"}}`, nil)
		if err := os.WriteFile(filepath.Join(dir, "bad"), []byte("PK\x03\x04\x00\x00\x08\x08"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir)
		var bad *FormatError
		if !errors.As(err, &bad) || bad.Path != filepath.Join(dir, "bad") {
			t.Errorf("error %v, want a *FormatError of the file", err)
		}
	})
	t.Run("too many files", func(t *testing.T) {
		var b strings.Builder
		for i := range maxShards + 1 {
			fmt.Fprintf(&b, `,"%d":"%d"`, i, i)
		}
		_, err := parseIndex([]byte(`{"weight_map":{` + b.String()[1:] + `}}`))
		if want := "index has more than 10000 files"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}

// FuzzIndex parses arbitrary text as an index of three files.
func FuzzIndex(f *testing.F) {
	f.Add(`{"weight_map": {"x": "a", "y": "a", "z": "b"}}`)
	for _, c := range hostileIndices {
		f.Add(c.index)
	}
	shards := map[string][]byte{}
	for name, tensors := range indexed {
		file := &File{}
		for _, tensor := range tensors {
			file.Tensors = append(file.Tensors, FromFloat32s(tensor, nil, []float32{1}))
		}
		shards[name] = encode(f, file)
	}
	f.Fuzz(func(t *testing.T, text string) {
		files, err := parseIndex([]byte(text))
		if err != nil {
			if len(err.Error()) > 4000 {
				t.Fatalf("a message of %d bytes", len(err.Error()))
			}
			return
		}
		r, err := join("index", files, func(name string) (*shard, error) {
			data, ok := shards[name]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return newShard(name, bytes.NewReader(data), int64(len(data)))
		})
		if err != nil {
			return
		}
		if len(r.Tensors()) != len(files) {
			t.Fatalf("%d tensors of the %d in the index", len(r.Tensors()), len(files))
		}
		for name := range files {
			if _, err := r.Tensor(name); err != nil {
				t.Fatal(err)
			}
		}
	})
}
