package safetensors

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const torchGolden = "testdata/torch.bin"

// TestTorch compares a file of torch.save with the same tensors as safetensors: all types, parts of a storage and nested
// dicts.
func TestTorch(t *testing.T) {
	want, err := Read("testdata/torch.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(torchGolden)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	whole, err := Read(torchGolden)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Tensors()) != len(want.Tensors) || len(whole.Tensors) != len(want.Tensors) {
		t.Errorf("got %d tensors and %d, want %d", len(r.Tensors()), len(whole.Tensors), len(want.Tensors))
	}
	for _, w := range want.Tensors {
		x, err := r.Tensor(w.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []*Tensor{x, whole.Lookup(w.Name)} {
			if x == nil || x.DType != w.DType || !slices.Equal(x.Shape, w.Shape) || !bytes.Equal(x.Data, w.Data) {
				t.Errorf("%s: got %v, want %v", w.Name, x, w)
			}
		}
		if !w.DType.isFloat() {
			continue
		}
		got, exact := make([]float32, w.info().Len()), w
		numbers, _ := exact.Float32s()
		if err := r.ReadFloat32s(w.Name, got, 0); err != nil || !bytes.Equal(fmt.Append(nil, got), fmt.Append(nil, numbers)) {
			t.Errorf("%s: got %v, %v, want %v", w.Name, got, err, numbers)
		}
	}
}

// TestTorchFolder checks which of the files in a folder Open reads.
func TestTorchFolder(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(torchGolden)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ write, want string }{
		{"pytorch_model.bin", "pytorch_model.bin"},
		{"model.safetensors", "model.safetensors"},
	} {
		if c.write == "model.safetensors" {
			data = encode(t, sample())
		}
		if err := os.WriteFile(filepath.Join(dir, c.write), data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := filepath.Base(r.Path()); got != c.want {
			t.Errorf("opened %s, want %s", got, c.want)
		}
		r.Close()
	}
}

// archive writes a zip archive with the contents of the files, whose names are the even strings.
func archive(method uint16, files ...string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for pair := range slices.Chunk(files, 2) {
		f, _ := w.CreateHeader(&zip.FileHeader{Name: pair[0], Method: method})
		f.Write([]byte(pair[1]))
	}
	w.Close()
	return b.Bytes()
}

// pickled returns a pickle of {"x": a tensor}, with other parts than usual in a few places.
func pickled(change ...string) string {
	text := func(s string) string {
		return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
	}
	p := "\x80\x02}(" + text("x") + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") +
		"K\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89ccollections\nOrderedDict\n)RtRu."
	for pair := range slices.Chunk(change, 2) {
		if !strings.Contains(p, pair[0]) {
			panic(pair[0])
		}
		p = strings.Replace(p, pair[0], pair[1], 1)
	}
	return p
}

// hostileTorch are files that must be refused, with a part of the message.
var hostileTorch = []struct {
	name string
	file []byte
	want string
}{
	{"code", saved(pickled("torch._utils\n_rebuild_tensor_v2", "posix\nsystem")), `data.pkl names "posix.system", want only dense tensors`},
	{"class", saved(pickled("collections\nOrderedDict", "__main__\nNet")), `names "__main__.Net"`},
	{"sparse", saved(pickled("_rebuild_tensor_v2", "_rebuild_sparse_tensor")), `names "torch._utils._rebuild_sparse_tensor"`},
	{"type", saved(pickled("torch\nFloat", "torch\nQInt8")), `names "torch.QInt8Storage"`},
	{"instance", saved("\x80\x02)\x81."), `has the operation "\x81", want those of a dict of tensors`},
	{"protocol", saved("\x80\x04}."), "has another protocol than 2"},
	{"no dict", saved("\x80\x02K\x01."), "has no dict of tensors"},
	{"end", saved("\x80\x02}"), "ends early"},
	{"more", saved("\x80\x02}}."), `has the operation "."`},
	{"empty stack", saved("\x80\x02s."), "takes a value from an empty stack"},
	{"mark", saved("\x80\x02}(Ns."), "takes a value from an empty stack"},
	{"no mark", saved("\x80\x02}t."), "has no mark"},
	{"memo", saved("\x80\x02h\x07."), "recalls a value that it has not stored"},
	{"no dict to set", saved("\x80\x02NK\x01K\x02s."), "sets items of no dict"},
	{"long text", saved("\x80\x02X\xff\xff\xff\xffx."), "ends early"},
	{"key", saved("\x80\x02}NNs."), "has a key that is neither text nor an integer"},
	{"twice", saved("\x80\x02}q\x00(K\x01NK\x01Nu."), `tensor "1": duplicate name, or names`},
	{"itself", saved("\x80\x02}q\x00K\x01h\x00s."), "has one dict in two places"},
	{"calls itself", saved("\x80\x02}q\x00K\x01h\x00s)R."), `calls ""`},
	{"called", saved(pickled(")Rt", "K\x01\x85Rt")), "calls \"collections.OrderedDict\" with 1 arguments"},
	{"conjugate", saved(pickled(")Rt", ")R}t")), "with 7 arguments"},
	{"storage", saved(pickled("K\x06t", "t")), "has an invalid storage"},
	{"negative", saved(pickled("K\x02K\x03\x86", "J\xff\xff\xff\xffK\x03\x86")), "calls"},
	{"strides", saved(pickled("K\x03K\x01\x86", "K\x04K\x01\x86")), "has strides [4 1] for shape [2 3], want those of a contiguous tensor"},
	{"offset", saved(pickled("QK\x00", "QK\x01")), "from element 1 exceeds"},
	{"large", saved(pickled("K\x02K\x03\x86", "J\xff\xff\xff\x7fK\x03\x86")), "exceeds"},
	{"size", saved(pickled("K\x06", "K\x07")), `archive has no file for storage "0" with 7 elements of F32`},
	{"repeated", archive(zip.Store, "a/data.pkl", "\x80\x02}("+strings.Repeat(pickled()[4:len(pickled())-2], 9)+"u.",
		"a/data/0", strings.Repeat("x", 24)), "duplicate name"},
	{"expanded", saved(pickled("K\x02K\x03\x86K\x03K\x01\x86", "M\xff\xffM\xff\xff\x86K\x00K\x00\x86")), "exceeds"},
	{"key of storage", saved(pickled("X\x01\x00\x00\x000", "X\x01\x00\x00\x001")), `has no file for storage "1"`},
	{"no pickle", archive(zip.Store, "a/data/0", "x"), "is no file of torch.save: open a/data.pkl: "},
	{"compressed", archive(zip.Deflate, "a/data.pkl", pickled(), "a/data/0", strings.Repeat("x", 24)), `has "a/data.pkl" twice, compressed or encrypted`},
	{"two", archive(zip.Store, "a/data.pkl", pickled(), "a/data.pkl", pickled()), "twice"},
	{"order", archive(zip.Store, "a/data.pkl", pickled(), "a/byteorder", "big"), `has the byte order "big", want little`},
	{"archive", []byte("PK\x03\x04, but no archive"), "is an invalid zip archive: "},
	{"legacy", []byte("\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."), "is a pickle, as of torch.save before PyTorch 1.6"},
}

func saved(pickle string) []byte {
	return archive(zip.Store, "a/data.pkl", pickle, "a/data/0", strings.Repeat("x", 24))
}

func TestTorchRefuses(t *testing.T) {
	if _, err := NewReader(bytes.NewReader(saved(pickled())), int64(len(saved(pickled())))); err != nil {
		t.Fatal(err)
	}
	for _, c := range hostileTorch {
		_, err := NewReader(bytes.NewReader(c.file), int64(len(c.file)))
		var bad *FormatError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
	}
	// Many tensors of one storage cost memory when they are read.
	shared, _, _ := strings.Cut(pickled()[len("\x80\x02}(X\x01\x00\x00\x00x"):], "u.")
	all := "\x80\x02}("
	for i := range 200 {
		all += fmt.Sprintf("X\x03\x00\x00\x00%03d", i) + strings.ReplaceAll(shared, "K\x06", "M\x00\x40")
	}
	all = strings.ReplaceAll(all, "K\x02K\x03\x86K\x03K\x01\x86", "M\x00\x40\x85K\x01\x85")
	data := archive(zip.Store, "a/data.pkl", all+"u.", "a/data/0", strings.Repeat("x", 4<<14))
	if _, err := NewReader(bytes.NewReader(data), int64(len(data))); err == nil || !strings.Contains(err.Error(), "share storages too often") {
		t.Errorf("shared: error %v", err)
	}
	if testing.Short() {
		return
	}
	many := saved("\x80\x02" + strings.Repeat("N", mostOps) + ".")
	if _, err := NewReader(bytes.NewReader(many), int64(len(many))); err == nil || !strings.Contains(err.Error(), "operations") {
		t.Errorf("many operations: error %v", err)
	}
}

// FuzzTorch reads arbitrary pickles beside two storages.
func FuzzTorch(f *testing.F) {
	f.Add(pickled())
	golden, err := zip.OpenReader(torchGolden)
	if err != nil {
		f.Fatal(err)
	}
	defer golden.Close()
	file, err := golden.Open(golden.File[0].Name)
	if err != nil {
		f.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(file); err != nil {
		f.Fatal(err)
	}
	f.Add(text.String())
	f.Fuzz(func(t *testing.T, pickle string) {
		data := archive(zip.Store, "a/data.pkl", pickle, "a/data/0", strings.Repeat("x", 24), "a/data/1", strings.Repeat("y", 120))
		r, err := NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			if !errors.As(err, new(*FormatError)) {
				t.Fatalf("an error of type %T: %v", err, err)
			}
			return
		}
		total := 0
		for _, x := range r.Tensors() {
			y, err := r.Tensor(x.Name)
			if err != nil {
				t.Fatal(err)
			}
			total += len(y.Data)
		}
		if total > 8*len(data) {
			t.Fatalf("%d bytes of tensors in a file of %d", total, len(data))
		}
	})
}
