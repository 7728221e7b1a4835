package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// batcher runs a model on the texts of several requests at once: those that arrive while it runs.
type batcher struct {
	mostTokens int // of a text
	encode     encode
	forward    func(*tensor.Tape, models.Batch) *tensor.Tensor // returns a row for each text

	waiting chan request
	tokens  atomic.Int64 // of the waiting requests, at most
}

// encode returns the tokens of a text or of a pair, and whether they were truncated.
type encode func(ctx context.Context, texts ...string) (*tokenizer.Encoding, bool, error)

// request is the tokens of a client's texts, and the channel for their rows.
type request struct {
	ctx    context.Context
	texts  models.Batch
	tokens int // counted in batcher.tokens while the request waits
	done   chan result
}

type result struct {
	rows [][]float32
	err  error
}

// Limits of what waits. A waiting token takes 16 bytes.
const (
	mostWaiting = 256     // requests
	mostTokens  = 1 << 18 // tokens, unless nothing else waits
)

var errBusy = errors.New("too many requests are waiting, try again later")

func newBatcher(most int, e encode, forward func(*tensor.Tape, models.Batch) *tensor.Tensor) *batcher {
	b := &batcher{mostTokens: most, encode: e, forward: forward, waiting: make(chan request, mostWaiting)}
	go b.loop()
	return b
}

// run returns the row of each input, which is a text or a pair. One that cannot be encoded concerns only this request.
func (b *batcher) run(ctx context.Context, inputs [][]string) ([][]float32, error) {
	q := request{ctx: ctx, done: make(chan result, 1)}
	for _, texts := range inputs {
		bytes := 0
		for _, text := range texts {
			bytes += len(text)
		}
		q.tokens += min(bytes+3, b.mostTokens) // a token of most tokenizers is at least a byte, unless it is special
	}
	// The tokens are counted before there are any: encoding takes memory, too.
	if all := b.tokens.Add(int64(q.tokens)); all > mostTokens && all > int64(q.tokens) {
		b.tokens.Add(-int64(q.tokens))
		return nil, errBusy
	}
	err := b.enter(&q, inputs)
	if err != nil {
		b.tokens.Add(-int64(q.tokens))
		return nil, err
	}
	select {
	case r := <-q.done:
		return r.rows, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// enter encodes the inputs of a request, which then waits.
func (b *batcher) enter(q *request, inputs [][]string) error {
	for i, texts := range inputs {
		if err := q.ctx.Err(); err != nil {
			return err
		}
		x, _, err := b.encode(q.ctx, texts...)
		if err != nil {
			return fmt.Errorf("text %d: %w", i, err)
		}
		q.texts = join(q.texts, models.BatchOf(x))
	}
	select {
	case b.waiting <- *q:
		return nil
	default:
		return errBusy
	}
}

func join(a, b models.Batch) models.Batch {
	return models.Batch{IDs: append(a.IDs, b.IDs...), Types: append(a.Types, b.Types...)}
}

func (b *batcher) loop() {
	tape := tensor.NewTape(tensor.Infer)
	for q := range b.waiting {
		batch, texts := b.take(nil, models.Batch{}, q)
		for len(b.waiting) > 0 && len(texts.IDs) < mostTexts {
			batch, texts = b.take(batch, texts, <-b.waiting)
		}
		if len(batch) > 0 {
			b.answer(tape, batch, texts)
		}
	}
}

// take adds a request that no longer waits to a batch, unless its client has left.
func (b *batcher) take(batch []request, texts models.Batch, q request) ([]request, models.Batch) {
	b.tokens.Add(-int64(q.tokens))
	if q.ctx.Err() != nil {
		return batch, texts
	}
	return append(batch, q), join(texts, q.texts)
}

// answer runs the model until it is done or every client has left.
func (b *batcher) answer(tape *tensor.Tape, batch []request, texts models.Batch) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var clients atomic.Int64
	clients.Store(int64(len(batch)))
	for _, q := range batch {
		stop := context.AfterFunc(q.ctx, func() {
			if clients.Add(-1) == 0 {
				cancel()
			}
		})
		defer stop()
	}
	tape.Reset()
	tape.SetContext(ctx)
	var rows [][]float32
	err := tensor.Catch(func() {
		y := b.forward(tape, texts)
		rows = slices.Collect(slices.Chunk(slices.Clone(y.Data()), y.Dim(1)))
	})
	for _, q := range batch {
		r := result{err: err}
		if n := len(q.texts.IDs); err == nil {
			r.rows, rows = rows[:n], rows[n:]
		}
		q.done <- r
	}
}
