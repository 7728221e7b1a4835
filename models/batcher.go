package models

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// Batcher generates several texts of a decoder at the same time: the next tokens of all its texts are read in one step,
// which reads the weights once (continuous batching). With few texts, a step takes little longer than for one; with many,
// multiply-adds are the limit. The tokens of a text are the same as alone.
//
// Any number of goroutines may use a Batcher, each with its own texts. A step runs in the goroutine of one of them: a
// Batcher has no goroutines, and need not be closed. If the context of one text ends, or a step with it panics, the others
// are not affected. In a bubble of testing/synctest, all users of a Batcher are in the same bubble, as with a channel.
type Batcher struct {
	m       *Model
	cache   attn.CacheConfig
	mu      sync.Mutex
	waiting []*turn           // for the next step, in the order of their arrival
	leading bool              // one of the texts was chosen to run the next step, or runs it
	due     map[*stepper]bool // texts of the last step that have neither returned nor ended
	changed chan struct{}     // receives when due becomes empty
	took    time.Duration     // the last step
}

// turn is the next token of a text.
type turn struct {
	w     *stepper
	token int
	wake  chan bool // receives true if this text is to run the next step, and false after a step of another
	left  bool      // its context has ended
	// The results of a step. If scores is nil, it failed, perhaps because of another text.
	scores []float32 // of the token after token
	cache  *Cache    // that contains token; nil if the step had no other text and used the cache of w
}

// NewBatcher returns a Batcher without texts. c configures how keys and values are stored, as in NewSession.
//
// Errors: those of NewSession.
func (m *Model) NewBatcher(c attn.CacheConfig) (*Batcher, error) {
	if _, err := m.NewSession(c); err != nil {
		return nil, err
	}
	return &Batcher{m: m, cache: c, due: map[*stepper]bool{}, changed: make(chan struct{}, 1)}, nil
}

// Generate is Model.Generate, except that g.Cache is not used, and that g.Run must not have callbacks.
func (b *Batcher) Generate(ctx context.Context, prompt []int, g Generation) (tokens iter.Seq[int], err error) {
	s, err := b.NewSession()
	if err != nil {
		return nil, err
	}
	return s.Generate(ctx, prompt, g)
}

// NewSession is Model.NewSession for a Session whose texts belong to the Batcher.
func (b *Batcher) NewSession() (*Session, error) {
	s, err := b.m.NewSession(b.cache)
	if err == nil {
		s.batcher = b
	}
	return s, err
}

// read reads the next token of w together with those of other texts. It returns the scores of the token after it. t is
// the tape for a step that w runs.
func (b *Batcher) read(ctx context.Context, t *tensor.Tape, w *stepper, token int) ([]float32, error) {
	own := &turn{w: w, token: token, wake: make(chan bool, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, own)
	b.returned(w)
	b.choose()
	b.mu.Unlock()
	var err error
	select {
	case lead := <-own.wake:
		if lead {
			err = b.step(t, own)
		}
	case <-ctx.Done():
		b.leave(own)
		return nil, ctx.Err()
	}
	switch {
	case own.cache != nil:
		*w.run.State.(*Cache) = *own.cache
		w.written[0] = append(w.written[0], token)
	case own.scores == nil && err == nil: // the step has failed: does this text fail alone?
		err = par.Stopped(func() { own.scores = w.logits(t, [][]int{{token}}).Data() })
	}
	return own.scores, err
}

// choose lets the text that has waited longest run the next step, unless there is one that will.
func (b *Batcher) choose() {
	if !b.leading && len(b.waiting) > 0 {
		b.leading = true
		b.waiting[0].wake <- true
	}
}

// leave takes back a turn whose context has ended. A step that already has it uses a fork of its cache.
func (b *Batcher) leave(own *turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own.left = true
	b.waiting = slices.DeleteFunc(b.waiting, func(t *turn) bool { return t == own })
	select {
	case lead := <-own.wake:
		if lead {
			b.leading = false
			b.choose()
		}
	default:
	}
}

// returned notes that the next step need not wait for w.
func (b *Batcher) returned(w *stepper) {
	if delete(b.due, w); len(b.due) > 0 {
		return
	}
	select {
	case b.changed <- struct{}{}:
	default: // there is a note already
	}
}

// end is called when a text ends.
func (b *Batcher) end(w *stepper) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.returned(w)
}

// step runs a step for the texts that wait. The context of t, which is that of own, ends it; the others then run another.
func (b *Batcher) step(t *tensor.Tape, own *turn) (err error) {
	b.gather()
	b.mu.Lock()
	turns := b.waiting
	b.waiting = nil
	for _, t := range turns {
		b.due[t.w] = true
	}
	b.mu.Unlock()
	begin := time.Now()
	defer func() { // also after a panic
		b.mu.Lock()
		defer b.mu.Unlock()
		b.took, b.leading = time.Since(begin), false
		others := slices.DeleteFunc(turns, func(t *turn) bool { return t == own || t.left })
		if err == nil {
			for _, t := range others {
				t.wake <- false
			}
		} else {
			clear(b.due)
			b.waiting = append(others, b.waiting...)
		}
		b.choose()
	}()
	return par.Stopped(func() {
		if len(turns) == 1 {
			own.scores = own.w.logits(t, [][]int{{own.token}}).Data()
		} else {
			b.join(t, turns)
		}
	})
}

// join reads the tokens of the turns in forks of their caches. If it panics, the turns have no results.
func (b *Batcher) join(t *tensor.Tape, turns []*turn) {
	defer func() {
		if e := recover(); e != nil {
			par.Check(t.Context()) // the reason may be its end
		}
	}()
	caches, next := make([]*Cache, len(turns)), make([][]int, len(turns))
	for i, t := range turns {
		caches[i], next[i] = t.w.run.State.(*Cache), []int{t.token}
	}
	joined := join(caches)
	all := &stepper{m: b.m, run: Run{State: joined}}
	logits := all.logits(t, next)
	v := logits.Dim(1)
	for i, t := range turns {
		t.cache = joined.Select([]int{i}).(*Cache)
		t.scores = slices.Clone(logits.Data()[i*v:][:v]) // t's tape is reset when its own text continues
	}
}

// gather waits until the texts of the last step have returned, so that they are not left out of the next one, but not
// longer than a part of the time that a step takes.
func (b *Batcher) gather() {
	b.mu.Lock()
	over := time.After(b.took / 16)
	b.mu.Unlock()
	for {
		b.mu.Lock()
		due := len(b.due)
		b.mu.Unlock()
		if due == 0 {
			return
		}
		select {
		case <-b.changed:
		case <-over:
			return
		}
	}
}
