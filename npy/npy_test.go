package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
)

const golden = "../testdata/npy/" // written by NumPy

func goldenFile(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(golden + name + ".npy")
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// count returns n consecutive numbers starting at first.
func count(first float32, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = first + float32(i)
	}
	return x
}

var (
	inf      = float32(math.Inf(1))
	nan      = float32(math.NaN())
	accepted = map[string]struct {
		shape []int
		data  []float32
	}{
		"scalar":     {nil, []float32{2.5}},
		"empty":      {[]int{0}, nil},
		"no_rows":    {[]int{0, 3}, nil},
		"no_columns": {[]int{3, 0}, nil},
		"no_cubes":   {[]int{0, 3, 2}, nil},
		"vector":     {[]int{7}, count(0, 7)},
		"matrix":     {[]int{3, 5}, count(0, 15)},
		"single": {
			[]int{9},
			[]float32{0, float32(math.Copysign(0, -1)), 1.5, inf, -inf, nan, 0x1p-149, 0x1p-126, math.MaxFloat32},
		},
		"double": {[]int{6}, []float32{0.1, -1. / 3, 0, 1 << 24, inf, nan}},
	}
	refused = map[string]string{
		"huge_double": "npy: element 1 is 1e+300, which is beyond the largest float32",
		"fortran":     "npy: header: fortran_order is True, want False, as numpy.ascontiguousarray returns arrays",
		"version2":    "npy: version is 2.0, want 1.0, which numpy.save writes for numbers",
		"version3":    "npy: version is 3.0, want 1.0, which numpy.save writes for numbers",
		"single_big":  `npy: header: descr is ">f4", ` + wantType,
		"half":        `npy: header: descr is "<f2", ` + wantType,
		"bool":        `npy: header: descr is "|b1", ` + wantType,
		"i4":          `npy: header: descr is "<i4", ` + wantType,
		"complex":     `npy: header: descr is "<c8", ` + wantType,
		"text":        `npy: header: descr is "<U2", ` + wantType,
		"fields":      `npy: header: descr is "[('a', '<f4'), ('b', '<i4')]", ` + wantType,
		"time":        `npy: header: descr is "<M8[D]", ` + wantType,
	}
)

const wantType = `want "<f4" or "<f8", to which astype converts in NumPy`

// same fails the test unless the bits agree; all NaNs count as equal.
func same(t *testing.T, what string, x *tensor.Tensor, shape []int, want []float32) {
	t.Helper()
	equal := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b }
	if !slices.Equal(x.Shape(), shape) || !slices.EqualFunc(x.Data(), want, equal) || x.NeedsGrad() {
		t.Errorf("%s: got %v %v, want %v %v", what, x.Shape(), x.Data(), shape, want)
	}
}

// Each file of the folder, written by NumPy, is either read or rejected as expected.
func TestFilesOfNumPy(t *testing.T) {
	entries, err := os.ReadDir(golden)
	if err != nil || len(entries) != len(accepted)+len(refused)+1 {
		t.Fatalf("%d files, %v, want %d", len(entries), err, len(accepted)+len(refused)+1)
	}
	for name, want := range accepted {
		file := goldenFile(t, name)
		slow := iotest.OneByteReader(bytes.NewReader(file))
		for how, r := range map[string]io.Reader{"": bytes.NewReader(file), ", byte by byte": slow} {
			x, err := Read(r)
			if err != nil {
				t.Errorf("%s%s: %v", name, how, err)
				continue
			}
			same(t, name+how, x, want.shape, want.data)
		}
		for n := range file { // truncated anywhere
			if _, err := Read(bytes.NewReader(file[:n])); err == nil || errors.Is(err, io.EOF) != (n == 0) {
				t.Errorf("%s cut off after %d bytes: error %v", name, n, err)
			}
		}
	}
	for name, want := range refused {
		_, err := Read(bytes.NewReader(goldenFile(t, name)))
		matches(t, name, err, want)
	}
}

// matches compares a message with want, or only its beginning if want ends in "…".
func matches(t *testing.T, what string, err error, want string) {
	t.Helper()
	start, open := strings.CutSuffix(want, "…")
	if got := fmt.Sprint(err); got != want && !(open && strings.HasPrefix(got, start)) {
		t.Errorf("%s: error %q, want %q", what, got, want)
	}
}

// Write writes the same bytes as NumPy.
func TestWriteAsNumPy(t *testing.T) {
	for _, name := range []string{"scalar", "empty", "no_rows", "no_columns", "no_cubes", "vector", "matrix", "single"} {
		var b bytes.Buffer
		want := accepted[name]
		if err := Write(&b, tensor.New(want.data, want.shape...)); err != nil {
			t.Fatal(err)
		}
		file := goldenFile(t, name)
		if !bytes.Equal(b.Bytes(), file) {
			t.Errorf("%s: wrote\n%q, want\n%q", name, b.Bytes(), file)
		}
	}
}

// Several arrays in one file are read one after another.
func TestArraysInOneFile(t *testing.T) {
	r := bytes.NewReader(goldenFile(t, "two"))
	for _, want := range []string{"vector", "matrix"} {
		x, err := Read(r)
		if err != nil {
			t.Fatal(err)
		}
		same(t, want, x, accepted[want].shape, accepted[want].data)
	}
	_, err := Read(r)
	if matches(t, "after the last", err, "npy: nothing is left to read: EOF"); !errors.Is(err, io.EOF) {
		t.Error("the error is not io.EOF")
	}
}

// Tensors of any shape, of views, and of more numbers than the buffers have are read back unchanged.
func TestWrite(t *testing.T) {
	all := tensor.New(count(0, 12), 2, 3, 2)
	for _, x := range []*tensor.Tensor{
		all, tensor.Reshape(nil, all, 12), all.Rows(1, 2), tensor.Index(nil, all, 1, 2), tensor.Full(7), tensor.Zeros(3, 0),
		tensor.New(count(-1000, 251*257), 251, 257),
	} {
		var b bytes.Buffer
		if err := Write(&b, x); err != nil {
			t.Fatal(err)
		}
		y, err := Read(iotest.HalfReader(&b))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "written and read", y, x.Shape(), x.Data())
	}
}

func TestWriteErrors(t *testing.T) {
	matches(t, "rank", Write(io.Discard, tensor.Zeros(make([]int, 65)...)), "npy: shape has 65 axes, want at most 64")
	broken := errors.New("broken")
	for n := range 4 { // in the header, and in each buffer of the numbers
		w := &failing{after: n, err: broken}
		if err := Write(w, tensor.Zeros(10_000)); !errors.Is(err, broken) {
			t.Errorf("write %d fails: error %v", n, err)
		}
	}
}

// failing is a writer that fails after a number of writes.
type failing struct {
	after int
	err   error
}

func (w *failing) Write(b []byte) (int, error) {
	if w.after--; w.after < 0 {
		return 0, w.err
	}
	return len(b), nil
}

// file returns a file of version 1.0 with a header and size bytes after it.
func file(header string, size int) []byte {
	b := binary.LittleEndian.AppendUint16([]byte(magic+"\x01\x00"), uint16(len(header)))
	return append(append(b, header...), make([]byte, size)...)
}

// dict returns a header with the three values.
func dict(descr, fortran, shape string) string {
	return fmt.Sprintf("{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n", descr, fortran, shape)
}

// shaped returns a header with the given shape.
func shaped(shape string) string { return dict("'<f4'", "False", shape) }

// malformed is short for the error of a header that is not a valid dictionary.
const malformed = "malformed"

var hostile = []struct {
	name string
	file []byte
	want string
}{
	{
		"another file", []byte("{\"q\": 1}"),
		`npy: file is no array of NumPy: it begins with "{\"q\": ", want "\x93NUMPY"`,
	},
	{
		"a short other file", []byte("\x93N!"),
		`npy: file is no array of NumPy: it begins with "\x93N!", want "\x93NUMPY"`,
	},
	{
		"archive", []byte("PK\x03\x04\x14\x00\x00\x00"),
		"npy: file is a zip archive, perhaps an .npz: want one of the .npy files in it",
	},
	{
		"version 0", []byte(magic + "\x00\x00\x00\x00"),
		"npy: version is 0.0, want 1.0, which numpy.save writes for numbers",
	},
	{
		"version 4", []byte(magic + "\x04\x00\x00\x00"),
		"npy: version is 4.0, want 1.0, which numpy.save writes for numbers",
	},
	{
		"version 1.1", []byte(magic + "\x01\x01\x00\x00"),
		"npy: version is 1.1, want 1.0, which numpy.save writes for numbers",
	},
	{"no header", []byte(magic + "\x01\x00"), "npy: file ends inside its header"},
	{"huge header", []byte(magic + "\x01\x00\xff\xff"), "npy: header has 65535 bytes, want at most 10000"},
	{
		"header beyond NumPy's limit", file(strings.TrimSpace(shaped("(1,)"))+strings.Repeat(" ", 10_000), 4),
		"npy: header has 10057 bytes, want at most 10000",
	},
	{"empty header", file("", 4), malformed},
	{"spaces", file("   ", 4), malformed},
	{"list", file("[]", 4), malformed},
	{"empty dict", file("{}", 4), malformed},
	{"unclosed", file("{'descr': '<f4'", 4), malformed},
	{"only a comma", file("{, }", 4), malformed},
	{"two commas", file("{'descr': '<f4',, }", 4), malformed},
	{"no colon", file("{'descr' '<f4'}", 4), malformed},
	{"unclosed string", file("{'descr", 4), malformed},
	{"escape", file(`{'de\x73cr': '<f4'}`, 4), malformed},
	{"number for a key", file("{1: 2}", 4), malformed},
	{"unknown key", file("{'Descr': '<f4'}", 4), malformed},
	{"a key twice", file("{'shape': (1,), 'shape': (2,)}", 4), malformed},
	{"a key twice in two forms", file(`{'descr': '<f4', "descr": "<f8", 'shape': (2,)}`, 4), malformed},
	{"quotes that differ", file("{'descr\": '<f4', 'fortran_order': False, 'shape': (1,)}", 4), malformed},
	{"no order", file("{'descr': '<f4', 'shape': (1,)}", 4), malformed},
	{"no shape", file("{'descr': '<f4', 'fortran_order': False}", 4), malformed},
	{"something after the shape", file(strings.TrimSpace(shaped("(1,)"))+" x\n", 4), malformed},
	{"two lines", file(shaped("(1,)")+"\n", 4), malformed},
	{"zero padding", file(strings.TrimSpace(shaped("(1,)"))+"\x00\n", 4), malformed},
	{"not ASCII", file("{'d\xe9scr': 1}", 4), malformed},
	{"kilobytes of a key", file("{'"+strings.Repeat("a", 9_000)+"': 1}", 4), malformed},

	{"objects", file(dict("'|O'", "False", "(1,)"), 8), `npy: header: descr is "|O", ` + wantType},
	{"no type", file(dict("''", "False", "(1,)"), 8), `npy: header: descr is "", ` + wantType},
	{"only an order", file(dict("'<'", "False", "(1,)"), 8), `npy: header: descr is "<", ` + wantType},
	{"no byte order", file(dict("'f4'", "False", "(1,)"), 8), `npy: header: descr is "f4", ` + wantType},
	{"native byte order", file(dict("'=f4'", "False", "(1,)"), 8), `npy: header: descr is "=f4", ` + wantType},
	{"order that does not apply", file(dict("'|f4'", "False", "(1,)"), 8), `npy: header: descr is "|f4", ` + wantType},
	{"quadruple", file(dict("'<f16'", "False", "(1,)"), 16), `npy: header: descr is "<f16", ` + wantType},
	{"type is a number", file(dict("4", "False", "(1,)"), 8), malformed},
	{"code in place of a type", file(dict("__import__('os')", "False", "(1,)"), 8), malformed},

	{"order is a number", file(dict("'<f4'", "0", "(1,)"), 8), malformed},
	{"order in lower case", file(dict("'<f4'", "false", "(1,)"), 8), malformed},
	{"more after an order", file(dict("'<f4'", "Falsehood", "(1,)"), 8), malformed},

	{"shape is a number", file(shaped("3"), 12), malformed},
	{"shape is a list", file(shaped("[3]"), 12), malformed},
	{"a number in brackets", file(shaped("(3)"), 12), malformed},
	{"negative", file(shaped("(-1,)"), 12), malformed},
	{"fraction", file(shaped("(3., 1)"), 12), malformed},
	{"hexadecimal", file(shaped("(3, 0x1)"), 12), malformed},
	{"octal", file(shaped("(03,)"), 12), malformed},
	{"numbers of Python 2", file(shaped("(2L, 3L)"), 24), malformed}, // NumPy reads them with Python before 3.12 only
	{"underscore", file(shaped("(3, 1_0)"), 12), malformed},
	{"only a comma in the shape", file(shaped("(,)"), 4), malformed},
	{"two commas in the shape", file(shaped("(2,,3)"), 24), malformed},
	{"no commas in the shape", file(shaped("(2, 3 5)"), 24), malformed},
	{"unclosed shape", file("{'shape': (2, 3", 24), malformed},
	{
		"axis overflows", file(shaped("(9223372036854775808,)"), 4),
		`npy: header: shape has an axis of "9223372036854775808", which overflows`,
	},
	{
		"shape overflows", file(shaped("(4294967296, 4294967296)"), 4),
		"npy: header: shape [4294967296 4294967296] is that of more than 1099511627776 numbers",
	},
	{
		"shape overflows beside a zero", file(shaped("(4294967296, 4294967296, 0)"), 4),
		"npy: header: shape [4294967296 4294967296 0] is that of more than 1099511627776 numbers",
	},
	{
		"too large", file(dict("'<f8'", "False", "(1099511627777,)"), 4),
		"npy: header: shape [1099511627777] is that of more than 1099511627776 numbers",
	},
	{
		"too many axes", file(shaped("("+strings.Repeat("1,", 65)+")"), 4),
		"npy: header: shape has 65 axes, want at most 64",
	},

	{"more numbers than bytes", file(shaped("(3,)"), 11), "npy: file ends inside its numbers, want 3 of them"},
	{
		"a terabyte that is not there", file(shaped("(274877906944,)"), 100),
		"npy: file ends inside its numbers, want 274877906944 of them",
	},
}

// hostileTo32Bits are the errors on machines where an int has 32 bits, by file name.
var hostileTo32Bits = map[string]string{
	"shape overflows":               `npy: header: shape has an axis of "4294967296", which overflows`,
	"shape overflows beside a zero": `npy: header: shape has an axis of "4294967296", which overflows`,
	"too large":                     `npy: header: shape has an axis of "1099511627777", which overflows`,
	"a terabyte that is not there":  `npy: header: shape has an axis of "274877906944", which overflows`,
}

func TestHostileFiles(t *testing.T) {
	for _, c := range hostile {
		if want, ok := hostileTo32Bits[c.name]; ok && math.MaxInt == math.MaxInt32 {
			c.want = want
		}
		x, err := Read(bytes.NewReader(c.file))
		if err == nil {
			t.Errorf("%s: accepted as %v", c.name, x.Shape())
			continue
		}
		if c.want == malformed {
			size := binary.LittleEndian.Uint16(c.file[len(magic)+2:])
			c.want = "npy: header: it is " + quote.Text(string(c.file[len(magic)+4:][:size])) +
				", want {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } or the like"
		}
		matches(t, c.name, err, c.want)
	}
	broken := errors.New("broken")
	if _, err := Read(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the reader", err)
	}
	whole := goldenFile(t, "vector")
	for n := range whole {
		r := io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(broken))
		if _, err := Read(r); !errors.Is(err, broken) {
			t.Errorf("error %v after %d bytes, want that of the reader", err, n)
		}
	}
}

// Other programs than NumPy format their headers differently.
func TestOtherHeaders(t *testing.T) {
	for _, header := range []string{
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
		"{'shape':(2,3),'fortran_order':False,'descr':'<f4'}",
		`  { "shape" : ( 2 , 3 , ) , "descr" : "<f4" , "fortran_order" : False , }    ` + "\n",
		strings.TrimSpace(shaped("(2, 3)")) + strings.Repeat(" ", 10_000-60) + "\n",
	} {
		x, err := Read(bytes.NewReader(file(header, 24)))
		if err != nil {
			t.Errorf("%s: %v", header, err)
			continue
		}
		same(t, header, x, []int{2, 3}, make([]float32, 6))
	}
}

// The memory of an array has no spare capacity.
func TestMemory(t *testing.T) {
	const n = 1_000_000
	data, err := readNumbers(bytes.NewReader(make([]byte, 4*n)), 4, n)
	if err != nil || len(data) != n || cap(data) != n {
		t.Errorf("%d numbers in memory for %d, %v, want %d", len(data), cap(data), err, n)
	}
}

// FuzzRead reads arbitrary bytes as a file.
func FuzzRead(f *testing.F) {
	for name := range accepted {
		f.Add(goldenFile(f, name))
	}
	for _, c := range hostile {
		if len(c.file) < 1000 {
			f.Add(c.file)
		}
	}
	f.Fuzz(survives)
}

// FuzzHeader reads arbitrary text as a header. The test sets the header's length correctly, which a fuzzer would
// rarely guess.
func FuzzHeader(f *testing.F) {
	for _, shape := range []string{"()", "(3,)", "(2, 3)", "(0, 3)"} {
		f.Add(shaped(shape), 24)
		f.Add(dict("'<f8'", "False", shape), 48)
	}
	f.Fuzz(func(t *testing.T, header string, size int) {
		if size < 0 || size > 1<<12 || len(header) > maxHeader {
			return
		}
		survives(t, file(header, size))
	})
}

// survives fails the test unless Read returns an error, or an array that is in the file and can be written.
func survives(t *testing.T, input []byte) {
	x, err := Read(bytes.NewReader(input))
	if err != nil {
		if x != nil || len(err.Error()) > 1000 {
			t.Fatalf("got %v and an error of %d bytes", x, len(err.Error()))
		}
		return
	}
	if x.Len() > len(input) {
		t.Fatalf("%d numbers out of %d bytes", x.Len(), len(input))
	}
	var b bytes.Buffer
	if err := Write(&b, x); err != nil {
		t.Fatalf("what Read read is not written: %v", err)
	}
	again, err := Read(&b)
	if err != nil {
		t.Fatalf("what Write wrote is refused: %v", err)
	}
	same(t, "written and read", again, x.Shape(), x.Data())
}

func BenchmarkRead(b *testing.B) {
	for _, descr := range []string{"<f4", "<f8"} {
		b.Run(descr, func(b *testing.B) {
			input := file(dict("'"+descr+"'", "False", "(1000000,)"), 8_000_000)
			b.SetBytes(4_000_000)
			for b.Loop() {
				if _, err := Read(bytes.NewReader(input)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
