package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
)

// writer runs a model that writes, step by step: a decoder, or an encoder–decoder.
type writer struct {
	m        *Model
	run      Run
	source   []int // of an encoder–decoder that has not read it yet
	begin    []int // what is read first
	most     int   // tokens to write
	badWords [][]int
	written  [][]int // of each sequence, what has been read of it
}

// writer returns what writes behind a prompt, and fills in what g leaves open. A nil state
// means a new one.
func (m *Model) writer(op string, prompt []int, g *Generation, state State) (*writer, error) {
	head, z := m.Head(), m.Sizes()
	if head == nil || head.Task != NextWord {
		return nil, fmt.Errorf("models: %s: %s does not predict the next token, want a model with a head for the %s", op, m.Family.Name, NextWord)
	}
	if err := errors.Join(g.Check(), z.Check(Batch{IDs: [][]int{prompt}})); err != nil {
		return nil, err
	}
	if g.Tokens < 0 {
		return nil, fmt.Errorf("models: %s: %d tokens, want at least 1, or 0 for no limit", op, g.Tokens)
	}
	var err error
	if g.Ends == nil {
		if g.Ends, err = m.EndTokens(); err != nil {
			return nil, err
		}
	}
	w := &writer{m: m, run: g.Run, begin: prompt, most: math.MaxInt}
	if w.badWords, err = m.badWords(); err != nil {
		return nil, err
	}
	if z.Decoder != nil {
		start, err := m.startToken()
		if err != nil {
			return nil, err
		}
		w.source, w.begin = prompt, []int{start}
	}
	if most := z.output().Positions; most > 0 {
		w.most = most - len(w.begin) + 1 // the last one is not read
	}
	if g.Tokens > 0 {
		w.most = min(w.most, g.Tokens)
	}
	if w.run.State = state; state == nil {
		w.run.State, err = NewState(m, 1, attn.CacheConfig{Storage: g.Cache.Storage})
	}
	return w, err
}

// startToken returns the token with which a target begins.
func (m *Model) startToken() (int, error) {
	path, value, err := m.generationSetting("forced_bos_token_id")
	if err != nil {
		return 0, err
	}
	if value != nil {
		return 0, &FormatError{path, fmt.Errorf("forced_bos_token_id is %s, want none", quote.JSON(value))}
	}
	const key = "decoder_start_token_id"
	if path, value, err = m.generationSetting(key); err != nil {
		return 0, err
	}
	if value == nil {
		if n, ok := m.Network.(interface{ StartToken() int }); ok {
			return n.StartToken(), nil
		}
		return 0, &FormatError{path, fmt.Errorf("%s is missing, want a token id", key)}
	}
	var id int
	if most := m.Sizes().output().Vocabulary - 1; json.Unmarshal(value, &id) != nil || id < 0 || id > most {
		return 0, &FormatError{path, fmt.Errorf("%s is %s, want 0 to %d", key, quote.JSON(value), most)}
	}
	return id, nil
}

// logits reads the next tokens of each sequence, equally many, and returns the scores of
// what follows: [B V].
func (w *writer) logits(t *tensor.Tape, next [][]int) *tensor.Tensor {
	x := Batch{IDs: next}
	if w.m.Sizes().Decoder != nil {
		x = Batch{Targets: next}
		if w.source != nil {
			x.IDs, w.source = [][]int{w.source}, nil
		}
	}
	if w.written == nil {
		w.written = make([][]int, len(next))
	}
	for i, ids := range next {
		w.written[i] = append(w.written[i], ids...)
	}
	h := w.m.Hidden(t, x, w.run)
	last := len(next[0])
	y := w.m.Head().Logits(t, tensor.Slice(t, h, 1, last-1, last))
	return tensor.Reshape(t, y, y.Dim(0), y.Dim(2))
}

// write draws tokens one after the other and reads them, until one of the ends.
func (w *writer) write(g Generation, yield func(int) bool) {
	tape, draw := tensor.NewTape(tensor.Infer), newSampler(g.Sampling)
	for n, next := 0, w.begin; n < w.most; n++ {
		tape.Reset()
		scores := w.logits(tape, [][]int{next}).Data()
		w.ban(scores, w.written[0])
		id := draw.next(scores)
		if slices.Contains(g.Ends, id) || !yield(id) {
			return
		}
		next = []int{id}
	}
}

// ban gives the tokens no chance that would complete a bad word.
func (w *writer) ban(scores []float32, written []int) {
	for _, word := range w.badWords {
		n := len(word) - 1
		if len(written) >= n && slices.Equal(written[len(written)-n:], word[:n]) {
			scores[word[n]] = float32(math.Inf(-1))
		}
	}
}

// choose keeps the given sequences, in the given order.
func (w *writer) choose(sequences []int) {
	w.run.State = w.run.State.Select(sequences)
	written := make([][]int, len(sequences))
	for i, b := range sequences {
		written[i] = slices.Clone(w.written[b])
	}
	w.written = written
}

// hypothesis is the beginning of a text, or a whole one.
type hypothesis struct {
	tokens []int
	logp   float64
	from   int // its sequence of the batch
}

// score is the log probability of a token, on average.
func (h hypothesis) score() float64 { return h.logp / float64(len(h.tokens)) }

// Beam returns the tokens of the likeliest text behind a prompt that beam search finds, with
// so many beginnings at each step; it writes as Generate does. Whole texts are compared by
// the mean log probability of a token, the end included, as transformers does with a
// length_penalty of 1. g.Sampling has no meaning here.
//
// Errors: those of Generate; fewer than one beginning; that of a context that ends.
func (m *Model) Beam(ctx context.Context, prompt []int, beginnings int, g Generation) ([]int, error) {
	if beginnings < 1 {
		return nil, fmt.Errorf("models: Beam: %d beginnings, want at least 1", beginnings)
	}
	w, err := m.writer("Beam", prompt, &g, nil)
	if err != nil {
		return nil, err
	}
	tape := tensor.NewTape(tensor.Infer)
	alive, next := []hypothesis{{}}, [][]int{w.begin}
	var whole []hypothesis // the best, at most as many as beginnings
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tape.Reset()
		best := w.extend(tape, alive, next, max(2, 1+len(g.Ends))*beginnings)
		alive, next = nil, nil
		var rows []int
		for i, h := range best {
			switch last := h.tokens[len(h.tokens)-1]; {
			case slices.Contains(g.Ends, last), n == w.most:
				if i < beginnings {
					whole = keep(whole, h, beginnings, hypothesis.score)
				}
			case len(alive) < beginnings:
				alive, next, rows = append(alive, h), append(next, []int{last}), append(rows, h.from)
			}
		}
		// One that is alive may get better still, by tokens that are likelier than the mean.
		// As the reference does, the search ends as soon as none is better now.
		if len(alive) == 0 || len(whole) == beginnings && alive[0].score() <= whole[len(whole)-1].score() {
			break
		}
		w.choose(rows)
	}
	if len(whole) == 0 {
		return nil, errors.New("models: Beam: every token is one of bad_words_ids, want one that is not")
	}
	tokens := whole[0].tokens
	if n := len(tokens) - 1; slices.Contains(g.Ends, tokens[n]) {
		tokens = tokens[:n]
	}
	return tokens, nil
}

// extend reads the next token of each beginning and returns the likeliest beginnings that
// are one token longer, the best first.
func (w *writer) extend(t *tensor.Tape, alive []hypothesis, next [][]int, most int) []hypothesis {
	logits := w.logits(t, next)
	logp, v := tensor.LogSoftmax(t, logits).Data(), logits.Dim(1)
	var best []hypothesis
	for i, h := range alive {
		scores := logp[i*v:][:v]
		w.ban(scores, w.written[i])
		for token, lp := range scores {
			if p := h.logp + float64(lp); !math.IsInf(p, -1) && (len(best) < most || p > best[most-1].logp) {
				longer := hypothesis{append(slices.Clip(h.tokens), token), p, i}
				best = keep(best, longer, most, func(h hypothesis) float64 { return h.logp })
			}
		}
	}
	return best
}

// keep puts h in its place of a list with the best first, which has at most n elements.
func keep(list []hypothesis, h hypothesis, n int, by func(hypothesis) float64) []hypothesis {
	at := len(list)
	for at > 0 && by(list[at-1]) < by(h) {
		at--
	}
	if list = slices.Insert(list, at, h); len(list) > n {
		list = list[:n]
	}
	return list
}
