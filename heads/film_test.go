package heads

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/attn-go/attn/safetensors"
)

// filmed returns a film of two layers with weights that half precision represents exactly.
func filmed(t testing.TB, steps ...int) *Film {
	t.Helper()
	f := &Film{}
	for _, step := range steps {
		w := float32(1) / float32(1+step)
		if step > 0 {
			w = 1 / float32(int(1)<<step)
		}
		r := &Record{Source: "a b", Target: "c", Special: []string{"b"}, Layers: []Layer{
			{Name: "encoder.0.self", Kind: Encoder, Heads: 1, Queries: []string{"a", "b"}, Keys: []string{"a", "b"}, Weights: []float32{1 - w, w, w, 1 - w}},
			{Name: "decoder.0.cross", Kind: Cross, Heads: 2, Queries: []string{"c"}, Keys: []string{"a", "b"}, Chosen: []int{1, 3}, Weights: []float32{w, 1 - w, 1, 0}},
		}}
		loss := float64(step)
		if step == 0 {
			loss = math.NaN()
		}
		if err := f.Add(Frame{step, loss, r}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestFilm(t *testing.T) {
	f := filmed(t, 0, 1, 4)
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "film.safetensors")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFilm(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Frames) != 3 || !math.IsNaN(got.Frames[0].Loss) {
		t.Fatalf("%d frames, the first with loss %v", len(got.Frames), got.Frames[0].Loss)
	}
	got.Frames[0].Loss, f.Frames[0].Loss = 0, 0
	if !reflect.DeepEqual(got, f) {
		t.Errorf("read %+v, want %+v", got.Frames[2].Record, f.Frames[2].Record)
	}
	var again bytes.Buffer
	got.Frames[0].Loss = math.NaN()
	if err := got.Write(&again); err != nil || !bytes.Equal(again.Bytes(), b.Bytes()) {
		t.Errorf("a film that was read is written differently, %v", err)
	}
}

func TestFilmRefuses(t *testing.T) {
	f := filmed(t, 0, 4)
	other := filmed(t, 5).Frames[0]
	other.Record.Layers[0].Queries = []string{"x", "b"}
	for want, frame := range map[string]Frame{
		"step 4, want more than 4": {Step: 4, Record: f.Frames[0].Record},
		"step 5: layer \"encoder.0.self\" differs from layer \"encoder.0.self\" of the first frame in name, heads or tokens": other,
		"step 6: no layers": {Step: 6, Record: &Record{}},
	} {
		if err := f.Add(frame); err == nil || err.Error() != "heads: film: "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := new(Film).Write(new(bytes.Buffer)); err == nil {
		t.Error("an empty film is written")
	}
}

func TestReadFilmRefuses(t *testing.T) {
	var b bytes.Buffer
	if err := filmed(t, 0, 4).Write(&b); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(f *safetensors.File)
		want   string
	}{
		"no steps":   {func(f *safetensors.File) { delete(f.Metadata, "steps") }, `is not a film: its metadata do not have both "steps" and "losses"; want the film.safetensors`},
		"no losses":  {func(f *safetensors.File) { delete(f.Metadata, "losses") }, `is not a film: `},
		"steps":      {func(f *safetensors.File) { f.Metadata["steps"] = "[4, 0]" }, "steps[1] is 0, want more than 4"},
		"losses":     {func(f *safetensors.File) { f.Metadata["losses"] = "[1]" }, "2 steps and 1 losses, want 1 to 4096 of both"},
		"not a list": {func(f *safetensors.File) { f.Metadata["steps"] = "{}" }, `metadata "steps": `},
		"frames":     {func(f *safetensors.File) { f.Metadata["steps"], f.Metadata["losses"] = "[1]", "[1]" }, `shape [2 1 2 2], want [1 H Lq Lk] for 1 steps`},
		"tokens":     {func(f *safetensors.File) { f.Metadata["source_tokens"] = `["a"]` }, "tokens"},
		"kind":       {func(f *safetensors.File) { f.Tensors[0].Name = "x" }, "contains the kind of the layer"},
		"norms": {func(f *safetensors.File) {
			f.Metadata["layers"] = `{"encoder.0.self":{"value_norms":"decoder.0.cross"}}`
		}, "want weights only"},
		"no attention": {func(f *safetensors.File) { f.Tensors = nil; delete(f.Metadata, "layers") }, "no tensors"},
	} {
		f, err := safetensors.Parse(bytes.Clone(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		c.change(f)
		path := filepath.Join(t.TempDir(), "film.safetensors")
		if err := f.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		_, err = ReadFilm(path)
		var format *safetensors.FormatError
		if !errors.As(err, &format) || format.Path != path || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if errors.Is(err, ErrNotFilm) != (name == "no steps" || name == "no losses") {
			t.Errorf("%s: is ErrNotFilm: %v", name, errors.Is(err, ErrNotFilm))
		}
	}
}

// A film is not read as a record, and a file that is cut off is not read at all.
func TestFilmIsNoRecord(t *testing.T) {
	var b bytes.Buffer
	if err := filmed(t, 0, 4).Write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "film.safetensors")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(string) error{
		"Read": func(path string) error { _, err := Read(path); return err },
		"Open": func(path string) error { _, err := Open(path); return err },
	} {
		const want = "is a film of 2 steps, want a record; read it with ReadFilm"
		if err := read(path); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for n := range b.Len() {
		if err := os.WriteFile(path, b.Bytes()[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFilm(path); err == nil || !strings.Contains(err.Error(), path+": ") || errors.Is(err, ErrNotFilm) {
			t.Fatalf("%d of %d bytes: %v", n, b.Len(), err)
		}
	}
}

// For any bytes, ReadFilm returns a film that can be used and written, or an error.
func FuzzFilm(f *testing.F) {
	for _, steps := range [][]int{{0}, {0, 1, 4}} {
		var b bytes.Buffer
		if err := filmed(f, steps...).Write(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := safetensors.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		film, err := filmFrom(file)
		if err != nil {
			return
		}
		for _, frame := range film.Frames {
			for i := range frame.Record.Layers {
				l := &frame.Record.Layers[i]
				for h := range l.Heads {
					l.Measure(h, frame.Record.Special)
				}
			}
		}
		if err := film.Write(new(bytes.Buffer)); err != nil && !strings.Contains(err.Error(), "infinite") {
			t.Errorf("a film that was read is not written: %v", err)
		}
	})
}
