package heads_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/tensor"
)

// signedLayer attends to the previous token with weights of both signs.
func signedLayer() heads.Layer {
	return heads.Layer{
		Name: "decoder.0.self", Kind: heads.Decoder, Heads: 1, Signed: true,
		Queries: []string{"a", "b", "a", "b"}, Keys: []string{"a", "b", "a", "b"},
		Weights: []float32{
			0.5, 0, 0, 0,
			-0.75, 0.25, 0, 0,
			0, 3, -1, 0,
			0, -0.5, -0.25, 0.25,
		},
	}
}

// Measures of signed weights are those of the shares of |w|, without an entropy; other measures stay as they are.
func TestSignedMeasures(t *testing.T) {
	l := signedLayer()
	m := l.Measure(0, nil)
	if !math.IsNaN(m.Entropy) || !math.IsNaN(m.Bound) {
		t.Errorf("entropy %v, bound %v, want NaN", m.Entropy, m.Bound)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"previous", m.Previous, (0.75 + 0.75 + 0.25) / 3}, {"same", m.Same, (1 + 0.25 + 0.25 + 0.25) / 4}, {"first", m.First, (1 + 0.75) / 4},
		{"distance", m.Distance, (0 + 0.75 + 0.75 + 0.5*2 + 0.25) / 4}, {"confidence", m.Confidence, (1 + 0.75 + 0.75 + 0.5) / 4},
		{"induction", m.Induction, (0.75 + 0.25) / 2},
	} {
		if math.Abs(c.got-c.want) > 1e-6 {
			t.Errorf("%s %v, want %v", c.name, c.got, c.want)
		}
	}
	plain := l
	plain.Signed = false
	if !slices.Equal(plain.Shares(0), plain.Head(0)) {
		t.Error("shares of a layer that is not signed are not its weights")
	}
	if l.Weights[4] != -0.75 {
		t.Error("measures change the weights")
	}
	r := heads.Record{Layers: []heads.Layer{l}, Special: []string{"b"}}
	if got := r.WithoutSpecial(true).Layers[0].Weights; !slices.Equal(got, []float32{0.5, 0, 0, -1}) {
		t.Errorf("without special tokens: %v", got)
	}
	mix, err := heads.Rollout(r.Layers)
	if want := []float32{1, 0, 0, 0, 0.375, 0.625}; err != nil || !slices.Equal(mix[:6], want) {
		t.Errorf("rollout %v, %v, want %v", mix, err, want)
	}
}

// A signed layer may have negative weights and any sums, but no NaN.
func TestSignedCheck(t *testing.T) {
	l := signedLayer()
	if found := l.Check(); found != nil {
		t.Errorf("problems %v", found)
	}
	l.Weights[5] = float32(math.NaN())
	if found := l.Check(); len(found) != 1 || found[0].Cause != heads.NotFinite {
		t.Errorf("problems %v", found)
	}
}

// A file keeps that a layer is signed. Without metadata, signed weights are refused.
func TestSignedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	r := &heads.Record{Layers: []heads.Layer{signedLayer()}}
	if err := r.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	got, err := heads.Read(path)
	if err != nil || !got.Layers[0].Signed || !reflect.DeepEqual(got.Layers[0].Weights, r.Layers[0].Weights) {
		t.Errorf("%+v, %v", got, err)
	}
	f := &heads.Film{}
	if err := f.Add(heads.Frame{Record: r}); err != nil {
		t.Fatal(err)
	}
	other := signedLayer()
	other.Signed = false
	if err := f.Add(heads.Frame{Step: 1, Record: &heads.Record{Layers: []heads.Layer{other}}}); err == nil {
		t.Error("a film has frames with signs and without")
	}
}

// A Recorder records the signed weights of a layer without a softmax, with its name and kind.
func TestRecorderOfLinear(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	l, err := linear.NewLayer(linear.LayerConfig{Name: "layers.3.linear", Width: 8, Heads: 2, Beta: 1, Feature: linear.Unit}, rng)
	if err != nil {
		t.Fatal(err)
	}
	x, texts := tensor.Randn(rng, 1, 5, 8), heads.Texts{SourceTokens: []string{"a", "b", "c", "d", "e"}}
	for _, later := range []bool{false, true} {
		recorder := heads.NewRecorder(heads.RecorderOptions{OnRequest: later, ValueNorms: true})
		o := linear.Options{Weights: true}
		o.Observers, o.Inspect = recorder.Callbacks()
		y := l.Forward(nil, x, o)
		r, err := recorder.Record(texts)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Layers[0]
		if got.Name != "layers.3.linear" || got.Kind != heads.Decoder || got.Index != 3 || !got.Signed || len(got.ValueNorms) != 10 {
			t.Errorf("%+v", got)
		}
		if !slices.Equal(slices.Concat(got.Head(0), got.Head(1)), y.Weights.Data()) {
			t.Errorf("on request %v: other weights", later)
		}
	}
}
