package texts

import (
	"context"
	"errors"
	"slices"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// mostTexts bounds the tokens in memory. A batch is usually smaller, since the first lines of a stream are not to wait.
const mostTexts = 1024

// network computes a row of numbers for a text or a pair: its vector, its logits or its score.
type network struct {
	encode  func(ctx context.Context, texts ...string) (x encoded, cut bool, err error)
	forward func(t *tensor.Tape, all []encoded) []float32
	width   int
	name    string // of a row, for errors
}

// encoded is a text, a pair that a model reads as one text, or the query and the document of a pair.
type encoded []*tokenizer.Encoding

// joint returns the network of a model that reads a pair as one text.
func joint(
	encode func(ctx context.Context, texts ...string) (*tokenizer.Encoding, bool, error),
	forward func(t *tensor.Tape, x models.Batch) *tensor.Tensor, width int, name string,
) network {
	return network{func(ctx context.Context, texts ...string) (encoded, bool, error) {
		x, cut, err := encode(ctx, texts...)
		return encoded{x}, cut, err
	}, func(t *tensor.Tape, all []encoded) []float32 {
		return forward(t, models.BatchOf(slices.Concat(all...)...)).Data()
	}, width, name}
}

// run returns the rows of texts.
func (n network) run(ctx context.Context, tape *tensor.Tape, texts []encoded) (rows []float32, err error) {
	if len(texts) == 0 {
		return nil, nil
	}
	tape.Reset()
	tape.SetContext(ctx)
	err = par.Stopped(func() { rows = n.forward(tape, texts) })
	return rows, err
}

// computed returns a filter whose values are computed by a network: read returns the texts or pairs of a line, and use
// receives their rows, and whether a text was truncated.
func computed[V any](
	n network, f filter.Filter[V], read func(l *filter.Line[V]) ([][]string, error), use func(l *filter.Line[V], rows [][]float32, cut bool),
) filter.Filter[V] {
	tape := tensor.NewTape(tensor.Infer)
	f.Mixed = true // forward runs texts of similar lengths together
	f.Work = func(ctx context.Context, batch []*filter.Line[V]) error {
		var list []encoded
		counts, cut := make([]int, len(batch)), make([]bool, len(batch))
		for i, l := range batch {
			all, err := read(l)
			begin := len(list)
			for _, texts := range all {
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					break
				}
				x, shorter, failed := n.encode(ctx, texts...)
				if err = failed; err == nil {
					list, cut[i] = append(list, x), cut[i] || shorter
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if l.Err = err; err != nil { // concerns only this line
				list = list[:begin]
			}
			counts[i] = len(list) - begin
		}
		numbers, err := n.run(ctx, tape, list)
		if err != nil {
			return err
		}
		for i, l := range batch {
			if l.Err != nil {
				continue
			}
			own := numbers[:counts[i]*n.width]
			numbers = numbers[len(own):]
			use(l, slices.Collect(slices.Chunk(own, n.width)), cut[i])
			if slices.ContainsFunc(own, func(x float32) bool { return x-x != 0 }) {
				l.Err = errors.New(n.name + " is not finite")
			}
		}
		return nil
	}
	return f
}
