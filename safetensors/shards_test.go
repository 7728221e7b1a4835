package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sizes returns a file of tensors with the given sizes in bytes, called 0, 1, ….
func sizes(list ...int) *File {
	f := &File{Metadata: map[string]string{"format": "pt"}}
	for i, n := range list {
		data := bytes.Repeat([]byte{byte(i + 1)}, n)
		f.Tensors = append(f.Tensors, Tensor{fmt.Sprint(i), U8, []int{n}, data})
	}
	return f
}

func ls(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestWriteShards(t *testing.T) {
	for _, c := range []struct {
		sizes []int
		most  int
		want  string // the tensors of each file
	}{
		{[]int{3, 5, 2}, 10, "0 1 2"},
		{[]int{3, 5, 2}, 9, "0 1|2"},
		{[]int{3, 5, 2}, 8, "0 1|2"},
		{[]int{3, 5, 2}, 7, "0|1 2"},
		{[]int{3, 5, 2}, 1, "0|1|2"},
		{[]int{3, 50, 2, 0}, 7, "0|1|2 3"},
		{[]int{50, 0, 2}, 7, "0|1 2"},
		{[]int{50}, 7, "0"},
		{[]int{0, 0}, 1, "0 1"},
		{nil, 1, ""},
	} {
		name := fmt.Sprint(c.sizes, " at most ", c.most)
		dir := t.TempDir()
		path := filepath.Join(dir, "model.safetensors")
		f := sizes(c.sizes...)
		if err := f.WriteShards(path, c.most); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		parts := strings.Split(c.want, "|")
		wantFiles := "model.safetensors"
		if len(parts) > 1 {
			wantFiles = ""
			for i, part := range parts {
				file := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(parts))
				wantFiles += file + " "
				shard, err := Read(filepath.Join(dir, file))
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, tensor := range shard.Tensors {
					got = append(got, tensor.Name)
				}
				if strings.Join(got, " ") != part || shard.Metadata["format"] != "pt" {
					t.Errorf("%s: %s holds %v, want %s", name, file, got, part)
				}
			}
			wantFiles += "model.safetensors.index.json"
		}
		if got := ls(t, dir); got != wantFiles {
			t.Errorf("%s: wrote %s, want %s", name, got, wantFiles)
		}
		r, err := Open(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again := &File{Metadata: r.Metadata()}
		for _, info := range r.Tensors() {
			tensor, err := r.Tensor(info.Name)
			if err != nil {
				t.Fatal(err)
			}
			again.Tensors = append(again.Tensors, *tensor)
		}
		r.Close()
		equal(t, again, f)
	}
}

// TestWriteShardsIndex compares the index with the one that huggingface_hub writes.
func TestWriteShardsIndex(t *testing.T) {
	dir := t.TempDir()
	f := sizes(3, 5, 2)
	f.Tensors[1].Name = "<b>"
	if err := f.WriteShards(filepath.Join(dir, "m.safetensors"), 5); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "m.safetensors.index.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "metadata": {
    "total_size": 10
  },
  "weight_map": {
    "0": "m-00001-of-00003.safetensors",
    "2": "m-00003-of-00003.safetensors",
    "<b>": "m-00002-of-00003.safetensors"
  }
}
`
	if string(got) != want {
		t.Errorf("wrote\n%s\nwant\n%s", got, want)
	}
}

// TestWriteShardsReplaces checks that one file replaces several and the reverse, and that no error leaves a partial
// result.
func TestWriteShardsReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	check := func(want *File) {
		t.Helper()
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got := len(r.Tensors()); got != len(want.Tensors) {
			t.Errorf("%d tensors, want %d", got, len(want.Tensors))
		}
	}
	one, two := sizes(1, 2, 3), sizes(4, 5)
	for _, c := range []struct {
		f    *File
		most int
	}{{one, 100}, {two, 5}, {one, 100}, {two, 100}, {one, 3}, {two, 5}} {
		if err := c.f.WriteShards(path, c.most); err != nil {
			t.Fatal(err)
		}
		check(c.f)
	}
	before := ls(t, dir)
	lost := errors.New("lost")
	s := two.stream()
	s.Data = func(w io.Writer, i int) error {
		if i == 1 {
			return lost
		}
		return two.stream().Data(w, i)
	}
	for _, most := range []int{5, 100} {
		if err := s.WriteShards(path, most); !errors.Is(err, lost) {
			t.Errorf("error %v, want %v", err, lost)
		}
		if got := ls(t, dir); got != before {
			t.Errorf("holds %s, want %s", got, before)
		}
		check(two)
	}
}

func TestWriteShardsRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.safetensors")
	twice := sizes(1, 2)
	twice.Tensors[1].Name = "0" // in another file, but in the same index
	short := sizes(1, 2)
	short.Tensors[1].Data = nil
	for _, c := range []struct {
		err  error
		want string
	}{
		{sizes(1).WriteShards(path, 0), "safetensors: write " + path + ": at most 0 bytes in a file, want a positive number"},
		{sizes(1).WriteShards(dir, 1), "safetensors: write " + dir + ": want a name that ends in .safetensors"},
		{twice.WriteShards(path, 1), `safetensors: tensor "0": duplicate name`},
		{short.WriteShards(path, 1), `safetensors: tensor "1": data have 0 bytes, want 2 for U8 [2]`},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("error %v, want %s", c.err, c.want)
		}
	}
	if got := ls(t, dir); got != "" {
		t.Errorf("wrote %s", got)
	}
}

func TestStreamChecksSizes(t *testing.T) {
	for _, n := range []int{0, 39, 41} {
		s := &Stream{Tensors: []Info{{"q", F32, []int{2, 5}}}, Data: func(w io.Writer, _ int) error {
			_, err := w.Write(make([]byte, n))
			return err
		}}
		want := fmt.Sprintf(`safetensors: tensor "q": data have %d bytes, want 40 for F32 [2 5]`, n)
		if err := s.Write(io.Discard); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
