package main

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// batcher runs a model on the texts of several requests at once: those that arrive while it runs.
type batcher struct {
	longest int // tokens of an input
	encode  encode
	forward func(*tensor.Tape, models.Batch) *tensor.Tensor // returns a row for each text

	encoders chan struct{} // has an element for each request that is being encoded
	waiting  chan *request
	tokens   budget       // of the waiting requests
	speed    atomic.Int64 // of the last run, in tokens per second
}

// encode returns the tokens of an input, and whether they were truncated.
type encode func(context.Context, input) (x models.Batch, truncated bool, err error)

// request is the tokens of a client's texts, and the channel for their rows.
type request struct {
	ctx    context.Context
	texts  models.Batch
	tokens claim // while the request waits
	done   chan result
}

type result struct {
	rows [][]float32
	err  error
}

const (
	mostWaiting = 256 // requests
	mostBatch   = 256 // texts of several requests that run at once
)

func newBatcher(tokens int64, longest int, e encode, forward func(*tensor.Tape, models.Batch) *tensor.Tensor) *batcher {
	b := &batcher{
		longest: longest, encode: e, forward: forward, tokens: budget{most: tokens},
		encoders: make(chan struct{}, runtime.GOMAXPROCS(0)), waiting: make(chan *request, mostWaiting),
	}
	go b.loop()
	return b
}

// run returns the row of each input, with width elements, and the number of tokens of all. An input that cannot be
// encoded concerns only this request.
func (b *batcher) run(c *call, list []input, width int, truncate bool) (rows [][]float32, tokens int, err error) {
	const perElement = 20 // bytes: four of the number, and its text in the answer
	if err := c.memory.grow(int64(len(list)*width)*perElement, "bytes of memory"); err != nil {
		return nil, 0, err
	}
	q := &request{ctx: c.Context(), tokens: claim{of: &b.tokens}, done: make(chan result, 1)}
	if err := b.enter(q, list, truncate); err != nil {
		q.tokens.release()
		return nil, 0, b.later(err)
	}
	select {
	case r := <-q.done:
		for _, ids := range q.texts.IDs {
			tokens += len(ids)
		}
		return r.rows, tokens, r.err
	case <-q.ctx.Done():
		return nil, 0, q.ctx.Err()
	}
}

// room returns an error if the tokens of a body probably have no room beside those that wait. A body that is parsed
// before it is rejected takes the time of others, which then wait longer. Few tokens have more than eight bytes.
func (b *batcher) room(bytes int64) error {
	if used := b.tokens.used.Load(); used > 0 && used+bytes/8 > b.tokens.most {
		return b.later(errBusy)
	}
	return nil
}

// later returns errBusy with the time in which the model runs on what waits.
func (b *batcher) later(err error) error {
	if err != errBusy {
		return err
	}
	seconds := int64(1)
	if speed := b.speed.Load(); speed > 0 {
		seconds = min(1+b.tokens.used.Load()/speed, 60)
	}
	return &problem{busy, nil, err, int(seconds)}
}

// enter encodes the inputs of a request, which then waits. Requests beyond the number of processors wait as texts.
func (b *batcher) enter(q *request, list []input, truncate bool) error {
	// A token of most tokenizers is at least a byte, unless it is special. Texts that may be too many are not encoded.
	estimate, n := int64(0), int64(0)
	for _, x := range list {
		bytes := len(x.tokens) + 8
		for _, text := range x.texts {
			bytes += len(text)
		}
		estimate += int64(min(bytes, b.longest))
	}
	estimate = min(estimate, b.tokens.most)
	if err := q.tokens.grow(estimate, "tokens"); err != nil {
		return err
	}
	select {
	case b.encoders <- struct{}{}:
		defer func() { <-b.encoders }()
	case <-q.ctx.Done():
	}
	for i, x := range list {
		if err := q.ctx.Err(); err != nil {
			return err
		}
		one, truncated, err := b.encode(q.ctx, x)
		if err != nil {
			if p := new(problem); errors.As(err, &p) {
				err = problemf(p.kind, p.key, "text %d: %w", i, p.err)
			}
			return err
		}
		if truncated && !truncate {
			return problemf(tooLarge, nil, "text %d has more tokens than the %d of the model", i, len(one.IDs[0]))
		}
		n += int64(len(one.IDs[0]))
		if err := q.tokens.grow(max(0, n-q.tokens.used), "tokens"); err != nil {
			return err
		}
		q.texts = join(q.texts, one)
	}
	if err := q.tokens.grow(n-q.tokens.used, "tokens"); err != nil {
		return err
	}
	select {
	case b.waiting <- q:
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
		for len(b.waiting) > 0 && len(texts.IDs) < mostBatch {
			batch, texts = b.take(batch, texts, <-b.waiting)
		}
		if len(batch) > 0 {
			b.answer(tape, batch, texts)
		}
	}
}

// take adds a request that no longer waits to a batch, unless its client has left.
func (b *batcher) take(batch []*request, texts models.Batch, q *request) ([]*request, models.Batch) {
	q.tokens.release()
	if q.ctx.Err() != nil {
		return batch, texts
	}
	return append(batch, q), join(texts, q.texts)
}

// answer runs the model until it is done or every client has left.
func (b *batcher) answer(tape *tensor.Tape, batch []*request, texts models.Batch) {
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
	var y *tensor.Tensor
	start, tokens := time.Now(), 0
	for _, ids := range texts.IDs {
		tokens += len(ids)
	}
	err := tensor.Catch(func() { y = b.forward(tape, texts) })
	if err == nil {
		b.speed.Store(int64(float64(tokens) / max(1e-6, time.Since(start).Seconds())))
	}
	if err == nil && slices.ContainsFunc(y.Data(), func(x float32) bool { return x-x != 0 }) {
		err = errors.New("the model returned NaN or infinity")
	}
	for row, q := 0, 0; q < len(batch); q++ {
		r := result{err: err}
		if n := len(batch[q].texts.IDs); err == nil {
			width := y.Dim(1)
			own := slices.Clone(y.Data()[row*width : (row+n)*width]) // a slow client keeps no more than its rows
			r.rows, row = slices.Collect(slices.Chunk(own, width)), row+n
		}
		batch[q].done <- r
	}
}
