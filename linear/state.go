package linear

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/recurrence"
	"github.com/attn-go/attn/tensor"
)

// StateConfig describes a State.
type StateConfig struct {
	Batch     int // sequences
	Heads     int // heads of values, G
	KeySize   int // elements of a key as the Feature returns it, E
	ValueSize int // elements of a value, V; 0 means KeySize
	// Normalize is Options.Normalize of the calls.
	Normalize bool
	// Exp is whether the calls have the Feature Exp and Normalize. The State then keeps the running maximum of the keys.
	Exp bool
}

// State is what the tokens of some sequences have left in the heads of a layer, so that later tokens can continue them:
// what a KV cache is for attention with a softmax, but of one size for any number of tokens. Tokens one by one, in
// pieces or all at once have the same bits.
//
// A sequence takes about 4·G·(E·V + 4·V + 5·E) bytes.
//
// Gradients do not pass through a State: it rejects a recording tape. Give Options.State for that.
//
// A State is not safe for concurrent use, but other goroutines may use its forks at the same time.
type State struct {
	config StateConfig
	seqs   []sequence
}

// sequence is the state of a sequence.
type sequence struct {
	heads []*recurrence.State
	n     int
	// shared is whether another State has the same heads: they are copied before they change.
	shared bool
	// stopped is whether a call ended before all heads had its tokens.
	stopped bool
	// maxima [2 G E] are the running maxima of the keys of Exp, before the last group and after all tokens. They are not
	// changed but replaced.
	maxima []float32
}

// noMaxima returns the maxima before the first key.
func noMaxima(size int) []float32 { return slices.Repeat([]float32{float32(math.Inf(-1))}, 2*size) }

// setMaxima sets the maxima of sequence b after a call. Heads have committed their tokens.
func (q *sequence) setMaxima(c *call, b int) {
	all := slices.Clone(q.maxima)
	copy(all[c.g*c.e:], c.running.last[b*c.g*c.e:])
	for g, h := range q.heads {
		if border := c.segments[b].to - h.Pending(); border >= 0 {
			copy(all[g*c.e:][:c.e], c.maxima(b, g, border-1))
		}
	}
	q.maxima = all
}

// columns returns the number of columns of a state.
func (c *StateConfig) columns() int {
	if c.Normalize {
		return c.ValueSize + 1
	}
	return c.ValueSize
}

// mostFloats is the maximum number of floats of a State, as of a layer's weights.
const mostFloats = 1 << 40

// NewState returns a State of zeros, or an error if the configuration is invalid.
func NewState(c StateConfig) (*State, error) {
	if c.ValueSize == 0 {
		c.ValueSize = c.KeySize
	}
	for _, f := range []struct {
		name        string
		size, least int
	}{{"batch", c.Batch, 0}, {"heads", c.Heads, 1}, {"key size", c.KeySize, 1}, {"value size", c.ValueSize, 1}} {
		if f.size < f.least {
			return nil, fmt.Errorf("linear: NewState: %s %d, want at least %d", f.name, f.size, f.least)
		}
	}
	if n := float64(c.Batch) * float64(c.Heads) * float64(c.KeySize) * float64(c.ValueSize); n > mostFloats {
		return nil, fmt.Errorf("linear: NewState: %.3g numbers, want at most %.3g", n, float64(mostFloats))
	}
	if c.Exp && !c.Normalize {
		return nil, errors.New("linear: NewState: Exp without Normalize, which keeps no maxima, want both")
	}
	s := &State{config: c, seqs: make([]sequence, c.Batch)}
	for b := range s.seqs {
		for range c.Heads {
			s.seqs[b].heads = append(s.seqs[b].heads, recurrence.NewState(c.KeySize, c.columns()))
		}
		if c.Exp {
			s.seqs[b].maxima = noMaxima(c.Heads * c.KeySize)
		}
	}
	return s, nil
}

// Config returns the configuration with defaults filled in. Batch is the current number of sequences.
func (s *State) Config() StateConfig { return s.config }

// Len returns the number of tokens of sequence b.
func (s *State) Len(b int) int { return s.seqs[b].n }

// Lens returns the number of tokens of each sequence.
func (s *State) Lens() []int {
	lens := make([]int, len(s.seqs))
	for i, q := range s.seqs {
		lens[i] = q.n
	}
	return lens
}

// Bytes returns the memory of the states. Those shared with forks count in each.
func (s *State) Bytes() int {
	n := 0
	for _, q := range s.seqs {
		n += 4 * len(q.maxima)
		for _, h := range q.heads {
			n += h.Bytes()
		}
	}
	return n
}

// Attend continues each sequence with the tokens of q, k and v: a step of a decoder, or a part of its prompt. It is
// Attend otherwise, with Output.State nil: Tensor returns it. Options.State and Options.Documents must be nil. A panic
// leaves the State unchanged, except that of an ended context: the State then panics until Truncate(0).
func (s *State) Attend(t *tensor.Tape, q, k, v *tensor.Tensor, o Options) Output {
	const op = "linear: State.Attend"
	if t.Recording() {
		badValue(op, "tape", "one that records", "an inference tape: gradients do not pass through a State")
	}
	if o.State != nil || o.Documents != nil {
		badValue(op, "state or documents", "given", "none: the tokens continue the State")
	}
	return attend(t, op, q, k, v, o, s)
}

// wantFit panics unless a call fits the State.
func (s *State) wantFit(c *call) {
	for b := range s.seqs {
		s.seqs[b].wantWhole(c.op, b)
	}
	got, want := []int{c.b, c.g, c.e, c.v}, []int{len(s.seqs), s.config.Heads, s.config.KeySize, s.config.columns()}
	if exp := relative(c.o.Feature, c.o.Normalize); exp != s.config.Exp {
		badValue(c.op, "feature", fmt.Sprintf("with a running maximum: %v", exp), fmt.Sprintf("%v, as the State is configured", s.config.Exp))
	}
	if !slices.Equal(got, want) {
		panic(&tensor.ShapeError{
			Op: c.op, Arg: "state", What: "sizes [B G E V], where Normalize adds 1 to V,", Got: want, Want: fmt.Sprint(got),
		})
	}
}

// wantWhole panics if the heads have read different numbers of tokens.
func (q *sequence) wantWhole(op string, b int) {
	if q.stopped {
		badValue(op, fmt.Sprintf("state of sequence %d", b), "of a call whose context ended", "one that is whole, or Truncate(0)")
	}
}

// begin makes the heads of the sequence this State's own, to change them by tokens with decays of the given kind.
func (q *sequence) begin(each bool, e int) {
	q.own()
	for _, h := range q.heads {
		h.Begin(each, e)
	}
}

// own copies heads that are shared.
func (q *sequence) own() {
	if !q.shared {
		return
	}
	q.heads = slices.Clone(q.heads)
	for i, h := range q.heads {
		q.heads[i] = h.Copy()
	}
	q.shared = false
}

// Tensor returns the states after all tokens, with the shape of Options.State: that of a call that continues them. Such a call counts groups of tokens anew, so its last digits may differ from those of State.Attend.
func (s *State) Tensor(t *tensor.Tape) *tensor.Tensor {
	c := &s.config
	x := t.Make(len(s.seqs), c.Heads, c.KeySize, c.columns())
	size := c.KeySize * c.columns()
	for b, q := range s.seqs {
		for g, h := range q.heads {
			h.Get(x.Data()[(b*c.Heads+g)*size:][:size], c.KeySize, c.columns())
		}
	}
	if c.Exp {
		m := t.Make(len(s.seqs), c.Heads, c.KeySize, 1)
		for b, q := range s.seqs {
			copy(m.Data()[b*c.Heads*c.KeySize:], q.maxima[c.Heads*c.KeySize:])
		}
		x = tensor.Concat(t, 3, x, m)
	}
	return x
}

// Fork returns a State with the same sequences, which share memory until one of them continues.
func (s *State) Fork() *State {
	all := make([]int, len(s.seqs))
	for i := range all {
		all[i] = i
	}
	return s.Select(all)
}

// Select returns a fork that consists of the given sequences, in the given order, for example the hypotheses that a
// beam search keeps. A sequence may be selected more than once. Select panics with a *tensor.ValueError if a sequence
// does not exist.
func (s *State) Select(sequences []int) *State {
	f := &State{config: s.config}
	f.config.Batch = len(sequences)
	for _, b := range sequences {
		if b < 0 || b >= len(s.seqs) {
			badValue("linear: Select", "sequence", fmt.Sprint(b), fmt.Sprintf("0 to %d", len(s.seqs)-1))
		}
		s.seqs[b].shared = true
		f.seqs = append(f.seqs, s.seqs[b])
	}
	return f
}

// Join returns a fork that consists of the sequences of s followed by those of the others. It panics with a
// *tensor.ValueError if a State is configured differently, except for its batch.
func (s *State) Join(others ...*State) *State {
	joined := s.Fork()
	for i, o := range others {
		own, other := s.config, o.config
		if other.Batch = own.Batch; own != other {
			badValue("linear: Join", fmt.Sprintf("state %d", i+1), fmt.Sprintf("one of %+v", other), fmt.Sprintf("one of %+v", own))
		}
		joined.seqs = append(joined.seqs, o.Fork().seqs...)
	}
	joined.config.Batch = len(joined.seqs)
	return joined
}

// Truncate makes each sequence as short as lens, one length for all or one for each. A state cannot take a token back
// that it has added, so only the tokens since the last multiple of 4 can go, or all: Truncate panics with a
// *tensor.ShapeError for other lengths. Keep a Fork of where you may want to return to.
func (s *State) Truncate(lens ...int) {
	const op = "linear: Truncate"
	if len(lens) != 1 && len(lens) != len(s.seqs) {
		badValue(op, "lengths", fmt.Sprintf("%d numbers", len(lens)), fmt.Sprintf("one, or one for each of B=%d sequences", len(s.seqs)))
	}
	for b, q := range s.seqs {
		n := lens[min(b, len(lens)-1)]
		if n != 0 {
			q.wantWhole(op, b)
		}
		border := q.n
		if len(q.heads) > 0 {
			border -= q.heads[0].Pending()
		}
		if slices.ContainsFunc(q.heads, func(h *recurrence.State) bool { return h.Pending() != q.n-border }) {
			border = q.n // a token that clears a head begins a group of this head
		}
		if n != q.n && n != border && n != 0 {
			panic(&tensor.ShapeError{
				Op: op, Arg: fmt.Sprintf("sequence %d", b), What: "length", Got: []int{n}, Want: fmt.Sprintf("0, %d or %d", border, q.n),
			})
		}
	}
	for b := range s.seqs {
		q, n := &s.seqs[b], lens[min(b, len(lens)-1)]
		if n == q.n && !q.stopped {
			continue
		}
		q.own()
		q.stopped = false
		for _, h := range q.heads {
			if h.Drop(); n == 0 {
				h.Clear()
			}
		}
		if size := len(q.maxima) / 2; size > 0 {
			if q.maxima = slices.Repeat(q.maxima[:size], 2); n == 0 {
				q.maxima = noMaxima(size)
			}
		}
		q.n = n
	}
}
