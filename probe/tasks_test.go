package probe_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// similarProbe returns a probe on pairs of texts.
func similarProbe(t *testing.T, dir string, pairs [][2]string, cosine func(i int) float64) *probe.Probe {
	t.Helper()
	e, err := models.LoadEmbedder("../models/testdata/"+dir, models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	var list []probe.SimilarPair
	for i, p := range pairs {
		first, _, err := e.Encode(t.Context(), p[0])
		if err != nil {
			t.Fatal(err)
		}
		second, _, err := e.Encode(t.Context(), p[1])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, probe.SimilarPair{First: first, Second: second, Cosine: cosine(i)})
	}
	p, err := probe.NewSimilarity(e, list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The loss of a text is its vector's distance from the target: 0 for the model itself, and 1 minus the cosine without heads.
func TestVectorProbe(t *testing.T) {
	texts := []string{"the cat", "a dog sat in the sun", "who ?", "the cat sat on the mat", "a"}
	for _, dir := range []string{"sentence_dense", "sentence_mean"} {
		e, err := models.LoadEmbedder("../models/testdata/"+dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		list := make([]*tokenizer.Encoding, len(texts))
		for i, text := range texts {
			if list[i], _, err = e.Encode(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		vectors, err := e.Embed(context.Background(), texts...)
		if err != nil {
			t.Fatal(err)
		}
		p, err := probe.NewVector(e, list, tensor.Scale(nil, vectors, 3)) // lengths do not count
		if err != nil {
			t.Fatal(err)
		}
		if loss := lossOf(t, p); !(math.Abs(loss) <= 1e-6) {
			t.Errorf("%s: the model is %v from itself", dir, loss)
		}
		less := without(t, p, gone(p.Layers(), removals["even"]))
		_, small := writeCompact(t, less, t.TempDir(), models.Options{Trainable: true})
		other := *e
		other.Model = small
		got := other.Forward(nil, models.BatchOf(list...))
		each, err := less.Losses(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for i, y := range each {
			rows := [2]*tensor.Tensor{tensor.Slice(nil, got, 0, i, i+1), tensor.Slice(nil, vectors, 0, i, i+1)}
			dot := func(a, b *tensor.Tensor) float64 { return float64(tensor.MatMulT(nil, a, b).Item()) }
			want := dot(rows[0], rows[1]) / math.Sqrt(dot(rows[0], rows[0])*dot(rows[1], rows[1]))
			if !(math.Abs(y.Cosine-want) <= 1e-5) || y.Loss != 1-y.Cosine || y.Terms != 1 || want > 0.9999 {
				t.Errorf("%s: text %d: %+v, want cosine %v", dir, i, y, want)
			}
		}
		scores, err := prune.Importance(context.Background(), p, prune.ImportanceOptions{Methods: []prune.Method{prune.LeaveOneOut}})
		if err != nil || !slices.ContainsFunc(scores[0].Flat(p.Layers()), func(v float64) bool { return v > 1e-5 }) {
			t.Errorf("%s: no head matters: %v (%v)", dir, scores, err)
		}
		if _, err := probe.NewVector(e, list[:4], vectors); err == nil {
			t.Errorf("%s: 4 texts and 5 vectors", dir)
		}
		if _, err := probe.NewVector(e, nil, tensor.Zeros(0, vectors.Dim(1))); err == nil {
			t.Errorf("%s: no texts", dir)
		}
	}
}

// TestSimilarityProbe compares the loss of pairs with the cosines of the vectors of their
// texts, and importance with the loss without a head.
func TestSimilarityProbe(t *testing.T) {
	pairs := [][2]string{{"the cat", "a dog sat in the sun"}, {"who ?", "run"}, {"the cat sat on the mat", "the mat"}, {"a", "a"}, {"dog", "the sun sleeps"}}
	wanted := func(i int) float64 { return float64(i) / 5 }
	for _, dir := range []string{"sentence_dense", "sentence_mean", "sentence_lower", "sentence_old"} {
		p := similarProbe(t, dir, pairs, wanted)
		e, err := models.LoadEmbedder("../models/testdata/"+dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		r, err := probe.NewReference(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		list, err := r.Compare(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		want := 0.
		for i, texts := range pairs {
			v, err := e.Embed(t.Context(), texts[0], texts[1])
			if err != nil {
				t.Fatal(err)
			}
			var uv, uu, vv float64
			for j := range e.Width() {
				a, b := float64(v.At(0, j)), float64(v.At(1, j))
				uv, uu, vv = uv+a*b, uu+a*a, vv+b*b
			}
			cosine := uv / math.Sqrt(uu*vv)
			if math.Abs(list[i].Cosine-cosine) > 1e-5 || !math.IsNaN(list[i].KL) {
				t.Errorf("%s: pair %d is %+v, want cosine %v", dir, i, list[i], cosine)
			}
			want += (cosine - wanted(i)) * (cosine - wanted(i)) / float64(len(pairs))
		}
		if got := lossOf(t, p); math.Abs(got-want) > 1e-5 {
			t.Errorf("%s: loss %v, want %v", dir, got, want)
		}
		scores, err := prune.Importance(context.Background(), p, prune.ImportanceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		layer := p.Layers()[1]
		for _, s := range scores {
			for _, v := range s.Flat(p.Layers()) {
				if math.IsNaN(v) {
					t.Errorf("%s: %v has %v", dir, s.Method, s.Values)
					break
				}
			}
			less, err := p.Without([]prune.Head{{Layer: layer.Name, Number: 1}})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := s.Values[layer.Name][1], lossOf(t, less)-lossOf(t, p); s.Method == prune.LeaveOneOut && math.Abs(got-want) > 1e-6 {
				t.Errorf("%s: leave-one-out says %v, the loss %v", dir, got, want)
			}
		}
		// The gate of a pair is that of both texts: Σ of the gradient of each pair alone.
		sum := 0.
		for i := range pairs {
			one := similarProbe(t, dir, pairs[i:i+1], func(int) float64 { return wanted(i) })
			alone, err := prune.Importance(context.Background(), one, prune.ImportanceOptions{Methods: []prune.Method{prune.Gradient}})
			if err != nil {
				t.Fatal(err)
			}
			sum += alone[0].Values[layer.Name][1] / float64(len(pairs))
		}
		at := slices.IndexFunc(scores, func(s prune.Scores) bool { return s.Method == prune.Gradient })
		if got := scores[at].Values[layer.Name][1]; math.Abs(got-sum) > 1e-5*sum {
			t.Errorf("%s: the gradient says %v, that of each pair alone %v", dir, got, sum)
		}
	}
	e, err := models.LoadEmbedder("../models/testdata/sentence_mean", models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	x, _, err := e.Encode(t.Context(), "the cat")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		list []probe.SimilarPair
		want string
	}{
		{nil, "probe: NewSimilarity: no pairs, want one or more"},
		{[]probe.SimilarPair{{First: x, Second: x, Cosine: 1.5}}, "probe: NewSimilarity: pair 0 has cosine 1.5, want -1 to 1"},
		{[]probe.SimilarPair{{First: x, Second: x}, {First: x, Second: x, Cosine: math.NaN()}}, "probe: NewSimilarity: pair 1 has cosine NaN, want -1 to 1"},
	} {
		if _, err := probe.NewSimilarity(e, c.list); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// translationExamples returns random sources and targets of different lengths.
func translationExamples(m *models.Model, n int) []probe.Example {
	rng := rand.New(rand.NewPCG(3, 5))
	var list []probe.Example
	for i := range n {
		var e probe.Example
		for range 2 + i%5 {
			e.IDs = append(e.IDs, rng.IntN(m.Sizes().Vocabulary))
		}
		for range 1 + i%7 {
			e.Reads, e.Targets = append(e.Reads, rng.IntN(m.Sizes().Decoder.Vocabulary)), append(e.Targets, rng.IntN(m.Sizes().Decoder.Vocabulary))
		}
		list = append(list, e)
	}
	return list
}

// TestTranslationProbe compares the loss with −ln softmax of the logits of each example
// alone, and importance with the loss without a head.
func TestTranslationProbe(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: trains")
	}
	dirs, err := filepath.Glob(testdata + "seq2seq/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no encoder-decoders: %v", err)
	}
	for _, dir := range dirs {
		m, err := models.Load(dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		examples := translationExamples(m, 13)
		p, err := probe.New(m, examples)
		if err != nil {
			t.Fatal(err)
		}
		want, terms := 0., 0
		for _, e := range examples {
			x := models.Batch{IDs: [][]int{e.IDs}, Targets: [][]int{e.Reads}}
			logits := m.Head().Logits(nil, m.Hidden(nil, x, models.Run{}))
			v := logits.Dim(-1)
			for i, target := range e.Targets {
				sum := 0.
				for _, x := range logits.Data()[i*v : (i+1)*v] {
					sum += math.Exp(float64(x))
				}
				want += math.Log(sum) - float64(logits.Data()[i*v+target])
				terms++
			}
		}
		if got := lossOf(t, p); math.Abs(got-want/float64(terms)) > 1e-4*want/float64(terms) {
			t.Errorf("%s: loss %v, want %v", dir, got, want/float64(terms))
		}
		scores, err := prune.Importance(context.Background(), p, prune.ImportanceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scores {
			for _, v := range s.Flat(p.Layers()) {
				if math.IsNaN(v) {
					t.Errorf("%s: %v has %v", dir, s.Method, s.Values)
					break
				}
			}
			layers := p.Layers() // of the encoder first, to the source last
			for _, l := range []attn.LayerHeads{layers[0], layers[len(layers)-2], layers[len(layers)-1]} {
				layer := l.Name
				less, err := p.Without([]prune.Head{{Layer: layer, Number: 0}})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := s.Values[layer][0], lossOf(t, less)-lossOf(t, p); s.Method == prune.LeaveOneOut && math.Abs(got-want) > 1e-4 {
					t.Errorf("%s: leave-one-out says %v of %s, the loss %v", dir, got, layer, want)
				}
			}
		}
		// Padding is no query, neither of the source nor of the target.
		alone := 0.
		queries := 0
		for _, e := range examples {
			one, err := probe.New(m, []probe.Example{e})
			if err != nil {
				t.Fatal(err)
			}
			s, err := prune.Importance(context.Background(), one, prune.ImportanceOptions{Methods: []prune.Method{prune.Confidence}})
			if err != nil {
				t.Fatal(err)
			}
			alone, queries = alone+s[0].Values["decoder.0.cross"][0]*float64(len(e.Reads)), queries+len(e.Reads)
		}
		at := slices.IndexFunc(scores, func(s prune.Scores) bool { return s.Method == prune.Confidence })
		if got, want := scores[at].Values["decoder.0.cross"][0], alone/float64(queries); math.Abs(got-want) > 1e-5 {
			t.Errorf("%s: confidence %v, want %v", dir, got, want)
		}

		written, err := p.Write(context.Background(), [][]int{examples[0].IDs}, models.Generation{Tokens: 7, Ends: []int{}})
		whole, err2 := m.Write(context.Background(), [][]int{examples[0].IDs}, models.Generation{Tokens: 7, Ends: []int{}})
		if errors.Join(err, err2) != nil || !slices.Equal(written[0], whole[0]) {
			t.Errorf("%s: it writes %v, the model %v (%v, %v)", dir, written, whole, err, err2)
		}
		var all []prune.Head
		for _, l := range p.Layers() {
			for h := range l.Heads {
				all = append(all, prune.Head{Layer: l.Name, Number: h})
			}
		}
		none, err := p.Without(all)
		if err != nil {
			t.Fatal(err)
		}
		// Without any head it cannot tell sources apart.
		without, err := none.Write(context.Background(), [][]int{examples[0].IDs, examples[1].IDs}, models.Generation{Tokens: 7, Ends: []int{}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(without[0], without[1]) {
			t.Errorf("%s: without heads it writes %v and %v", dir, without[0], without[1])
		}
		if _, err := probe.New(m, []probe.Example{{IDs: []int{1}, Targets: []int{1}}}); err == nil || !strings.Contains(err.Error(), "example 0 has nothing for the decoder to read") {
			t.Errorf("%s: without a target: %v", dir, err)
		}
	}
}
