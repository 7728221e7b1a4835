package models

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// sharedSteps lets texts that a decoder writes at the same time read their next tokens in one step, which reads the weights
// once. With few texts it takes little longer than with one; with many, multiply-adds are the limit. A text gets the same
// bits in any company.
type sharedSteps struct {
	mu      sync.Mutex
	texts   int     // that are being written
	waiting []*turn // for the next step
	running bool    // whether serve runs
	round   int     // number of the last step
	due     int     // texts of the last step that have neither returned nor ended
	changed chan struct{}
}

// turn is the next token of a text.
type turn struct {
	w     *stepper
	ctx   context.Context
	token int
	left  bool // ctx ended before the step began
	// The results, once done is closed.
	done     chan struct{}
	scores   []float32 // of the token after token
	state    State
	panicked any
}

// begin counts a text of which tokens will be read one by one. It returns a function to call at its end.
func (s *sharedSteps) begin(w *stepper) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{}, 1)
	}
	s.texts++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.texts--
		s.returned(w)
	}
}

// returned notes that a text of the last step needs no more waiting for.
func (s *sharedSteps) returned(w *stepper) {
	if w.round > 0 && w.round == s.round {
		w.round = 0
		s.due--
	}
	select {
	case s.changed <- struct{}{}:
	default: // there is a note already
	}
}

// apply reports whether w and a text of another call can read their next tokens together.
func (s *sharedSteps) apply(w *stepper) bool {
	c, ok := w.run.State.(*Cache)
	r := &w.run
	if !ok || c.memory != nil || r.Observers != nil || r.Inspect != nil || r.States != nil || r.Gates != nil {
		return false // its callbacks expect one text
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts > 1
}

// read reads the next token of w together with those of other texts. It returns the scores of the token after it.
func (s *sharedSteps) read(ctx context.Context, w *stepper, token int) ([]float32, error) {
	t := &turn{w: w, ctx: ctx, token: token, done: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, t)
	s.returned(w)
	if !s.running {
		s.running = true
		go s.serve()
	}
	s.mu.Unlock()
	select {
	case <-t.done:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		t.left = true // a step that runs has forks of the cache
		return nil, ctx.Err()
	}
	if t.panicked != nil {
		panic(t.panicked)
	}
	if t.state == nil { // stopped, so all contexts have ended
		return nil, ctx.Err()
	}
	*w.run.State.(*Cache) = *t.state.(*Cache)
	w.written[0] = append(w.written[0], token)
	return t.scores, nil
}

// serve runs steps as long as texts wait.
func (s *sharedSteps) serve() {
	var took time.Duration
	for {
		s.gather(took / 16)
		turns, joined := s.take()
		if len(turns) == 0 {
			return
		}
		begin := time.Now()
		step(turns, joined)
		took = time.Since(begin)
	}
}

// gather waits until the texts of the last step have returned, so that they are not left out of the next one, but not
// longer than patience.
func (s *sharedSteps) gather(patience time.Duration) {
	over := time.After(patience)
	for {
		s.mu.Lock()
		due := s.due
		s.mu.Unlock()
		if due == 0 {
			return
		}
		select {
		case <-s.changed:
		case <-over:
			return
		}
	}
}

// take returns the turns that wait, and forks of their caches in one. If there are none, serve ends.
func (s *sharedSteps) take() ([]*turn, *Cache) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turns := slices.DeleteFunc(s.waiting, func(t *turn) bool { return t.left })
	s.waiting = nil
	if s.running = len(turns) > 0; !s.running {
		return nil, nil
	}
	s.round++
	s.due = len(turns)
	caches := make([]*Cache, len(turns))
	for i, t := range turns {
		t.w.round = s.round
		caches[i] = t.w.run.State.(*Cache)
	}
	return turns, join(caches)
}

// step reads the tokens of the turns. It stops when all contexts have ended.
func step(turns []*turn, joined *Cache) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	going := atomic.Int64{}
	going.Store(int64(len(turns)))
	together := &stepper{m: turns[0].w.m, run: Run{State: joined}}
	next := make([][]int, len(turns))
	for i, t := range turns {
		next[i] = []int{t.token}
		defer context.AfterFunc(t.ctx, func() {
			if going.Add(-1) == 0 {
				cancel()
			}
		})()
	}
	defer func() {
		e := recover()
		for _, t := range turns {
			t.panicked = e
			close(t.done)
		}
	}()
	tape := tensor.NewTape(tensor.Infer)
	tape.SetContext(ctx)
	var logits *tensor.Tensor
	if par.Stopped(func() { logits = together.logits(tape, next) }) != nil {
		return
	}
	v := logits.Dim(1)
	for i, t := range turns {
		t.scores = logits.Data()[i*v:][:v:v]
		t.state = joined.Select([]int{i})
	}
}
