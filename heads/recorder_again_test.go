package heads

import (
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

// both returns the records of two identical runs: with stored weights and with weights on request.
func both(t *testing.T, o RecorderOptions, texts Texts, run func([]attn.Observer, attn.Inspector)) (kept, asked *Record) {
	t.Helper()
	var records [2]*Record
	for i := range records {
		o.OnRequest = i == 1
		r := NewRecorder(o)
		run(r.Callbacks())
		var err error
		if records[i], err = r.Record(texts); err != nil {
			t.Fatal(err)
		}
	}
	return records[0], records[1]
}

// Weights computed on request equal the stored weights bit for bit: for layers whose heads share keys, for
// selected heads, for one sequence of a padded batch, for steps, and for names with and without a kind.
func TestRecorderOnRequest(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 3))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 30, Heads: 6, KVHeads: 3, HeadSize: 5}, rng)
	if err != nil {
		t.Fatal(err)
	}
	x, y := tensor.Randn(rng, 2, 11, 30), tensor.Randn(rng, 2, 7, 30)
	lens := []int{11, 9}
	run := func(observers []attn.Observer, inspect attn.Inspector) {
		attend := func(name string, q, k *tensor.Tensor, o attn.Options) {
			o.Layer, o.Observers, o.Inspect = name, observers, inspect
			layer.Forward(nil, q, k, k, o)
		}
		attend("encoder.0", x, x, attn.Options{KeyLens: lens, QueryLens: lens})
		attend("encoder.1", x, x, attn.Options{KeyLens: lens, QueryLens: lens})
		attend("layers.0", y, y, attn.Options{Mask: mask.Causal()})
		attend("layers.1", y, x, attn.Options{KeyLens: lens})
		cache, err := layer.NewCache(2, attn.CacheConfig{})
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range [][2]int{{0, 4}, {4, 5}, {5, 7}} {
			layer.Extend(nil, tensor.Slice(nil, y, 1, at[0], at[1]), cache, attn.Options{
				Mask: mask.Causal(), Layer: "decoder.0", Observers: observers, Inspect: inspect})
		}
		for to := range 7 { // a step for each query
			keys := tensor.Slice(nil, y, 1, 0, to+1)
			attend("decoder.1", tensor.Slice(nil, y, 1, to, to+1), keys, attn.Options{})
		}
	}
	o := RecorderOptions{Sequence: 1, ValueNorms: true, Heads: func(layer string, h int) bool { return layer != "encoder.1" || h%2 == 1 }}
	kept, asked := both(t, o, Texts{SourceTokens: named("s", 9), TargetTokens: named("t", 7)}, run)
	if len(asked.Layers) != 6 || len(kept.Layers) != 6 {
		t.Fatalf("%d layers of %d", len(asked.Layers), len(kept.Layers))
	}
	for i := range kept.Layers {
		k, a := &kept.Layers[i], &asked.Layers[i]
		if a.Weights != nil || a.Held == 0 || k.Held != 0 {
			t.Errorf("%s: %d weights are kept, and %d bytes", a.Name, len(a.Weights), a.Held)
		}
		if a.Name != k.Name || a.Kind != k.Kind || a.Index != k.Index || a.Heads != k.Heads || !slices.Equal(a.Chosen, k.Chosen) ||
			!slices.Equal(a.Queries, k.Queries) || !slices.Equal(a.Keys, k.Keys) || !slices.Equal(a.ValueNorms, k.ValueNorms) {
			t.Errorf("layer %s differs from %s", a.Name, k.Name)
		}
		for h := range k.Heads {
			if !slices.Equal(a.Head(h), k.Head(h)) {
				t.Errorf("%s: the weights of head %d on request differ", a.Name, h)
			}
		}
		if !slices.Equal(a.Mean(), k.Mean()) {
			t.Errorf("%s: the mean on request differs", a.Name)
		}
	}
}

// The bytes that a layer retains are those of all its steps.
func TestRecorderHeldBytes(t *testing.T) {
	r := NewRecorder(RecorderOptions{OnRequest: true})
	for i, bytes := range []int{100, 30, 7} {
		r.Inspect("decoder.0.self", attn.Parts{
			Sizes: attn.Sizes{B: 1, H: 1, Lq: 1, Lk: i + 1}, RetainedBytes: bytes,
			Weights: func(int, int) []float32 { return make([]float32, i+1) },
		})
	}
	record, err := r.Record(Texts{SourceTokens: named("s", 3)})
	if err != nil {
		t.Fatal(err)
	}
	if got := record.Layers[0].Held; got != 137 {
		t.Errorf("%d bytes are retained, want 137", got)
	}
}

func TestRecorderOnRequestRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 3))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 6, Heads: 2, Name: "decoder.0"}, rng)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecorder(RecorderOptions{OnRequest: true})
	observers, inspect := r.Callbacks()
	if observers != nil {
		t.Error("Callbacks returns the recorder although weights are computed on request")
	}
	x := tensor.Randn(rng, 1, 3, 6)
	layer.Forward(nil, x, x, x, attn.Options{Inspect: inspect})
	record, err := r.Record(Texts{SourceTokens: named("s", 3)})
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Write(io.Discard); err == nil || !strings.Contains(err.Error(), "its weights are computed on request and cannot be saved; record without OnRequest") {
		t.Errorf("written with %v", err)
	}
	r = NewRecorder(RecorderOptions{OnRequest: true})
	layer.Forward(nil, x, x, x, attn.Options{Layer: "encoder", Inspect: r.Inspect, KeyLens: []int{3}})
	_, err = r.Record(Texts{SourceTokens: named("s", 2)})
	wantError(t, "tokens", err, `heads: layer "encoder" (encoder): weights of 3 queries and 3 keys, but there are 2 and 2 tokens`)
}
