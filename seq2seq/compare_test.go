package seq2seq

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
)

func newReference(tb testing.TB, m *Translator, pairs []Pair) *Reference {
	tb.Helper()
	r, err := NewReference(context.Background(), m, pairs)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// The divergence is that of its definition, in float64; the loss is Translator.Loss.
func TestCompare(t *testing.T) {
	pairs, ctx := toyPairs(101), context.Background()
	for _, c := range headed() {
		m := newShaken(t, c, pairs)
		other := keep(t, m, toyKept(c))
		r := newReference(t, m, pairs)
		loss, kl, err := r.Compare(ctx, other)
		if err != nil {
			t.Fatal(err)
		}
		want, tokens := 0.0, 0
		for _, batch := range r.batches {
			p, _ := m.logits(nil, batch, hooks{})
			q, write := other.logits(nil, batch, hooks{})
			width := p.Dim(1)
			for i := range write {
				want += divergence(p.Data()[i*width:][:width], q.Data()[i*width:][:width])
			}
			tokens += len(write)
		}
		want /= float64(tokens)
		if math.Abs(kl-want) > 1e-5*want+1e-6 || want < 0.01 {
			t.Errorf("%s: divergence %v, want %v", c.name(), kl, want)
		}
		if want, err := other.Loss(ctx, pairs); err != nil || loss != want {
			t.Errorf("%s: loss %v, want %v, %v", c.name(), loss, want, err)
		}
		if _, kl, err := r.Compare(ctx, keep(t, m, nil)); kl != 0 || err != nil {
			t.Errorf("%s: divergence of a copy %v, %v", c.name(), kl, err)
		}
	}
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

// A compact model and its expansion agree; a NaN or an infinity anywhere does not.
func TestDifference(t *testing.T) {
	pairs, ctx := toyPairs(70), context.Background()
	for _, c := range headed() {
		m := newShaken(t, c, pairs)
		small := keep(t, m, toyKept(c))
		r := newReference(t, small, pairs)
		largest, scale, err := r.Difference(ctx, small.Expand())
		if err != nil || !(largest <= 1e-5*scale) || !(scale > 0.1) {
			t.Errorf("%s: expanded, the logits differ by %v of %v, %v", c.name(), largest, scale, err)
		}
		if largest, scale, _ := r.Difference(ctx, m); !(largest > 1e-2*scale) {
			t.Errorf("%s: the logits of all heads differ by %v of %v only", c.name(), largest, scale)
		}
		if largest, _, _ := r.Difference(ctx, small); largest != 0 {
			t.Errorf("%s: a model differs from itself by %v", c.name(), largest)
		}
	}
	c := headed()[0]
	m := newShaken(t, c, pairs)
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), -math.MaxFloat32} {
		broken := keep(t, m, nil)
		for name, p := range broken.Params() {
			if name == "target.weight" {
				p.Data()[p.Len()-1] = bad // of the last token, which logits are made of
			}
		}
		for _, both := range [][2]*Translator{{m, broken}, {broken, m}, {broken, broken}} {
			largest, scale, err := newReference(t, both[0], pairs).Difference(ctx, both[1])
			if err != nil || largest <= 1e-4*scale {
				t.Errorf("with %v among the parameters, the logits agree: %v of %v, %v", bad, largest, scale, err)
			}
		}
	}
}

func TestReferenceRefuses(t *testing.T) {
	pairs, ctx := toyPairs(9), context.Background()
	m := newToy(t, headed()[0], pairs)
	r := newReference(t, m, pairs)
	other := newToy(t, headed()[0], append(pairs, Pair{"x", "ab"}))
	_, _, one := r.Compare(ctx, other)
	_, _, two := r.Difference(ctx, other)
	_, three := NewReference(ctx, m, nil)
	for _, err := range []error{one, two, three} {
		if err == nil || !strings.HasPrefix(err.Error(), "seq2seq: ") {
			t.Errorf("error %v", err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, _, one = r.Compare(ended, m)
	_, _, two = r.Difference(ended, m)
	_, three = NewReference(ended, m, pairs)
	for _, err := range []error{one, two, three} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
	}
	// Vocabularies that say the same are the same.
	again := newToy(t, headed()[0], pairs)
	if _, _, err := r.Compare(ctx, again); err != nil {
		t.Error(err)
	}
}
