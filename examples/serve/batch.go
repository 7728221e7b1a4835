package main

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// batcher embeds the texts of several requests at once: those that arrive while the model runs.
type batcher struct {
	e       *models.Embedder
	waiting chan request
}

// request is the texts of a client, and the channel for their vectors.
type request struct {
	ctx     context.Context
	texts   []*tokenizer.Encoding
	vectors chan [][]float32
}

const mostWaiting = 256 // requests

var errBusy = errors.New("too many requests are waiting")

func newBatcher(e *models.Embedder) *batcher {
	b := &batcher{e, make(chan request, mostWaiting)}
	go b.run()
	return b
}

// embed returns the vectors of texts. A text that cannot be embedded concerns only this request.
func (b *batcher) embed(ctx context.Context, texts []string) ([][]float32, error) {
	q := request{ctx: ctx, vectors: make(chan [][]float32, 1)}
	for _, text := range texts {
		x, _, err := b.e.Encode(text) // the second result reports whether the text was truncated
		if err = errors.Join(ctx.Err(), err); err != nil {
			return nil, err
		}
		q.texts = append(q.texts, x)
	}
	select {
	case b.waiting <- q:
	default:
		return nil, errBusy
	}
	select {
	case vectors := <-q.vectors:
		return vectors, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *batcher) run() {
	tape := tensor.NewTape(tensor.Infer)
	for q := range b.waiting {
		batch, texts := []request{q}, slices.Clone(q.texts)
		for len(b.waiting) > 0 && len(texts) < mostTexts {
			if q := <-b.waiting; q.ctx.Err() == nil {
				batch, texts = append(batch, q), append(texts, q.texts...)
			}
		}
		ctx, cancel := context.WithCancel(context.Background()) // ends when every client has left
		var clients atomic.Int64
		clients.Store(int64(len(batch)))
		for _, q := range batch {
			context.AfterFunc(q.ctx, func() {
				if clients.Add(-1) == 0 {
					cancel()
				}
			})
		}
		tape.Reset()
		tape.SetContext(ctx)
		var all []float32
		err := tensor.Catch(func() { all = slices.Clone(b.e.Forward(tape, models.BatchOf(texts...)).Data()) })
		cancel()
		if err != nil { // no client is left
			continue
		}
		vectors := slices.Collect(slices.Chunk(all, b.e.Width()))
		for _, q := range batch {
			q.vectors <- vectors[:len(q.texts)]
			vectors = vectors[len(q.texts):]
		}
	}
}
