package seq2seq

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/attn-go/attn/tensor"
)

// Decoding says how translations are searched for. The zero value is greedy
// search.
type Decoding struct {
	// Beam is the number of translations kept at each step. 0 and 1 mean
	// greedy search: always the likeliest next token.
	Beam int
	// MaxLength bounds the tokens of a translation. 0 means twice those of the
	// source and 20 more.
	MaxLength int
}

// What is run at a time: so many sequences, fewer where they are long, because
// attention takes memory with the square of the length.
const (
	decodeBatch = 64
	decodeCells = decodeBatch * 256 * 256
)

// batched cuts list into batches for the network; length is that of an element.
// A list in order of length makes for little padding.
func batched[E any](list []E, length func(E) int) iter.Seq[[]E] {
	return func(yield func([]E) bool) {
		for from := 0; from < len(list); {
			to, longest := from, 0
			for ; to < len(list) && to-from < decodeBatch; to++ {
				longest = max(longest, length(list[to]))
				if n := to - from + 1; n > 1 && n*longest*longest > decodeCells {
					break
				}
			}
			if !yield(list[from:to]) {
				return
			}
			from = to
		}
	}
}

// Translate returns the translation of each text. If ctx ends it returns what
// is done, and the context's error.
func (m *Translator) Translate(ctx context.Context, texts []string, d Decoding) ([]string, error) {
	sources := make([][]int, len(texts))
	order := make([]int, len(texts)) // by length
	for i, text := range texts {
		sources[i] = m.encodeSource(text)
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(len(sources[i]), len(sources[j])) })

	out := make([]string, len(texts))
	if d.Beam > 1 { // the beam is the batch
		for i, src := range sources {
			written, err := m.beam(ctx, src, d)
			if err != nil {
				return out, err
			}
			out[i] = m.Target.Decode(written)
		}
		return out, nil
	}
	for chunk := range batched(order, func(i int) int { return len(sources[i]) }) {
		src := make([][]int, len(chunk))
		for i, n := range chunk {
			src[i] = sources[n]
		}
		written, err := m.greedy(ctx, src, d)
		if err != nil {
			return out, err
		}
		for i, n := range chunk {
			out[n] = m.Target.Decode(written[i])
		}
	}
	return out, nil
}

// limit returns the largest number of tokens of the translation of a source.
func (d Decoding) limit(src []int) int {
	if d.MaxLength > 0 {
		return d.MaxLength
	}
	return 2*len(src) + 20
}

// greedy writes the likeliest token at each step, for a batch of sources.
func (m *Translator) greedy(ctx context.Context, sources [][]int, d Decoding) ([][]int, error) {
	written := make([][]int, len(sources))
	active := make([]int, len(sources)) // the source of each sequence of the batch
	last := make([]int, len(sources))
	for i := range sources {
		active[i], last[i] = i, BOS
	}
	s := m.net.encode(nil, newBatch(sources), hooks{})
	for len(active) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var logits *tensor.Tensor
		logits, s = decode(m.net, nil, s, last, 1, hooks{})
		var keep []int
		for i, n := range active {
			token := likeliest(row(logits, i))
			if token != EOS {
				written[n] = append(written[n], token)
			}
			if token != EOS && len(written[n]) < d.limit(sources[n]) {
				keep = append(keep, i)
				last[i] = token
			}
		}
		if len(keep) < len(active) {
			s = s.choose(nil, keep)
			for to, from := range keep { // keep is ascending
				active[to], last[to] = active[from], last[from]
			}
			active, last = active[:len(keep)], last[:len(keep)]
		}
	}
	return written, nil
}

// hypothesis is the beginning of a translation in a beam, or a whole one.
type hypothesis struct {
	tokens []int
	logp   float64
	from   int // its sequence of the batch
	last   int // its last token
}

// score is the log probability, normalised so that long translations stand a
// chance.
//
// Source: Wu et al., "Google's Neural Machine Translation System", 2016,
// https://arxiv.org/abs/1609.08144, eq. 14 with α = 1.
func (h hypothesis) score() float64 { return h.logp * 6 / float64(5+len(h.tokens)) }

// beam keeps the likeliest beginnings at each step and returns the best
// translation of one source.
func (m *Translator) beam(ctx context.Context, src []int, d Decoding) ([]int, error) {
	s := m.net.encode(nil, newBatch([][]int{src}), hooks{})
	alive := []hypothesis{{}}
	last := []int{BOS}
	var best *hypothesis
	limit := d.limit(src)
	for length := 1; len(alive) > 0; length++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var logits *tensor.Tensor
		logits, s = decode(m.net, nil, s, last, 1, hooks{})
		logp := tensor.LogSoftmax(nil, logits)
		var next []hypothesis
		for i, h := range alive {
			for token, lp := range row(logp, i) {
				if token != Pad && token != BOS {
					next = insert(next, hypothesis{logp: h.logp + float64(lp), from: i, last: token}, d.Beam)
				}
			}
		}
		var kept []hypothesis
		for _, h := range next {
			h.tokens = append(slices.Clone(alive[h.from].tokens), h.last)
			if h.last == EOS || length == limit {
				if best == nil || h.score() > best.score() {
					best = &h
				}
				continue
			}
			kept = append(kept, h)
		}
		// A beginning can only lose probability; even at the full length its
		// score would not pass that of the best whole translation.
		kept = slices.DeleteFunc(kept, func(h hypothesis) bool {
			return best != nil && h.logp*6/float64(5+limit) <= best.score()
		})
		rows := make([]int, len(kept))
		last = last[:0]
		for i, h := range kept {
			rows[i] = h.from
			last = append(last, h.last)
		}
		if len(kept) > 0 {
			s = s.choose(nil, rows)
		}
		alive = kept
	}
	return best.tokens, nil // what reaches the limit is whole, so there is one
}

// insert puts h into a list of at most n, the likeliest first, and of equals
// the one that came first. NaN comes last.
func insert(list []hypothesis, h hypothesis, n int) []hypothesis {
	likelier := func(than hypothesis) bool { return cmp.Compare(h.logp, than.logp) > 0 }
	if len(list) == n {
		if !likelier(list[n-1]) {
			return list
		}
		list = list[:n-1]
	}
	at := len(list)
	for at > 0 && likelier(list[at-1]) {
		at--
	}
	return slices.Insert(list, at, h)
}

// row returns the logits of sequence i after one step, [B 1 C].
func row(logits *tensor.Tensor, i int) []float32 {
	c := logits.Dim(-1)
	return logits.Data()[i*c : (i+1)*c]
}

// likeliest returns the token with the largest logit that may be written.
func likeliest(logits []float32) int {
	best, at := float32(math.Inf(-1)), EOS
	for token, v := range logits {
		if v > best && token != Pad && token != BOS {
			best, at = v, token
		}
	}
	return at
}
