package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/tensor"
)

// stepper runs a decoder or an encoder–decoder step by step.
type stepper struct {
	m        *Model
	run      Run
	sources  [][]int // sources that an encoder–decoder has yet to read
	begin    []int   // tokens to read first
	most     int     // maximum number of tokens to write
	badWords [][]int
	written  [][]int  // by sequence, the tokens read so far
	batcher  *Batcher // nil if the text is read alone
}

// stepper returns a stepper that continues a prompt, or translates several sources, and sets the
// defaults in g. A nil state means a new one.
func (m *Model) stepper(op string, prompts [][]int, g *Generation, state State) (*stepper, error) {
	head, z := m.Head(), m.Sizes()
	if head == nil || head.Task != NextWord {
		return nil, fmt.Errorf("models: %s: %s does not predict the next token, want a model with a head for the %s", op, m.Family.Name, NextWord)
	}
	if err := errors.Join(g.Check(), z.Check(Batch{IDs: prompts})); err != nil {
		return nil, err
	}
	if g.Chosen != nil && op != "Generate" {
		return nil, fmt.Errorf("models: %s: Chosen is set, want nil: only Generate calls it", op)
	}
	if g.Run.part() {
		return nil, fmt.Errorf("models: %s: Run begins or ends at a block, want a whole run", op)
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
	w := &stepper{m: m, run: g.Run, begin: prompts[0], most: math.MaxInt}
	if w.badWords, err = m.badWords(); err != nil {
		return nil, err
	}
	if z.Decoder != nil {
		start, err := m.DecoderStart()
		if err != nil {
			return nil, err
		}
		forced, err := m.Forced()
		w.sources, w.begin = prompts, append([]int{start}, forced...)
		if err != nil {
			return nil, err
		}
		if err := z.Decoder.Check(Batch{IDs: [][]int{w.begin}}); err != nil {
			return nil, fmt.Errorf("models: %s: the beginning of the target has %w", op, err)
		}
	}
	if most := z.Output().Positions; most > 0 {
		w.most = most - len(w.begin) + 1 // the last one is not read
	}
	if g.Tokens > 0 {
		w.most = min(w.most, g.Tokens)
	}
	if w.run.State = state; state == nil {
		w.run.State, err = NewState(m, len(prompts), attn.CacheConfig{Format: g.Cache.Format})
	}
	return w, err
}

// DecoderStart returns the first token of a target.
func (m *Model) DecoderStart() (int, error) {
	const key = "decoder_start_token_id"
	id, given, err := m.generationToken(key)
	if given || err != nil {
		return id, err
	}
	if n, ok := m.Network.(interface{ StartToken() int }); ok {
		return n.StartToken(), nil
	}
	return 0, &FormatError{m.Settings.path, fmt.Errorf("%s is missing, want a token id", key)}
}

// generationToken returns a setting of generation that is a token.
func (m *Model) generationToken(key string) (id int, given bool, err error) {
	path, value, given := m.generationSetting(key)
	if !given {
		return 0, false, nil
	}
	if most := m.Sizes().Output().Vocabulary - 1; json.Unmarshal(value, &id) != nil || id < 0 || id > most {
		return 0, false, &FormatError{path, fmt.Errorf("%s is %s, want 0 to %d", key, quote.JSON(value), most)}
	}
	return id, true, nil
}

// logits reads the next tokens of each sequence, the same number for all, and returns the scores
// of the tokens after them: [B V].
func (w *stepper) logits(t *tensor.Tape, next [][]int) *tensor.Tensor {
	x := Batch{IDs: next}
	if w.m.Sizes().Decoder != nil {
		x = Batch{Targets: next}
		x.IDs, w.sources = w.sources, nil
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

// write writes n texts: it repeatedly draws a token of each text and reads it. A text ends with an
// end token, at the limit, or when take returns false for its number and a token. If ctx ends,
// write returns ctx.Err().
func (w *stepper) write(ctx context.Context, g Generation, n int, take func(text, id int) bool) error {
	tape := tensor.NewTape(tensor.Infer)
	tape.SetContext(ctx)
	active, next, draw := stats.Numbers(n), slices.Repeat([][]int{w.begin}, n), make([]*sampler, n)
	for i := range draw {
		draw[i] = newSampler(g.Sampling)
	}
	for step := range w.most {
		tape.Reset()
		logits, err := w.next(ctx, tape, next, step == 0)
		if err != nil {
			return err
		}
		v := len(logits) / len(active)
		var going []int
		for i, text := range active {
			scores := logits[i*v:][:v]
			w.ban(scores, w.written[i])
			id := draw[text].next(scores)
			if g.Chosen != nil {
				g.Chosen(id, scores)
			}
			if !slices.Contains(g.Ends, id) && take(text, id) {
				going, next[i] = append(going, i), []int{id}
			}
		}
		if len(going) == 0 {
			break
		}
		if len(going) < len(active) {
			active, next = stats.Pick(active, going), stats.Pick(next, going)
			w.choose(going)
		}
	}
	return nil
}

// next is logits, in which a text with a batcher takes part after its prompt.
func (w *stepper) next(ctx context.Context, t *tensor.Tape, next [][]int, prompt bool) (scores []float32, err error) {
	if w.batcher != nil && !prompt {
		return w.batcher.read(ctx, t, w, next[0][0])
	}
	err = par.Stopped(func() { scores = w.logits(t, next).Data() })
	return scores, err
}

// ban excludes tokens that would complete a bad word.
func (w *stepper) ban(scores []float32, written []int) {
	for _, word := range w.badWords {
		n := len(word) - 1
		if len(written) >= n && slices.Equal(written[len(written)-n:], word[:n]) {
			scores[word[n]] = float32(math.Inf(-1))
		}
	}
}

// choose keeps the given sequences, in the given order.
func (w *stepper) choose(sequences []int) {
	w.run.State = w.run.State.Select(sequences)
	written := make([][]int, len(sequences))
	for i, b := range sequences {
		written[i] = slices.Clone(w.written[b])
	}
	w.written = written
}

// Limits of sources that are written together: their number, and that of pairs of tokens, with padding.
const mostSources, mostPairs = 64, 64 * 256 * 256

// firstBatch returns how many of the first of n sources are written together. length returns the length of each; they do
// not get shorter.
func firstBatch(n int, length func(i int) int) int {
	some := 1
	for some < min(n, mostSources) && (some+1)*length(some)*length(some) <= mostPairs {
		some++
	}
	return some
}

// Write returns the tokens that the model writes for each source or after each prompt, with Beam
// if g.Beam is more than 1 and otherwise like Generate, for many sources at a time. The result
// for one source does not depend on the others. If g.Tokens is 0, an encoder–decoder writes at
// most twice as many tokens as the source has, and 20 more.
//
// Errors: those of Generate; if ctx ends, ctx.Err() together with the results so far.
func (m *Model) Write(ctx context.Context, sources [][]int, g Generation) ([][]int, error) {
	limit := func(int) int { return g.Tokens }
	if m.Sizes().Decoder != nil && g.Tokens == 0 {
		limit = func(i int) int { return TargetTokens(len(sources[i])) }
	}
	written := make([][]int, len(sources))
	for i := 0; g.Beam > 1 && i < len(sources); i++ { // the beam forms the batch
		one := g
		one.Tokens = limit(i)
		var err error
		if written[i], err = m.Beam(ctx, sources[i], g.Beam, one); err != nil || i == len(sources)-1 {
			return written, err
		}
	}
	order := stats.Numbers(len(sources)) // to be sorted, so that lengths in a batch are similar
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(len(sources[i]), len(sources[j])) })
	for len(order) > 0 {
		n := 1 // a batch of prompts would need equal lengths
		if m.Sizes().Decoder != nil {
			n = firstBatch(len(order), func(i int) int { return len(sources[order[i]]) })
		}
		batch := order[:n]
		w, err := m.stepper("Write", stats.Pick(sources, batch), &g, nil)
		if err == nil {
			err = w.write(ctx, g, n, func(text, id int) bool {
				at := batch[text]
				written[at] = append(written[at], id)
				most := limit(at)
				return most == 0 || len(written[at]) < most
			})
		}
		if err != nil {
			return written, err
		}
		order = order[n:]
	}
	return written, nil
}

// Translate returns the output of an encoder–decoder for each text, with beam search if beam is
// more than 1. Each output has at most 20 tokens more than twice its source.
//
// Errors: those of Encode and Write; if ctx ends, ctx.Err() together with the finished
// translations.
func (m *Model) Translate(ctx context.Context, texts []string, beam int) ([]string, error) {
	sources, out := make([][]int, len(texts)), make([]string, len(texts))
	for i, text := range texts {
		e, err := m.encode(ctx, text, "")
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return nil, err
		}
		sources[i] = e.IDs
	}
	written, err := m.Write(ctx, sources, Generation{Beam: beam})
	for i, ids := range written {
		out[i] = m.Decode(ids)
	}
	return out, err
}

// hypothesis is a partial or complete text in a beam search.
type hypothesis struct {
	tokens []int
	logp   float64
	from   int // its sequence in the batch
}

// Search defines how beam search compares complete texts, and when it stops.
type Search struct {
	// Score returns the score of a text from its log probability and its number of tokens n,
	// including the end token.
	Score func(logp float64, n int) float64
	// Best says when the search stops. If true, it continues until no hypothesis can become
	// better than the best complete text, and a step considers as many candidates as the beam
	// size. If false, it works as in transformers: the search stops when the number of complete
	// texts equals the beam size and no hypothesis scores better at its present length. A step
	// then considers 2 × the beam size of candidates, more if there are several end tokens, so
	// that candidates that end do not displace others.
	Best bool
}

var (
	// meanSearch compares the mean log probability of the tokens, like transformers with a
	// length_penalty of 1.
	meanSearch = Search{Score: func(logp float64, n int) float64 { return logp / float64(n) }}
	// bestSearch is the Search of translators of attn train.
	//
	// Source: Wu et al., "Google's Neural Machine Translation System", 2016,
	// https://arxiv.org/abs/1609.08144, eq. 14 with α = 1.
	bestSearch = Search{Best: true, Score: func(logp float64, n int) float64 { return logp * 6 / (5 + float64(n)) }}
)

// Beam returns the tokens of the most likely continuation of a prompt that beam search finds.
// hypotheses is the number of hypotheses kept at each step. The family's Search compares complete
// texts. Prompts and end tokens work as in Generate; g.Sampling is not used.
//
// Errors: those of Generate; fewer than one hypothesis; if ctx ends, ctx.Err().
func (m *Model) Beam(ctx context.Context, prompt []int, hypotheses int, g Generation) ([]int, error) {
	if hypotheses < 1 {
		return nil, fmt.Errorf("models: Beam: %d hypotheses, want at least 1", hypotheses)
	}
	w, err := m.stepper("Beam", [][]int{prompt}, &g, nil)
	if err != nil {
		return nil, err
	}
	by := m.Family.Search
	if by.Score == nil {
		by = meanSearch
	}
	looked, wanted := max(2, 1+len(g.Ends))*hypotheses, hypotheses
	if by.Best {
		looked, wanted = hypotheses, 1
	}
	score := func(h hypothesis) float64 { return by.Score(h.logp, len(h.tokens)) }
	tape := tensor.NewTape(tensor.Infer)
	tape.SetContext(ctx)
	alive, next := []hypothesis{{}}, [][]int{w.begin}
	var whole []hypothesis // the best ones, at most hypotheses
	for n := 1; ; n++ {
		tape.Reset()
		var best []hypothesis
		if err := par.Stopped(func() { best = w.extend(tape, alive, next, looked) }); err != nil {
			return nil, err
		}
		alive = nil
		for i, h := range best {
			switch last := h.tokens[len(h.tokens)-1]; {
			case slices.Contains(g.Ends, last), n == w.most:
				if i < hypotheses {
					whole = keep(whole, h, wanted, score)
				}
			case len(alive) < hypotheses:
				alive = append(alive, h)
			}
		}
		if alive = by.hopeful(alive, whole, wanted, n, w.most); len(alive) == 0 {
			break
		}
		next = nil
		var rows []int
		for _, h := range alive {
			next, rows = append(next, h.tokens[len(h.tokens)-1:]), append(rows, h.from)
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

// hopeful returns the hypotheses of n tokens that the search should extend, the best first, once
// there are as many complete texts as wanted.
func (s Search) hopeful(alive, whole []hypothesis, wanted, n, most int) []hypothesis {
	if len(alive) == 0 || len(whole) < wanted {
		return alive
	}
	last := whole[len(whole)-1]
	worst := s.Score(last.logp, len(last.tokens))
	if s.Best {
		// The probability of a hypothesis can only decrease.
		return slices.DeleteFunc(alive, func(h hypothesis) bool { return s.Score(h.logp, most) <= worst })
	}
	// A hypothesis may still improve through tokens that are more likely than its mean. Like the
	// reference, the search stops as soon as none is better now.
	if s.Score(alive[0].logp, n) <= worst {
		return nil
	}
	return alive
}

// extend reads the next token of each hypothesis and returns the most likely hypotheses that are
// one token longer, the best first.
func (w *stepper) extend(t *tensor.Tape, alive []hypothesis, next [][]int, most int) []hypothesis {
	logits := w.logits(t, next)
	logp, v := tensor.LogSoftmax(t, logits).Data(), logits.Dim(1)
	var best []hypothesis
	for i, h := range alive {
		scores := logp[i*v:][:v]
		w.ban(scores, w.written[i])
		for token, lp := range scores {
			if p := h.logp + float64(lp); !math.IsInf(p, -1) && (len(best) < most || cmp.Less(best[most-1].logp, p)) {
				longer := hypothesis{append(slices.Clip(h.tokens), token), p, i}
				best = keep(best, longer, most, func(h hypothesis) float64 { return h.logp })
			}
		}
	}
	return best
}

// keep inserts h into a list of at most n elements, sorted from best to worst with NaN last.
func keep(list []hypothesis, h hypothesis, n int, by func(hypothesis) float64) []hypothesis {
	at := len(list)
	for at > 0 && cmp.Less(by(list[at-1]), by(h)) {
		at--
	}
	if list = slices.Insert(list, at, h); len(list) > n {
		list = list[:n]
	}
	return list
}

// TargetTokens is the default limit of the tokens of a target, for a source of n tokens.
func TargetTokens(n int) int { return 2*n + 20 }
