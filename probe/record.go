package probe

import (
	"context"
	"errors"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// RecordTexts is Record of a text, or of two: see Read.
func RecordTexts(ctx context.Context, m *models.Model, first, second string, o heads.RecorderOptions) (*heads.Record, error) {
	r, err := Read(m, first, second)
	if err != nil {
		return nil, err
	}
	return Record(ctx, r, o)
}

// Record runs the model of a reading and returns the attention weights of all its layers. An encoder–decoder without a
// target generates it first. Tokens that a decoder has generated have the weights of the step that read them.
//
// Errors: those of heads.Recorder and, without a target, of Reading.Generate; too many tokens; ctx.Err() if ctx
// ends.
func Record(ctx context.Context, r Reading, o heads.RecorderOptions) (*heads.Record, error) {
	var err error
	if r.Target == nil && r.Model().Sizes().Decoder != nil {
		if r, err = r.Generate(ctx, models.Generation{}); err != nil {
			return nil, err
		}
	}
	x, err := r.Batch()
	if err != nil {
		return nil, err
	}
	texts, err := r.texts()
	if err != nil {
		return nil, err
	}
	return recorded(ctx, r.Model(), x, texts, o)
}

// FindExamples runs a model on texts, as one batch, and adds its rows to the examples of its heads. numbers are those
// of the texts in heads.Example. An encoder–decoder needs targets: see Reading.Generate.
//
// Errors: those of Reading.Batch; ctx.Err() if ctx ends, and then the examples are those of the layers that were
// computed.
func FindExamples(ctx context.Context, e *heads.Examples, numbers []int, list ...Reading) error {
	var all models.Batch
	var texts []heads.Texts
	for _, r := range list {
		x, err := r.Batch()
		if err != nil {
			return err
		}
		t, err := r.texts()
		if err != nil {
			return err
		}
		texts = append(texts, t)
		all.IDs, all.Types, all.Targets = append(all.IDs, x.IDs...), append(all.Types, x.Types...), append(all.Targets, x.Targets...)
	}
	if len(list) == 0 {
		return nil
	}
	e.Read(numbers, texts...)
	tape := tensor.NewTape(tensor.Infer)
	tape.SetContext(ctx)
	return par.Stopped(func() { list[0].Model().Hidden(tape, all, models.Run{Observers: []attn.Observer{e}}) })
}

// texts returns the texts and tokens of a reading.
func (r Reading) texts() (heads.Texts, error) {
	l, err := r.Labels()
	return heads.Texts{
		Source: r.First, Target: r.Second, SourceTokens: l.Source, TargetTokens: l.Target, ReadTokens: l.Read, Special: l.Special,
	}, err
}

// recorded runs a model and returns the record, in which heads have their numbers from the
// unpruned model and their shared key/value heads.
func recorded(
	ctx context.Context, m *models.Model, x models.Batch, texts heads.Texts, o heads.RecorderOptions,
) (*heads.Record, error) {
	layers := map[string]attn.LayerHeads{}
	some := false
	for _, l := range m.HeadLayers() {
		layers[l.Name], some = l, some || l.Heads > 0
	}
	if len(layers) > 0 && !some {
		return nil, errors.New("the model has no attention heads left, so it has no weights to record")
	}
	recorder := heads.NewRecorder(o)
	observers, inspect := recorder.Callbacks()
	var tape *tensor.Tape
	if inner := inspect; o.OnRequest { // the record keeps tensors, and with them all memory of a tape
		inspect = func(layer string, p attn.Parts) { par.Check(ctx); inner(layer, p) }
	} else {
		tape = tensor.NewTape(tensor.Infer)
		tape.SetContext(ctx)
	}
	if err := par.Stopped(func() { m.Hidden(tape, x, models.Run{Observers: observers, Inspect: inspect}) }); err != nil {
		return nil, err
	}
	r, err := recorder.Record(texts)
	if err != nil {
		return r, err
	}
	for i := range r.Layers {
		l := &r.Layers[i]
		c, ok := layers[l.Name]
		if !ok { // attention without a layer
			continue
		}
		if left, some := m.LeftHeads(c.Name); some {
			if l.Chosen != nil {
				left = stats.Pick(left, l.Chosen)
			}
			l.Chosen = left
		}
		if c.Group <= 1 || c.Signed || c.Fused {
			continue
		}
		l.KeyHeads = make([]int, l.Heads)
		for h := range l.KeyHeads {
			l.KeyHeads[h] = l.Number(h) / c.Group
		}
	}
	return r, nil
}
