package heads

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/quote/hostile"
	"github.com/attn-go/attn/safetensors"
)

// sample has a layer of each kind, and one whose name and weights do not show its kind.
func sample() *Record {
	src, read, write := []string{"größe", `"<&>`, "</s>"}, []string{"<s>", "si", "ze"}, []string{"si", "ze", "</s>"}
	layer := func(name string, k Kind, index int, queries, keys []string) Layer {
		n := 2 * len(queries) * len(keys)
		return Layer{Name: name, Kind: k, Index: index, Heads: 2, Queries: queries, Keys: keys,
			Weights: softmaxed(uint64(index), 1, 2, len(queries), len(keys), k == Decoder).Data()[:n]}
	}
	r := &Record{
		Source: "größe \"<&>", Target: "size\n", Special: []string{"<s>", "</s>"},
		Layers: []Layer{
			layer("encoder.2.self", Encoder, 2, src, src), layer("encoder.10.self", Encoder, 10, src, src),
			layer("decoder.0.self", Decoder, 0, write, read),
			layer("cross", Cross, 0, write, src), layer("h", Cross, 4, write[:1], src[:2]),
		},
	}
	r.Layers[1].Chosen, r.Layers[1].KeyHeads = []int{3, 7}, []int{1, 3}
	r.Layers[1].QueryPlaces, r.Layers[1].KeyPlaces = []int{-1, 2, 5}, []int{1, 2, 4}
	return r
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.safetensors")
	want := sample()
	if err := want.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	f, err := safetensors.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	// Metadata that follow from the names are not written.
	if text, want := f.Metadata[keyLayers], `{"cross":{"index":0},"encoder.10.self":{"heads":[3,7],"key_heads":[1,3],"query_places":[-1,2,5],"key_places":[1,2,4]},`+
		`"h":{"kind":"cross","index":4,"queries":["si"],"keys":["größe","\"\u003c\u0026\u003e"]}}`; text != want {
		t.Errorf("layers %s, want %s", text, want)
	}
}

// A record of one text, and a record whose only tokens are numbers.
func TestRoundTripOfLittle(t *testing.T) {
	r := NewRecorder(RecorderOptions{})
	tell(r, "layers.0", softmaxed(1, 1, 2, 3, 3, true))
	one, err := r.Record(Texts{SourceTokens: named("s", 3)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []*Record{one, {Layers: []Layer{{Name: "", Heads: 1, Queries: []string{""}, Keys: []string{"0"}, Weights: []float32{1}}}}} {
		path := filepath.Join(t.TempDir(), "r.safetensors")
		if err := want.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	for want, change := range map[string]func(*Record){
		`heads: no layers`: func(r *Record) { r.Layers = nil },
		`heads: layer "cross": index -1, want 0 to 1048576`: func(r *Record) { r.Layers[3].Index = -1 },
		`heads: "\xff" is not UTF-8`:                        func(r *Record) { r.Target = "\xff" },
		`heads: "a\xff" is not UTF-8`:                       func(r *Record) { r.Special = []string{"b", "a\xff"} },
		`heads: special takes 16777221 bytes, want at most 16777216`: func(r *Record) {
			r.Special = []string{strings.Repeat("a", 1<<24+1)}
		},
	} {
		r := sample()
		change(r)
		var b bytes.Buffer
		wantError(t, want, r.Write(&b), want)
		path := filepath.Join(t.TempDir(), "r")
		if err := r.WriteFile(path); err == nil || b.Len() > 0 {
			t.Errorf("%s: %d bytes written, error %v", want, b.Len(), err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: the file exists", want)
		}
	}
}

// testdata/make.py wrote the file with the commands in docs/heads.md.
func TestPythonLines(t *testing.T) {
	r, err := Read("testdata/python.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../docs/heads.md")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "```python\n"+string(lines)+"```") {
		t.Error("docs/heads.md has other lines now: run make.py again")
	}
	tokens := []string{"[CLS]", "grö", "##ße", "<&>", "[SEP]"}
	if r.Source != "größe <&> 😀" || r.Target != "" || !slices.Equal(r.Special, []string{"[CLS]", "[SEP]"}) || len(r.Layers) != 11 {
		t.Errorf("texts %q, %q, special %q, %d layers", r.Source, r.Target, r.Special, len(r.Layers))
	}
	eighths := []float32{8, 0, 0, 0, 0, 1, 2, 3, 1, 1, 0, 4, 4, 0, 0, 2, 2, 2, 1, 1, 0, 0, 0, 1, 7}
	for i := range eighths {
		eighths[i] /= 8
	}
	for i := range r.Layers {
		l := &r.Layers[i]
		if l.Name != fmt.Sprintf("encoder.%d.self", i) || l.Kind != Encoder || l.Index != i || l.Heads != 3 || !slices.Equal(l.Queries, tokens) || !slices.Equal(l.Keys, tokens) {
			t.Errorf("layer %d is %+v", i, l)
		}
		h := 0
		if i == 1 { // flipped
			h = 2
		}
		if !slices.Equal(l.Head(h), eighths) || l.Check() != nil {
			t.Errorf("layer %d: %v, want %v; problems %v", i, l.Head(h), eighths, l.Check())
		}
	}
}

// uniform returns a tensor of the given shape. Every weight is 1/n, where n is the size of the last axis.
func uniform(name string, shape ...int) safetensors.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = 1 / float32(shape[len(shape)-1])
	}
	return safetensors.FromFloat32s(name, shape, x)
}

func TestReadsShapesWithoutMetadata(t *testing.T) {
	f := &safetensors.File{Tensors: []safetensors.Tensor{uniform("b", 2, 3), uniform("a", 1, 5, 3, 3), uniform("decoder.3", 2, 2, 2), uniform("c", 1, 4, 2)}}
	r, err := fromFile(opened(t, f))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range r.Layers {
		got = append(got, fmt.Sprintf("%s: %v %d, %d heads, %v %v", l.Name, l.Kind, l.Index, l.Heads, l.Queries, l.Keys))
	}
	want := []string{"a: encoder 0, 5 heads, [0 1 2] [0 1 2]", "decoder.3: decoder 3, 2 heads, [0 1] [0 1]",
		"b: cross 0, 1 heads, [0 1] [0 1 2]", "c: cross 1, 1 heads, [0 1 2 3] [0 1]"}
	if !slices.Equal(got, want) {
		t.Errorf("layers %q, want %q", got, want)
	}
}

func TestReadRefuses(t *testing.T) {
	a := uniform("encoder.0", 2, 3, 3)
	with := func(key, value string) safetensors.File {
		return safetensors.File{Metadata: map[string]string{key: value}, Tensors: []safetensors.Tensor{a}}
	}
	of := func(list ...safetensors.Tensor) safetensors.File { return safetensors.File{Tensors: list} }
	halves := make([]float32, 6)
	for _, c := range []struct {
		f    safetensors.File
		want string
	}{
		{of(), `no tensors, want one for each attention layer`},
		{of(a, uniform("bias", 3)), `tensor "bias": shape [3], want [H Lq Lk] as attention weights have`},
		{of(uniform("x", 1, 1, 1, 1, 2)), `tensor "x": shape [1 1 1 1 2], want [H Lq Lk] as attention weights have`},
		{of(uniform("x", 2, 1, 3, 3)), `tensor "x": shape [2 1 3 3] is a batch of 2, want one sequence`},
		{of(safetensors.FromFloat32s("x", []int{0, 3, 3}, nil)), `tensor "x": shape [0 3 3], want at least one head and 1 to 131072 tokens`},
		{of(safetensors.FromFloat32s("x", []int{math.MaxInt >> 13, 0, 7}, nil)), fmt.Sprintf(`tensor "x": shape [%d 0 7], want at least one head and 1 to 131072 tokens`, math.MaxInt>>13)},
		{of(safetensors.FromFloat32s("x", []int{1, 1 << 17 * 2, 1}, make([]float32, 1<<18))), `tensor "x": shape [1 262144 1], want at least one head and 1 to 131072 tokens`},
		{of(safetensors.FromInts("x", []int{1, 2}, []int{0, 1})), `tensor "x": dtype is I64, want F16, BF16, F32 or F64`},
		{of(safetensors.FromFloat32s("encoder.0.weight", []int{2, 3}, halves)), `no row of any tensor sums to 1: these are not attention weights, or signed ones without metadata that say so`},
		{with("source_tokens", `["a","b"]`), `tensor "encoder.0": shape [2 3 3] of a layer of kind encoder, but there are 2 tokens for its queries`},
		{with("source_tokens", `["a",1]`), `metadata "source_tokens": element "[1]" has a number where a string is wanted`},
		{with("source_tokens", `["a"`), `metadata "source_tokens": ends in the middle of its JSON`},
		{with("source_tokens", ``), `metadata "source_tokens": is empty, want JSON`},
		{with("special", `[] []`), `metadata "special": something follows the JSON value`},
		{with("special", strings.Repeat(" ", 1<<24)+"[]"), `metadata "special" has 16777218 bytes, want at most 16777216`},
		{with("layers", `{"encoder.1":{}}`), `metadata "layers": there is no tensor "encoder.1"`},
		{with("layers", `{"encoder.0":{"kinds":"cross"}}`), `metadata "layers": unknown field "kinds"`},
		{with("layers", `{"encoder.0":{"kind":"both"}}`), `tensor "encoder.0": unknown kind "both", want encoder, decoder, cross, mamba or alignment`},
		{with("layers", `{"encoder.0":{"index":-1}}`), `tensor "encoder.0": index -1, want 0 to 1048576`},
		{with("layers", `{"encoder.0":{"heads":[1]}}`), `tensor "encoder.0": 1 head numbers, want 2`},
		{with("layers", `{"encoder.0":{"keys":["a"]}}`), `tensor "encoder.0": shape [2 3 3] of a layer of kind encoder, but there are 1 tokens for its keys`},
		{with("layers", `{"encoder.0":{"key_places":[1,0,2]}}`), `tensor "encoder.0": places of key tokens descend from 1 to 0`},
	} {
		path := filepath.Join(t.TempDir(), "r")
		if err := c.f.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path)
		wantError(t, c.want, err, "safetensors: "+path+": "+c.want)
		// The command recognizes input errors by this type.
		if bad := new(safetensors.FormatError); !errors.As(err, &bad) {
			t.Errorf("%s: error of type %T", c.want, err)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that the file does not exist", err)
	}
}

// Rows that do not sum to 1 are accepted in a file that has tokens or other rows that sum to 1.
func TestReadAcceptsOddRows(t *testing.T) {
	odd := safetensors.FromFloat32s("a", []int{1, 3}, []float32{float32(math.NaN()), -2, 5})
	for _, f := range []safetensors.File{
		{Tensors: []safetensors.Tensor{odd, uniform("b", 2, 2)}},
		{Metadata: map[string]string{"layers": `{"a":{"kind":"cross"}}`}, Tensors: []safetensors.Tensor{odd}},
	} {
		r, err := fromFile(opened(t, &f))
		if err != nil {
			t.Errorf("error %v", err)
			continue
		}
		if p := r.Layer(Cross, 0).Check(); len(p) != 1 || p[0].Cause != NotFinite {
			t.Errorf("problems %v", p)
		}
	}
}

// opened returns a Reader of the file's bytes.
func opened(t *testing.T, f *safetensors.File) *safetensors.Reader {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	r, err := safetensors.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// For any bytes, Read returns a record that can be used and written, or an error.
func FuzzRead(f *testing.F) {
	for _, r := range []*Record{sample(), {Layers: []Layer{{Name: "a", Heads: 1, Queries: []string{"q"}, Keys: []string{"k"}, Weights: []float32{1}}}}} {
		var b bytes.Buffer
		if err := r.Write(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) { useAll(t, data) })
}

// useAll reads data as a record and calls all methods on it.
func useAll(t *testing.T, data []byte) {
	file, err := safetensors.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return
	}
	r, err := fromFile(file)
	if err != nil {
		return
	}
	for _, r := range []*Record{r, r.MergeWords(), r.WithoutSpecial(true), r.WithoutSpecial(false).MergeWords(), r.MergeWords().WithoutSpecial(false)} {
		for i := range r.Layers {
			l := &r.Layers[i]
			l.Check()
			for h := range l.Heads {
				l.Measure(h, r.Special)
				Divergence(l.Head(0), l.Head(h), len(l.Queries))
			}
		}
		_, _ = Rollout(r.Layers)
		if r.Validate() == nil {
			if err := r.Write(new(bytes.Buffer)); err != nil {
				t.Errorf("a valid record is not written: %v", err)
			}
		}
	}
}

// Single bytes of a valid file are changed, mostly in its metadata.
func TestReadHostile(t *testing.T) {
	var b bytes.Buffer
	if err := sample().Write(&b); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	header := 8 + int(binary.LittleEndian.Uint64(b.Bytes()))
	for range 3000 {
		data := slices.Clone(b.Bytes())
		for range 1 + rng.IntN(2) {
			data[8+rng.IntN(header-8)] = `0123456789[]{}",:-e\ a`[rng.IntN(22)]
		}
		useAll(t, data)
	}
}

// An error about any metadata is one line without control characters for a terminal.
func TestHostileText(t *testing.T) {
	for key, value := range map[string]string{
		"source_tokens": `["a", "b", "c"]`,
		"layers":        `{"encoder.0": {"kind": "encoder", "heads": [0, 1], "keys": ["a", "b", "c"], "value_norms": "x"}}`,
	} {
		for changed := range hostile.Files([]byte(value), hostile.Long) {
			_, err := fromFile(opened(t, &safetensors.File{
				Metadata: map[string]string{key: string(changed)}, Tensors: []safetensors.Tensor{uniform("encoder.0", 2, 3, 3)},
			}))
			if err == nil {
				continue
			}
			if bad := hostile.Check(err.Error()); bad != nil {
				t.Error(bad)
			}
		}
	}
}
