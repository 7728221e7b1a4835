package pruning

import (
	"context"

	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/seq2seq"
)

// gauge measures models on one part of the data, against the whole model.
type gauge struct {
	metric     seq2seq.Metric
	sources    []string
	references [][]string
	reference  *seq2seq.Reference
	whole      measured
}

// measured is what a gauge has found about a model.
type measured struct {
	judged   *seq2seq.Judged
	loss, kl float64
}

func (m measured) value(metric seq2seq.Metric) float64 { return m.judged.Value(metric) }

func newGauge(ctx context.Context, whole *seq2seq.Translator, pairs []seq2seq.Pair, metric seq2seq.Metric) (*gauge, error) {
	g := &gauge{metric: metric}
	g.sources, g.references = seq2seq.Group(pairs)
	var err error
	if g.reference, err = seq2seq.NewReference(ctx, whole, pairs); err != nil {
		return nil, err
	}
	g.whole, err = g.measure(ctx, whole)
	return g, err
}

// measure translates the part and compares with the whole model.
func (g *gauge) measure(ctx context.Context, m *seq2seq.Translator) (seen measured, err error) {
	if seen.loss, seen.kl, err = g.reference.Compare(ctx, m); err != nil {
		return seen, err
	}
	translations, err := m.Translate(ctx, g.sources, seq2seq.Decoding{})
	if err != nil {
		return seen, err
	}
	seen.judged, err = seq2seq.Judge(translations, g.references)
	return seen, err
}

// quality returns what was measured about a model.
func (g *gauge) quality(m *seq2seq.Translator, seen measured) reports.Quality {
	return reports.Quality{
		Parameters: nn.Count(m), Metric: reports.Number(seen.value(g.metric)), Exact: reports.Number(100 * seen.judged.Exact()),
		BLEU: reports.Number(seen.judged.BLEU()), Loss: reports.Number(seen.loss), KL: reports.Number(seen.kl),
	}
}
