package heads

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// A Recorder is an attn.Observer.
var _ attn.Observer = new(Recorder)

// tell gives a recorder the weights [B H Lq Lk] of a call.
func tell(r *Recorder, layer string, w *tensor.Tensor) {
	s := attn.Sizes{B: w.Dim(0), H: w.Dim(1), G: w.Dim(1), Lq: w.Dim(2), Lk: w.Dim(3), Layer: layer}
	r.Begin(s)
	for i := range s.B * s.H * s.Lq {
		at := attn.Row{Batch: i / (s.H * s.Lq), Head: i / s.Lq % s.H, Query: i % s.Lq}
		r.Row(at, w.Data()[i*s.Lk:][:s.Lk])
	}
}

// softmaxed returns random weights [b h lq lk]. If causal, query i can attend to the first lk-lq+i+1 keys.
func softmaxed(seed uint64, b, h, lq, lk int, causal bool) *tensor.Tensor {
	w := tensor.Uniform(rand.New(rand.NewPCG(seed, 1)), 0.1, 1, b, h, lq, lk)
	for n := range b * h * lq {
		row, sum := w.Data()[n*lk:(n+1)*lk], float32(0)
		for j := range row {
			if causal && j > n%lq+lk-lq {
				row[j] = 0
			}
			sum += row[j]
		}
		for j := range row {
			row[j] /= sum
		}
	}
	return w
}

// named returns n tokens: prefix0, prefix1, ….
func named(prefix string, n int) []string {
	list := numbers(n)
	for i := range list {
		list[i] = prefix + list[i]
	}
	return list
}

// wantError fails unless err has exactly that message.
func wantError(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("%s:\nerror %v\nwant  %s", what, err, want)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  Kind
		index int
		says  string // whether the name has the kind and the index
	}{
		{"encoder.0.self", Encoder, 0, "both"},
		{"decoder.0.self", Decoder, 0, "both"},
		{"decoder.11.cross", Cross, 11, "both"},
		{"cross", Cross, 0, "kind"},
		{"decoder.block.3.layer.1.EncDecAttention", Cross, 3, "both"},
		{"model.decoder.layers.2.encoder_attn", Cross, 2, "both"},
		{"Encoder/layer_7/attention", Encoder, 7, "both"},
		{"t5.encoder.block.4", Encoder, 4, "both"},
		{"model.layers.5.self_attn", 0, 5, "index"},
		{"attn", 0, 0, "nothing"},
		{"", 0, 0, "nothing"},
		{"encoder.99999999999", Encoder, 0, "kind"},
		{"encoder.-3", Encoder, 3, "both"},
		{"encoder.+3", Encoder, 0, "kind"},
	} {
		kind, hasKind := kindOf(c.name)
		index, hasIndex := indexOf(c.name)
		says := map[[2]bool]string{{true, true}: "both", {true, false}: "kind", {false, true}: "index"}[[2]bool{hasKind, hasIndex}]
		if says == "" {
			says = "nothing"
		}
		if kind != c.kind || index != c.index || says != c.says {
			t.Errorf("%q is %v %d, says %s; want %v %d, %s", c.name, kind, index, says, c.kind, c.index, c.says)
		}
	}
}

// The kinds of layers without a kind in their names follow from their weights.
func TestUnknownNames(t *testing.T) {
	r := NewRecorder(RecorderOptions{})
	tell(r, "a", softmaxed(1, 1, 2, 5, 3, false))
	tell(r, "b", softmaxed(2, 1, 2, 3, 3, false))
	tell(r, "c", softmaxed(3, 1, 2, 5, 5, true))
	tell(r, "d", softmaxed(4, 1, 2, 3, 3, false))
	got, err := r.Record(Texts{SourceTokens: named("s", 3), TargetTokens: named("t", 5)})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, l := range got.Layers {
		list = append(list, fmt.Sprint(l.Name, " ", l.Kind, " ", l.Index))
	}
	if want := []string{"b encoder 0", "d encoder 1", "c decoder 0", "a cross 0"}; !slices.Equal(list, want) {
		t.Errorf("layers %q, want %q", list, want)
	}
	one := Layer{Heads: 1, Queries: named("q", 1), Keys: named("q", 1), Weights: []float32{1}}
	if k := guessKind(&one); k != Encoder {
		t.Errorf("one token alone is of kind %v, want encoder", k)
	}
}

func TestRecorderStacksSteps(t *testing.T) {
	const h = 2
	whole := softmaxed(5, 1, h, 5, 5, true)
	cross := softmaxed(6, 1, h, 5, 3, false)
	r := NewRecorder(RecorderOptions{})
	for _, step := range [][2]int{{0, 2}, {2, 3}, {3, 5}} { // 2 tokens, 1 and 2
		rows := tensor.Slice(nil, whole, 2, step[0], step[1])
		tell(r, "decoder.0.self", tensor.Slice(nil, rows, 3, 0, step[1]))
		tell(r, "decoder.0.cross", tensor.Slice(nil, cross, 2, step[0], step[1]))
	}
	got, err := r.Record(Texts{SourceTokens: named("s", 3), TargetTokens: named("t", 5), ReadTokens: named("r", 5)})
	if err != nil {
		t.Fatal(err)
	}
	want := []Layer{
		{Name: "decoder.0.self", Kind: Decoder, Heads: h, Queries: named("t", 5), Keys: named("r", 5), Weights: whole.Data()},
		{Name: "decoder.0.cross", Kind: Cross, Heads: h, Queries: named("t", 5), Keys: named("s", 3), Weights: cross.Data()},
	}
	if !reflect.DeepEqual(got.Layers, want) {
		t.Errorf("layers\n%v, want\n%v", got.Layers, want)
	}
}

// The cache was filled before the first observed call: the queries are the last tokens.
func TestRecorderAfterCache(t *testing.T) {
	w := softmaxed(7, 1, 1, 2, 5, true)
	r := NewRecorder(RecorderOptions{})
	tell(r, "decoder.0", w)
	got, err := r.Record(Texts{TargetTokens: named("t", 2), ReadTokens: named("r", 5)})
	if err != nil || !slices.Equal(got.Layers[0].Weights, w.Data()) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestRecorderKeepsWhatWasAsked(t *testing.T) {
	all := map[string]*tensor.Tensor{}
	for i, name := range []string{"encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.0.cross", "layers.2"} {
		all[name] = softmaxed(uint64(i), 3, 4, 5, 5, name == "layers.2")
	}
	texts := Texts{SourceTokens: named("s", 5), TargetTokens: named("t", 5)}
	for _, c := range []struct {
		what string
		o    RecorderOptions
		want []string
	}{
		{"all", RecorderOptions{}, []string{"encoder.0.self", "encoder.1.self", "decoder.0.self", "layers.2", "decoder.0.cross"}},
		{"a kind", RecorderOptions{Kinds: []Kind{Encoder}}, []string{"encoder.0.self", "encoder.1.self"}},
		{"a kind by its weights", RecorderOptions{Kinds: []Kind{Decoder}}, []string{"decoder.0.self", "layers.2"}},
		{"layers", RecorderOptions{Layers: func(name string) bool { return strings.Contains(name, "1") }}, []string{"encoder.1.self"}},
		{"heads", RecorderOptions{Heads: func(name string, h int) bool { return name == "decoder.0.cross" && h%2 == 1 }}, []string{"decoder.0.cross"}},
		{"a sequence", RecorderOptions{Sequence: 2, Kinds: []Kind{Cross}}, []string{"decoder.0.cross"}},
	} {
		r := NewRecorder(c.o)
		for range 2 { // Reset removes the first run
			r.Reset()
			for _, name := range []string{"decoder.0.cross", "layers.2", "encoder.1.self", "encoder.0.self", "decoder.0.self"} {
				tell(r, name, all[name])
			}
		}
		got, err := r.Record(texts)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		var names []string
		for i := range got.Layers {
			l := &got.Layers[i]
			names = append(names, l.Name)
			for h := range l.Heads {
				from := (c.o.Sequence*4 + l.Number(h)) * 25
				if !slices.Equal(l.Head(h), all[l.Name].Data()[from:from+25]) {
					t.Errorf("%s: head %d of %s is not head %d of the model", c.what, h, l.Name, l.Number(h))
				}
			}
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%s: layers %q, want %q", c.what, names, c.want)
		}
	}
}

func TestRecorderCopies(t *testing.T) {
	w := softmaxed(8, 1, 1, 3, 3, false)
	r := NewRecorder(RecorderOptions{})
	tell(r, "encoder.0", w)
	want := slices.Clone(w.Data())
	clear(w.Data())
	got, err := r.Record(Texts{SourceTokens: named("s", 3)})
	if err != nil || !slices.Equal(got.Layers[0].Weights, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	got.Layers[0].Weights[0] = 7
	if again, _ := r.Record(Texts{SourceTokens: named("s", 3)}); again.Layers[0].Weights[0] == 7 {
		t.Error("two records share their weights")
	}
}

// A short sequence of a batch is padded. Its record has no padding.
func TestRecorderCutsPadding(t *testing.T) {
	w := tensor.Zeros(2, 1, 3, 3)
	copy(w.Data()[9:], []float32{0.25, 0.75, 0, 1, 0, 0, 0.5, 0.5, 0})
	r := NewRecorder(RecorderOptions{Sequence: 1})
	tell(r, "encoder.0", w)
	got, err := r.Record(Texts{SourceTokens: named("s", 2)})
	if err != nil || !slices.Equal(got.Layers[0].Weights, []float32{0.25, 0.75, 1, 0}) {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = r.Record(Texts{SourceTokens: named("s", 1)})
	wantError(t, "padding with weight", err, `heads: layer "encoder.0" (encoder): query 0 attends to key 1, but there are 1 tokens`)
}

func TestRecorderRefuses(t *testing.T) {
	type call struct {
		name       string
		b, h, q, k int
	}
	for _, c := range []struct {
		what  string
		o     RecorderOptions
		calls []call
		texts Texts
		want  string
	}{
		{"nothing", RecorderOptions{}, nil, Texts{}, "heads: none of the selected layers was observed"},
		{"no head", RecorderOptions{Heads: func(string, int) bool { return false }}, []call{{"a", 1, 2, 3, 3}}, Texts{}, "heads: none of the selected layers was observed"},
		{"too few tokens", RecorderOptions{}, []call{{"encoder.0", 1, 2, 3, 3}}, Texts{SourceTokens: named("s", 2)},
			`heads: layer "encoder.0" (encoder): weights of 3 queries and 3 keys, but there are 2 and 2 tokens`},
		{"too many tokens of a batch", RecorderOptions{}, []call{{"encoder.0", 2, 2, 3, 3}}, Texts{SourceTokens: named("s", 5)},
			`heads: layer "encoder.0" (encoder): weights of 3 queries and 3 keys, but there are 5 and 5 tokens`},
		{"cross of one text", RecorderOptions{}, []call{{"a", 1, 2, 3, 5}}, Texts{SourceTokens: named("s", 5)},
			`heads: layer "a" (cross): weights of 3 queries and 5 keys, but there are 0 and 5 tokens`},
		{"sequence", RecorderOptions{Sequence: 2}, []call{{"a", 2, 2, 3, 5}}, Texts{}, `heads: layer "a": sequence 2, but the batch has 2`},
		{"negative sequence", RecorderOptions{Sequence: -1}, []call{{"a", 2, 2, 3, 5}}, Texts{}, `heads: layer "a": sequence -1, but the batch has 2`},
		{"another batch", RecorderOptions{}, []call{{"a", 3, 2, 1, 1}, {"a", 2, 2, 1, 2}}, Texts{}, `heads: layer "a": batch size 2 and 2 heads, want 3 and 2 as in the previous call`},
		{"other heads", RecorderOptions{}, []call{{"a", 1, 2, 1, 1}, {"a", 1, 3, 1, 2}}, Texts{}, `heads: layer "a": batch size 1 and 3 heads, want 1 and 2 as in the previous call`},
		{"another run", RecorderOptions{}, []call{{"a", 1, 2, 1, 5}, {"a", 1, 2, 1, 2}, {"a", 9, 9, 9, 9}}, Texts{},
			`heads: layer "a": 2 keys after 5 in the previous call: call Reset before another run`},
	} {
		r := NewRecorder(c.o)
		for _, a := range c.calls {
			tell(r, a.name, softmaxed(1, a.b, a.h, a.q, a.k, false))
		}
		_, err := r.Record(c.texts)
		wantError(t, c.what, err, c.want)
		r.Reset()
		_, err = r.Record(c.texts)
		wantError(t, c.what+", reset", err, "heads: none of the selected layers was observed")
	}
}

func TestManyTokens(t *testing.T) {
	const n = 5000
	w := tensor.Zeros(1, 1, n, n)
	for i := range n {
		w.Data()[i*n+i] = 1
	}
	r := NewRecorder(RecorderOptions{})
	tell(r, "encoder.0", w)
	got, err := r.Record(Texts{SourceTokens: named("s", n)})
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Layers[0].Measure(0, nil); m.Same != 1 || m.Entropy != 0 {
		t.Errorf("measures %+v of the identity", m)
	}
}

func TestMean(t *testing.T) {
	l := Layer{Heads: 2, Queries: named("q", 1), Keys: named("k", 3), Weights: []float32{1, 0, 0, 0.5, 0.25, 0.25}}
	if got, want := l.Mean(), []float32{0.75, 0.125, 0.125}; !slices.Equal(got, want) {
		t.Errorf("mean %v, want %v", got, want)
	}
	r := Record{Layers: []Layer{l, {Kind: Cross, Index: 3}}}
	if r.Layer(Cross, 3) != &r.Layers[1] || r.Layer(Cross, 0) != nil {
		t.Error("Layer returns the wrong layer")
	}
}
