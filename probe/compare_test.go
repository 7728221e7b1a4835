package probe

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/seq2seq"
)

func pairReference(tb testing.TB, m *models.Model, pairs []seq2seq.Pair) *Reference {
	tb.Helper()
	r, err := NewReference(context.Background(), pairProbe(tb, m, pairs))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// The divergence equals its definition in float64, and the loss equals Probe.Loss.
func TestCompare(t *testing.T) {
	pairs, ctx := toyPairs(101), context.Background()
	for _, c := range headed() {
		m := newShaken(t, c, pairs)
		other := keepHeads(t, m, toyKept(c))
		r := pairReference(t, m, pairs)
		against := pairProbe(t, other, pairs)
		loss, kl := compared(t, r, against)
		want, tokens := 0.0, 0
		for _, batch := range slices.Collect(slices.Chunk(examplesOf(t, m, pairs), 17)) {
			p, _ := Predict(nil, m, batch, models.Run{})
			q, write := Predict(nil, other, batch, models.Run{})
			width := p.Dim(1)
			for i := range write {
				want += divergence(p.Data()[i*width:][:width], q.Data()[i*width:][:width])
			}
			tokens += len(write)
		}
		want /= float64(tokens)
		if math.Abs(kl-want) > 1e-5*want+1e-6 || want < 0.01 {
			t.Errorf("%s: divergence %v, want %v", titleOf(c), kl, want)
		}
		if want, err := against.Loss(ctx); err != nil || math.Abs(loss-want) > 1e-6*want {
			t.Errorf("%s: loss %v, want %v, %v", titleOf(c), loss, want, err)
		}
		if _, kl := compared(t, r, pairProbe(t, keepHeads(t, m, nil), pairs)); kl != 0 {
			t.Errorf("%s: divergence of a copy %v", titleOf(c), kl)
		}
	}
}

// Heads of a small form, and of decoders that attend step by step, are compared with those of the same number.
func TestMoved(t *testing.T) {
	pairs, ctx := toyPairs(23), context.Background()
	for _, c := range headed() {
		m := newShaken(t, c, pairs)
		whole, other := pairProbe(t, m, pairs), keepHeads(t, m, toyKept(c))
		var gone []prune.Head
		for _, l := range whole.Layers() {
			for h := range l.Heads {
				if left, ok := toyKept(c)[l.Name]; ok && !slices.Contains(left, h) {
					gone = append(gone, prune.Head{Layer: l.Name, Number: h})
				}
			}
		}
		gated, err := whole.Without(gone)
		if err != nil {
			t.Fatal(err)
		}
		var both [2]map[string][]float64
		for i, p := range []*Probe{gated, pairProbe(t, other, pairs)} {
			if both[i], err = pairReference(t, m, pairs).Moved(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		far := 0.
		for name, want := range both[0] {
			got := both[1][name]
			for h := range want {
				far = max(far, want[h])
				if len(got) != len(want) || math.Abs(got[h]-want[h]) > 1e-4*want[h]+1e-7 {
					t.Errorf("%s: %s has moved by %v in the small form, %v with gates", titleOf(c), name, got, want)
					break
				}
			}
		}
		less, err := NewReference(ctx, gated)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := less.Moved(ctx, whole); err == nil {
			t.Errorf("%s: heads are compared that the reference lacks", titleOf(c))
		}
		if !(far > 1e-6) {
			t.Errorf("%s: nothing has moved: %v", titleOf(c), both[0])
		}
	}
}

// compared returns the loss and the divergence of a probe, for each token.
func compared(tb testing.TB, r *Reference, p *Probe) (loss, kl float64) {
	tb.Helper()
	list, err := r.Compare(context.Background(), p)
	if err != nil {
		tb.Fatal(err)
	}
	terms := 0
	for _, y := range list {
		loss, kl, terms = loss+y.Loss, kl+y.KL, terms+y.Terms
	}
	return loss / float64(terms), kl / float64(terms)
}

// divergence returns Σ p·ln(p/q) of two rows of logits.
func divergence(p, q []float32) float64 {
	log := func(x []float32) []float64 {
		sum := 0.0
		for _, v := range x {
			sum += math.Exp(float64(v))
		}
		l := wide(x)
		for i := range l {
			l[i] -= math.Log(sum)
		}
		return l
	}
	lp, lq, d := log(p), log(q), 0.0
	for i := range lp {
		d += math.Exp(lp[i]) * (lp[i] - lq[i])
	}
	return d
}

// The logits of a compact model and of one whose heads have gates of 0 agree. The difference is NaN if an output is not finite.
func TestDifference(t *testing.T) {
	pairs, ctx := toyPairs(70), context.Background()
	for _, c := range headed() {
		m := newShaken(t, c, pairs)
		small := keepHeads(t, m, toyKept(c))
		r := pairReference(t, small, pairs)
		largest, scale, err := r.Difference(ctx, masked(t, m, toyKept(c), pairs))
		if err != nil || !(largest <= 1e-5*scale) || !(scale > 0.1) {
			t.Errorf("%s: with gates, the logits differ by %v of %v, %v", titleOf(c), largest, scale, err)
		}
		if largest, scale, _ := r.Difference(ctx, pairProbe(t, m, pairs)); !(largest > 1e-2*scale) {
			t.Errorf("%s: the logits of all heads differ by %v of %v only", titleOf(c), largest, scale)
		}
		if largest, _, _ := r.Difference(ctx, pairProbe(t, small, pairs)); largest != 0 {
			t.Errorf("%s: a model differs from itself by %v", titleOf(c), largest)
		}
	}
	c := headed()[0]
	m := newShaken(t, c, pairs)
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), -math.MaxFloat32} {
		broken := keepHeads(t, m, nil)
		for name, p := range broken.Params() {
			if name == "target.weight" {
				p.Data()[p.Len()-1] = bad // in the row of the last token, which the logits read
			}
		}
		for _, both := range [][2]*models.Model{{m, broken}, {broken, m}, {broken, broken}} {
			largest, scale, err := pairReference(t, both[0], pairs).Difference(ctx, pairProbe(t, both[1], pairs))
			if err != nil || largest <= 1e-4*scale {
				t.Errorf("with %v among the parameters, the logits agree: %v of %v, %v", bad, largest, scale, err)
			}
		}
	}
}

func TestReferenceRefuses(t *testing.T) {
	pairs := toyPairs(9)
	p := pairProbe(t, newToy(t, headed()[0], pairs), pairs)
	r := pairReference(t, p.Model(), pairs)
	other := newToy(t, headed()[0], append(slices.Clone(pairs), seq2seq.Pair{Source: "x", Target: "ab"}))
	other.Network = p.Model().Network // of the same sizes
	if _, err := p.Of(other); err == nil || err.Error() != "probe: Of: the tokenizers of the two models have different tokens" {
		t.Errorf("error %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, one := r.Compare(ended, p)
	_, _, two := r.Difference(ended, p)
	_, three := NewReference(ended, p)
	for _, err := range []error{one, two, three} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
	}
	// Vocabularies that say the same are the same.
	if _, err := p.Of(newToy(t, headed()[0], pairs)); err != nil {
		t.Error(err)
	}
}
