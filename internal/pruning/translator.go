package pruning

import (
	"context"
	"errors"
	"fmt"

	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// Translations is the task of a translator of attn train.
type Translations struct {
	// Judge is what its translations are judged by.
	Judge train.Metric
	// Learn are pairs for fine-tuning, Rate the largest learning rate, and Smoothing that
	// of the labels, as the model was trained.
	Learn     []seq2seq.Pair
	Rate      float64
	Smoothing float32
	Seed      uint64
	// Faster says that the goal is one of speed: what it is held against comes first.
	Faster bool

	model *seq2seq.Translator
	parts Parts
}

var _ Task[*seq2seq.Probe] = (*Translations)(nil)

// NewTranslations returns the task of a translator, with the scoring part of the data for
// fine-tuning.
func NewTranslations(m *seq2seq.Translator, parts Parts, judge train.Metric) *Translations {
	return &Translations{Judge: judge, Learn: parts.Score, Rate: 0.001, model: m, parts: parts}
}

// Parts returns the data.
func (x *Translations) Parts() Parts { return x.parts }

// Metric returns BLEU or exact match.
func (x *Translations) Metric() Metric { return judgedBy(x.Judge) }

func judgedBy(m train.Metric) Metric {
	if m == train.MetricExact {
		return Metric{Name: m.String(), Unit: "%"}
	}
	return Metric{Name: m.String()}
}

// LossUnit returns that of the cross entropy.
func (x *Translations) LossUnit() string { return "nats per token" }

// Parameters returns how many there are.
func (x *Translations) Parameters(p *seq2seq.Probe) int { return nn.Count(p.Translator()) }

// Gauge returns what translates a part and compares with the whole model.
func (x *Translations) Gauge(ctx context.Context, whole *seq2seq.Probe, part Part) (Gauge[*seq2seq.Probe], error) {
	pairs := x.parts.Select
	if part == Reporting {
		pairs = x.parts.Report
	}
	g := &translations{judge: x.Judge}
	g.sources, g.references = train.Group(pairs)
	var err error
	g.reference, err = seq2seq.NewReference(ctx, whole.Translator(), pairs)
	return g, err
}

// translations measures translators on one part of the data.
type translations struct {
	judge      train.Metric
	sources    []string
	references [][]string
	reference  *seq2seq.Reference
}

func (g *translations) Measure(ctx context.Context, p *seq2seq.Probe) (Measured, error) {
	m := p.Translator()
	loss, kl, err := g.reference.Compare(ctx, m)
	if err != nil {
		return Measured{}, err
	}
	written, err := m.Translate(ctx, g.sources, seq2seq.Decoding{})
	if err != nil {
		return Measured{}, err
	}
	seen, err := judged(written, g.references, g.judge)
	seen.Loss, seen.KL = loss, kl
	return seen, err
}

// judged returns what translations are worth by a metric, and by the other one.
func judged(written []string, references [][]string, by train.Metric) (Measured, error) {
	j, err := train.Judge(written, references)
	if err != nil {
		return Measured{}, err
	}
	seen := Measured{Items: j.Len(), Of: func(sample []int) float64 { return j.Sample(by, sample) }, Value: j.Value(by)}
	for _, m := range []train.Metric{train.MetricExact, train.MetricBLEU} {
		if m != by {
			other := judgedBy(m)
			seen.Others = append(seen.Others, reports.Named{Name: other.Name, Unit: other.Unit, Value: reports.Number(j.Value(m))})
		}
	}
	return seen, nil
}

// Train trains a translator for some steps on the pairs of Learn.
func (x *Translations) Train(ctx context.Context, p *seq2seq.Probe, steps, round int, tell func(done, all int)) error {
	settings := train.Settings{
		Epochs: 1, Batch: min(64, len(x.Learn)), LR: x.Rate, Warmup: max(1, steps/10), Smoothing: x.Smoothing, Clip: 1, MaxLength: longest(x.model, x.parts.Score),
		Seed: x.Seed + uint64(round),
	}
	done := 0
	err := train.FineTune(ctx, p.Translator(), x.Learn, settings, steps, func(train.Progress) {
		done++
		tell(done, steps)
	})
	if errors.Is(err, train.ErrDiverged) {
		return &CheckError{fmt.Sprintf("fine-tuning: %v", err)}
	}
	return err
}

// longest returns how many tokens a pair may have that is learnt: as many as one that
// heads were scored on, or as are usual.
func longest(m *seq2seq.Translator, pairs []seq2seq.Pair) int {
	const usual = 200
	n := usual
	for _, p := range pairs {
		n = max(n, len(m.Source.Encode(p.Source))+1, len(m.Target.Encode(p.Target))+1)
	}
	return n
}

// Masked returns a pruned translator in the shapes of the whole one, and by how much its
// logits differ at most, on the selecting part. It is a *CheckError if that is not
// rounding.
func (x *Translations) Masked(ctx context.Context, compact *seq2seq.Translator) (masked *seq2seq.Translator, difference float64, err error) {
	masked = compact.Expand()
	reference, err := seq2seq.NewReference(ctx, compact, x.parts.Select)
	if err != nil {
		return nil, 0, err
	}
	largest, scale, err := reference.Difference(ctx, masked)
	if err != nil {
		return nil, 0, err
	}
	return masked, largest, Agree(largest, scale)
}
