package safetensors

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestLegal(t *testing.T) {
	cases := []struct {
		name string
		file []byte
		want string
	}{
		{"nothing", frame(`{}`, 0), ``},
		{"padding", frame(`{}      `, 0), ``},
		{"spaces within", frame("{ \"q\" :\n{\t\"shape\":[ 2 , 1 ],\r\"data_offsets\":[0,2],\"dtype\":\"U8\"} }", 2), `[q U8 [2 1] 2]`},
		{"rank 0", frame(one(`"F32"`, `[]`, `[0,4]`), 4), `[q F32 [] 4]`},
		{"empty", frame(one(`"F32"`, `[3,0,5]`, `[0,0]`), 0), `[q F32 [3 0 5] 0]`},
		{"highest rank", frame(one(`"U8"`, `[1`+strings.Repeat(",1", 63)+`]`, `[0,1]`), 1), `[q U8 [1` + strings.Repeat(" 1", 63) + `] 1]`},
		{"longest name", frame(`{`+f32(strings.Repeat("n", 4096), 0, 8)+`}`, 8), `[` + strings.Repeat("n", 4096) + ` F32 [2] 8]`},
		{"no name", frame(`{`+f32("", 0, 8)+`}`, 8), `[ F32 [2] 8]`},
		{"escaped pair", frame(`{`+f32(`\ud83d\ude00\\ud83d`, 0, 8)+`}`, 8), `[😀\ud83d F32 [2] 8]`},
		{"not in order", frame(`{`+f32("b", 8, 20)+`,`+f32("d", 20, 20)+`,`+f32("a", 0, 8)+`,`+f32("c", 8, 8)+`,`+f32("e", 20, 20)+`}`, 20),
			`[a F32 [2] 8] [c F32 [0] 0] [b F32 [3] 12] [d F32 [0] 0] [e F32 [0] 0]`},
		{"not aligned", frame(`{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},`+f32("b", 3, 11)+`}`, 11), `[a U8 [3] 3] [b F32 [2] 8]`},
		{"sub-byte types", frame(`{"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]},"b":{"dtype":"F6_E3M2","shape":[4],"data_offsets":[3,6]}}`, 6), `[a F4 [2 3] 3] [b F6_E3M2 [4] 3]`},
	}
	for _, c := range cases {
		f, err := Parse(c.file)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, q := range f.Tensors {
			got = append(got, fmt.Sprint([]any{q.Name, q.DType, q.Shape, len(q.Data)}))
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestReadNamesFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	if err := os.WriteFile(path, frame(one(`"F32"`, `[2,5]`, `[0,48]`), 48), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := []struct{ path, want string }{
		{path, `tensor "q": data_offsets [0 48] span 48 bytes, want 40 for F32 [2 5]`},
		{dir, "is a folder, want a file"},
		{os.DevNull, "is not a regular file"},
	}
	for _, c := range cases {
		_, err := Read(c.path)
		var bad *FormatError
		if !errors.As(err, &bad) || bad.Path != c.path || bad.Err.Error() != c.want {
			t.Errorf("Read(%q): error %v, want a *FormatError %s", c.path, err, c.want)
			continue
		}
		if want := "safetensors: " + c.path + ": " + c.want; err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
}

func TestReadMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent")
	_, err := Read(path)
	var bad *FormatError
	if !errors.Is(err, fs.ErrNotExist) || errors.As(err, &bad) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want fs.ErrNotExist with the path, and not a *FormatError", err)
	}
}

// TestReadHugeSparse reads sparse files, which claim a huge size but use no disk. A reader that allocated before it
// checked would run out of memory.
func TestReadHugeSparse(t *testing.T) {
	if runtime.GOOS == "js" || runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return // sparse files of this size are not supported
	}
	huge := int64(1) << 43
	cases := []struct {
		name, header string
		size         int64
		want         string
	}{
		{"zeros", "", 1 << 30, "header length is 0, want at least 2"},
		{"tail", one(`"U8"`, `[7]`, `[0,7]`), 1 << 30, "file contains 1073741763 bytes of data, want 7 for its tensors"},
		{"beyond the limit", one(`"U8"`, fmt.Sprintf("[%d]", huge-100), fmt.Sprintf("[0,%d]", huge-100)), huge, "file has 8796093022208 bytes, more than can be read"},
	}
	for _, c := range cases {
		path := filepath.Join(t.TempDir(), "sparse")
		var content []byte
		if c.header != "" {
			content = frame(c.header, 0)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, c.size); err != nil {
			t.Fatal(err)
		}
		before := allocated()
		_, err := Read(path)
		if spent := allocated() - before; spent > 1<<20 {
			t.Errorf("%s: %d bytes allocated for a refusal", c.name, spent)
		}
		var bad *FormatError
		if !errors.As(err, &bad) || bad.Err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestReadShrinking(t *testing.T) {
	// A writer truncates the file after its size was read.
	whole := frame(one(`"U8"`, `[7]`, `[0,7]`), 7)
	lost := errors.New("the rest is gone")
	for have := range whole {
		r, err := NewReader(shrunk{whole[:have], lost}, int64(len(whole)))
		if err == nil { // only data were missing
			_, err = r.Tensor("q")
		}
		if !errors.Is(err, lost) {
			t.Fatalf("%d of %d bytes: error %v", have, len(whole), err)
		}
		r, err = NewReader(shrunk{whole[:have], io.EOF}, int64(len(whole)))
		if err == nil {
			_, err = r.Tensor("q")
		}
		if want := "safetensors: the file became shorter while it was read"; err == nil || err.Error() != want {
			t.Fatalf("%d of %d bytes: error %v, want %s", have, len(whole), err, want)
		}
	}
}

// shrunk returns some bytes and then an error.
type shrunk struct {
	data []byte
	err  error
}

func (s shrunk) ReadAt(b []byte, offset int64) (int, error) {
	n := copy(b, s.data[min(int(offset), len(s.data)):])
	if n < len(b) {
		return n, s.err
	}
	return n, nil
}

func TestDataDoNotRunTogether(t *testing.T) {
	f, err := Parse(frame(`{`+f32("q", 0, 8)+`,`+f32("k", 8, 20)+`}`, 20))
	if err != nil {
		t.Fatal(err)
	}
	_ = append(f.Tensors[0].Data, 1, 2, 3)
	if f.Tensors[1].Data[0] != 0 {
		t.Error("an append to one tensor wrote into the next")
	}
}

// TestLimits checks headers that are valid except for their number of entries.
func TestLimits(t *testing.T) {
	if testing.Short() {
		return
	}
	list := func(n int, entry string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, entry, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	const empty = `"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},`
	cases := []struct{ header, want string }{
		{"{" + list(maxTensors+1, empty) + "}", "header has more than 250000 tensors"},
		{`{"__metadata__":{` + list(maxMetadata+1, `"%d":"",`) + "}}", "__metadata__ has more than 250000 keys"},
	}
	for _, c := range cases {
		_, err := Parse(frame(c.header, 0))
		if err == nil || err.Error() != "safetensors: "+c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
