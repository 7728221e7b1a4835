package heads

import (
	"bytes"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// inspectedSample returns a record of a layer with 6 heads in 3 groups, 2 of which are kept. The layer runs
// in one call or step by step.
func inspectedSample(t *testing.T, o RecorderOptions, steps ...int) *Record {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 1))
	m, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 12, Heads: 6, KVHeads: 3, HeadSize: 5, Name: "decoder.2"}, rng)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Randn(rng, 2, 7, 12)
	r := NewRecorder(o)
	at := 0
	for _, n := range steps {
		m.Forward(nil, tensor.Slice(nil, x, 1, at, at+n), tensor.Slice(nil, x, 1, 0, at+n), tensor.Slice(nil, x, 1, 0, at+n),
			attn.Options{Mask: mask.Causal(), Observers: []attn.Observer{r}, Inspect: r.Inspect})
		at += n
	}
	record, err := r.Record(Texts{SourceTokens: named("t", 7)})
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func kept(_ string, head int) bool { return head == 1 || head == 4 }

// The weights can be computed from the recorded queries and keys, whether the layer runs in one call or in
// steps.
func TestRecorderInspects(t *testing.T) {
	o := RecorderOptions{ValueNorms: true, Vectors: true, Heads: kept, Sequence: 1}
	whole := &inspectedSample(t, o, 7).Layers[0]
	if got := inspectedSample(t, o, 3, 1, 2, 1); !reflect.DeepEqual(&got.Layers[0], whole) {
		t.Errorf("in steps the layer is\n%+v, want\n%+v", got.Layers[0], whole)
	}
	if whole.VectorSize() != 5 || len(whole.ValueNorms) != 2*7 {
		t.Fatalf("vectors of %d, %d norms", whole.VectorSize(), len(whole.ValueNorms))
	}
	for h := range 2 {
		q, k := whole.Vectors(h)
		for i := range 7 {
			var sum float64
			score := make([]float64, i+1)
			for j := range score {
				for d := range 5 {
					score[j] += float64(q[i*5+d]) * float64(k[j*5+d])
				}
				score[j] = math.Exp(score[j] * float64(whole.ScoreScale))
				sum += score[j]
			}
			for j, s := range score {
				if got := float64(whole.Head(h)[i*7+j]); math.Abs(got-s/sum) > 1e-5 {
					t.Fatalf("head %d, query %d, key %d: the weight is %v, from the vectors %v", h, i, j, got, s/sum)
				}
			}
		}
	}
	plain := inspectedSample(t, RecorderOptions{Heads: kept, Sequence: 1}, 7).Layers[0]
	if plain.ValueNorms != nil || plain.VectorSize() != 0 || !slices.Equal(plain.Weights, whole.Weights) {
		t.Error("data that were not requested are kept")
	}
	r := NewRecorder(RecorderOptions{ValueNorms: true})
	tell(r, "encoder.0", softmaxed(1, 1, 2, 3, 3, false))
	_, err := r.Record(Texts{SourceTokens: named("t", 3)})
	wantError(t, "without Inspect", err, `heads: layer "encoder.0": ValueNorms or Vectors is set, but Inspect was not called`)
}

func TestValueWeighted(t *testing.T) {
	r := inspectedSample(t, RecorderOptions{ValueNorms: true}, 7)
	l := &r.Layers[0]
	for h := range 6 {
		got := ValueWeighted(l.Head(h), l.Norms(h))
		for i := range 7 {
			for j := range 7 {
				if want := l.Weights[(h*7+i)*7+j] * l.ValueNorms[h*7+j]; got[i*7+j] != want {
					t.Errorf("head %d, query %d, key %d: %v, want %v", h, i, j, got[i*7+j], want)
				}
			}
		}
	}
	if err := tensor.Catch(func() { ValueWeighted(make([]float32, 6), make([]float32, 4)) }); err == nil {
		t.Error("ValueWeighted accepts 6 weights and 4 norms")
	}
}

// Files contain norms and vectors. An opened file does not read the vectors until they are requested.
func TestVectorsInFiles(t *testing.T) {
	want := inspectedSample(t, RecorderOptions{ValueNorms: true, Vectors: true, Heads: kept}, 7)
	path := filepath.Join(t.TempDir(), "r.safetensors")
	if err := want.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := &f.Record.Layers[0]
	if l.QueryVectors != nil || l.VectorSize() != 5 || !slices.Equal(l.ValueNorms, want.Layers[0].ValueNorms) {
		t.Errorf("the opened file has vectors of %d in memory, of size %d", len(l.QueryVectors), l.VectorSize())
	}
	for h := range 2 {
		q, k, err := f.Vectors(0, h)
		wantQ, wantK := want.Layers[0].Vectors(h)
		if err != nil || !slices.Equal(q, wantQ) || !slices.Equal(k, wantK) {
			t.Errorf("head %d: %v, %v, %v", h, q, k, err)
		}
	}
	f.Close()
	if _, _, err := f.Vectors(0, 0); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a closed file: %v", err)
	}
	// An older reader must not take the vectors for layers: it finds an unknown field in the metadata.
	file, err := safetensors.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if text, want := file.Metadata[keyLayers], `"value_norms":"decoder.2.value_norms","query_vectors":"decoder.2.query_vectors","key_vectors":"decoder.2.key_vectors","score_scale":`; !strings.Contains(text, want) {
		t.Errorf("layers %s, want %s", text, want)
	}
}

// After tokens are removed, the norms and vectors of the remaining tokens are kept. Merging tokens removes
// both.
func TestVectorsOfWhatIsLeft(t *testing.T) {
	r := inspectedSample(t, RecorderOptions{ValueNorms: true, Vectors: true, Heads: kept}, 7)
	r.Special = []string{r.Layers[0].Keys[2]}
	before, after := &r.Layers[0], &r.WithoutSpecial(false).Layers[0]
	q, k := before.Vectors(1)
	q2, k2 := after.Vectors(1)
	for _, pair := range [][2][]float32{{q, q2}, {k, k2}, {before.Norms(1), after.Norms(1)}} {
		n := len(pair[0]) / 7
		if want := slices.Concat(pair[0][:2*n], pair[0][3*n:]); !slices.Equal(pair[1], want) {
			t.Errorf("%v, want %v", pair[1], want)
		}
	}
	if err := (&Record{Layers: []Layer{*after}}).Validate(); err != nil {
		t.Error(err)
	}
	merged := r.MergeWords()
	if l := &merged.Layers[0]; l.ValueNorms != nil || l.VectorSize() != 0 || merged.Validate() != nil {
		t.Errorf("words have %d norms and vectors of %d", len(l.ValueNorms), l.VectorSize())
	}
}

func TestBadVectorsAreRefused(t *testing.T) {
	l := inspectedSample(t, RecorderOptions{ValueNorms: true, Vectors: true}, 7).Layers[0]
	for want, change := range map[string]func(*Layer){
		`heads: layer "decoder.2": 41 norms of values, want 6 heads · 7 keys`:                                                func(l *Layer) { l.ValueNorms = l.ValueNorms[1:] },
		`heads: layer "decoder.2": want the vectors of queries and keys, or of neither`:                                      func(l *Layer) { l.KeyVectors = nil },
		`heads: layer "decoder.2": 210 and 168 numbers of queries and keys, want 6 heads · 7 queries and 7 keys of one size`: func(l *Layer) { l.KeyVectors = l.KeyVectors[:168] },
	} {
		bad := l
		change(&bad)
		wantError(t, want, (&Record{Layers: []Layer{bad}}).Write(new(bytes.Buffer)), want)
	}
	twice := []Layer{l, {Name: "decoder.2.value_norms", Heads: 1, Queries: []string{"a"}, Keys: []string{"b"}, Weights: []float32{1}}}
	wantError(t, "names", (&Record{Layers: twice}).Write(new(bytes.Buffer)), `heads: layer "decoder.2": its value_norms would have the name of another layer`)

	ones := func(name string, shape ...int) safetensors.Tensor {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return safetensors.FromFloat32s(name, shape, slices.Repeat([]float32{-0.5}, n))
	}
	path := filepath.Join(t.TempDir(), "r.safetensors")
	for want, layers := range map[string]string{
		`metadata "layers": there is no tensor "x"`:                                                               `{"e":{"value_norms":"x"}}`,
		`metadata "layers": tensor "e" is used twice`:                                                             `{"e":{"value_norms":"e"}}`,
		`metadata "layers": tensor "q" is used twice`:                                                             `{"e":{"query_vectors":"q","key_vectors":"q"}}`,
		`tensor "e": its value_norms "q" have shape [2 3 5], want [2 3]: heads, keys`:                             `{"e":{"value_norms":"q"},"n":{},"k":{}}`,
		`tensor "e": its value_norms "n" have -0.5, want no negative norm`:                                        `{"e":{"value_norms":"n"},"q":{},"k":{}}`,
		`tensor "e": want both query_vectors and key_vectors`:                                                     `{"e":{"query_vectors":"q"},"n":{},"k":{}}`,
		`tensor "e": it has score_scale without query_vectors and key_vectors`:                                    `{"e":{"score_scale":2}}`,
		`tensor "e": its query_vectors and key_vectors have shapes [2 3 5] and [2 3 4], want [2 3 E] and [2 3 E]`: `{"e":{"query_vectors":"q","key_vectors":"k"}}`,
		`metadata "layers": unknown field "values"`:                                                               `{"e":{"values":"n"}}`,
	} {
		file := safetensors.File{Metadata: map[string]string{keyLayers: layers, keyOthers: `[]`}, Tensors: []safetensors.Tensor{ones("e", 2, 3, 3), ones("k", 2, 3, 4), ones("n", 2, 3), ones("q", 2, 3, 5)}}
		if err := file.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		for _, read := range []func() error{func() error { _, err := Read(path); return err }, func() error { _, err := Open(path); return err }} {
			if err := read(); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", layers, err, want)
			}
		}
	}

	// A file may have tensors that are no layers, such as the outputs of attn apply.
	for others, want := range map[string]string{
		`["k","n","q"]`: "", `["k","n","q","q"]`: `tensor "q" is used twice`, `["e"]`: `tensor "e" is used twice`, `[1]`: `metadata "not_layers": element "[0]" has a number`,
	} {
		file := safetensors.File{Metadata: map[string]string{keyLayers: `{"e":{"signed":true}}`, keyOthers: others}, Tensors: []safetensors.Tensor{ones("e", 2, 3, 3), ones("k", 4), ones("n", 2, 3), ones("q", 2, 3, 5)}}
		if err := file.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		r, err := Read(path)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", others, err, want)
			}
		} else if err != nil || len(r.Layers) != 1 || r.Layers[0].Name != "e" || !r.Layers[0].Signed {
			t.Errorf("%s: %v, want the layer e", others, err)
		}
	}
}
